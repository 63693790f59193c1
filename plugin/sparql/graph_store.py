"""The graph store protocol: graphs read and written as wholes.

`/store?graph=IRI`, `/store?default` and `/store/NAME` (the address itself is the graph's name) are graphs;
`/store` alone is the whole dataset, and a graph posted there gets a fresh name.
"""

from __future__ import annotations

import threading
import uuid
from dataclasses import field
from io import BytesIO
from typing import IO, cast
from urllib.parse import urljoin

from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad, RdfFormat, serialize
from werkzeug.datastructures import FileStorage
from werkzeug.formparser import MultiPartParser
from werkzeug.http import parse_options_header

from oxiseq.engine.rdf import load, parse
from oxiseq.grammar.records import dataclass
from oxiseq.sparql.evaluation import Evaluations, Sink
from oxiseq.sparql.messages import (
    DATASETS,
    GRAPHS,
    Problem,
    Request,
    Response,
    checked_iri,
    content_type,
    rdf_format,
    syntax_problem,
    values,
    wanted,
)
from oxiseq.sparql.querying import Backend

METHODS = ("GET", "HEAD", "PUT", "POST", "DELETE")


@dataclass(frozen=True, slots=True)
class Document:
    """RDF that was sent."""

    content: bytes
    format: RdfFormat


@dataclass(frozen=True, slots=True)
class GraphStore:
    """Reads and writes graphs; whether one existed and its change go together under a lock."""

    store: Backend
    evaluations: Evaluations
    root: str
    lock: threading.RLock = field(default_factory=threading.RLock)

    def answer(self, request: Request) -> Response:
        """Raises Problem."""
        graph = self.target(request)
        if request.method in ("GET", "HEAD"):
            return self._get(request, graph)
        if request.method == "DELETE":
            return self._delete(request, graph)
        documents = sent(request)
        if graph is None:
            return self._dataset(request, documents)
        return self._put(request, graph, documents)

    def target(self, request: Request) -> NamedNode | DefaultGraph | None:
        """The graph that a request is about; None is the whole dataset. Raises Problem 400."""
        if request.path.rstrip("/") != self.root:
            return NamedNode(checked_iri(request.url, "the address"))
        parameters = request.parameters()
        graphs, default = values(parameters, "graph"), values(parameters, "default")
        if len(graphs) + len(default) > 1:
            raise Problem(400, "more than one graph", "give graph=IRI or default, once")
        if graphs:
            return NamedNode(checked_iri(_resolved(request.url, graphs[0]), "graph"))
        return DefaultGraph() if default else None

    def _get(self, request: Request, graph: NamedNode | DefaultGraph | None) -> Response:
        self._check_exists(graph)
        format_ = wanted(request.header("accept"), DATASETS if graph is None else GRAPHS)
        if request.method == "HEAD":
            return Response(200, (("content-type", content_type(format_)),))

        def work(sink: Sink) -> None:
            sink.begin(content_type(format_))
            self.store.dump(cast("IO[bytes]", sink), format_, from_graph=graph)

        return self.evaluations.answer(work, request.gone)

    def _delete(self, request: Request, graph: NamedNode | DefaultGraph | None) -> Response:
        with self.lock:
            self._check_exists(graph)
            if graph is None:
                self.evaluations.call(self.store.clear, request.gone)
            else:
                self.evaluations.call(lambda: self.store.remove_graph(graph), request.gone)
        return Response(204)

    def _put(self, request: Request, graph: NamedNode | DefaultGraph, documents: list[Document]) -> Response:
        with self.lock:
            new = isinstance(graph, NamedNode) and not self.store.contains_named_graph(graph)
            replacing = request.method == "PUT" and self._has_triples(graph)
            change = self._replace if replacing else self._add  # loading is several times faster
            self.evaluations.call(lambda: change(documents, request.url, graph), request.gone)
        return Response(201 if new else 204)

    def _dataset(self, request: Request, documents: list[Document]) -> Response:
        """Quads go where they say; triples into a graph with a fresh name (POST only)."""
        if all(document.format.supports_datasets for document in documents):
            quads = [quad for document in documents for quad in read(document, request.url, None)]
            before = "CLEAR ALL" if request.method == "PUT" else ""
            self.evaluations.call(lambda: self._insert(quads, before), request.gone)
            return Response(204)
        if request.method == "PUT":
            raise Problem(415, "not a dataset", f"the whole dataset is put as one of {', '.join(DATASETS)}")
        graph = NamedNode(checked_iri(f"{request.origin}{self.root}/{uuid.uuid4().hex}", "the address"))
        self.evaluations.call(lambda: self._add(documents, request.url, graph), request.gone)
        return Response(201, (("location", graph.value),))

    def _add(self, documents: list[Document], base: str, graph: NamedNode | DefaultGraph) -> None:
        """Merged; nothing of any document if one is malformed."""
        if len(documents) == 1:
            only = documents[0]
            try:
                load(self.store.load, only.content, only.format, base_iri=base, to_graph=graph)
            except SyntaxError as error:
                raise syntax_problem("malformed RDF", error) from None
        else:
            self._insert([quad for document in documents for quad in read(document, base, graph)], "")
        if isinstance(graph, NamedNode):
            self.store.add_graph(graph)

    def _replace(self, documents: list[Document], base: str, graph: NamedNode | DefaultGraph) -> None:
        """The old content is deleted in the same transaction."""
        cleared = "CLEAR DEFAULT" if isinstance(graph, DefaultGraph) else f"CLEAR SILENT GRAPH {graph}"
        self._insert([quad for document in documents for quad in read(document, base, graph)], cleared)
        if isinstance(graph, NamedNode):
            self.store.add_graph(graph)

    def _insert(self, quads: list[Quad], before: str) -> None:
        """One transaction, so that nobody sees a graph half replaced: pyoxigraph has none but an update's."""
        self.store.update(f"{before};\n{insert_data(quads)}" if before else insert_data(quads))

    def _has_triples(self, graph: NamedNode | DefaultGraph) -> bool:
        return next(iter(self.store.quads_for_pattern(None, None, None, graph)), None) is not None

    def _check_exists(self, graph: NamedNode | DefaultGraph | None) -> None:
        if isinstance(graph, NamedNode) and not self.store.contains_named_graph(graph):
            raise Problem(404, "no such graph", graph.value)


