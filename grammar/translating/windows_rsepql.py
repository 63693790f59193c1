"""Continuous SPARQL → RSEP-QL (semantics.md 4 and 6).

RSEP-QL's window ends at the last multiple of its slide, SPECTRA's reaches to the instant and is cut at its start; the
two are one at the multiples of the slide. RSEP-QL tells all answers where the text is silent, the others the new ones.
"""

from __future__ import annotations

from dataclasses import replace

from oxiseq.grammar.rsp_algebra import Every, OnClose, RangeWindow, Report, RspQuery
from oxiseq.grammar.translating.translation import Translation, refused


def as_rsepql(query: RspQuery) -> Translation:
    """The query in RSEP-QL. Raises `QueryError` for windows that RSEP-QL fills otherwise."""
    ranges = [o for w in query.windows for o in w.operators if isinstance(o, RangeWindow)]
    slides = {o.slide for o in ranges}
    for each in ranges:
        if each.events:
            hint = "give RANGE and SLIDE as spans of time"
            raise refused("windows of RSEP-QL count time, not events", each.span, query.text, hint)
        if not _only_at_multiples(query, each.slide, slides):
            hint = ("leave out SLIDE, or answer at its multiples only: REPORT ON WINDOW CLOSE; "
                    "RSEP-QL's window does not move in between")  # fmt: skip
            raise refused("between two slides this window holds other events in RSEP-QL", each.span, query.text, hint)
    return Translation(replace(query, language="rsepql", report=query.report or Report.ISTREAM))


def _only_at_multiples(query: RspQuery, slide: int, slides: set[int]) -> bool:
    match query.when:
        case Every(period):
            return period % slide == 0
        case OnClose():
            return len(slides) == 1
        case _:
            return slide == 1
