"""Why, and why not: what became of events and partial matches of a query over given streams.

A language reads the streams and says what its steps and conditions are (its own `reasons/`); the rest is one for all:

    why.py        the procedure: each step, and the query without one condition, run over the kept events
    report.py     Why: how far patterns' events came, partial matches by step, near misses; text.py, html.py write it
    provenance.py what matches were made of, also as PROV-O · facts.py: the facts that they rest on
    read.py       streams → batches · working.py runs, step by step · bounds.py how much work it may be
    where/        parts of WHERE, for languages over windows, for EP-SPARQL and queries over the store
"""
