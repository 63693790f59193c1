"""Which front speaks for a language, or for a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from oxiseq.engine.errors import OxiseqError
from oxiseq.grammar.ceql_algebra import CeqlQuery
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.languages import AnyQuery, Language, known_language
from oxiseq.grammar.rsp_algebra import RspQuery
from oxiseq.knowledge import Kb
from oxiseq.languages.ceql import CeqlFront
from oxiseq.languages.epsparql import EpFront
from oxiseq.languages.front import Front
from oxiseq.languages.rsp import RsepqlFront, RspqlFront, SpectraFront
from oxiseq.languages.spaseq import SpaseqFront

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


def rules_of(front: Front[Any], rules: Sequence[str]) -> tuple[str, ...]:
    """The rules. Raises OxiseqError if they are given to a query of a language that has none, or are one text."""
    if rules and front.language != "epsparql":
        raise OxiseqError(f"rules are for EP-SPARQL: a query of {front.language} has none")
    if isinstance(rules, str):
        raise OxiseqError("rules are a list of texts")
    return tuple(rules)


def check_kb(front: Front[Any], kb: Kb) -> None:
    """Raise OxiseqError if a knowledge base is given that no query of the language asks."""
    if kb is not None and not front.asks_kb:
        raise OxiseqError(f"a {front.language.upper()} query asks no knowledge base: leave out kb")
