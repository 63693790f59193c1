"""What is wrong with a file of tests."""

from __future__ import annotations

from oxiseq.grammar.errors import OxiseqError


class TestFileError(OxiseqError):
    """A file of tests that cannot be read as one; the message says where."""

    __test__ = False  # pytest collects classes by their names
