"""The W3C's SPARQL 1.1 query tests as values: what is asked of which data, and what the answer must be.

The suites are not part of this repository: `python tests/fetch_w3c.py` fetches them. They are looked for in
$OXISEQ_W3C, else in `tests/w3c`, else in `shared/w3c` beside the working copy or further up.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

from pyoxigraph import (
    BlankNode,
    CanonicalizationAlgorithm,
    Dataset,
    DefaultGraph,
    Literal,
    NamedNode,
    Quad,
    QueryBoolean,
    QueryResultsFormat,
    QuerySolutions,
    RdfFormat,
    Store,
    Triple,
    parse,
    parse_query_results,
)
from rdflib import RDF, Graph, Namespace, URIRef
from rdflib.collection import Collection

MF = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
QT = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-query#")
RS: Final = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
_FORMATS: Final = {
    ".srx": QueryResultsFormat.XML,
    ".srj": QueryResultsFormat.JSON,
    ".tsv": QueryResultsFormat.TSV,
}
Term: TypeAlias = NamedNode | BlankNode | Literal


def shared_suite(name: str) -> Path | None:
    """The folder of that name, or None when it is not there."""
    given = os.environ.get("OXISEQ_W3C")
    here = Path(__file__).resolve()
    around = [here.parent / "w3c", *(parent / "shared" / "w3c" for parent in here.parents)]
    roots = [Path(given)] if given else around
    return next((root / name for root in roots if (root / name).is_dir()), None)


def suite(name: str) -> Path | None:
    """A suite's folder of SPARQL 1.1, or None when it is not there."""
    return shared_suite(f"sparql11/{name}")


def absent(name: str) -> str:
    """Why its tests are skipped."""
    return f"the W3C suite {name} is not here: python tests/fetch_w3c.py"


# --- tests ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Evaluation:
    """A test: a query, data, named graphs, and the file of its results."""

    suite: str
    name: str
    query: str
    data: Path | None
    graphs: tuple[tuple[str, Path], ...]
    result: Path

    @property
    def base(self) -> str:
        """What relative IRIs of the query are resolved against."""
        return f"{self.result.parent.as_uri()}/"


@dataclass(frozen=True)
class Syntax:
    """A query that must be read, or refused."""

    suite: str
    name: str
    query: str
    good: bool


def evaluations(name: str, folder: Path) -> Iterator[Evaluation]:
    """The evaluation tests of a manifest."""
    graph, entries = _manifest(folder)
    for entry in entries:
        action, result = graph.value(entry, MF.action), graph.value(entry, MF.result)
        query = graph.value(action, QT.query)
        if query is None or result is None:
            continue
        data = graph.value(action, QT.data)
        named = sorted(str(g) for g in graph.objects(action, QT.graphData) if isinstance(g, URIRef))
        yield Evaluation(
            name,
            _name(entry),
            _path(query).read_text(),
            None if data is None else _path(data),
            tuple((g, _path(g)) for g in named),
            _path(result),
        )


def syntax_tests(name: str, folder: Path) -> Iterator[Syntax]:
    """The syntax tests of a manifest."""
    graph, entries = _manifest(folder)
    kinds = {MF.PositiveSyntaxTest11: True, MF.NegativeSyntaxTest11: False}
    for entry in entries:
        kind = graph.value(entry, RDF.type)
        if kind in kinds:
            yield Syntax(name, _name(entry), _path(graph.value(entry, MF.action)).read_text(), kinds[kind])


@cache
def _manifest(folder: Path) -> tuple[Graph, list[Any]]:
    graph = Graph().parse(folder / "manifest.ttl", publicID=folder.as_uri() + "/")
    return graph, [e for m in graph.subjects(MF.entries, None) for e in Collection(graph, graph.value(m, MF.entries))]


def _name(entry: Any) -> str:
    return str(entry).rpartition("#")[2]


def _path(iri: Any) -> Path:
    return Path(str(iri).removeprefix("file://"))


