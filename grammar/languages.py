"""The query languages: their names, their files, their queries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Final, Literal, TypeAlias, get_args

from oxiseq.grammar.algebra import Query
from oxiseq.grammar.ceql_algebra import CeqlQuery
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.errors import OxiseqError
from oxiseq.grammar.rsp_algebra import RspQuery

Language: TypeAlias = Literal["spaseq", "ceql", "epsparql", "rspql", "spectra", "rsepql"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
TITLES: Final[Mapping[Language, str]] = {
    "spaseq": "SPAseq", "ceql": "CEQL", "epsparql": "EP-SPARQL", "rspql": "RSP-QL", "spectra": "SPECTRA",
    "rsepql": "RSEP-QL",
}  # fmt: skip
"""As people write them."""
STANDING: Final[Literal["sparql"]] = "sparql"
"""Of queries that stand over a store and read no stream, beside the languages."""
AnyQuery: TypeAlias = Query | CeqlQuery | EpQuery | RspQuery


def known_language(name: str) -> Language:
    """`name`, if it is the name of a language. Raises `OxiseqError`."""
    for language in LANGUAGES:
        if language == name:
            return language
    raise OxiseqError(f"the language {name!r} is not known; known: {', '.join(LANGUAGES)}")


def language_of(file: str) -> Language:
    """The language that a file's ending tells: the name of one, else SPAseq."""
    ending = PurePath(file).suffix.lower().removeprefix(".")
    return next((language for language in LANGUAGES if language == ending), "spaseq")
