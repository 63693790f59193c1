"""Triple patterns on single events, and on graphs of the knowledge base beside them, as sources of a plan.

In the flow: a conjunction of triple patterns → a basic graph pattern on the event's graph for the match kernel
(**`Given`**), the others queried from the knowledge base (`Asked`).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyoxigraph import Variable

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.relations import Relation, Relations
from oxiseq.engine.flow.rewriting import placed
from oxiseq.engine.flow.sparql.asking import question
from oxiseq.engine.flow.sparql.grounds import EachEvent, Ground, Merge
from oxiseq.engine.flow.sparql.leaves import Conjunction, Key, Leaves, Where, connected, keys_of, renamed
from oxiseq.engine.flow.sparql.runs import connected_patterns, in_ground
from oxiseq.grammar.algebra import Expression, Group, TriplePattern
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import plain_variables


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
    """Leaves on the graphs of events and of the knowledge base. `found`: those on events of one plan, each once."""

    def __init__(self, relations: Relations) -> None:
        super().__init__(relations)
        self.found: dict[tuple[object, ...], Leaf] = {}

    def joined(self, whole: Conjunction) -> list[Relation]:
        """A leaf for all that is on the event, however much that is, and a question for each part of the rest."""
        filters, parts = list(whole.filters), list[Relation]()
        on_event = [each for each in whole.patterns if isinstance(each[1], EachEvent)]
        if on_event:
            part = Conjunction(on_event)
            part.filters = [f for f in filters if plain_variables(f) <= {*part.keys}]
            filters = [f for f in filters if f not in part.filters]
            parts.append(self._on_event(part))
        rest = connected_patterns([each for each in whole.patterns if not isinstance(each[1], EachEvent)])
        parts += [self._asked(patterns) for patterns in rest]
        return [self._relations.filter(connected(self._relations, parts), filters)] if filters else parts

    def on(self, pattern: TriplePattern, ground: Ground) -> Relation:
        """A triple pattern on each event's graph, or on some graphs of the knowledge base as one."""
        if isinstance(ground, EachEvent):
            return self._on_event(Conjunction([(pattern, ground)]))
        return super().on(pattern, ground)

    def _pattern(self, pattern: TriplePattern, place: Where) -> Relation:
        return self._asked([(pattern, place)])

    def _on_event(self, whole: Conjunction) -> Relation:
        keys = whole.keys
        names: dict[Key, Variable] = {key: p.column(i) for i, key in enumerate(keys)}
        patterns = tuple(renamed(pattern, names) for pattern, _ in whole.patterns)
        known = {v: c for v, c in names.items() if isinstance(v, Variable)}
        filters = tuple(placed(each, known) for each in whole.filters)
        leaf = self.found.get((patterns, filters))
        if leaf is None:
            leaf = self.found[patterns, filters] = Leaf(f"leaf {len(self.found)}", patterns, filters, len(keys))
        context = next(place.context for _, place in whole.patterns if isinstance(place, EachEvent))
        columns = (*keys, context)
        return self._relations.source(p.Given(leaf.source, len(columns), once=True), columns, columns)

    def _asked(self, patterns: Sequence[tuple[TriplePattern, Where]]) -> Relation:
        """Triple patterns on graphs of the knowledge base, which share variables."""
        elements = []
        for pattern, place in patterns:
            assert isinstance(place, p.GraphPlace)  # there are no windows
            elements.append(in_ground(Merge((place,)), [pattern]))
        every = (key for pattern, _ in patterns for key in keys_of(pattern))
        keys = tuple(dict.fromkeys(key for key in every if isinstance(key, Variable)))
        return self._relations.source(question(Group(tuple(elements)), keys), keys, keys)
