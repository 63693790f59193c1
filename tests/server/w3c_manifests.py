"""The W3C's SPARQL 1.1 protocol tests as values, read from their manifests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rdflib import Graph, Namespace, URIRef
from rdflib.collection import Collection
from rdflib.namespace import RDFS
from w3c_suites import MF, QT

HT = Namespace("http://www.w3.org/2011/http#")
CNT = Namespace("http://www.w3.org/2011/content#")
UT = Namespace("http://www.w3.org/2009/sparql/tests/test-update#")


@dataclass(frozen=True, slots=True)
class Expected:
    """What a response must be; `body` with its media type, if one is compared."""

    statuses: frozenset[str]
    boolean: bool | None
    format: str | None
    location: str | None
    body: str | None
    media_type: str | None


@dataclass(frozen=True, slots=True)
class Step:
    """One request and what is expected of it."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | None
    expected: Expected


@dataclass(frozen=True, slots=True)
class Case:
    """A test: its name, graphs to begin with (IRI → file), requests in order."""

    name: str
    graphs: tuple[tuple[str, Path], ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class FormatCase:
    """A query over data, and the file of its results."""

    name: str
    query: str
    data: Path
    result: Path


def protocol_cases(folder: Path, file: str) -> list[Case]:
    """The tests of a manifest in its order."""
    graph, manifest = _read(folder / file)
    return [_case(graph, entry, folder) for entry in _items(graph, graph.value(manifest, MF.entries))]


def format_cases(folder: Path) -> list[FormatCase]:
    """The tests of a result format."""
    graph, manifest = _read(folder / "manifest.ttl")
    found = []
    for entry in _items(graph, graph.value(manifest, MF.entries)):
        action = graph.value(entry, MF.action)
        query, data, result = (
            _local(folder, node)
            for node in (graph.value(action, QT.query), graph.value(action, QT.data), graph.value(entry, MF.result))
        )
        found.append(FormatCase(_name(entry), query.read_text(), data, result))
    return found


def _read(file: Path) -> tuple[Graph, URIRef]:
    base = "http://manifest.example/"
    return Graph().parse(data=file.read_bytes(), format="turtle", publicID=base), URIRef(base)


def _items(graph: Graph, node: Any) -> list[Any]:
    return list(Collection(graph, node)) if node is not None else []


def _name(entry: Any) -> str:
    return str(entry).rpartition("#")[2].rpartition("/")[2]


def _local(folder: Path, node: Any) -> Path:
    return folder / str(node).rpartition("/")[2]


def _case(graph: Graph, entry: Any, folder: Path) -> Case:
    given = [
        (str(graph.value(node, RDFS.label)), _local(folder, graph.value(node, UT.graph)))
        for node in graph.objects(entry, UT.graphData)
    ]
    requests = _items(graph, graph.value(graph.value(entry, MF.action), HT.requests))
    return Case(_name(entry), tuple(given), tuple(_step(graph, node) for node in requests))


def _step(graph: Graph, node: Any) -> Step:
    response = graph.value(node, HT.resp)
    boolean = graph.value(response, MF.expectedBoolean)
    body, encoding = _body(graph, response)
    expected = Expected(
        statuses=frozenset(_name(status) for status in graph.objects(response, MF.expectedStatus)),
        boolean=None if boolean is None else bool(boolean.toPython()),  # type: ignore[attr-defined]  # a literal
        format=_text(graph.value(response, MF.expectedFormat)),
        location=_text(graph.value(response, MF.expectedLocation)),
        body=body,
        media_type=dict(_headers(graph, response)).get("content-type"),
    )
    content, encoding = _body(graph, node)
    return Step(
        str(graph.value(node, HT.methodName)),
        str(graph.value(node, HT.absolutePath)),
        _headers(graph, node),
        None if content is None else content.encode(encoding),
        expected,
    )


def _body(graph: Graph, node: Any) -> tuple[str | None, str]:
    body = graph.value(node, HT.body)
    encoding = graph.value(body, CNT.characterEncoding) if body is not None else None
    return (_text(graph.value(body, CNT.chars)) if body is not None else None), str(encoding or "UTF-8")


def _headers(graph: Graph, node: Any) -> tuple[tuple[str, str], ...]:
    found = _items(graph, graph.value(node, HT.headers))
    return tuple((str(graph.value(h, HT.fieldName)).lower(), str(graph.value(h, HT.fieldValue))) for h in found)


def _text(node: Any) -> str | None:
    return None if node is None else str(node)
