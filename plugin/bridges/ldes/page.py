"""A page of a Linked Data Event Stream: its quads → members with their times, and links to other pages."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, QuerySolutions, Store, Triple

from oxiseq.bridges.settings import BridgeError
from oxiseq.engine.errors import EventError
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.time import to_microseconds

LDES: Final = "https://w3id.org/ldes#"
TREE: Final = "https://w3id.org/tree#"
_PREFIXES: Final = f"PREFIX ldes: <{LDES}> PREFIX tree: <{TREE}> "
_SH: Final = "http://www.w3.org/ns/shacl#"
_RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_REPEATED: Final = {"zeroOrMorePath": "*", "oneOrMorePath": "+", "zeroOrOnePath": "?"}
_DEEPEST: Final = 20
"""Of a SHACL path; a path of more parts than a hundred is refused as well."""
_PARTS: Final = 100
Subject: TypeAlias = NamedNode | BlankNode
Row: TypeAlias = Sequence[NamedNode | BlankNode | Literal | Triple | None]


@dataclass(frozen=True, slots=True)
class Stream:
    """What the root says of the stream. Paths are SPARQL's; empty: it has none. `poll`: seconds between readings of
    pages that may change, None: it does not say."""

    iri: str
    root: str
    time: str = ""
    sequence: str = ""
    version: str = ""
    poll: int | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """`time`: the literal at the stream's timestampPath, and in µs where it is one; `entity`: of which it is a
    version; `triples`: subject, predicate and object as N-Triples writes them."""

    iri: str
    triples: Sequence[tuple[str, str, str]]
    time: Literal | None = None
    at: int | None = None
    entity: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """`low`: no member there is earlier (µs); `bounded`: the relation has some bound of time."""

    url: str
    low: int | None = None
    bounded: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """Members in the order of time, links in that of the page."""

    members: Sequence[Member] = ()
    links: Sequence[Link] = ()
    immutable: bool = False


class Quads:
    """The quads of a page, to be asked."""

    def __init__(self, url: str, quads: Sequence[Quad]) -> None:
        self.url, self.quads, self._store = url, quads, Store()
        self._store.extend(quads)

    def rows(self, query: str) -> list[Row]:
        """Of a SELECT over all graphs."""
        found = self._store.query(_PREFIXES + query, use_default_graph_as_union=True)
        assert isinstance(found, QuerySolutions)
        names = found.variables
        return [[each[name] for name in names] for each in found]

    def values(self, stream: Stream, path: str) -> dict[str, object]:
        """Member → what stands at a path, the least of several; in the order of what stands there."""
        if not path:
            return {}
        found: dict[str, object] = {}
        for member, value in self.rows(
            f"SELECT ?m ?v {{ {NamedNode(stream.iri)} tree:member ?m . ?m {path} ?v }} ORDER BY ?v"
        ):
            if isinstance(member, NamedNode) and value is not None:
                found.setdefault(member.value, value)
        return found

    def path(self, node: object, deep: int = 0) -> str:
        """A SHACL property path as SPARQL writes it. Raises BridgeError."""
        if isinstance(node, NamedNode):
            return str(node)
        if deep > _DEEPEST or not isinstance(node, BlankNode):
            raise BridgeError(f"{self.url}: a path is no SHACL property path")
        if self._objects(node, _RDF + "first"):
            return "(" + "/".join(self.path(each, deep + 1) for each in self._list(node)) + ")"
        for each in self._objects(node, _SH + "alternativePath"):
            return "(" + "|".join(self.path(part, deep + 1) for part in self._list(each)) + ")"
        for each in self._objects(node, _SH + "inversePath"):
            return f"(^{self.path(each, deep + 1)})"
        for name, sign in _REPEATED.items():
            for each in self._objects(node, _SH + name):
                return f"({self.path(each, deep + 1)}{sign})"
        raise BridgeError(f"{self.url}: a path is no SHACL property path")

    def is_path(self, node: object, path: str) -> bool:
        """Whether it is this one."""
        try:
            return bool(path) and self.path(node) == path
        except BridgeError:
            return False

    def _list(self, node: object) -> list[object]:
        found: list[object] = []
        while isinstance(node, BlankNode) and len(found) < _PARTS:
            found += self._objects(node, _RDF + "first")[:1]
            node = next(iter(self._objects(node, _RDF + "rest")), None)
        return found

    def _objects(self, subject: object, predicate: str) -> list[object]:
        assert isinstance(subject, BlankNode)
        return [quad.object for quad in self._store.quads_for_pattern(subject, NamedNode(predicate), None)]


def root_of(quads: Quads, asked: str) -> str | None:
    """The root, of what stands at the address that was `asked` for: None: this page is it. Raises BridgeError."""
    if quads.rows(f"SELECT ?s {{ ?s tree:view {NamedNode(quads.url)} }} LIMIT 1"):
        return None
    for about in (NamedNode(asked), "?s"):
        views = _iris(quads.rows(f"SELECT ?v {{ {about} tree:view ?v }}"))
        if len(views) == 1:
            return views.pop()
    raise BridgeError(f"{quads.url} is no Linked Data Event Stream: one tree:view must lead to its root")


def stream_of(quads: Quads) -> Stream:
    """What a root says. Raises BridgeError."""
    here = NamedNode(quads.url)
    iris = _iris(quads.rows(f"SELECT ?s {{ ?s tree:view {here} }}"))
    if len(iris) != 1:
        raise BridgeError(f"{quads.url} is the view of {len(iris)} streams, of one is expected")
    (iri,) = iris

    def path(name: str) -> str:
        nodes = [row[0] for row in quads.rows(f"SELECT ?p {{ {NamedNode(iri)} ldes:{name} ?p }}")]
        return quads.path(nodes[0]) if nodes else ""

    polls = [row[0] for row in quads.rows(f"SELECT ?p {{ {NamedNode(iri)} ldes:pollingInterval ?p }}")]
    seconds = [
        int(each.value) for each in polls if isinstance(each, Literal) and re.fullmatch("[0-9]{1,9}", each.value)
    ]
    poll = min(seconds, default=None)
    return Stream(iri, quads.url, path("timestampPath"), path("sequencePath"), path("versionOfPath"), poll)


def read_page(quads: Quads, stream: Stream) -> Page:
    """Its members and links. Raises BridgeError."""
    true = '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'
    immutable = bool(quads.rows(f"SELECT * {{ {NamedNode(quads.url)} ldes:immutable {true} }} LIMIT 1"))
    return Page(_members(quads, stream), _links(quads, stream), immutable)


def _members(quads: Quads, stream: Stream) -> list[Member]:
    found = quads.rows(f"SELECT ?m {{ {NamedNode(stream.iri)} tree:member ?m }}")
    members = _iris(found)
    named = [quad.object for quad in quads.quads if quad.predicate.value == f"{TREE}member"]
    inside = {each.value: each for each in named if isinstance(each, NamedNode) and each.value in members}
    times, entities = quads.values(stream, stream.time), quads.values(stream, stream.version)
    order = {iri: place for place, iri in enumerate({**quads.values(stream, stream.sequence), **inside})}
    triples = _Triples(quads.quads)
    made = []
    for iri, member in inside.items():
        time, entity = times.get(iri), entities.get(iri)
        stamp = time if isinstance(time, Literal) else None
        about = entity.value if isinstance(entity, NamedNode) else ""
        made.append(Member(iri, triples.of(member), stamp, _at(stamp), about))
    return sorted(made, key=lambda each: (each.at is not None, each.at or 0, order[each.iri]))


def _links(quads: Quads, stream: Stream) -> list[Link]:
    """Those of the page's relations, of several to one page taken together."""
    here = NamedNode(quads.url)
    rows = quads.rows(
        f"SELECT ?n ?k ?p ?v {{ {here} tree:relation ?r . ?r tree:node ?n "
        "OPTIONAL { ?r a ?k ; tree:path ?p ; tree:value ?v } }"
    )
    found: dict[str, Link] = {}
    for node, kind, path, value in rows:
        if not isinstance(node, NamedNode):
            raise BridgeError(f"{quads.url}: a relation leads to no page")
        link = found.setdefault(node.value, Link(node.value))
        at = _at(value) if isinstance(value, Literal) else None
        if at is None or not isinstance(kind, NamedNode) or not quads.is_path(path, stream.time):
            continue
        name = kind.value.removeprefix(TREE)
        if name in ("GreaterThanRelation", "GreaterThanOrEqualToRelation", "EqualToRelation"):
            low = at if link.low is None else max(at, link.low)
            found[node.value] = Link(node.value, low, bounded=True)
        elif name in ("LessThanRelation", "LessThanOrEqualToRelation"):
            found[node.value] = Link(node.value, link.low, bounded=True)
    return list(found.values())


