"""What a SPAseq query says beyond the algebra that the reference takes from the grammar: UNTIL, PERMUTE, SUPPRESS
(semantics.md 2.5c, 2.5d, 2.6c), as plain values, and how they are read.

The grammar parses all the rest: here these clauses are cut out of the text, and what stands inside them is given to it
as a query of its own. Where the algebra has a clause, `read` takes it from there instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from pyoxigraph import Variable

from oxiseq.grammar.algebra import (
    Ask,
    Atom,
    Bounded,
    Call,
    Conjunction,
    Disjunction,
    Expression,
    FunctionCall,
    MatchFunction,
    Maybe,
    Not,
    Op,
    Query,
    Repeat,
    Sequence,
    SequenceElement,
)
from oxiseq.grammar.parser import parse


@dataclass(frozen=True)
class Permute:
    """`PERMUTE(X1 op ... op Xn)`, an element of a sequence; `count`: k of `PERMUTE k OF (...)`."""

    items: tuple[Part, ...]
    op: Op
    count: int | None = None


Part: TypeAlias = SequenceElement | Permute
"""An element of a sequence. A Permute may stand where the algebra has an element."""


@dataclass(frozen=True)
class Suppress:
    """`SUPPRESS d BY ?k ...`; `size` in microseconds, `by` None without BY."""

    size: int
    by: tuple[Variable, ...] | None = None


@dataclass(frozen=True)
class Clauses:
    """The clauses that stand beside the sequence: the letter behind UNTIL, and SUPPRESS."""

    until: SequenceElement | None = None
    suppress: Suppress | None = None


NO_CLAUSES = Clauses()
SUPPRESSED = Variable("suppressed__")
"""Stands in the text that the grammar reads for SUPPRESSED()."""
SUPPRESS_CLAUSE = re.compile(r"\bSUPPRESS\s+(\d[\d.]*\s+[A-Za-z]+|P[\dA-Z.]+)(?:\s+BY((?:\s+\?\w+)+))?")


def read(text: str) -> tuple[Query, Clauses]:
    """A query and its clauses; a Permute stands in the sequence."""
    suppress = None
    if (found := SUPPRESS_CLAUSE.search(text)) is not None:
        by = None if found[2] is None else tuple(Variable(name[1:]) for name in found[2].split())
        suppress = Suppress(_duration(found[1]), by)
        text = text[: found.start()] + text[found.end() :]
    text = text.replace("SUPPRESSED()", str(SUPPRESSED))
    opened = re.search(r"\bSEQ\s*\(", text)
    if opened is None:
        return parse(text), Clauses(None, suppress)
    closed = _closing(text, opened.end())
    before, inner, after = text[: opened.end()], text[opened.end() : closed], text[closed:]

    def sequence(of: str) -> SequenceElement:
        return parse(before + of + after).sequence

    until = None
    if (behind := re.match(r"\)\s*UNTIL\b", after)) is not None:
        end = _letter_end(after, behind.end())
        letter, after = after[behind.end() : end], ")" + after[end:]
        until = sequence(letter)
    permutes: dict[str, Permute] = {}
    while (found := re.search(r"\bPERMUTE\s*(?:(\d+)\s+OF\s*)?\(", inner)) is not None:
        end = _closing(inner, found.end())
        name = f"Permute{len(permutes)}__"
        permutes[name] = _permute(sequence(inner[found.end() : end]), found[1])
        inner = inner[: found.start()] + name + inner[end + 1 :]
    query = parse(before + inner + after)
    query = replace(query, sequence=put_in(query.sequence, permutes))
    if not isinstance(query.form, Ask) and query.form.columns is not None:
        columns = tuple(
            c if c.expression is None else replace(c, expression=_with_suppressed(c.expression))
            for c in query.form.columns
        )
        query = replace(query, form=replace(query.form, columns=columns))
    return query, Clauses(until, suppress)


def _duration(text: str) -> int:
    """Microseconds, as the grammar reads them behind WITHIN."""
    window = parse(
        f"SELECT * WITHIN {text} FROM STREAM S <e:s> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?a ?b ?c }} }}"
    ).window
    assert window is not None
    return window.size


def _closing(text: str, start: int) -> int:
    """Where the parenthesis closes behind which `start` is."""
    depth = 1
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise AssertionError("a parenthesis stays open")


def _letter_end(text: str, start: int) -> int:
    """Where a BOp expression ends: a name or parentheses, and more of them behind `&` and `|`."""
    while True:
        operand = re.compile(r"\s*(\(|\w+)").match(text, start)
        assert operand is not None
        start = _closing(text, operand.end()) + 1 if operand[1] == "(" else operand.end()
        more = re.compile(r"\s*[&|]").match(text, start)
        if more is None:
            return start
        start = more.end()


def _permute(inner: SequenceElement, count: str | None) -> Permute:
    items = (inner.first, *(item for _, item in inner.rest)) if isinstance(inner, Sequence) else (inner,)
    ops = {op for op, _ in inner.rest} if isinstance(inner, Sequence) else {Op.NEXT}
    (op,) = ops or {Op.NEXT}
    return Permute(items, op, None if count is None else int(count))


def put_in(element: SequenceElement, permutes: Mapping[str, Permute]) -> SequenceElement:
    """With a Permute for each atom of such a name."""

    def put(inner: SequenceElement) -> SequenceElement:
        return put_in(inner, permutes)

    match element:
        case Atom(name):
            return permutes.get(name, element)  # type: ignore[return-value]  # see Part
        case Conjunction(items) | Disjunction(items):
            return replace(element, items=tuple(map(put, items)))
        case Repeat(item) | Maybe(item) | Not(item) | Bounded(item):
            return replace(element, item=put(item))
        case Sequence(first, rest):
            return replace(element, first=put(first), rest=tuple((op, put(item)) for op, item in rest))
    return element


def _with_suppressed(e: Expression) -> Expression:
    match e:
        case Variable():
            return MatchFunction("SUPPRESSED") if e == SUPPRESSED else e
        case Call(name, args):
            return Call(name, tuple(map(_with_suppressed, args)))
        case FunctionCall(function, args, distinct):
            return FunctionCall(function, tuple(map(_with_suppressed, args)), distinct)
    return e
