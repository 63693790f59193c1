"""Comparisons that are legal and can hardly be meant, in every language that has SPARQL's FILTERs.

itself    a value is compared with itself
kinds     `<` or `>` with a plain string, of a variable that is used as something else elsewhere in the query
text      `<` or `>` with a plain string that looks like a number or a date

A variable is used as a number where it is compared with one or calculated with; what two variables have in common by
a comparison they are both taken to be.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pyoxigraph import Literal, Variable

from oxiseq.grammar.algebra import Aggregate, Call, Expression
from oxiseq.grammar.errors import Finding, lint_finding
from oxiseq.grammar.functions import MIRRORED, MIRRORED_ORDER
from oxiseq.grammar.scope import plain_variables, subexpressions
from oxiseq.grammar.terms import INTEGER_TYPES, XSD

_ARITHMETIC: Final = frozenset(["+", "-", "*", "/", "NEGATE", "PLUS"])
_MADE_ANEW: Final = frozenset(["RAND", "UUID", "STRUUID", "BNODE"])
"""Functions that give another value at each call."""
_NUMBER, _STRING, _TIME, _TRUTH = "a number", "a string", "a time", "a truth value"
_ARGUMENTS: Final[Mapping[str, str]] = {
    **dict.fromkeys(["ABS", "CEIL", "FLOOR", "ROUND", *_ARITHMETIC], _NUMBER),
    **dict.fromkeys(["YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS", "TIMEZONE", "TZ"], _TIME),
}
"""What the arguments of functions and operators are."""
_KINDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(["dateTime", "dateTimeStamp", "date", "time"], _TIME),
    "string": _STRING,
    "boolean": _TRUTH,
}
"""What literals of other datatypes of XSD are."""
_NUMBER_TEXT: Final = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_DATE_TEXT: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}.*)?")
_NUMBERS: Final = INTEGER_TYPES | {XSD + name for name in ("decimal", "float", "double")}


AS_NUMBERS: Final = frozenset(name for name, kind in _ARGUMENTS.items() if kind == _NUMBER)
"""Functions and operators whose arguments are numbers."""


def is_number(e: object) -> bool:
    """Whether it is a number, written or calculated."""
    return isinstance(e, Call | Literal) and _kind(e) == _NUMBER


def check_comparisons(nodes: Iterable[Expression], mark: str = "?") -> Iterator[Finding]:
    """The lints of a query; `nodes` are all its expressions with their subexpressions, `mark` stands before the names
    of its variables."""
    calls = [e for e in nodes if isinstance(e, Call | Aggregate)]
    used = _Uses()
    for e in calls:
        used.add(e)
    for e in calls:
        if isinstance(e, Call) and e.name in MIRRORED and len(e.args) == 2:
            yield from _itself(e, mark)
            yield from _kinds(e, used, mark)


def _itself(e: Call, mark: str) -> Iterator[Finding]:
    left, right = e.args
    if left != right or not plain_variables(left):
        return
    if any(isinstance(x, Call) and x.name in _MADE_ANEW for x in subexpressions(left)):
        return
    what = f"{mark}{left.value}" if isinstance(left, Variable) else "a value"
    if e.name in ("=", "<=", ">="):
        yield lint_finding(
            "itself",
            f"{what} is compared with itself: true of every value that is equal to itself",
            e.span,
            "compare with another variable, or write BOUND(...)",
        )
    else:
        yield lint_finding(
            "itself",
            f"{what} is compared with itself: this is hardly ever true",
            e.span,
            "compare with another variable",
        )


def _kinds(e: Call, used: _Uses, mark: str) -> Iterator[Finding]:
    for one, other in (e.args, e.args[::-1]):
        if (
            e.name in MIRRORED_ORDER
            and isinstance(one, Variable)
            and isinstance(other, Literal)
            and _kind(other) == _STRING
        ):
            kinds, plain = sorted(used.of(one) - {_STRING}), looks_like_number(other.value)
            hint = f"write {other.value} without quotes" if plain else ""
            if kinds:
                message = f"{mark}{one.value} is used as {kinds[0]} elsewhere, {other} is a string: this is never true"
                yield lint_finding("kinds", message, e.span, hint or f"compare with {kinds[0]}")
            elif plain:
                message = (
                    f'{other} is a text: no number passes this, and texts are compared letter by letter ("9" > "10")'
                )
                yield lint_finding("text", message, e.span, hint)
            elif mark and (date := _DATE_TEXT.fullmatch(other.value)) is not None:
                kind = "dateTime" if date[1] else "date"
                message = f"{other} is a text: no xsd:{kind} passes this"
                yield lint_finding("text", message, e.span, f"where the values are dates write {other}^^xsd:{kind}")


def looks_like_number(text: str) -> bool:
    """Whether a text is written as a number: `7`, `-0.5`, `1e3`; `007` is not, for it may be a name."""
    return _NUMBER_TEXT.fullmatch(text) is not None


class _Uses:
    """What variables are used as; those that are compared with each other are of a class."""

    def __init__(self) -> None:
        self._class: dict[Variable, Variable] = {}
        self._kinds: dict[Variable, set[str]] = {}

    def of(self, v: Variable) -> set[str]:
        """The kinds of all variables of its class."""
        return self._kinds.get(self._root(v), set())

    def add(self, e: Call | Aggregate) -> None:
        """Learn from an operator, a function or an aggregate."""
        if isinstance(e, Aggregate):
            if e.name in ("SUM", "AVG") and isinstance(e.arg, Variable):
                self._is(e.arg, _NUMBER)
        elif e.name in MIRRORED and len(e.args) == 2:
            self._compare(e.args[0], e.args[1])
        elif e.name in _ARGUMENTS:
            for arg in e.args:
                if isinstance(arg, Variable):
                    self._is(arg, _ARGUMENTS[e.name])

    def _compare(self, left: Expression, right: Expression) -> None:
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Variable) and (kind := _kind(other)):
                self._is(one, kind)
        if isinstance(left, Variable) and isinstance(right, Variable):
            a, b = self._root(left), self._root(right)
            if a != b:
                self._class[a] = b
                self._kinds.setdefault(b, set()).update(self._kinds.pop(a, set()))

    def _is(self, v: Variable, kind: str) -> None:
        self._kinds.setdefault(self._root(v), set()).add(kind)

    def _root(self, v: Variable) -> Variable:
        path = []
        while v in self._class:
            path.append(v)
            v = self._class[v]
        for each in path:  # a long chain is walked once
            self._class[each] = v
        return v


def _kind(e: Expression) -> str:
    """What a constant or a calculation is; empty where that cannot be seen."""
    if isinstance(e, Call):
        return _NUMBER if e.name in _ARITHMETIC else ""
    if not isinstance(e, Literal) or e.language is not None:
        return ""
    if e.datatype.value in _NUMBERS:
        return _NUMBER
    return _KINDS.get(e.datatype.value.removeprefix(XSD), "")
