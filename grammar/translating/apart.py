"""Languages that are not shown in each other: what of the query the other one does not have, and where it stands."""

from __future__ import annotations

from typing import Final

from oxiseq.grammar.algebra import Query, Span
from oxiseq.grammar.ceql_algebra import CeqlQuery
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.errors import QueryError
from oxiseq.grammar.languages import AnyQuery, Language
from oxiseq.grammar.translating.translation import refused

_WANTS: Final[dict[Language, str]] = {
    "spaseq": "SPAseq asks each event by itself and says which may come between",
    "ceql": "CEQL asks events that are tuples with one type",
    "epsparql": "EP-SPARQL joins triples by their intervals and never takes an answer back",
    "rspql": "RSP-QL asks what windows hold, whatever the order of their events",
    "spectra": "SPECTRA asks what a window holds, whatever the order of its events",
    "rsepql": "RSEP-QL asks items of windows, and pairs them in time",
}
"""What a language is about."""


def apart(query: AnyQuery, source: Language, target: Language, hint: str) -> QueryError:
    """Why `query` is not shown in `target`, at the part of it that the other language lacks."""
    what, span = _part(query)
    return refused(f"{source} is not translated to {target}: {_WANTS[target]}, not {what}", span, query.text, hint)


def _part(query: AnyQuery) -> tuple[str, Span]:
    """What is its own language's, and where."""
    match query:
        case Query():
            return "graph patterns in a sequence", query.sequence.span
        case CeqlQuery():
            return "sets of tuple events", query.formula.span
        case EpQuery():
            return "patterns with intervals", query.where.span
        case _ if query.events:
            return "event mappings", query.events[0].span
        case _:
            return "windows", query.windows[0].span if query.windows else query.span
