"""Matches of all languages: columns, until somebody looks.

    batches of a run ─ shape.py: a `Block` ─┬─▶ match.py, matches.py: a `Match`, `Matches`
                                            ├─▶ arrow.py, text.py, write.py: tables, texts, files
                                            ├─▶ rows.py: rows of named cells, to be compared
                                            └─▶ results.py: results that wait to be written to a stream

A language says what its matches have in common (`Shape`); nothing here knows which language it is.
"""
