"""Patterns over a store: which quads are theirs, and these arranged for joins.

In the flow: quads removed and added → by the constants of patterns → **leaves**: changes of each →
arrangements and operators of queries. A leaf serves all queries that have its pattern, whatever its variables are
called; so does an arrangement of it, which is the only place where quads are held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from operator import attrgetter
from typing import Any, Final, TypeAlias

import numpy as np
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Store, Triple, Variable

from oxiseq.engine.errors import LimitError
from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.delta import Delta, Ids
from oxiseq.engine.flow.operators.arrange import ArrangeNode
from oxiseq.engine.flow.operators.sources import Fed
from oxiseq.engine.standing.terms import StoreTerms
from oxiseq.engine.terms.normal import normalise
from oxiseq.engine.terms.saved import Stateful, unsaved
from oxiseq.engine.terms.texts import Term

Source: TypeAlias = p.Quads | p.Graphs
Key: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
"""Of an arrangement: its columns, and those that agree where both sides have a value."""
Found: TypeAlias = Iterator[Quad] | Iterator[NamedNode | BlankNode]
"""Quads of a store, or names of its graphs, at the time of the call."""
_ANY: Final = object()
"""Of an index: any named graph."""
_PARTS: Final = ("subject", "predicate", "object", "graph_name")
_COUNTED: Final = 1 << 14
"""Quads that are counted to distinguish small patterns from large ones."""


class Leaf(Stateful):
    """A pattern of some queries."""

    made_of = (unsaved("arranged"),)

    def __init__(self, form: Source, terms: StoreTerms) -> None:
        self.form = form
        self.node = Fed(form.width if isinstance(form, p.Quads) else 1)
        self.arranged: dict[Key, ArrangeNode] = {}
        self.readers = 0
        self._used: dict[Key, int] = {}
        self._empty: set[Key] = set()
        """Arrangements that have not been filled."""
        self._terms = terms
        self._constants, self._take, self._same = _shape(form)

    # --- its quads ------------------------------------------------------------------------------------

    def _agrees(self, quad: Quad) -> bool:
        parts = (quad.subject, quad.predicate, quad.object, quad.graph_name)
        return all(parts[i] == parts[j] for i, j in self._same)

    def rows(self, quads: Iterable[Quad], most: int | None = None) -> Ids:
        """Of quads that agree with its constants. Raises LimitError for more than `most`."""
        if self._same:
            quads = filter(self._agrees, quads)
        if most is not None:
            quads = islice(quads, most + 1)
        width = self.node.out.width
        if width:
            parts: Iterator[Any] = map(attrgetter(*(_PARTS[i] for i in self._take)), quads)
            ids = self._terms.ids(chain.from_iterable(parts) if width > 1 else parts)
        else:
            ids = np.zeros((sum(1 for _ in quads), 0), np.uint32)
        rows = ids.reshape(-1, width) if width else ids
        if most is not None and len(rows) > most:
            raise LimitError(len(rows), most, "quads of a pattern that are held")
        return rows

    def graphs(self, names: Iterable[Term]) -> Ids:
        """Of names of graphs, for `Graphs`."""
        return self._terms.ids(names).reshape(-1, 1)

    def quads(self, store: Store) -> Iterator[Quad]:
        """Those of the store that agree with its constants."""
        assert isinstance(self.form, p.Quads)
        subject, predicate, _, _ = self._constants
        if isinstance(subject, Literal | Triple) or isinstance(predicate, Literal | BlankNode | Triple):
            return iter(())  # as an inverse path has it whose object is a literal: no quad is so
        found = store.quads_for_pattern(*self._constants)  # type: ignore[arg-type]  # each kind in its place
        if isinstance(self.form.graph, Variable):
            return (quad for quad in found if not isinstance(quad.graph_name, DefaultGraph))
        return found

    def found(self, store: Store) -> Found:
        """All that the store has of it now, to be read once, later."""
        return store.named_graphs() if isinstance(self.form, p.Graphs) else self.quads(store)

    @property
    def is_filled(self) -> bool:
        """Whether an arrangement holds its rows."""
        return len(self._empty) < len(self.arranged)

    def _filled(self) -> ArrangeNode:
        return next(arrange for key, arrange in self.arranged.items() if key not in self._empty)

    def content(self, found: Mapping[Leaf, Found], most: int) -> Ids:
        """All its rows now: those that are held, else of what has been found of it. Raises LimitError for more than
        `most`."""
        if self.is_filled:
            return self._filled().kept[0]
        if isinstance(self.form, p.Graphs):
            return self.graphs(found[self])  # type: ignore[arg-type]  # names
        return self.rows(found[self], most)  # type: ignore[arg-type]  # quads

    def size(self, store: Store) -> int:
        """About how many they are: of many only that they are."""
        if self.is_filled:
            return self._filled().records
        return sum(1 for _ in islice(self.found(store), _COUNTED))

    @property
    def records(self) -> int:
        """Quads that are held, once for all arrangements."""
        return max((arrange.records for arrange in self.arranged.values()), default=0)

    # --- its arrangements -----------------------------------------------------------------------------

    def keep(self, key: Key) -> ArrangeNode:
        """Its arrangement by some columns, for one more reader; a new one is to be filled."""
        self._used[key] = self._used.get(key, 0) + 1
        if key not in self.arranged:
            self.arranged[key] = ArrangeNode(p.Arrange(0, *key), self.node.out)
            self._empty.add(key)
        return self.arranged[key]

    def holds(self, key: Key) -> bool:
        """Whether an arrangement has been filled."""
        return key not in self._empty

    def fill(self, key: Key, rows: Ids, tick: int) -> None:
        """A new arrangement gets its rows. Raises LimitError."""
        self.node.out.put(everything(rows, tick))
        try:
            self.arranged[key].step()
            self._empty.discard(key)
        finally:
            self.clear()

    def drop(self, key: Key) -> None:
        """One reader of an arrangement less."""
        self._used[key] -= 1
        if not self._used[key]:
            del self._used[key], self.arranged[key]
            self._empty.discard(key)

    def feed(self, delta: Delta) -> None:
        """The changes at this tick, until `clear`; arrangements take it in. Raises LimitError."""
        self.node.out.put(delta)
        for arrange in self.arranged.values():
            arrange.step()

    def clear(self) -> None:
        """The tick is over."""
        self.node.out.clear()


class Leaves:
    """All leaves, found by quads."""

    def __init__(self, terms: StoreTerms) -> None:
        self._terms = terms
        self._all: dict[Source, Leaf] = {}
        self._index: dict[tuple[bool, ...], dict[tuple[object, ...], list[Leaf]]] = {}
        """By which of subject, predicate, object are constant: by these and the graph."""
        self._graphs: Leaf | None = None

    def __iter__(self) -> Iterator[Leaf]:
        return iter(self._all.values())

    def known(self, form: Source) -> Leaf:
        """The leaf of a pattern if there is one, else one that is not among the others."""
        form = normal(form)
        found = self._all.get(form)
        return Leaf(form, self._terms) if found is None else found

    def get(self, form: Source) -> Leaf:
        """The leaf of a pattern, for one more reader."""
        form = normal(form)
        leaf = self._all.get(form)
        if leaf is None:
            leaf = self._all[form] = Leaf(form, self._terms)
            self._enter(leaf)
        leaf.readers += 1
        return leaf

    def let_go(self, leaf: Leaf) -> None:
        """One reader less."""
        leaf.readers -= 1
        if leaf.readers:
            return
        del self._all[leaf.form]
        if isinstance(leaf.form, p.Graphs):
            self._graphs = None
            return
        mask, key = _indexed(leaf.form)
        under = self._index[mask]
        under[key].remove(leaf)
        if not under[key]:
            del under[key]
        if not under:
            del self._index[mask]

    def _enter(self, leaf: Leaf) -> None:
        if isinstance(leaf.form, p.Graphs):
            self._graphs = leaf
            return
        mask, key = _indexed(leaf.form)
        self._index.setdefault(mask, {}).setdefault(key, []).append(leaf)

    def _of(self, quad: Quad) -> Iterator[Leaf]:
        graph: object = quad.graph_name
        parts = (quad.subject, quad.predicate, quad.object)
        named = not isinstance(graph, DefaultGraph)
        for mask, under in self._index.items():
            constants = [part for part, is_constant in zip(parts, mask, strict=True) if is_constant]
            yield from under.get((*constants, graph), ())
            if named:
                yield from under.get((*constants, _ANY), ())

    def concerned(self, quads: Iterable[Quad], graphs: bool) -> set[Leaf]:
        """Those that have some of these quads, where any graph comes or goes that of all graphs too."""
        found = {leaf for quad in quads for leaf in self._of(quad)}
        return found | {self._graphs} if graphs and self._graphs is not None else found

    def touched(
        self,
        removed: Sequence[Quad],
        added: Sequence[Quad],
        dropped: Sequence[Term],
        created: Sequence[Term],
        tick: int,
    ) -> Iterator[tuple[Leaf, Delta]]:
        """The changes of each leaf that a change touches."""
        found: dict[Leaf, tuple[list[Quad], list[Quad]]] = {}
        for side, quads in enumerate((removed, added)):
            for quad in quads:
                for leaf in self._of(quad):
                    found.setdefault(leaf, ([], []))[side].append(quad)
        for leaf, (gone, come) in found.items():
            delta = changed(leaf.rows(gone), leaf.rows(come), tick)
            if len(delta):
                yield leaf, delta
        if self._graphs is not None and (dropped or created):
            yield self._graphs, changed(self._graphs.graphs(dropped), self._graphs.graphs(created), tick)


def everything(rows: Ids, tick: int) -> Delta:
    """Rows that come at one tick."""
    return Delta(np.full(len(rows), tick), np.ones(len(rows), np.int64), rows)


def changed(gone: Ids, come: Ids, tick: int) -> Delta:
    """Rows that go and rows that come, at one tick."""
    weight = np.repeat(np.array([-1, 1]), (len(gone), len(come)))
    return Delta(np.full(len(weight), tick), weight, np.concatenate([gone, come]))


def normal(form: Source) -> Source:
    """With constants as the store has them."""
    if isinstance(form, p.Graphs):
        return form
    pattern = form.pattern
    object_ = pattern.object
    if isinstance(object_, Literal):
        object_ = normalise(object_)
    plain = type(pattern)(pattern.subject, pattern.predicate, object_)
    return p.Quads(plain, form.graph)


def _indexed(form: p.Quads) -> tuple[tuple[bool, ...], tuple[object, ...]]:
    triple = form.parts[:3]
    mask = tuple(not isinstance(part, Variable) for part in triple)
    graph: object = DefaultGraph() if form.graph is None else form.graph
    if isinstance(graph, Variable):
        graph = _ANY
    return mask, (*(part for part in triple if not isinstance(part, Variable)), graph)


def _shape(form: Source) -> tuple[tuple[Term | DefaultGraph | None, ...], tuple[int, ...], list[tuple[int, int]]]:
    """What the store is queried for; the parts of a quad that are columns; those that must be equal."""
    if isinstance(form, p.Graphs):
        return (), (0,), []
    first: dict[Variable, int] = {}
    same: list[tuple[int, int]] = []
    constants: list[Term | DefaultGraph | None] = []
    for place, part in enumerate(form.parts):
        if isinstance(part, Variable):
            constants.append(None)
            if part in first:
                same.append((first[part], place))
            first.setdefault(part, place)
        elif part is None:
            constants.append(DefaultGraph())
        else:
            assert isinstance(part, NamedNode | Literal | Triple)
            constants.append(part)
    return tuple(constants), tuple(first.values()), same
