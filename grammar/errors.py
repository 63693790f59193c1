"""The errors and lints of a query, and how they are shown.

    OxiseqError              everything this package raises on purpose
    ├── ArgumentTypeError    an argument of a type that a function does not take; a TypeError, too
    ├── ArgumentValueError   an argument of a value that it does not take; a ValueError, too
    └── QueryError           a query text that is not accepted, with its place

    Finding                  not raised: one error or lint that the checks report

Both show the line of the text with a caret under the place:

    there is no GPM Bb
    line 4, column 10
      4 |   SEQ(A; Bb)
        |          ^^
    hint: did you mean B?

Other parts hang their exceptions under `OxiseqError` (engine/errors.py).

And what checks and syntax errors say with: the place of a variable, names that come close.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from difflib import get_close_matches
from sys import stdlib_module_names
from traceback import StackSummary, format_exception_only, walk_tb
from types import FrameType
from typing import Any, Final, Literal, TypeAlias

from pyoxigraph import Variable

from oxiseq.grammar.algebra import NOWHERE, Span
from oxiseq.grammar.name_chars import NAME_CHARS
from oxiseq.grammar.records import dataclass

# --- errors ------------------------------------------------------------------------------------------


Severity: TypeAlias = Literal["error", "lint"]
_NOT_THEIRS: Final = frozenset({"oxiseq", "IPython", "ipykernel", *stdlib_module_names})
"""Packages whose frames say nothing about the caller's code."""


class OxiseqError(Exception):
    """The root of all errors that oxiseq raises on purpose.

    >>> import oxiseq
    >>> try:
    ...     oxiseq.run("SELECT", {})
    ... except oxiseq.OxiseqError as error:
    ...     print(type(error).__name__)
    QueryError
    """

    __module__ = "oxiseq"

    def _render_traceback_(self) -> list[str]:
        """What a notebook (IPython) shows: the frames of the caller's own code, and the message.

        What caused it is shown only where that came from the caller's code, too.
        """
        cause = self.__cause__
        caused = [] if cause is None or not _their_frames(cause) else [*_shown(cause), "", "so:", ""]
        return [*caused, *_shown(self)]


def _shown(error: BaseException) -> list[str]:
    frames = StackSummary.extract(iter(_their_frames(error))).format()
    return [line.rstrip("\n") for line in (*frames, "".join(format_exception_only(error)))]


def _their_frames(error: BaseException) -> list[tuple[FrameType, int]]:
    """The frames of a traceback that are not ours."""
    found = walk_tb(error.__traceback__)
    return [(f, line) for f, line in found if f.f_globals.get("__name__", "").partition(".")[0] not in _NOT_THEIRS]


class ArgumentTypeError(OxiseqError, TypeError):
    """An argument is of a type that the function does not take.

    >>> import oxiseq
    >>> oxiseq.run("SELECT", 3)
    Traceback (most recent call last):
    oxiseq.ArgumentTypeError: events must be a file, (graph, time) pairs or rows, not 3
    """

    __module__ = "oxiseq"


class ArgumentValueError(OxiseqError, ValueError):
    """An argument is of a value that the function does not take.

    >>> import oxiseq
    >>> oxiseq.Query("VOCAB <http://e/> SELECT * FROM S WHERE A", "ceql").run({}, on_error="go on")
    Traceback (most recent call last):
    oxiseq.ArgumentValueError: ...
    """

    __module__ = "oxiseq"


class QueryError(OxiseqError):
    """A query text that is not accepted.

    `message` says what is wrong; `span` where (line and column count from 1); `source_line` is that line
    of the text; `expected` says what could have been there and `hint` what was probably meant, both may
    be empty; `code` is a short stable name. `str()` shows it all with a caret under the place.

    >>> import oxiseq
    >>> try:
    ...     oxiseq.Query("SELECT * FROM STREAM S <urn:s> WHERE { SEQ(A B) }").variables
    ... except oxiseq.QueryError as error:
    ...     error.line, error.column
    (1, 46)
    """

    __module__ = "oxiseq"

    def __init__(
        self,
        message: str,
        span: Span,
        text: str = "",
        *,
        hint: str = "",
        expected: str = "",
        code: str = "syntax",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.text = text
        self.hint = hint
        self.expected = expected
        self.code = code

    @property
    def line(self) -> int:
        """The line, counted from 1."""
        return self.span.line

    @property
    def column(self) -> int:
        """The column, counted from 1."""
        return self.span.column

    @property
    def source_line(self) -> str:
        """The line of the query text that `span` starts in."""
        return source_line(self.text, self.span)

    def __str__(self) -> str:
        return _show(self.message, self.span, self.text, self.expected, self.hint)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.message, self.span, self.text, self.hint, self.expected, self.code)

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values; the keys are those of `Finding.to_json`."""
        return _as_json("error", self.code, self.message, self.span, self.expected, self.hint)

    def to_finding(self) -> Finding:
        """The same, not raised."""
        return Finding("error", self.code, self.message, self.span, self.hint, self.text, self.expected)


def _rebuild(message: str, span: Span, text: str, hint: str, expected: str, code: str) -> QueryError:
    return QueryError(message, span, text, hint=hint, expected=expected, code=code)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check found: an `error` (the query is refused) or a `lint` (worth a look).

    `code` is short and stable. `text` is the query text, for showing the place.
    """

    severity: Severity
    code: str
    message: str
    span: Span = NOWHERE
    hint: str = ""
    text: str = field(default="", compare=False, repr=False)
    expected: str = ""
    """The tokens that could have been there, for a text that cannot be parsed."""

    @property
    def line(self) -> int:
        """The line where it begins, counted from 1."""
        return self.span.line

    @property
    def column(self) -> int:
        """The column where it begins, counted from 1."""
        return self.span.column

    def __str__(self) -> str:
        return _show(self.message, self.span, self.text, self.expected, self.hint)

    def to_json(self) -> dict[str, Any]:
        """As JSON values: severity, code, message, hint, line, column, start, end."""
        return _as_json(self.severity, self.code, self.message, self.span, self.expected, self.hint)

    def to_error(self) -> QueryError:
        """The same as an exception."""
        return QueryError(self.message, self.span, self.text, hint=self.hint, expected=self.expected, code=self.code)


