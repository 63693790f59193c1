"""The objects that users hold: queries, stores, streams, continuous queries, standing queries over a store.

    query.py ─ comparison.py                   a query over whole streams
    store.py ─ continuous.py                a store with streams and queries at work; feed.py brings one to the other
    standing/                               queries over a store's content, and their answers as it changes

`oxiseq` itself names those of them that are public.
"""
