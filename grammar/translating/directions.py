"""Which languages are shown in which: the registry of directions.

In the flow: algebra → **algebra of another language** → `render`. A direction keeps the meaning or raises
`QueryError` with code `translate` and the place of what cannot be kept; `translation.apart` says why there is none.

Between continuous SPARQL and RSEP-QL (semantics.md 4 and 6): RSEP-QL's window ends at the last multiple of its slide,
SPECTRA's reaches to the instant and is cut at its start; the two are one at the multiples of the slide. RSEP-QL emits
all answers where the text is silent, the others the new ones.

Between SPECTRA and RSP-QL: one algebra, two ways to write the pattern on a single window. The window as the default
graph (`FROM STREAM`), or with a name and `WINDOW :w { ... }`. A query that has several windows, or graphs beside
them, is of both languages unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from pyoxigraph import NamedNode

from oxiseq.grammar.algebra import Every, GraphPattern, Group, OnClose, SubSelect, WindowPattern
from oxiseq.grammar.errors import listing
from oxiseq.grammar.languages import AnyQuery, syntax_named
from oxiseq.grammar.rsp_algebra import RangeWindow, Report, RspLanguage, RspQuery
from oxiseq.grammar.scope import holds_exists, nested_elements, sub_select_expressions
from oxiseq.grammar.translating.ceql_spaseq import ceql_as_spaseq
from oxiseq.grammar.translating.ep_rsepql import ep_as_rsepql, rsepql_as_ep
from oxiseq.grammar.translating.translation import Translation, apart, refused, window_name

# --- directions --------------------------------------------------------------------------------------


Direction: TypeAlias = Callable[[Any], Translation]

# --- windows rsepql ----------------------------------------------------------------------------------


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


# --- rsp surface -------------------------------------------------------------------------------------


def as_rspql(query: RspQuery) -> Translation:
    """SPECTRA → RSP-QL, its window named if it is the only one."""
    written = replace(query, language="rspql")
    if len(query.windows) != 1 or query.windows[0].name is not None or _mixed(query, query.body.where):
        return Translation(written)
    name = window_name(query)
    where = Group((WindowPattern(name, query.body.where),))
    return Translation(_with(written, name, where))


def as_spectra(query: RspQuery) -> Translation:
    """RSP-QL → SPECTRA, its window as the default graph if WHERE reads nothing else."""
    written = replace(query, language="spectra")
    match query.windows, query.body.where.elements:
        case (window,), (WindowPattern(name, pattern),) if window.name == name and not _mixed(query, pattern):
            return Translation(_with(written, None, pattern))
    return Translation(written)


def _with(query: RspQuery, name: NamedNode | None, where: Group) -> RspQuery:
    return replace(query, windows=(replace(query.windows[0], name=name),), body=replace(query.body, where=where))


def _mixed(query: RspQuery, where: Group) -> bool:
    """Whether more than one graph is read, or a sub-query hides what is read, or SELECT reads something, too."""
    if query.default_graphs or any(holds_exists(e) for e in sub_select_expressions(query.body)):
        return True
    return any(isinstance(e, GraphPattern | WindowPattern | SubSelect) for e in nested_elements(where))


# --- the registry ------------------------------------------------------------------------------------


DIRECTIONS: Final[Mapping[tuple[str, str], Direction]] = {
    ("ceql", "spaseq"): ceql_as_spaseq,
    ("rspql", "spectra"): as_spectra,
    ("spectra", "rspql"): as_rspql,
    ("rspql", "rsepql"): as_rsepql,
    ("spectra", "rsepql"): as_rsepql,
    ("epsparql", "rsepql"): ep_as_rsepql,
    ("rsepql", "epsparql"): rsepql_as_ep,
    ("rsepql", "rspql"): lambda query: as_continuous(query, "rspql"),
    ("rsepql", "spectra"): lambda query: as_continuous(query, "spectra"),
}
"""(from, to) → the pass, between languages of ours; a plug-in has its own (`Syntax.translations`)."""


def translate_query(query: AnyQuery, to: str) -> Translation:
    """A checked query in the language `to`; itself where it is of that language.

    Raises `QueryError` where the meaning cannot be kept, with the place; `OxiseqError` for a language that is not
    known.
    """
    source, target = syntax_named(query.language), syntax_named(to)
    if source is target:
        return Translation(query)
    directions = {**{b: way for (a, b), way in DIRECTIONS.items() if a == source.name}, **source.translations}
    if to not in directions:
        hint = f"{source.name} is translated to {listing(list(directions)) if directions else 'no language'}"
        raise apart(query, source, target, hint)
    found: Translation = directions[to](query)
    return found
