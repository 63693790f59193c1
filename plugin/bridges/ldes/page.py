"""A page of a Linked Data Event Stream: its quads → members with their times, and links to other pages."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import field
from typing import Final, TypeAlias

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, QuerySolutions, Store, Triple

from oxiseq.bridges.ldes.paths import Path, PathError, Paths, Term
from oxiseq.bridges.settings import BridgeError
from oxiseq.engine.errors import EventError
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.time import to_microseconds
from oxiseq.grammar.records import dataclass

LDES: Final = "https://w3id.org/ldes#"
TREE: Final = "https://w3id.org/tree#"
_PREFIXES: Final = f"PREFIX ldes: <{LDES}> PREFIX tree: <{TREE}> "
_REACHED: Final = NamedNode("urn:oxiseq:reached")
_VALUE: Final = NamedNode(TREE + "value")
_PATH: Final = NamedNode(TREE + "path")
_TYPE: Final = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_FROM: Final = frozenset(
    NamedNode(f"{TREE}{name}Relation") for name in ("GreaterThan", "GreaterThanOrEqualTo", "EqualTo")
)
_UNTIL: Final = frozenset(NamedNode(f"{TREE}{name}Relation") for name in ("LessThan", "LessThanOrEqualTo"))
_LARGEST: Final = 256 << 20
"""Bytes, about, of the triples of a page's members: many members may share what is behind one blank node."""
_TRIPLE: Final = 200
"""Bytes that a triple takes beside its text."""
Subject: TypeAlias = NamedNode | BlankNode
Row: TypeAlias = Sequence[Term | None]


@dataclass(frozen=True, slots=True)
class Stream:
    """What the root says of the stream; None: it does not say. `poll`: seconds between readings of pages that may
    change."""

    iri: str
    root: str
    time: Path | None = None
    sequence: Path | None = None
    version: Path | None = None
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
    """The quads of a page, for lookups."""

    def __init__(self, url: str, quads: Sequence[Quad]) -> None:
        self.url, self.quads, self._store = url, quads, Store()
        self.paths = Paths(url, quads)
        self._store.extend(quads)

    def rows(self, query: str) -> list[Row]:
        """Of a SELECT over all graphs."""
        return _rows(self._store, _PREFIXES + query)

    def values(self, stream: Stream, path: Path | None) -> dict[str, object]:
        """Member → where a path leads, the least of several; in the order of these. Raises BridgeError."""
        if path is None:
            return {}
        reached = Store()
        for (member,) in self.rows(f"SELECT DISTINCT ?m {{ {NamedNode(stream.iri)} tree:member ?m }}"):
            if isinstance(member, NamedNode):
                reached.extend(Quad(member, _REACHED, value) for value in self.paths.follow(member, path))
        found: dict[str, object] = {}
        for member, value in _rows(reached, f"SELECT ?m ?v {{ ?m {_REACHED} ?v }} ORDER BY ?v"):
            if isinstance(member, NamedNode):
                found.setdefault(member.value, value)
        return found

    def is_path(self, node: Term, path: Path | None) -> bool:
        """Whether it is this one. Raises BridgeError."""
        try:
            return path is not None and self.paths.read(node) == path
        except PathError:
            return False


def root_of(quads: Quads, asked: str) -> str | None:
    """The root, as the document at the address `asked` says; None: this page is it. Raises BridgeError."""
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

    def path(name: str) -> Path | None:
        nodes = [row[0] for row in quads.rows(f"SELECT ?p {{ {NamedNode(iri)} ldes:{name} ?p }}")]
        return quads.paths.read(nodes[0]) if nodes else None

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
    triples = _Triples(quads.url, quads.quads)
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
    found: dict[str, Link] = {}
    for relation, node in quads.rows(f"SELECT DISTINCT ?r ?n {{ {here} tree:relation ?r . ?r tree:node ?n }}"):
        if not isinstance(node, NamedNode):
            raise BridgeError(f"{quads.url}: a relation leads to no page")
        link = found.setdefault(node.value, Link(node.value))
        values, paths = ({*quads.paths.objects(relation, each)} for each in (_VALUE, _PATH))
        at = _at(next(iter(values))) if len(values) == len(paths) == 1 else None
        if at is None or not quads.is_path(next(iter(paths)), stream.time):
            continue
        kinds = {*quads.paths.objects(relation, _TYPE)}
        if kinds & _FROM:
            low = at if link.low is None else max(at, link.low)
            found[node.value] = Link(node.value, low, bounded=True)
        elif kinds & _UNTIL:
            found[node.value] = Link(node.value, link.low, bounded=True)
    return list(found.values())


@dataclass(slots=True)
class _Triples:
    """The triples of members: their own and, through blank nodes, what these lead to, in the default graph, and the
    graphs that have their names or those of these blank nodes. `url`: the page, for errors."""

    url: str
    quads: Sequence[Quad]
    _size: int = 0
    _of_subject: dict[object, list[Quad]] = field(default_factory=lambda: defaultdict(list))
    _of_graph: dict[object, list[Quad]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for quad in self.quads:
            if isinstance(quad.graph_name, DefaultGraph):
                self._of_subject[quad.subject].append(quad)
            else:
                self._of_graph[quad.graph_name].append(quad)

    def of(self, member: NamedNode) -> list[tuple[str, str, str]]:
        """Sorted; blank nodes have new labels, the same whenever the page is read. Raises BridgeError."""
        found: set[tuple[str, str, str]] = set()
        labels: dict[BlankNode, str] = {}
        reached: set[Subject] = {member}

        def text(term: object) -> str:
            if isinstance(term, Triple):
                return f"<<( {text(term.subject)} {term.predicate} {text(term.object)} )>>"
            return labels.setdefault(term, f"_:b{len(labels)}") if isinstance(term, BlankNode) else str(term)

        waiting: list[Subject] = [member]
        for node in waiting:
            for quad in (*self._of_subject.get(node, ()), *self._of_graph.get(node, ())):
                if node == member and self._is_stamp(quad):
                    continue
                triple = (text(quad.subject), str(quad.predicate), text(quad.object))
                found.add(triple)
                self._size += _TRIPLE + sum(map(len, triple))
                if self._size > _LARGEST:
                    raise BridgeError(f"{self.url}: the members of a page have at most {_LARGEST} bytes")
                new = [each for each in _blanks(quad.object) if each not in reached]
                reached.update(new)
                waiting += new
        return sorted(found)

    def _is_stamp(self, quad: Quad) -> bool:
        """Whether it says when its graph is, as N-Quads of events do (engine/events/write.py): beside the graph, or in
        it where it is empty. Such a triple is no part of the event."""
        graph = self._of_graph.get(quad.subject, ())
        beside = isinstance(quad.graph_name, DefaultGraph)
        return quad.predicate == GENERATED_AT and bool(graph) and (beside or len(graph) == 1)


def _rows(store: Store, query: str) -> list[Row]:
    found = store.query(query, use_default_graph_as_union=True)
    assert isinstance(found, QuerySolutions)
    names = found.variables
    return [[each[name] for name in names] for each in found]


def _blanks(term: object) -> list[BlankNode]:
    """The blank nodes of an object."""
    if isinstance(term, Triple):
        return [*_blanks(term.subject), *_blanks(term.object)]
    return [term] if isinstance(term, BlankNode) else []


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
