"""What a SPAseq query says beyond the algebra that the reference takes from the grammar: UNTIL and PERMUTE
(semantics.md 2.5c, 2.5d), as plain values, and how they are read.

The grammar parses all the rest: here these clauses are cut out of the text, and what stands inside them is given to it
as a query of its own. Where the algebra has UNTIL, it is taken from there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from oxiseq.grammar.algebra import (
    Atom,
    Bounded,
    Conjunction,
    Disjunction,
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


UNTIL_IS_READ = "until" in Query.__dataclass_fields__
"""Whether the grammar reads UNTIL: then it is not cut out."""


def read(text: str) -> tuple[Query, SequenceElement | None]:
    """A query, a Permute in its sequence, and the letter behind UNTIL."""
    opened = re.search(r"\bSEQ\s*\(", text)
    if opened is None:
        return parse(text), None
    closed = _closing(text, opened.end())
    before, inner, after = text[: opened.end()], text[opened.end() : closed], text[closed:]
    behind = None if UNTIL_IS_READ else re.match(r"\)\s*UNTIL\b", after)
    letter = ""
    if behind is not None:
        end = _letter_end(after, behind.end())
        letter, after = after[behind.end() : end], ")" + after[end:]

    def sequence(of: str) -> SequenceElement:
        return parse(before + of + after).sequence

    permutes: dict[str, Permute] = {}
    while (found := re.search(r"\bPERMUTE\s*(?:(\d+)\s+OF\s*)?\(", inner)) is not None:
        end = _closing(inner, found.end())
        name = f"Permute{len(permutes)}__"
        permutes[name] = _permute(sequence(inner[found.end() : end]), found[1])
        inner = inner[: found.start()] + name + inner[end + 1 :]
    query = parse(before + inner + after)
    query = replace(query, sequence=put_in(query.sequence, permutes))
    return query, until_of(query, sequence(letter) if letter else None)


def until_of(query: Query, cut_out: SequenceElement | None = None) -> SequenceElement | None:
    """The letter behind UNTIL: of the algebra if it has the clause, else what `read` has cut out."""
    return getattr(query, "until", cut_out)


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
