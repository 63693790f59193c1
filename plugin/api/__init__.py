"""The objects that users hold: queries, stores, streams, continuous queries, standing queries over a store.

    query.py ─ comparison.py                   a query over whole streams
    store.py ─ stream.py, continuous.py        a store with streams and queries at work, wherever they are
    standing/                                  queries over a store's content, and their answers as it changes

Each of `Store`, `Stream`, `ContinuousQuery`, `StandingQuery` is one class over a protocol (`StoreBackend`, ...) that
says what the place must answer. In memory that is `MemoryStore`, `MemoryStream` and `MemoryQuery` (feed.py brings one
to the other) and `MemoryStanding`; in a folder and at a server what `oxiseq.served` has.

`oxiseq` itself names those of them that are public.
"""
