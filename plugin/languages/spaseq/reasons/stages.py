"""The beginnings of a sequence as queries: `A`, `A; B`, `A; B, C`..."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyoxigraph import Variable

from oxiseq.engine.sequence.positions import flatten
from oxiseq.grammar.algebra import Expression, MatchFunction, Op, Query, Sequence, SequenceElement
from oxiseq.grammar.places import atoms, negation
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.render import render
from oxiseq.grammar.scope import expression_variables, subexpressions, visible_variables

Items = tuple[tuple[Op | None, SequenceElement], ...]


@dataclass(frozen=True, slots=True)
class Beginning:
    """The sequence up to one of its elements (`gap`: from the element before on, with the events between);
    `text` as in the query."""

    items: Items
    gap: int
    text: str


def beginnings(query: Query) -> Iterator[Beginning]:
    """One per element that is not negated, and the whole if negations are at the end."""
    node = query.sequence
    items = tuple(flatten(node)) if isinstance(node, Sequence) else ((None, node),)
    gap = 0
    for number, (_, item) in enumerate(items):
        if negation(item) is None:
            part = items[: number + 1]
            yield Beginning(part, gap, _text(query, part))
            gap = number + 1
    if gap < len(items):
        yield Beginning(items, gap, _text(query, items))


def with_items(query: Query, items: Items) -> Query:
    """The query with another sequence."""
    (_, first), *rest = items
    names = {atom.name for _, item in items for atom in atoms(item, positive=True)}
    bound = {v for gpm in query.gpms if gpm.name in names for v in visible_variables(gpm.pattern)}
    filters = tuple(each for each in query.filters if _reads(each.condition, names, bound))
    sequence = Sequence(first, tuple((op or Op.ANY, item) for op, item in rest))
    return replace(query, sequence=sequence, filters=filters)


def _reads(condition: Expression, names: set[str], bound: set[Variable]) -> bool:
    """Whether a FILTER behind SEQ reads these GPMs only."""
    asked = {e.gpm for e in subexpressions(condition) if isinstance(e, MatchFunction) and e.gpm is not None}
    return asked <= names and expression_variables(condition) <= bound


def _text(query: Query, items: Items) -> str:
    line = next(line for line in render(with_items(query, items)).split("\n") if line.strip().startswith("SEQ("))
    return line.strip().removeprefix("SEQ(").removesuffix(")")
