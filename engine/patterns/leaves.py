"""Triple patterns on single events as sources of a plan.

Where it stands: a conjunction of triple patterns, each event's graph being one of the named graphs → a basic graph
pattern for the match kernel → rows by event → **`Given`**.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyoxigraph import BlankNode, NamedNode, Variable

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.relations import Relation, Relations
from oxiseq.engine.flow.rewriting import placed
from oxiseq.engine.flow.sparql.grounds import EachGraph, Ground
from oxiseq.engine.flow.sparql.leaves import Conjunction, Key, Leaves
from oxiseq.grammar.algebra import Expression, TermOrVariable, TriplePattern


@dataclass(frozen=True, slots=True)
class Leaf:
    """A basic graph pattern with its filters; its variables are `column(0)`, `column(1)`... in order of appearance,
    blank nodes among them. source: the name of the `Given` that its rows go to, the event's term behind them."""

    source: str
    patterns: tuple[TriplePattern, ...]
    filters: tuple[Expression, ...]
    width: int

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Its columns."""
        return tuple(p.column(i) for i in range(self.width))


class EventLeaves(Leaves):
    """Leaves on the graphs of events. `found`: all of one plan, each once."""

    def __init__(self, relations: Relations) -> None:
        super().__init__(relations)
        self.found: dict[tuple[object, ...], Leaf] = {}

    def joined(self, whole: Conjunction) -> list[Relation]:
        """One leaf: the match kernel joins as many patterns as there are."""
        return [self._leaf(whole)]

    def on(self, pattern: TriplePattern, ground: Ground) -> Relation:
        """A triple pattern on each event's graph."""
        assert isinstance(ground, EachGraph)  # such patterns name no other graph
        return self._leaf(Conjunction([(pattern, ground)]))

    def _leaf(self, whole: Conjunction) -> Relation:
        keys = whole.keys
        names: dict[Key, Variable] = {key: p.column(i) for i, key in enumerate(keys)}
        patterns = tuple(_renamed(pattern, names) for pattern, _ in whole.patterns)
        known = {v: c for v, c in names.items() if isinstance(v, Variable)}
        filters = tuple(placed(each, known) for each in whole.filters)
        leaf = self.found.get((patterns, filters))
        if leaf is None:
            leaf = self.found[patterns, filters] = Leaf(f"leaf {len(self.found)}", patterns, filters, len(keys))
        context = next(place.context for _, place in whole.patterns if isinstance(place, EachGraph))
        columns = (*keys, context)
        return self._relations.source(p.Given(leaf.source, len(columns), once=True), columns, columns)


def _renamed(pattern: TriplePattern, names: dict[Key, Variable]) -> TriplePattern:
    def of(term: TermOrVariable) -> TermOrVariable:
        return names[term] if isinstance(term, Variable | BlankNode) else term

    predicate = of(pattern.predicate)
    assert isinstance(predicate, NamedNode | Variable)
    return TriplePattern(of(pattern.subject), predicate, of(pattern.object))
