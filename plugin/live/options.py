"""The options of a query's registration, as the journal keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from oxiseq.options import QUERY, STATE, Options, as_data, said_as_data

DOORS: Final = (QUERY, STATE)
"""What options a query that is registered has."""
_READS: Final = "reads"


def options_of(language: str, stored: Mapping[str, Any]) -> Options:
    """From the journal's JSON values. Raises OxiseqError for what the language does not take."""
    given = {name: value for name, value in stored.items() if name != _READS}
    return said_as_data(language, given, DOORS, stored.get(_READS, ()))


def stored_options(language: str, given: Mapping[str, Any], reads: Iterable[str]) -> dict[str, Any]:
    """What is given, as JSON values for the journal; `reads`: the streams that there are, for a query that names none.
    Raises OxiseqError."""
    options = options_of(language, given)
    return {**as_data(options), _READS: options.reads or list(reads)}
