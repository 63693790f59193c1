"""Which languages are shown in which: the registry of directions.

In the flow: algebra → **algebra of another language** → `render`. A direction keeps the meaning or raises
`QueryError` with code `translate` and the place of what cannot be kept; `apart.py` says why there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from oxiseq.grammar.finding_tools import listing
from oxiseq.grammar.languages import AnyQuery, syntax_named
from oxiseq.grammar.translating.apart import apart
from oxiseq.grammar.translating.ceql_spaseq import ceql_as_spaseq
from oxiseq.grammar.translating.ep_rsepql import ep_as_rsepql
from oxiseq.grammar.translating.rsepql_ep import rsepql_as_ep
from oxiseq.grammar.translating.rsp_surface import as_rspql, as_spectra
from oxiseq.grammar.translating.translation import Translation
from oxiseq.grammar.translating.windows_rsepql import as_continuous, as_rsepql

Direction: TypeAlias = Callable[[Any], Translation]

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
