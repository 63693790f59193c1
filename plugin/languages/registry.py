"""Which front speaks for a language, or for a query."""

from __future__ import annotations

from typing import Any, Final

from oxiseq.engine.errors import OxiseqError
from oxiseq.grammar.ceql_algebra import CeqlQuery
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.languages import TITLES, AnyQuery, Language, known_language
from oxiseq.grammar.rsp_algebra import RspQuery
from oxiseq.languages.ceql.language import CeqlFront
from oxiseq.languages.epsparql.language import EpFront
from oxiseq.languages.language import Front
from oxiseq.languages.rsp.language import RsepqlFront, RspqlFront, SpectraFront
from oxiseq.languages.spaseq.language import SpaseqFront
from oxiseq.sources.knowledge import Kb

_ALL: Final[tuple[Front[Any], ...]] = (
    SpaseqFront(), CeqlFront(), EpFront(), RspqlFront(), SpectraFront(), RsepqlFront(),
)  # fmt: skip
FRONTS: Final[dict[Language, Front[Any]]] = {front.language: front for front in _ALL}
MEDIA_TYPES: Final[dict[str, Language]] = {front.media_type: front.language for front in FRONTS.values()}
"""Of query texts."""


def front_named(language: str) -> Front[Any]:
    """Raises OxiseqError for a language that is not known."""
    return FRONTS[known_language(language)]


def front_of(query: AnyQuery) -> Front[Any]:
    """That of the query's language."""
    if isinstance(query, EpQuery):
        return FRONTS["epsparql"]
    if isinstance(query, RspQuery):
        return FRONTS[query.language]
    return FRONTS["ceql" if isinstance(query, CeqlQuery) else "spaseq"]


def check_kb(front: Front[Any], kb: Kb) -> None:
    """Raise OxiseqError if a knowledge base is given that no query of the language asks."""
    if kb is not None and not front.asks_kb:
        raise OxiseqError(f"a {TITLES[front.language]} query asks no knowledge base: leave out kb")
