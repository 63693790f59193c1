"""Why, and why not: what became of events and partial matches of a query over given streams.

A language reads the streams and says what its steps and conditions are (its own `why.py`); the rest is one for all:

    why.py        the procedure: each step, and the query without one condition, run over the kept events
    report.py     Why: how far patterns' events came, partial matches by step, near misses; what matches were made of,
                  also as PROV-O; how much work it may be
    read.py       streams → batches, and runs over them, step by step
    where/        parts of WHERE, for languages over windows, for EP-SPARQL and queries over the store
"""
