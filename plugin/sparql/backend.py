"""What the protocol needs of a store: pyoxigraph's methods, as `oxiseq.Store` offers them too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import IO, Protocol

from pyoxigraph import DefaultGraph, NamedNode, Quad, QueryBoolean, QuerySolutions, QueryTriples, RdfFormat


class Backend(Protocol):
    """See `pyoxigraph.Store`."""

    def query(
        self,
        query: str,
        *,
        base_iri: str | None = None,
        use_default_graph_as_union: bool = False,
        default_graph: Sequence[NamedNode] | None = None,
        named_graphs: Sequence[NamedNode] | None = None,
    ) -> QuerySolutions | QueryBoolean | QueryTriples: ...

    def update(self, update: str, *, base_iri: str | None = None) -> None: ...

    def load(
        self,
        input: bytes,
        format: RdfFormat,
        *,
        base_iri: str | None = None,
        to_graph: NamedNode | DefaultGraph | None = None,
    ) -> None: ...

    def dump(
        self, output: IO[bytes], format: RdfFormat, *, from_graph: NamedNode | DefaultGraph | None = None
    ) -> None: ...

    def clear(self) -> None: ...

    def clear_graph(self, graph_name: NamedNode | DefaultGraph) -> None: ...

    def remove_graph(self, graph_name: NamedNode | DefaultGraph) -> None: ...

    def add_graph(self, graph_name: NamedNode) -> None: ...

    def contains_named_graph(self, graph_name: NamedNode) -> bool: ...

    def quads_for_pattern(
        self, subject: None, predicate: None, object: None, graph_name: NamedNode | DefaultGraph
    ) -> Iterable[Quad]: ...
