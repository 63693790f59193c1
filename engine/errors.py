"""The engine's exceptions.

OxiseqError              everything this package raises on purpose (grammar/errors.py)
├── ArgumentTypeError    an argument of a type that a function does not take; a TypeError, too (grammar/errors.py)
├── ArgumentValueError   an argument of a value that it does not take; a ValueError, too (grammar/errors.py)
├── QueryError           a query text that is not accepted (grammar/errors.py)
├── EventError           an event, or a file of events, that cannot be read
├── LimitError           a limit is exceeded: the value given, the value allowed
├── KbError              the knowledge base cannot be read or queried
├── ExtraError           a package is not installed: which, and the extra that brings it; an ImportError, too
└── SnapshotError        a saved state cannot be restored
    └── SnapshotVersionError  another version has saved it, or another query
"""

from __future__ import annotations

from oxiseq.grammar.arguments import public
from oxiseq.grammar.errors import ArgumentTypeError, ArgumentValueError, OxiseqError, QueryError

__all__ = [
    "ArgumentTypeError",
    "ArgumentValueError",
    "EventError",
    "ExtraError",
    "KbError",
    "LimitError",
    "OxiseqError",
    "QueryError",
    "SnapshotError",
    "SnapshotVersionError",
    "syntax_reason",
]


@public
class EventError(OxiseqError):
    """An event, or a file of events, that cannot be read.

    `file` is the file's name (None: the event was passed in memory), `line` the line counted from 1
    (None: not known or no text), `reason` what is wrong. `str()` is `file:line: reason`.

    >>> import oxiseq
    >>> oxiseq.Store().stream("urn:s").push("<urn:a> <urn:b>", 1)
    Traceback (most recent call last):
    oxiseq.EventError: line 1: ...
    """

    def __init__(self, file: str | None, line: int | None, reason: str) -> None:
        super().__init__(file, line, reason)
        self.file = file
        self.line = line
        self.reason = reason

    def __str__(self) -> str:
        if self.file is None:
            return self.reason if self.line is None else f"line {self.line}: {self.reason}"
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.reason}"


@public
class LimitError(OxiseqError):
    """A limit is exceeded: `given` is what was requested or reached, `limit` what is allowed (numbers).

    >>> from oxiseq import LimitError
    >>> str(LimitError(5, 3, "too many streams")), LimitError(5, 3).limit
    ('too many streams: 5 given, at most 3 allowed', 3)
    """

    def __init__(self, given: int, limit: int, what: str = "") -> None:
        super().__init__(given, limit, what)
        self.given = given
        self.limit = limit
        self.what = what

    def __str__(self) -> str:
        return f"{self.what or 'limit exceeded'}: {self.given} given, at most {self.limit} allowed"


class MappingsError(LimitError):
    """A graph pattern is beyond a limit on one event, the one of this number in its batch."""

    def __init__(self, given: int, limit: int, what: str = "", event: int = 0) -> None:
        super().__init__(given, limit, what)
        self.event = event


@public
class KbError(OxiseqError):
    """The knowledge base cannot be read or queried.

    >>> import oxiseq
    >>> text = "SELECT * FROM STREAM S <urn:s> WHERE { SEQ(A) DEFINE GPM A ON S { ?s <urn:p> ?o } }"
    >>> oxiseq.Query(text).explain(kb=5)
    Traceback (most recent call last):
    oxiseq.KbError: a knowledge base is a file, text, a folder or a store, not 5
    """


@public
class ExtraError(OxiseqError, ImportError):
    """The call needs a package that is not installed: `package`, and `extra`, the extra that brings it.

    >>> from oxiseq import ExtraError
    >>> print(ExtraError("pyarrow", "arrow"))
    this needs pyarrow, which is not installed: pip install 'oxiseq[arrow]'
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(package, extra)
        self.package = package
        self.extra = extra

    def __str__(self) -> str:
        return f"this needs {self.package}, which is not installed: pip install 'oxiseq[{self.extra}]'"


class SnapshotError(OxiseqError):
    """A saved state cannot be restored: it is damaged, of another version, or another query's."""


class SnapshotVersionError(SnapshotError):
    """Another version, or another query, has saved a state: it is not damaged, and is rebuilt from the events."""


def syntax_reason(error: SyntaxError) -> str:
    """pyoxigraph's message without its "Parser error at line 1 ...:"."""
    message = str(error.msg)
    head, separator, tail = message.partition(": ")
    return tail if separator and head.startswith("Parser error") else message
