"""The beginnings of a sequence as queries: `A`, `A; B`, `A; B, C`..."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from oxiseq.engine.sequence.positions import flatten
from oxiseq.grammar.algebra import Op, Query, Sequence, SequenceElement
from oxiseq.grammar.places import negation
from oxiseq.grammar.render import render

Items = tuple[tuple[Op | None, SequenceElement], ...]


@dataclass(frozen=True, slots=True)
class Beginning:
    """The sequence up to its element `last` (`gap`: from the element before on, what stands between included);
    `text` as in the query. `closed`: the whole sequence, whose trailing negations are decided."""

    items: Items
    gap: int
    closed: bool
    text: str


def beginnings(query: Query) -> Iterator[Beginning]:
    """One per element that is not negated, and the whole if negations stand at the end."""
    node = query.sequence
    items = tuple(flatten(node)) if isinstance(node, Sequence) else ((None, node),)
    gap = 0
    for number, (_, item) in enumerate(items):
        if negation(item) is None:
            part = items[: number + 1]
            yield Beginning(part, gap, number == len(items) - 1, _text(query, part))
            gap = number + 1
    if gap < len(items):
        yield Beginning(items, gap, True, _text(query, items))


def with_items(query: Query, items: Items) -> Query:
    """The query with another sequence."""
    (_, first), *rest = items
    return replace(query, sequence=Sequence(first, tuple((op or Op.ANY, item) for op, item in rest)))


def _text(query: Query, items: Items) -> str:
    line = next(line for line in render(with_items(query, items)).split("\n") if line.strip().startswith("SEQ("))
    return line.strip().removeprefix("SEQ(").removesuffix(")")