def sent(request: Request) -> list[Document]:
    """The RDF in a request: its body, or each part of multipart/form-data. Raises Problem 400 or 415."""
    if request.media_type != "multipart/form-data":
        return [Document(request.body, rdf_format(request.header("content-type")))]
    options = parse_options_header(request.header("content-type"))[1]
    try:
        parser = MultiPartParser(max_form_memory_size=None)
        fields, files = parser.parse(BytesIO(request.body), options.get("boundary", "").encode(), len(request.body))
    except ValueError as error:
        raise Problem(400, "malformed multipart/form-data", str(error)) from None
    found: list[FileStorage] = [part for _, part in files.items(multi=True)]
    if not found or fields:
        raise Problem(400, "malformed multipart/form-data", "each part must be a file of RDF")
    return [Document(part.read(), rdf_format(part.content_type)) for part in found]


def read(document: Document, base: str, graph: NamedNode | DefaultGraph | None) -> list[Quad]:
    """The quads of a document, in one graph or (None) where they say; fresh blank nodes. Raises Problem 400."""
    try:
        quads = list(
            parse(
                document.content,
                document.format,
                base_iri=base,
                without_named_graphs=graph is not None,
                rename_blank_nodes=True,
            )
        )
    except SyntaxError as error:
        raise syntax_problem("malformed RDF", error) from None
    except ValueError as error:
        raise Problem(400, "malformed RDF", str(error)) from None
    if graph is None:
        return quads
    return [Quad(quad.subject, quad.predicate, quad.object, graph) for quad in quads]


def insert_data(quads: list[Quad]) -> str:
    """`INSERT DATA` of quads, as one operation so that blank nodes stay the same in all graphs."""
    by_graph: dict[object, list[Quad]] = {}
    for quad in quads:
        by_graph.setdefault(quad.graph_name, []).append(quad)
    parts = ["INSERT DATA {\n"]
    for graph, group in by_graph.items():
        if isinstance(graph, BlankNode):
            raise Problem(400, "a graph named by a blank node", "SPARQL has no way to write it; use an IRI")
        written = serialize((quad.triple for quad in group), format=RdfFormat.N_TRIPLES) or b""
        text = written.decode()
        parts.append(text if isinstance(graph, DefaultGraph) else f"GRAPH {graph} {{\n{text}}}\n")
    return "".join([*parts, "}"])


def _resolved(base: str, iri: str) -> str:
    try:
        return iri if ":" in iri.partition("/")[0] else urljoin(base, iri)
    except ValueError:
        return iri
