"""What a change touches of a store's content: as it was before, and as it becomes.

The quads touched are *looked at* first, while the store still has its old content. The operations are then followed
here, in their order; the difference of both is the change.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from pyoxigraph import DefaultGraph, Quad
from pyoxigraph import Store as RdfStore

from oxiseq.changes import limits
from oxiseq.changes.change import Change, GraphName
from oxiseq.changes.limits import TooMuchError


class Content:
    """At most MOST quads and as many graphs. The quads are in the store's normal form.

    A quad or a graph is looked at before it is put, taken, cleared, dropped or created. `look...` raise TooMuchError.
    """

    def __init__(self, store: RdfStore) -> None:
        self._store = store
        self._before: dict[Quad, bool] = {}
        self._now: dict[GraphName | DefaultGraph, dict[Quad, bool]] = {DefaultGraph(): {}}
        self._graphs_before: dict[GraphName, bool] = {}
        self._graphs_now: dict[GraphName, bool] = {}
        self._whole: set[GraphName | DefaultGraph] = set()

    # --- before ---------------------------------------------------------------------------------------

    def look(self, quads: Iterable[Quad]) -> None:
        """Whether each of them is there, and its graph."""
        for quad in quads:
            if quad not in self._before:
                self._know(quad, quad in self._store)

    def look_at_name(self, graph: GraphName | DefaultGraph) -> None:
        """Whether it is there."""
        if graph in self._now:
            return
        assert not isinstance(graph, DefaultGraph)  # it is there from the first
        if len(self._graphs_before) >= limits.MOST:
            raise TooMuchError
        self._graphs_before[graph] = self._graphs_now[graph] = self._store.contains_named_graph(graph)
        self._now[graph] = {}

    def look_at_graph(self, graph: GraphName | DefaultGraph) -> None:
        """All that it holds."""
        if graph in self._whole:
            return
        self._whole.add(graph)
        self.look_at_name(graph)
        for quad in islice(self._store.quads_for_pattern(None, None, None, graph), limits.MOST + 1):
            if quad not in self._before:
                self._know(quad, True)

    def look_at_graphs(self) -> None:
        """All named graphs, and all that they hold."""
        for graph in list(islice(self._store.named_graphs(), limits.MOST + 1)):
            self.look_at_graph(graph)

    def _know(self, quad: Quad, is_there: bool) -> None:
        if len(self._before) >= limits.MOST:
            raise TooMuchError
        self.look_at_name(quad.graph_name)
        self._before[quad] = is_there
        self._now[quad.graph_name][quad] = is_there

    # --- what becomes of it -----------------------------------------------------------------------------

    def put(self, quads: Iterable[Quad]) -> None:
        """They are added, with their graphs."""
        for quad in quads:
            graph = quad.graph_name
            self._now[graph][quad] = True
            if not isinstance(graph, DefaultGraph):
                self._graphs_now[graph] = True

    def take(self, quads: Iterable[Quad]) -> None:
        """They are removed; their graphs stay."""
        for quad in quads:
            self._now[quad.graph_name][quad] = False

    def clear(self, graph: GraphName | DefaultGraph) -> None:
        """It is empty; it stays."""
        held = self._now[graph]
        for quad in held:
            held[quad] = False

    def drop(self, graph: GraphName | DefaultGraph) -> None:
        """It is no more; the default graph is empty."""
        self.clear(graph)
        if not isinstance(graph, DefaultGraph):
            self._graphs_now[graph] = False

    def create(self, graph: GraphName) -> None:
        """It is there, empty if it was not."""
        self._graphs_now[graph] = True

    @property
    def named_graphs(self) -> list[GraphName]:
        """Those that have been looked at and are there now."""
        return [graph for graph, is_there in self._graphs_now.items() if is_there]

    def change(self) -> Change:
        """What has become of it."""
        removed: list[Quad] = []
        added: list[Quad] = []
        for held in self._now.values():
            for quad, is_there in held.items():
                if is_there != self._before[quad]:
                    (added if is_there else removed).append(quad)
        graphs = [
            (graph, is_there) for graph, is_there in self._graphs_now.items() if is_there != self._graphs_before[graph]
        ]
        return Change(
            tuple(removed),
            tuple(added),
            tuple(graph for graph, is_there in graphs if not is_there),
            tuple(graph for graph, is_there in graphs if is_there),
        )


def normal_quads(quads: Iterable[Quad]) -> list[Quad]:
    """The quads as a store has them (1 for "01"^^xsd:integer), each once. Raises TypeError for what is none."""
    store = RdfStore()
    store.extend(quads)
    return list(store)
