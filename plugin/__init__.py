"""Oxiseq: event sequences over RDF streams, beside an Oxigraph store.

    query text → algebra → plan → events → matches

`Query` is a query and what can be done with it, `run` answers one over given streams; `Store` holds a knowledge base,
streams and continuous queries.

>>> import oxiseq
>>> query = '''
... PREFIX : <http://example.org/>
... SELECT ?who ?first ?second
... FROM STREAM S <http://example.org/payments>
... WHERE {
...   SEQ(A; B)
...   DEFINE GPM A ON S { ?who :paid ?first }
...   DEFINE GPM B ON S { ?who :paid ?second FILTER(?second >= 10 * ?first) }
... }'''
>>> payment = "<http://example.org/ann> <http://example.org/paid> {} ."
>>> events = [(1_000_000, payment.format(3)), (2_000_000, payment.format(40))]
>>> for match in oxiseq.run(query, streams={"http://example.org/payments": events}):
...     print(match.at_us, match["first"].value, match["second"].value)
2000000 3 40
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from oxiseq.engine.importing import loading

if TYPE_CHECKING:
    from oxiseq.api.continuous import ContinuousQuery
    from oxiseq.api.query import Query, run
    from oxiseq.api.standing import Snapshot, StandingQuery, StoreChange
    from oxiseq.api.store import Store
    from oxiseq.api.stream import Stream
    from oxiseq.engine.errors import (
        ArgumentTypeError,
        ArgumentValueError,
        EventError,
        ExtraError,
        KbError,
        LimitError,
        OxiseqError,
        QueryError,
    )
    from oxiseq.languages.lints import LintWarning, MissingGraphWarning
    from oxiseq.languages.reasons.report import Why
    from oxiseq.mappings.declared import StreamMapping
    from oxiseq.matches.match import Match, Positions
    from oxiseq.matches.matches import Matches
    from oxiseq.served.opening import open
    from oxiseq.sources.warned import LateWarning

_HOMES = {
    "ArgumentTypeError": "engine.errors",
    "ArgumentValueError": "engine.errors",
    "ContinuousQuery": "api.continuous",
    "EventError": "engine.errors",
    "ExtraError": "engine.errors",
    "KbError": "engine.errors",
    "LateWarning": "sources.warned",
    "LimitError": "engine.errors",
    "LintWarning": "languages.lints",
    "Match": "matches.match",
    "Matches": "matches.matches",
    "MissingGraphWarning": "languages.lints",
    "OxiseqError": "engine.errors",
    "Positions": "matches.match",
    "Snapshot": "api.standing",
    "StandingQuery": "api.standing",
    "StoreChange": "api.standing",
    "Query": "api.query",
    "QueryError": "engine.errors",
    "Store": "api.store",
    "Stream": "api.stream",
    "StreamMapping": "mappings.declared",
    "Why": "languages.reasons.report",
    "open": "served.opening",
    "run": "api.query",
}


def __getattr__(name: str) -> Any:
    """Names of the API are imported when they are first used: the engine takes a second to load (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with loading():
        found = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


__version__ = "0.1.0"

__all__ = [
    "ArgumentTypeError",
    "ArgumentValueError",
    "ContinuousQuery",
    "EventError",
    "ExtraError",
    "KbError",
    "LateWarning",
    "LimitError",
    "LintWarning",
    "Match",
    "Matches",
    "MissingGraphWarning",
    "OxiseqError",
    "Positions",
    "Query",
    "QueryError",
    "Snapshot",
    "StandingQuery",
    "Store",
    "StoreChange",
    "Stream",
    "StreamMapping",
    "Why",
    "open",
    "run",
]
