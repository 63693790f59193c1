"""Which `Language` speaks for a name, or for a query: ours, those that are registered, and plug-ins."""

from __future__ import annotations

from typing import Any, Final

from oxiseq.engine.errors import ArgumentTypeError, OxiseqError
from oxiseq.grammar import languages
from oxiseq.grammar.languages import AnyQuery, plugged
from oxiseq.languages.ceql.language import Ceql
from oxiseq.languages.epsparql.language import EpSparql
from oxiseq.languages.language import Language
from oxiseq.languages.rsp.language import RsepQl, RspQl, Spectra
from oxiseq.languages.spaseq.language import Spaseq
from oxiseq.sources.knowledge import Kb

_ALL: Final[tuple[Language[Any], ...]] = (Spaseq(), Ceql(), EpSparql(), RspQl(), Spectra(), RsepQl())
_OURS: Final = {language.name: language for language in _ALL}


def language_named(name: str) -> Language[Any]:
    """Raises OxiseqError for a language that is not known, or whose plug-in cannot be used."""
    return _OURS.get(name) or _checked(plugged(name))


def language_for(query: AnyQuery) -> Language[Any]:
    """That of a parsed query."""
    return language_named(query.language)


def register(language: Language[Any], *, replace: bool = False) -> None:
    """Have a language known in this process, as if a plug-in had brought it.

    `replace`: in place of one that was registered so before, when a notebook's cell runs again, say. Raises OxiseqError
    for what is no language, and where another one has its name or its media type.
    """
    languages.register(_checked(language), replace=replace)


def _checked(language: object) -> Language[Any]:
    if isinstance(language, Language):
        return language
    raise OxiseqError(f"{language!r:.100} is not an oxiseq.languages.Language: its queries can be checked, but not run")


def check_kb(language: Language[Any], kb: Kb) -> None:
    """Raise OxiseqError if a knowledge base is given that no query of the language reads."""
    if kb is not None and not language.asks_kb:
        raise ArgumentTypeError(f"a {language.syntax.title} query asks no knowledge base: leave out kb")
