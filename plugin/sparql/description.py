"""The service description: what this endpoint can do, as RDF (sd: of the W3C)."""

from __future__ import annotations

from pyoxigraph import BlankNode, NamedNode, RdfFormat, Triple, serialize

from oxiseq.sparql.media import GRAPHS, RESULTS
from oxiseq.sparql.settings import SparqlSettings

SD = "http://www.w3.org/ns/sparql-service-description#"
_TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_PREFIXES = {"sd": SD, "formats": "http://www.w3.org/ns/formats/"}


def describe(endpoint: str, settings: SparqlSettings, *, update: bool) -> list[Triple]:
    """The description of a query or update endpoint at this address."""
    service = BlankNode("service")
    found = [
        Triple(service, _TYPE, _sd("Service")),
        Triple(service, _sd("endpoint"), NamedNode(endpoint)),
    ]
    formats: dict[NamedNode, None] = {}
    if update:
        found.append(Triple(service, _sd("supportedLanguage"), _sd("SPARQL11Update")))
    else:
        languages = ("SPARQL10Query", "SPARQL11Query")
        found += [Triple(service, _sd("supportedLanguage"), _sd(name)) for name in languages]
        formats = {NamedNode(result.iri): None for result in RESULTS.values()}
        formats |= {NamedNode(graph.iri): None for graph in GRAPHS.values()}
    found += [Triple(service, _sd("resultFormat"), iri) for iri in formats]
    inputs = {NamedNode(f.iri): None for f in GRAPHS.values()} if update and settings.allow_load else {}
    found += [Triple(service, _sd("inputFormat"), iri) for iri in inputs]
    found += [Triple(service, _sd("feature"), _sd(name)) for name in _features(settings)]
    dataset, default = BlankNode("dataset"), BlankNode("defaultGraph")
    return [
        *found,
        Triple(service, _sd("defaultDataset"), dataset),
        Triple(dataset, _TYPE, _sd("Dataset")),
        Triple(dataset, _sd("defaultGraph"), default),
        Triple(default, _TYPE, _sd("Graph")),
    ]


def description(endpoint: str, settings: SparqlSettings, format_: RdfFormat, *, update: bool) -> bytes:
    """The same, written."""
    prefixes = _PREFIXES if format_ in (RdfFormat.TURTLE, RdfFormat.TRIG, RdfFormat.N3) else None
    return serialize(describe(endpoint, settings, update=update), format=format_, prefixes=prefixes) or b""


def _features(settings: SparqlSettings) -> list[str]:
    names = ["EmptyGraphs"]
    if settings.union_default_graph:
        names.append("UnionDefaultGraph")
    if settings.allow_service:
        names.append("BasicFederatedQuery")
    if settings.allow_load:
        names.append("DereferencesURIs")
    return names


def _sd(name: str) -> NamedNode:
    return NamedNode(SD + name)
