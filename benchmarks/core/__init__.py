"""CORE's experiments (Bucchi et al., CORE: a Complex Event Recognition Engine, PVLDB 2022, section 6 and appendix).

    streams.py ─ tables ─┬─ ways.py (CEQL from the table; CEQL and SPAseq from coded RDF events) ─ matches, CPU time
    queries.py ─ texts ──┘   count.py counts the matches of a prefix a second time, without the engine
                             memory.py samples the memory of a long run

Like the original: the queries (types, names, households, zones, prices, windows as in the authors' published query
files), the attributes of the three streams, the number of events; stocks: the rate and each stock's share, trades in
runs of one stock and side at one price, most volumes in round lots, prices about where the queries' bounds are; homes:
85 plugs in 17 households, times in whole seconds; taxis: 263 zones, of which few have most trips. The protocol too:
input loaded before, one thread, all partial matches forgotten when a match is found (CONSUME BY ANY), at most 1,000
matches enumerated for each event that completes some, memory sampled.

Not known, and chosen here: how loads are distributed and how often plugs send (a plug is above 76 in 15 % of the
minutes; 31 events a second), how trips are distributed over pairs of zones (drawn independently). Windows: 10 s, of the
taxis 10,000 s (Appendix F), of Q1 to Q7 30 s (Appendix G); clocks count from 1970. A run's trades are a millisecond
apart, where the original has them at one time, so that an order by time is the order of arrival and SPAseq's answers
are CEQL's. So that the long queries find anything at all, the 24 steps stand one after the other every so many events
(`streams.EVERY`); with the distributions above nothing else completes more than some nine
steps.
"""
