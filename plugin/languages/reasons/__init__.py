"""Why, and why not: what became of events and partial matches of a query over given streams.

A language reads the streams and finds its reasons (its own `reasons/`); their form is one for all:

    report.py     Why: how far patterns' events came, stages, reasons with nearest misses; text.py writes it
    provenance.py what matches were made of, also as PROV-O
    read.py       streams → batches · near.py how far a value is from the condition · working.py runs, step by step
                  bounds.py how much work it may be
    where/        parts of WHERE, for languages over windows and EP-SPARQL

Everything is counted by running queries through the engine: the query's own beginnings, and the same with one
condition left out. That is exact, and slow; nothing of it is on the way of events in a running query.
"""
