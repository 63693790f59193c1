"""Oxiseq: event sequences over RDF streams, beside an Oxigraph store.

    query text → algebra → plan → events → matches

`run` answers a query over given streams; `Store` holds a knowledge base, streams and continuous queries.

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
...     print(match.time, match["first"].value, match["second"].value)
2000000 3 40
"""

from oxiseq.continuous import ContinuousQuery
from oxiseq.engine.errors import EventError, KbError, LimitError, OxiseqError, QueryError
from oxiseq.grammar import check, parse, render
from oxiseq.matches import Match, Matches
from oxiseq.replay import run
from oxiseq.store import Store
from oxiseq.stream import Stream

__version__ = "0.1.0"

__all__ = [
    "ContinuousQuery",
    "EventError",
    "KbError",
    "LimitError",
    "Match",
    "Matches",
    "OxiseqError",
    "QueryError",
    "Store",
    "Stream",
    "check",
    "parse",
    "render",
    "run",
]
