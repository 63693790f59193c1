"""PERMUTE (semantics.md 2.5d) as a plain value, and how it is read where the algebra does not have it.

The grammar parses all the rest: here PERMUTE is cut out of the text, and what stands inside it is given to the grammar
as the sequence of the same query.
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


def read(text: str) -> Query:
    """A query, a Permute in its sequence."""
    opened = re.search(r"\bSEQ\s*\(", text)
    if opened is None:
        return parse(text)
    closed = _closing(text, opened.end())
    before, inner, after = text[: opened.end()], text[opened.end() : closed], text[closed:]
    permutes: dict[str, Permute] = {}
    while (found := re.search(r"\bPERMUTE\s*(?:(\d+)\s+OF\s*)?\(", inner)) is not None:
        end = _closing(inner, found.end())
        name = f"Permute{len(permutes)}__"
        permutes[name] = _permute(parse(before + inner[found.end() : end] + after).sequence, found[1])
        inner = inner[: found.start()] + name + inner[end + 1 :]
    query = parse(before + inner + after)
    return replace(query, sequence=put_in(query.sequence, permutes))


def _closing(text: str, start: int) -> int:
    """Where the parenthesis closes behind which `start` is."""
    depth = 1
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise AssertionError("a parenthesis stays open")


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
