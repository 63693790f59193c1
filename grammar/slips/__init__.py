"""A text that is not of its language → a `QueryError` in human words: the usual slips, and what was expected."""