def triples(path: Path, base: str | None = None) -> list[Triple]:
    """Those of a file's default graph."""
    format_ = RdfFormat.from_extension(path.suffix[1:])
    quads = parse(path.read_bytes(), format=format_, base_iri=base or path.as_uri())
    return [q.triple for q in quads if q.graph_name == DefaultGraph()]


# --- answers --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """Rows of terms; None is unbound."""

    names: tuple[str, ...]
    rows: tuple[tuple[Term | None, ...], ...]


def expected(path: Path) -> bool | Table | list[Triple] | None:
    """What a file of results says: ASK's, SELECT's, CONSTRUCT's; None for a format that does not tell terms."""
    if path.suffix == ".ttl":
        return _graph_or_table(triples(path))
    if path.suffix not in _FORMATS:
        return None
    found = parse_query_results(path.read_bytes(), format=_FORMATS[path.suffix])
    if isinstance(found, QueryBoolean):
        return bool(found)
    assert isinstance(found, QuerySolutions)
    names = tuple(v.value for v in found.variables)
    return Table(names, tuple(tuple(row[name] for name in names) for row in found))


def _graph_or_table(graph: list[Triple]) -> Table | list[Triple]:
    """A graph that may describe a result set."""

    def of(subject: Any, name: str) -> list[Any]:
        return [t.object for t in graph if t.subject == subject and t.predicate == NamedNode(RS + name)]

    sets = [t.subject for t in graph if t.object == NamedNode(RS + "ResultSet")]
    if not sets:
        return graph
    names = tuple(each.value for each in of(sets[0], "resultVariable"))
    solutions = [
        {of(b, "variable")[0].value: of(b, "value")[0] for b in of(solution, "binding")}
        for solution in of(sets[0], "solution")
    ]
    return Table(names, tuple(tuple(each.get(name) for name in names) for each in solutions))


def normal(term: Term) -> Term:
    """As a store keeps it."""
    store = Store()
    store.add(Quad(NamedNode("urn:x"), NamedNode("urn:x"), term))
    return next(iter(store)).object


def same_rows(one: Table, other: Table) -> bool:
    """As bags, blank nodes up to isomorphism."""
    return one.names == other.names and _bag(one) == _bag(other)


def _bag(table: Table) -> tuple[Counter[tuple[Term | None, ...]], Dataset]:
    """The rows without blank nodes; the others as a graph: a node for each, with how often it is there."""
    counts = Counter(tuple(None if t is None else normal(t) for t in row) for row in table.rows)
    plain = Counter({row: n for row, n in counts.items() if not any(isinstance(t, BlankNode) for t in row)})
    graph = []
    for row, often in counts.items():
        if row not in plain:
            node = BlankNode()
            graph.append(Triple(node, NamedNode("urn:often"), Literal(often)))
            graph += [Triple(node, NamedNode(f"urn:column:{i}"), t) for i, t in enumerate(row) if t is not None]
    return plain, canonical(graph)


def canonical(graph: Iterable[Triple]) -> Dataset:
    """Equal for isomorphic graphs."""
    found = Dataset(Quad(t.subject, t.predicate, normal(t.object)) for t in graph)
    found.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return found


def ordered_by(query: str, names: Sequence[str]) -> list[int] | None:
    """The columns by which a query orders its rows, if ORDER BY stands at its end and names columns alone."""
    found = re.search(r"(?i)\border\s+by((?:\s+(?:asc|desc)?\s*\(?\s*[?$]\w+\s*\)?)+)\s*$", query)
    keys = re.findall(r"[?$](\w+)", found[1]) if found else []
    return [names.index(key) for key in keys] if keys and set(keys) <= {*names} else None


def same_order(one: Table, other: Table, columns: Sequence[int]) -> bool:
    """Whether rows come in the same order, as far as columns tell; blank nodes are alike."""

    def keys(table: Table) -> list[list[str]]:
        return [
            ["_:" if isinstance(t, BlankNode) else str(t and normal(t)) for t in (row[c] for c in columns)]
            for row in table.rows
        ]

    return keys(one) == keys(other)
