"""Small helpers of the checks and of syntax errors: findings, the place of a variable, names that come close."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final

from pyoxigraph import Variable

from oxiseq.grammar.algebra import Span
from oxiseq.grammar.errors import Finding, QueryError, span_at
from oxiseq.grammar.name_chars import NAME_CHARS

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
    return at_pattern(rf"[?$]{re.escape(variable.value)}(?![{NAME_CHARS}])", span, text)


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