def source_line(text: str, span: Span) -> str:
    """The line of `text` that `span` starts in, without its line break."""
    lines = text.split("\n")
    return lines[span.line - 1].rstrip("\r") if 0 < span.line <= len(lines) else ""


def span_at(text: str, start: int, end: int) -> Span:
    """The span of the characters [start, end) of `text`."""
    line_start = text.rfind("\n", 0, start) + 1
    return Span(start, end, text.count("\n", 0, start) + 1, start - line_start + 1)


def _show(message: str, span: Span, text: str, expected: str, hint: str) -> str:
    parts = [message, f"line {span.line}, column {span.column}"]
    if text:
        line = source_line(text, span)
        margin = f"{span.line:>3} | "
        before = "".join(c if c == "\t" else " " for c in line[: span.column - 1])
        width = max(1, min(span.end - span.start, len(line) - span.column + 1))
        parts += [margin + line, " " * (len(margin) - 2) + "| " + before + "^" * width]
    if expected:
        parts.append(f"expected: {expected}")
    if hint:
        parts.append(f"hint: {hint}")
    return "\n".join(parts)


def _as_json(severity: Severity, code: str, message: str, span: Span, expected: str, hint: str) -> dict[str, Any]:
    return {
        "severity": severity,
        "code": code,
        "message": message,
        "expected": expected,
        "hint": hint,
        "line": span.line,
        "column": span.column,
        "start": span.start,
        "end": span.end,
    }


# --- finding tools -----------------------------------------------------------------------------------


_NAME_CHAR: Final = re.compile(f"[{NAME_CHARS}]")
"""To compile so many characters takes milliseconds."""
_BEGUN: Final = 2
"""Names of more characters come close where one begins with the other: `temp`, `temperature`."""


def error(code: str, message: str, span: Span, hint: str = "") -> Finding:
    """A finding that refuses the query."""
    return Finding("error", code, message, span, hint)


def lint_finding(code: str, message: str, span: Span, hint: str = "") -> Finding:
    """A finding worth a look."""
    return Finding("lint", code, message, span, hint)


def at_variable(variable: Variable, span: Span, text: str) -> Span:
    """The first place of `variable` inside `span`; `span` itself where the text is not known."""
    end = min(span.end, len(text))
    for found in re.compile(rf"[?$]{re.escape(variable.value)}").finditer(text, span.start, end):
        if found.end() == end or not _NAME_CHAR.match(text, found.end()):
            return span_at(text, found.start(), found.end())
    return span


def at_pattern(pattern: str, span: Span, text: str) -> Span:
    """The first place inside `span` where the text looks like `pattern`."""
    found = re.compile(pattern).search(text, span.start, span.end) if text else None
    return span if found is None else span_at(text, found.start(), found.end())


def closest(name: str, names: Iterable[str]) -> str | None:
    """The name that comes closest, also by case, or begins so; None where none comes close."""
    known = list(dict.fromkeys(names))
    folded = [n for n in known if n.casefold() == name.casefold()]
    begun = [n for n in known if min(len(n), len(name)) > _BEGUN and (name.startswith(n) or n.startswith(name))]
    return next(iter(folded or get_close_matches(name, known, 1, 0.6) or begun), None)


def close_name(name: str, names: Iterable[str], otherwise: str) -> str:
    """`did you mean X?` if a name comes close, else the other hint."""
    close = closest(name, names)
    return otherwise if close is None else f"did you mean {close}?"


def variable_hint(variable: Variable, known: Iterable[Variable]) -> str:
    """What `variable` might have meant."""
    names = sorted(f"?{v.value}" for v in known)
    listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return close_name(f"?{variable.value}", names, f"it can be one of {listed}" if names else "")


def listing(names: Iterable[str], last: str = "and") -> str:
    """`A, B and C`; empty for none."""
    *others, end = list(names) or [""]
    return f"{', '.join(others)} {last} {end}" if others else end


def named(variables: Iterable[Variable]) -> str:
    """`?a, ?b and ?c`, sorted."""
    return listing(sorted(f"?{v.value}" for v in variables))


def one_line(found: Mapping[str, Any]) -> str:
    """Place, message and hint of a finding (its values) in one line, as warnings have them."""
    told = ": ".join(filter(None, (found["message"], found["hint"])))
    return f"line {found['line']}, column {found['column']}: {told}"


def as_values(found: Finding | QueryError, text: str) -> dict[str, Any]:
    """One, with the place where it ends."""
    values = found.to_json()
    before = text[: values["end"]]
    values["end_line"] = before.count("\n") + 1
    values["end_column"] = len(before) - (before.rfind("\n") + 1) + 1
    return values
