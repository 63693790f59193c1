"""Triple patterns over a store that is followed quad by quad: a source for each, joined two by two.

In the flow: a conjunction → `Quads`, arranged by shared variables → **one relation**. The pattern with the fewest
quads comes first, then of those that share variables with what is joined the one with the fewest: only what is joined
so far is kept for this query alone; the patterns' quads serve all queries (engine/standing).
"""

from __future__ import annotations

from collections.abc import Callable

from pyoxigraph import NamedNode

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.relations import Relation, Relations
from oxiseq.engine.flow.sparql.around import Around
from oxiseq.engine.flow.sparql.grounds import EachGraph, Ground
from oxiseq.engine.flow.sparql.leaves import Key, OneByOne, Where, keys_of, renamed
from oxiseq.grammar.algebra import TriplePattern


class StoreLeaves(OneByOne):
    """Leaves on the graphs of a store."""

    def __init__(self, relations: Relations, around: Around) -> None:
        super().__init__(relations)
        self._around = around

    def on(self, pattern: TriplePattern, ground: Ground) -> Relation:
        """A triple pattern on some graphs as one, or on each for itself, its name being a context."""
        return self._each(pattern, ground) if isinstance(ground, EachGraph) else super().on(pattern, ground)

    def _pattern(self, pattern: TriplePattern, place: Where) -> Relation:
        if isinstance(place, EachGraph):
            return self._each(pattern, place)
        assert isinstance(place, p.GraphPlace)  # there are no windows
        form, keys = quads_of(pattern, place.name)
        return self._relations.source(form, keys, keys)

    def _each(self, pattern: TriplePattern, ground: EachGraph) -> Relation:
        context = ground.context
        if not self._around.whole_dataset:
            form, keys = quads_of(pattern, None)
            each = p.Quads(form.pattern, p.column(len(keys)))
            return self._relations.source(each, (*keys, context), (*keys, context))
        parts = [
            self._relations.extend(self._pattern(pattern, p.GraphPlace(name)), name, context)
            for name in self._around.named_graphs
        ]
        if not parts:
            return self._nothing((*dict.fromkeys(keys_of(pattern)), context))
        return self._relations.union(parts)

    def _size(self, pattern: TriplePattern, place: Where) -> int:
        size: Callable[[p.Quads], int] | None = self._around.size
        if size is None:
            return 0
        if isinstance(place, p.GraphPlace):
            return size(quads_of(pattern, place.name)[0])
        form, keys = quads_of(pattern, None)
        return size(p.Quads(form.pattern, p.column(len(keys))))


def quads_of(pattern: TriplePattern, graph: NamedNode | None) -> tuple[p.Quads, tuple[Key, ...]]:
    """A pattern whose variables and blank nodes are columns; these."""
    keys = tuple(dict.fromkeys(keys_of(pattern)))
    return p.Quads(renamed(pattern, {key: p.column(i) for i, key in enumerate(keys)}), graph), keys
