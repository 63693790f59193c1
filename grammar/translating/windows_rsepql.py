"""Continuous SPARQL → RSEP-QL and back (semantics.md 4 and 6).

RSEP-QL's window ends at the last multiple of its slide, SPECTRA's reaches to the instant and is cut at its start; the
two are one at the multiples of the slide. RSEP-QL emits all answers where the text is silent, the others the new ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from oxiseq.grammar.algebra import Every, OnClose
from oxiseq.grammar.rsp_algebra import RangeWindow, Report, RspLanguage, RspQuery
from oxiseq.grammar.translating.rsp_surface import as_spectra
from oxiseq.grammar.translating.translation import Translation, refused

_NAMES: Final = {"rspql": "RSP-QL", "spectra": "SPECTRA"}


def as_rsepql(query: RspQuery) -> Translation:
    """The query in RSEP-QL. Raises `QueryError` for windows that RSEP-QL fills otherwise."""
    _refuse_moving(query, "RSEP-QL")
    return Translation(replace(query, language="rsepql", report=query.report or Report.ISTREAM))


def as_continuous(query: RspQuery, language: RspLanguage) -> Translation:
    """A query of RSEP-QL in RSP-QL or SPECTRA. Raises `QueryError` for events, and for windows that these fill
    otherwise."""
    name = _NAMES[language]
    if query.events:
        hint = "EP-SPARQL has sequences too: --to epsparql"
        raise refused(f"{name} has no events", query.events[0].span, query.text, hint)
    _refuse_moving(query, name)
    written = replace(query, language=language, report=query.report or Report.RSTREAM, consume=None)
    return as_spectra(written) if language == "spectra" else Translation(written)


def _refuse_moving(query: RspQuery, other: str) -> None:
    """Raise QueryError for windows that hold other events in the other language."""
    ranges = [o for w in query.windows for o in w.operators if isinstance(o, RangeWindow)]
    slides = {o.slide for o in ranges}
    for each in ranges:
        if each.events:
            hint = "give RANGE and SLIDE as spans of time"
            raise refused("windows of RSEP-QL count time, not events", each.span, query.text, hint)
        if not _only_at_multiples(query, each.slide, slides):
            hint = (
                "leave out SLIDE, or answer only at its multiples: REPORT ON WINDOW CLOSE; "
                "RSEP-QL's window does not move in between"
            )
            raise refused(f"between two slides this window holds other events in {other}", each.span, query.text, hint)


def _only_at_multiples(query: RspQuery, slide: int, slides: set[int]) -> bool:
    match query.when:
        case Every(period):
            return period % slide == 0
        case OnClose():
            return len(slides) == 1
        case _:
            return slide == 1
