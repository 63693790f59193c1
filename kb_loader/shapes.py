"""SHACL: what of a loaded store is not as its shapes say. Validation is pyshacl's.

In the flow: sources ─▶ the store ─▶ **shapes** ─▶ the quarantine's report. A violation is no bad statement: what
breaks a shape stays in the store.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from pyoxigraph import BlankNode, Literal, NamedNode, Triple
from pyoxigraph import Store as RdfStore

from oxiseq.engine.errors import KbError
from oxiseq.engine.extras import loaded, needed
from oxiseq.kb_loader.graphs import STATISTICS
from oxiseq.kb_loader.quarantine import Fault, Quarantine
from oxiseq.kb_loader.report import LoadReport, Progress, Watch
from oxiseq.kb_loader.sources import Source, source_of

if TYPE_CHECKING:
    import pyshacl
    import rdflib
else:
    pyshacl, rdflib = needed("pyshacl"), needed("rdflib")

_STRING: Final = NamedNode("http://www.w3.org/2001/XMLSchema#string")
_SH: Final = "http://www.w3.org/ns/shacl#"


class Shapes:
    """A file of SHACL shapes. Raises KbError if it cannot be read, ExtraError without pyshacl."""

    def __init__(self, path: str | Path) -> None:
        loaded("pyshacl")
        self.source: Source = source_of(Path(path))
        if self.source.format is None:
            raise KbError(f"{path}: shapes are RDF")
        try:
            content, raw = self.source.open()
            with raw, content:
                self._graph = rdflib.Graph().parse(
                    data=content.read(), format=self.source.format.media_type, publicID=self.source.base
                )
        except Exception as error:  # rdflib's parsers raise many kinds
            raise KbError(f"{path}: cannot be read as shapes: {error}") from error

    def validated(self, store: RdfStore, quarantine: Quarantine, report: LoadReport, watch: Watch) -> list[str]:
        """Validate all graphs of the store together, and write what breaks a shape to the quarantine's folder.

        Returns what is wrong, a line each. Raises KbError if a shape itself is wrong, and if the quarantine is strict,
        at a violation.
        """
        watch(Progress("validating", self.source.size, self.source.size, report.read))
        with report.timed("validating"):
            faults = list(self._faults(store))
        if faults and quarantine.strict:
            raise KbError(f"{self.source.path}: {faults[0].reason}")
        quarantine.write(self.source, faults)
        return [fault.reason for fault in faults]

    def _faults(self, store: RdfStore) -> Iterator[Fault]:
        held, walks = [store], WeakSet[Generator[Any, None, None]]()
        del store  # an error that pyshacl has caught may keep this frame, and with it what is named here
        data = rdflib.Graph(store=_view(held, walks))
        try:  # in place: pyshacl would copy the data; without rules, which would add to it
            _, report, text = pyshacl.validate(data, shacl_graph=self._graph, inplace=True, advanced=False)
        except Exception as error:  # of the shapes, and of SPARQL in them
            raise KbError(f"{self.source.path}: {error}") from error
        finally:  # rdflib's objects refer to each other, and would hold the store open until they are collected
            held.clear()
            for walk in list(walks):  # pyshacl looks at the first statement of a walk and leaves it
                walk.close()
        if not isinstance(report, rdflib.Graph):
            raise KbError(f"{self.source.path}: {text}")
        results = report.subjects(rdflib.RDF.type, rdflib.URIRef(_SH + "ValidationResult"))
        yield from sorted((_fault(report, result) for result in results), key=lambda fault: fault.reason)


def _fault(report: rdflib.Graph, result: rdflib.term.Node) -> Fault:
    """A result of pyshacl's; the text is the value that breaks the shape."""

    def said(name: str) -> str | None:
        term: Any = report.value(result, rdflib.URIRef(_SH + name))
        return None if term is None else str(term) if name in ("resultMessage", "resultSeverity") else term.n3()

    severity = (said("resultSeverity") or "Violation").removeprefix(_SH)
    path = said("resultPath")
    where = f"{said('focusNode')}{f', {path}' if path else ''}"
    reason = f"SHACL {severity.lower()}: {said('resultMessage') or 'a shape is broken'} ({where})"
    return Fault(None, None, reason, said("value"))


# --- rdflib's view of a store ---------------------------------------------------------------------


def _view(held: list[RdfStore], walks: WeakSet[Generator[Any, None, None]]) -> Any:
    """The statements of all graphs of the store in `held` but the statistics, each once, for rdflib, without a copy.

    `walks` receives every walk over the statements: one that is not at its end holds the store open.
    """

    class View(rdflib.store.Store):
        context_aware = graph_aware = True  # as pyshacl wants; a graph by itself is all of it

        def triples(self, triple_pattern: Any, context: Any = None) -> Iterator[Any]:
            walk = self._matching(triple_pattern)
            walks.add(walk)
            return walk

        def _matching(self, triple_pattern: Any) -> Generator[Any, None, None]:
            s, p, o = (None if term is None else _ours(term) for term in triple_pattern)
            if isinstance(s, Literal) or not isinstance(p, NamedNode | None):
                return
            seen = set()
            for quad in held[0].quads_for_pattern(s, p, o, None):
                if quad.graph_name == STATISTICS or quad.triple in seen or isinstance(quad.object, Triple):
                    continue  # rdflib has no terms for triples
                seen.add(quad.triple)
                yield (_theirs(quad.subject), _theirs(quad.predicate), _theirs(quad.object)), iter(())

        def __len__(self, context: Any = None) -> int:
            return len(held[0])

    return View()


def _ours(term: Any) -> NamedNode | BlankNode | Literal:
    if isinstance(term, rdflib.URIRef):
        return NamedNode(term)
    if isinstance(term, rdflib.BNode):
        return BlankNode(term)
    datatype = None if term.datatype is None or term.language else NamedNode(term.datatype)
    return Literal(str(term), datatype=datatype, language=term.language)


def _theirs(term: Any) -> Any:
    if isinstance(term, NamedNode):
        return rdflib.URIRef(term.value)
    if isinstance(term, BlankNode):
        return rdflib.BNode(term.value)
    datatype = None if term.language or term.datatype == _STRING else rdflib.URIRef(term.datatype.value)
    return rdflib.Literal(term.value, lang=term.language, datatype=datatype, normalize=False)
