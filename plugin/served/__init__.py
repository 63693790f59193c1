"""A store that is served: by the live service in this process over a folder, or by a server elsewhere.

    oxiseq.open(folder) ─▶ places.py: LiveRoutes in this process ─┐
    oxiseq.open(url) ────▶ HTTP ────────────────────────────────┴▶ wire.py ─▶ ServedStore, ServedStream, ServedQuery
                                                                                 ▲
    what users hold (oxiseq.api): Store, Stream, ContinuousQuery, StandingQuery ─┘ or memory

Both speak the server's own routes, so that streams, queries, matches and their ids are one thing in both, and the
journal, its recovery and what is promised after a kill are the server's.
"""

from oxiseq.served.query import ServedQuery, ServedStanding
from oxiseq.served.store import ServedStore, ServedStream
from oxiseq.served.wire import RefusedError, UnreachableError

__all__ = ["RefusedError", "ServedQuery", "ServedStanding", "ServedStore", "ServedStream", "UnreachableError"]
