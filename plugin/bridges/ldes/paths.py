"""SHACL property paths (https://www.w3.org/TR/shacl/#property-paths), read from a page and followed in it.

A page may come from a stranger. So a path is followed from set to set of nodes, not by SPARQL, which counts each way:
a short path through two nodes has a million ways. What is done for one page is bounded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from pyoxigraph import BlankNode, NamedNode, Quad, Triple
from pyoxigraph import Literal as RdfLiteral

from oxiseq.bridges.source import BridgeError
from oxiseq.grammar.records import dataclass

_SH: Final = "http://www.w3.org/ns/shacl#"
_RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_FIRST: Final = NamedNode(_RDF + "first")
_REST: Final = NamedNode(_RDF + "rest")
_CHOICE: Final = NamedNode(_SH + "alternativePath")
_INVERSE: Final = NamedNode(_SH + "inversePath")
_REPEATED: Final[dict[NamedNode, Sign]] = {
    NamedNode(_SH + "zeroOrMorePath"): "*",
    NamedNode(_SH + "oneOrMorePath"): "+",
    NamedNode(_SH + "zeroOrOnePath"): "?",
}
_DEEPEST: Final = 20
_PARTS: Final = 100
"""Of a path, together."""
_STEPS: Final = 10_000_000
"""Most nodes and parts that are visited for one page: some seconds."""
Sign: TypeAlias = Literal["*", "+", "?"]
Term: TypeAlias = NamedNode | BlankNode | RdfLiteral | Triple


class PathError(BridgeError):
    """No SHACL property path."""


@dataclass(frozen=True, slots=True)
class Inverse:
    """From object to subject."""

    part: Path


@dataclass(frozen=True, slots=True)
class Repeated:
    """As in SPARQL."""

    part: Path
    sign: Sign


@dataclass(frozen=True, slots=True)
class Several:
    """One after the other, or one of them (`choice`)."""

    parts: tuple[Path, ...]
    choice: bool = False


Path: TypeAlias = NamedNode | Inverse | Repeated | Several


class Paths:
    """The paths of one page, in the union of its graphs. `url`: the page, for errors."""

    def __init__(self, url: str, quads: Sequence[Quad]) -> None:
        self._url, self._quads = url, quads
        self.of_subject: defaultdict[Term, list[Quad]] = defaultdict(list)
        for quad in quads:
            self.of_subject[quad.subject].append(quad)
        self._of_object: defaultdict[Term, list[Quad]] | None = None
        """For paths that lead back, which few streams have."""
        self._steps = 0

    def objects(self, subject: Term | None, predicate: NamedNode) -> Sequence[Term]:
        """Of the triples of a subject; one that is in several graphs is there as often."""
        found = () if subject is None else self.of_subject.get(subject, ())
        return [quad.object for quad in found if quad.predicate == predicate]

    def _subjects(self, object_: Term, predicate: NamedNode) -> tuple[Sequence[Term], int]:
        """And how many triples were looked at."""
        if self._of_object is None:
            self._of_object = defaultdict(list)
            for quad in self._quads:
                self._of_object[quad.object].append(quad)
        found = self._of_object.get(object_, ())
        return [quad.subject for quad in found if quad.predicate == predicate], len(found)

    def read(self, node: Term | None) -> Path:
        """Raises PathError, BridgeError."""
        return self._read(node, 0, [0])

    def follow(self, start: Term, path: Path) -> set[Term]:
        """What the path leads to. Raises BridgeError."""
        return self._follow({start}, path, back=False)

    def _read(self, node: Term | None, deep: int, parts: list[int]) -> Path:
        """`parts`: how many there are so far."""
        parts[0] += 1
        self._count(1)
        if parts[0] > _PARTS:
            raise PathError(f"{self._url}: a path has more than {_PARTS} parts")
        if isinstance(node, NamedNode):
            return node
        if deep > _DEEPEST or not isinstance(node, BlankNode):
            raise PathError(f"{self._url}: a path is no SHACL property path")
        if self._first(node, _FIRST) is not None:
            return Several(tuple(self._read(each, deep + 1, parts) for each in self._list(node)))
        if (each := self._first(node, _CHOICE)) is not None:
            return Several(tuple(self._read(part, deep + 1, parts) for part in self._list(each)), choice=True)
        if (each := self._first(node, _INVERSE)) is not None:
            return Inverse(self._read(each, deep + 1, parts))
        for name, sign in _REPEATED.items():
            if (each := self._first(node, name)) is not None:
                return Repeated(self._read(each, deep + 1, parts), sign)
        raise PathError(f"{self._url}: a path is no SHACL property path")

    def _list(self, node: Term | None) -> Sequence[Term]:
        found: list[Term] = []
        while (first := self._first(node, _FIRST)) is not None and len(found) <= _PARTS:
            found.append(first)
            node = self._first(node, _REST)
        if not found:
            raise PathError(f"{self._url}: a path is no SHACL property path")
        return found

    def _first(self, subject: Term | None, predicate: NamedNode) -> Term | None:
        return next(iter(self.objects(subject, predicate)), None)

    def _follow(self, nodes: set[Term], path: Path, back: bool) -> set[Term]:
        match path:
            case Inverse(part):
                return self._follow(nodes, part, not back)
            case Repeated(part, sign):
                return self._repeat(nodes, part, sign, back)
            case Several(parts, choice=True):
                return set[Term]().union(*(self._follow(nodes, part, back) for part in parts))
            case Several(parts):
                for part in reversed(parts) if back else parts:
                    nodes = self._follow(nodes, part, back)
                return nodes
        found = set[Term]()
        for node in nodes:
            there, seen = (
                self._subjects(node, path) if back else (self.objects(node, path), len(self.of_subject.get(node, ())))
            )
            self._count(1 + seen)
            found.update(there)
        return found

    def _repeat(self, nodes: set[Term], part: Path, sign: Sign, back: bool) -> set[Term]:
        found = set[Term]() if sign == "+" else set(nodes)
        while nodes:
            nodes = self._follow(nodes, part, back) - found
            found |= nodes
            if sign == "?":
                break
        self._count(1 + len(found))
        return found

    def _count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > _STEPS:
            raise BridgeError(f"{self._url}: to follow its paths takes more than {_STEPS:,} steps")
