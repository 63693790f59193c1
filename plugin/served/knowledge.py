"""`pyoxigraph.Store`'s methods over the SPARQL protocol: the knowledge base of a store that is elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Final, cast

from pyoxigraph import (
    BlankNode,
    DefaultGraph,
    NamedNode,
    Quad,
    QueryBoolean,
    QueryResultsFormat,
    QuerySolutions,
    RdfFormat,
    Triple,
    parse,
    parse_query_results,
    serialize,
)

from oxiseq.engine.errors import ArgumentTypeError, OxiseqError
from oxiseq.served.wire import Wire

Graph = NamedNode | BlankNode | DefaultGraph
_RESULTS: Final = f"{QueryResultsFormat.JSON.media_type}, {RdfFormat.N_TRIPLES.media_type};q=0.9"
_ABSENT: Final = {
    "backup": "`oxiseq backup` makes one beside a running server",
    "flush": "what is answered is durable",
    "optimize": "run it where the store is",
}


class AbsentError(OxiseqError, AttributeError):
    """A method of pyoxigraph's stores that a store elsewhere does not have; so `hasattr` says no."""


class ServedKnowledge:
    """Blank nodes have the labels that the server shows: they cannot be named in a pattern or an update."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    # --- SPARQL -----------------------------------------------------------------------------------------

    def query(self, query: str, **unknown: Any) -> QuerySolutions | QueryBoolean | Iterator[Triple]:
        """SELECT, ASK, CONSTRUCT or DESCRIBE. Raises OxiseqError with what the server says of it."""
        _nothing_else(unknown, "say it in the query: BASE, PREFIX, FROM")
        reply = self._wire.send(
            "POST", "query", content=query.encode(), kind="application/sparql-query", accept=_RESULTS, again=True
        )
        if reply.headers["content-type"].startswith(QueryResultsFormat.JSON.media_type):
            return parse_query_results(reply.content, QueryResultsFormat.JSON)
        return (quad.triple for quad in parse(reply.content, RdfFormat.N_TRIPLES))

    def update(self, update: str, **unknown: Any) -> None:
        """SPARQL 1.1 Update; durable when it returns."""
        _nothing_else(unknown, "say it in the update: BASE, PREFIX")
        self._wire.send("POST", "update", content=update.encode(), kind="application/sparql-update", again=False)

    # --- quads --------------------------------------------------------------------------------------------

    def quads_for_pattern(
        self, subject: Any, predicate: Any, object: Any, graph_name: Graph | None = None
    ) -> Iterator[Quad]:
        """The quads that match; None is anything."""
        parts = [_slot(term, name) for term, name in ((subject, "?s"), (predicate, "?p"), (object, "?o"))]
        triple = " ".join(parts)
        named = f"GRAPH ?g {{ {triple} }}"
        if graph_name is None:
            where = f"{{ {triple} }} UNION {{ {named} }}"
        elif isinstance(graph_name, DefaultGraph):
            where = triple
        else:
            where = f"GRAPH {_slot(graph_name)} {{ {triple} }} BIND({graph_name} AS ?g)"
        solutions = self.query(f"SELECT ?s ?p ?o ?g WHERE {{ {where} }}")
        given = dict(zip("spo", (subject, predicate, object), strict=True))
        for row in cast(QuerySolutions, solutions):
            s, p, o = (each if (each := given[name]) is not None else row[name] for name in "spo")
            yield Quad(s, p, o, cast(Any, row["g"]) or DefaultGraph())

    def add(self, quad: Quad) -> None:
        """One quad more."""
        self.extend([quad])

    def extend(self, quads: Iterable[Quad]) -> None:
        """All of them, or none if the server refuses."""
        data = serialize(quads, format=RdfFormat.N_QUADS)
        assert data is not None
        self._load(data, RdfFormat.N_QUADS)

    bulk_extend = extend

    def remove(self, quad: Quad) -> None:
        """One quad less, if it is there."""
        self.update(f"DELETE DATA {{ {_pattern(quad)} }}")

    def load(
        self,
        input: str | bytes | IO[bytes] | None = None,
        format: RdfFormat | None = None,
        *,
        path: str | Path | None = None,
        base_iri: str | None = None,
        to_graph: Graph | None = None,
        **unknown: Any,
    ) -> None:
        """RDF from a text, a binary file or a path, into `to_graph`."""
        _nothing_else(unknown, "blank nodes are always renamed")
        if path is not None:
            format = format or RdfFormat.from_extension(Path(path).suffix.removeprefix("."))
            input = Path(path).read_bytes()
        if format is None or input is None:
            raise ArgumentTypeError("say what to load: input and format, or a path whose ending names the format")
        data = input.encode() if isinstance(input, str) else input if isinstance(input, bytes) else input.read()
        if base_iri is not None:
            text = serialize(parse(data, format, base_iri=base_iri), format=RdfFormat.N_QUADS)
            assert text is not None
            data, format = text, RdfFormat.N_QUADS
        self._load(data, format, to_graph)

    bulk_load = load

    def dump(self, output: IO[bytes] | str | Path | None = None, format: RdfFormat = RdfFormat.N_QUADS) -> bytes | None:
        """All quads; as bytes, or into a file."""
        data = self._wire.send("GET", "store", accept=format.media_type).content
        if output is None:
            return data
        if isinstance(output, str | Path):
            Path(output).write_bytes(data)
        else:
            output.write(data)
        return None

    def _load(self, data: bytes, format: RdfFormat, to_graph: Graph | None = None) -> None:
        params = {}
        if to_graph is not None:
            params = {"default": ""} if isinstance(to_graph, DefaultGraph) else {"graph": _slot(to_graph)[1:-1]}
        self._wire.send("POST", "store", params=params, content=data, kind=format.media_type, again=False)

    # --- graphs -------------------------------------------------------------------------------------------

    def named_graphs(self) -> Iterator[NamedNode | BlankNode]:
        """Those that hold something."""
        for row in cast(QuerySolutions, self.query("SELECT DISTINCT ?g WHERE { GRAPH ?g { ?s ?p ?o } }")):
            yield cast(Any, row["g"])

    def contains_named_graph(self, graph_name: NamedNode | BlankNode) -> bool:
        """Whether it holds something."""
        return bool(self.query(f"ASK {{ GRAPH {_slot(graph_name)} {{ ?s ?p ?o }} }}"))

    def add_graph(self, graph_name: NamedNode) -> None:
        """A graph that may be empty."""
        self.update(f"CREATE SILENT GRAPH {_slot(graph_name)}")

    def clear_graph(self, graph_name: Graph) -> None:
        """Its quads go."""
        self.update(f"CLEAR SILENT {_graph(graph_name)}")

    def remove_graph(self, graph_name: Graph) -> None:
        """It goes."""
        self.update(f"DROP SILENT {_graph(graph_name)}")

    def clear(self) -> None:
        """All goes."""
        self.update("CLEAR ALL")

    # --- a collection of quads ------------------------------------------------------------------------------

    def __len__(self) -> int:
        (row,) = cast(
            QuerySolutions, self.query("SELECT (COUNT(*) AS ?n) WHERE { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }")
        )
        return int(cast(Any, row["n"]).value)

    def __iter__(self) -> Iterator[Quad]:
        return self.quads_for_pattern(None, None, None)

    def __contains__(self, quad: Quad) -> bool:
        return bool(self.query(f"ASK {{ {_pattern(quad)} }}"))

    def __getattr__(self, name: str) -> Any:
        if name in _ABSENT:
            raise AbsentError(f"{name} is not for a store elsewhere: {_ABSENT[name]}")
        raise AttributeError(name)


def _slot(term: Any, variable: str = "") -> str:
    """A term as SPARQL has it; `variable` for None. Raises OxiseqError for a blank node."""
    if term is None:
        return variable
    if isinstance(term, BlankNode):
        raise OxiseqError(f"the blank node {term} of a store elsewhere cannot be named")
    return f"<<( {' '.join(_slot(part) for part in term)} )>>" if isinstance(term, Triple) else str(term)


def _pattern(quad: Quad) -> str:
    triple = " ".join(_slot(part) for part in quad.triple)
    return triple if isinstance(quad.graph_name, DefaultGraph) else f"GRAPH {_slot(quad.graph_name)} {{ {triple} }}"


def _graph(name: Graph) -> str:
    return "DEFAULT" if isinstance(name, DefaultGraph) else f"GRAPH {_slot(name)}"


def _nothing_else(given: dict[str, Any], instead: str) -> None:
    if given:
        raise ArgumentTypeError(f"{', '.join(given)}: not taken by a store elsewhere; {instead}")
