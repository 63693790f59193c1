"""Which languages are shown in which: the registry of directions.

Where it stands: algebra → **algebra of another language** → `render`. A direction keeps the meaning or raises
`QueryError` with code `translate` and the place of what cannot be kept; `apart.py` says why there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from oxiseq.grammar.algebra import Query
from oxiseq.grammar.ceql_algebra import CeqlQuery
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.finding_tools import listing
from oxiseq.grammar.languages import AnyQuery, Language, known_language
from oxiseq.grammar.translating.apart import apart
from oxiseq.grammar.translating.ceql_spaseq import ceql_as_spaseq
from oxiseq.grammar.translating.ep_rsepql import ep_as_rsepql
from oxiseq.grammar.translating.rsepql_ep import rsepql_as_ep
from oxiseq.grammar.translating.rsp_surface import as_rspql, as_spectra
from oxiseq.grammar.translating.translation import Translation
from oxiseq.grammar.translating.windows_rsepql import as_continuous, as_rsepql

Direction: TypeAlias = Callable[[Any], Translation]

DIRECTIONS: Final[Mapping[tuple[Language, Language], Direction]] = {
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
"""(from, to) → the pass."""


def translate_query(query: AnyQuery, to: str) -> Translation:
    """A checked query in the language `to`; itself where it is of that language.

    Raises `QueryError` where the meaning cannot be kept, with the place; `OxiseqError` for a language that is not
    known.
    """
    source, target = _language(query), known_language(to)
    if source == target:
        return Translation(query)
    direction = DIRECTIONS.get((source, target))
    if direction is None:
        known = [b for a, b in DIRECTIONS if a == source]
        hint = f"{source} is translated to {listing(known)}" if known else f"{source} is translated to no language"
        raise apart(query, source, target, hint)
    return direction(query)


def _language(query: AnyQuery) -> Language:
    match query:
        case Query():
            return "spaseq"
        case CeqlQuery():
            return "ceql"
        case EpQuery():
            return "epsparql"
        case _:
            return query.language
