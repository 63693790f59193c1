"""Why, and why not: what became of events and partial matches of a query over given streams.

A language's front (languages/) reads the streams and asks for its reasons; what is told has one form for all:

    report.py     Why: how far patterns' events came, stages, reasons with nearest misses; text.py writes it
    provenance.py what matches were made of, also as PROV-O
    read.py       streams → batches · near.py how far a value is from what is asked · working.py runs, step by step
                  bounds.py how much work it may be
    ceql/         events of the formula, places of the automaton
    where/        parts of WHERE · rsp/ over windows at an instant · intervals/ over streams with intervals (EP-SPARQL)

SPAseq's reasons stand here:

    streams ─ read.py ─▶ batches ─┬─ funnel.py: per graph pattern, how far its events came
                                  ├─ stages.py: how many matches the beginnings of the sequence have
                                  ├─ relax.py: where it ends, what would match without one condition
                                  └─ origins.py: what a match was made of

Everything is counted by running queries through the engine: the query's own beginnings, and the same with one
condition left out. That is exact, and slow; nothing of it is on the way of events in a running query.
"""
