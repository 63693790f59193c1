"""Which `Language` speaks for a name, or for a query: ours, those that are registered, and plug-ins.

Ours are loaded when they are first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from oxiseq.engine.errors import ArgumentTypeError, OxiseqError
from oxiseq.engine.extras import needed
from oxiseq.grammar import languages
from oxiseq.grammar.languages import AnyQuery, plugged
from oxiseq.languages.language import Language
from oxiseq.sources.knowledge import Kb

if TYPE_CHECKING:
    from oxiseq.languages.ceql import language as ceql
    from oxiseq.languages.epsparql import language as epsparql
    from oxiseq.languages.rsp import language as rsp
    from oxiseq.languages.spaseq import language as spaseq
else:
    ceql = needed("oxiseq.languages.ceql.language")
    epsparql = needed("oxiseq.languages.epsparql.language")
    rsp = needed("oxiseq.languages.rsp.language")
    spaseq = needed("oxiseq.languages.spaseq.language")

_OURS: Final[dict[str, Callable[[], Language[Any]]]] = {
    "spaseq": lambda: spaseq.Spaseq(),
    "ceql": lambda: ceql.Ceql(),
    "epsparql": lambda: epsparql.EpSparql(),
    "rspql": lambda: rsp.RspQl(),
    "spectra": lambda: rsp.Spectra(),
    "rsepql": lambda: rsp.RsepQl(),
}


def language_named(name: str) -> Language[Any]:
    """Raises OxiseqError for a language that is not known, or whose plug-in cannot be used."""
    return _ours(name) if name in _OURS else _checked(plugged(name))


def language_for(query: AnyQuery) -> Language[Any]:
    """That of a parsed query."""
    return language_named(query.language)


def register(language: Language[Any], *, replace: bool = False) -> None:
    """Have a language known in this process, as if a plug-in had brought it.

    `replace`: in place of one that was registered so before, when a notebook's cell runs again, say. Raises OxiseqError
    for what is no language, and where another one has its name or its media type.
    """
    languages.register(_checked(language), replace=replace)


@cache
def _ours(name: str) -> Language[Any]:
    return _OURS[name]()


def _checked(language: object) -> Language[Any]:
    if isinstance(language, Language):
        return language
    raise OxiseqError(f"{language!r:.100} is not an oxiseq.languages.Language: its queries can be checked, but not run")


def check_kb(language: Language[Any], kb: Kb) -> None:
    """Raise OxiseqError if a knowledge base is given that no query of the language reads."""
    if kb is not None and not language.asks_kb:
        raise ArgumentTypeError(f"a {language.syntax.title} query asks no knowledge base: leave out kb")
