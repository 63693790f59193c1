"""Why, and why not: what became of events and partial matches of a SPAseq query over given streams.

    streams ─ read.py ─▶ batches ─┬─ funnel.py: per graph pattern, how far its events came
                                  ├─ stages.py: how many matches the beginnings of the sequence have
                                  ├─ relax.py: where it ends, what would match without one condition
                                  └─ provenance.py: what a match was made of, as PROV-O

Everything is counted by running queries through the engine: the query's own beginnings, and the same with one
condition left out. That is exact, and slow; nothing of it is on the way of events in a running query.
"""
