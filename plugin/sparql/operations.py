"""SPARQL operations as requests carry them: the text and its dataset."""

from __future__ import annotations

from pyoxigraph import NamedNode

from oxiseq.grammar.records import dataclass
from oxiseq.sparql.messages import Parameters, Request, form, values
from oxiseq.sparql.problems import Problem

FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Operation:
    """A query or an update, the graphs that the protocol names for it, and whether it reads all graphs."""

    text: str
    default_graphs: tuple[str, ...]
    named_graphs: tuple[str, ...]
    union: bool


def query_of(request: Request) -> Operation:
    """The query of a GET or POST request. Raises Problem."""
    parameters, direct = _carried(request, "application/sparql-query")
    return _operation(parameters, direct, "query", "default-graph-uri", "named-graph-uri", "union-default-graph")


def update_of(request: Request) -> Operation:
    """The update of a POST request. Raises Problem."""
    parameters, direct = _carried(request, "application/sparql-update")
    return _operation(parameters, direct, "update", "using-graph-uri", "using-named-graph-uri", "using-union-graph")


def _carried(request: Request, direct_type: str) -> tuple[Parameters, str | None]:
    """The parameters, and the text if it is the body itself."""
    in_url = request.parameters()
    if request.method in ("GET", "HEAD"):
        return in_url, None
    if request.media_type == FORM:
        return in_url + form(request.text().encode()), None
    if request.media_type == direct_type:
        return in_url, request.text()
    given = f"Content-Type {request.media_type}" if request.media_type else "no Content-Type"
    raise Problem(415, "not a SPARQL request", f"{given}; expected {direct_type} or {FORM}")


def _operation(
    parameters: Parameters, direct: str | None, name: str, default: str, named: str, union: str
) -> Operation:
    texts = values(parameters, name) + ([direct] if direct is not None else [])
    if not texts:
        raise Problem(400, f"no {name}", f"the parameter {name} is missing")
    if len(texts) > 1:
        raise Problem(400, f"more than one {name}", f"{len(texts)} are given")
    if "\x00" in texts[0]:
        raise Problem(400, "malformed SPARQL", "the text has a NUL character")
    default_graphs = tuple(checked_iri(iri, default) for iri in values(parameters, default))
    named_graphs = tuple(checked_iri(iri, named) for iri in values(parameters, named))
    all_graphs = any(value.lower() != "false" for value in values(parameters, union))
    if all_graphs and (default_graphs or named_graphs):
        raise Problem(400, "the dataset is given twice", f"{union} beside {default} or {named}")
    return Operation(texts[0], default_graphs, named_graphs, all_graphs)


def checked_iri(iri: str, name: str) -> str:
    """An absolute IRI. Raises Problem 400 that names the parameter."""
    try:
        return NamedNode(iri).value
    except ValueError as error:
        raise Problem(400, f"{name} is not an absolute IRI", f"{iri}: {error}") from None
