"""A page of a Linked Data Event Stream: its quads → members with their times, and links to other pages."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import cached_property
from typing import Final, TypeAlias

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, QuerySolutions, Store, Triple

from oxiseq.bridges.ldes.paths import Path, PathError, Paths, Term
from oxiseq.bridges.source import BridgeError
from oxiseq.engine.errors import EventError
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.time import to_microseconds
from oxiseq.grammar.records import dataclass

LDES: Final = "https://w3id.org/ldes#"
TREE: Final = "https://w3id.org/tree#"
_DEFAULT: Final = DefaultGraph()
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
MOST_MEMBERS: Final = 50_000
"""Of a page, unless the option `members` says otherwise."""
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
    """The quads of a page, for lookups in the union of its graphs."""

    def __init__(self, url: str, quads: Sequence[Quad]) -> None:
        self.url, self.quads = url, quads
        self.paths = Paths(url, quads)

    def objects(self, subject: Term, predicate: str) -> list[Term]:
        """Of the triples of a subject, each once."""
        return list(dict.fromkeys(self.paths.objects(subject, NamedNode(predicate))))

    @cached_property
    def views(self) -> list[Quad]:
        """The triples that say where a stream's root is."""
        return [quad for quad in self.quads if quad.predicate.value == f"{TREE}view"]

    def values(self, stream: Stream, path: Path | None) -> dict[str, object]:
        """Member → where a path leads, the least of several; in the order of these. Raises BridgeError."""
        if path is None:
            return {}
        reached = Store()
        for member in self.objects(NamedNode(stream.iri), f"{TREE}member"):
            if isinstance(member, NamedNode):
                reached.extend(Quad(member, _REACHED, value) for value in self.paths.follow(member, path))
        found: dict[str, object] = {}
        for of, value in _rows(reached, f"SELECT ?m ?v {{ ?m {_REACHED} ?v }} ORDER BY ?v"):
            if isinstance(of, NamedNode):
                found.setdefault(of.value, value)
        return found

    def is_path(self, node: Term, path: Path | None) -> bool:
        """Whether it is this one. Raises BridgeError."""
        try:
            return path is not None and self.paths.read(node) == path
        except PathError:
            return False


def root_of(quads: Quads, asked: str) -> str | None:
    """The root, as the document at the address `asked` says; None: this page is it. Raises BridgeError."""
    here = NamedNode(quads.url)
    if any(quad.object == here for quad in quads.views):
        return None
    for about in (NamedNode(asked), None):
        views = _iris(quad.object for quad in quads.views if about in (None, quad.subject))
        if len(views) == 1:
            return views.pop()
    raise BridgeError(f"{quads.url} is no Linked Data Event Stream: one tree:view must lead to its root")


def stream_of(quads: Quads) -> Stream:
    """What a root says. Raises BridgeError."""
    here = NamedNode(quads.url)
    iris = _iris(quad.subject for quad in quads.views if quad.object == here)
    if len(iris) != 1:
        raise BridgeError(f"{quads.url} is the view of {len(iris)} streams, of one is expected")
    (iri,) = iris

    def path(name: str) -> Path | None:
        nodes = quads.objects(NamedNode(iri), f"{LDES}{name}")
        return quads.paths.read(nodes[0]) if nodes else None

    polls = quads.objects(NamedNode(iri), f"{LDES}pollingInterval")
    seconds = [
        int(each.value) for each in polls if isinstance(each, Literal) and re.fullmatch("[0-9]{1,9}", each.value)
    ]
    poll = min(seconds, default=None)
    return Stream(iri, quads.url, path("timestampPath"), path("sequencePath"), path("versionOfPath"), poll)


def read_page(quads: Quads, stream: Stream, most: int = MOST_MEMBERS) -> Page:
    """Its members, at most so many, and links. Raises BridgeError."""
    immutable = Literal(True) in quads.objects(NamedNode(quads.url), f"{LDES}immutable")
    return Page(_members(quads, stream, most), _links(quads, stream), immutable)


def _members(quads: Quads, stream: Stream, most: int) -> list[Member]:
    found = quads.objects(NamedNode(stream.iri), f"{TREE}member")
    inside = {each.value: each for each in found if isinstance(each, NamedNode)}
    if len(inside) > most:
        raise BridgeError(f"{quads.url}: a page has at most {most:,} members: see the option members")
    times, entities = quads.values(stream, stream.time), quads.values(stream, stream.version)
    order = {iri: place for place, iri in enumerate({**quads.values(stream, stream.sequence), **inside})}
    triples = _Triples(quads.url, quads)
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
    relations = [
        (relation, node)
        for relation in quads.objects(here, f"{TREE}relation")
        for node in quads.objects(relation, f"{TREE}node")
    ]
    for relation, node in relations:
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
    quads: Quads
    _size: int = 0
    _of_graph: dict[object, list[Quad]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for quad in self.quads.quads:
            if quad.graph_name != _DEFAULT:
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
            beside = (quad for quad in self.quads.paths.of_subject.get(node, ()) if quad.graph_name == _DEFAULT)
            for quad in (*beside, *self._of_graph.get(node, ())):
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
        beside = quad.graph_name == _DEFAULT
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


def _iris(terms: Iterable[Term]) -> set[str]:
    """Those of them that are IRIs."""
    return {each.value for each in terms if isinstance(each, NamedNode)}