@dataclass(slots=True)
class _Triples:
    """The triples of members: their own and, through blank nodes, what these lead to, in the default graph, and the
    graphs that have their names or those of these blank nodes."""

    quads: Sequence[Quad]
    _of_subject: dict[object, list[Quad]] = field(default_factory=lambda: defaultdict(list))
    _of_graph: dict[object, list[Quad]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for quad in self.quads:
            if isinstance(quad.graph_name, DefaultGraph):
                self._of_subject[quad.subject].append(quad)
            else:
                self._of_graph[quad.graph_name].append(quad)

    def of(self, member: NamedNode) -> list[tuple[str, str, str]]:
        """Sorted; blank nodes have new labels, the same whenever the page is read."""
        found: set[tuple[str, str, str]] = set()
        labels: dict[BlankNode, str] = {}
        reached: list[Subject] = [member]
        done: set[Subject] = {member}

        def text(term: object) -> str:
            if not isinstance(term, BlankNode):
                return str(term)
            if term not in labels:
                labels[term] = f"_:b{len(labels)}"
            return labels[term]

        for node in reached:
            for quad in (*self._of_subject.get(node, ()), *self._of_graph.get(node, ())):
                if node == member and self._is_stamp(quad):
                    continue
                found.add((text(quad.subject), str(quad.predicate), text(quad.object)))
                blanks = [each for each in (quad.object,) if isinstance(each, BlankNode) and each not in done]
                done.update(blanks)
                reached += blanks
        return sorted(found)

    def _is_stamp(self, quad: Quad) -> bool:
        """Whether it says when its graph is, as N-Quads of events do (engine/events/write.py): beside the graph, or in
        it where it is empty. Such a triple is no part of the event."""
        graph = self._of_graph.get(quad.subject, ())
        beside = isinstance(quad.graph_name, DefaultGraph)
        return quad.predicate == GENERATED_AT and bool(graph) and (beside or len(graph) == 1)


def _at(literal: object) -> int | None:
    """In µs, where it is a time."""
    if not isinstance(literal, Literal):
        return None
    try:
        return to_microseconds(literal)
    except EventError:
        return None


def _iris(rows: Sequence[Row]) -> set[str]:
    """Of rows of one column."""
    return {row[0].value for row in rows if isinstance(row[0], NamedNode)}
