"""Graph patterns over windows, after SPECTRA's experiments (Gillani, Picard, Laforest, SSDBM 2016, section 7).

The queries are LUBM's, by LUBM's own numbers, and queries over power meters that are ours. SPECTRA's own seven and
two, with the published values, are repeated by `benchmarks.papers`.

    streams.py   a university and power meters: seeded streams of triples
    queries.py   LUBM's queries in conjunctive form, power queries
    ways.py      incrementally, again by the engine, by pyoxigraph in two ways, by rdflib
    page.py      the tables

Like the original: events of one and of twenty triples; windows of 10^3 to 10^6 triples, tumbling or sliding by one
event; queries over LUBM and over power observations. Not its data: the generators here have the same vocabularies and
shapes, and no inference, so a query names concrete classes (Q4 AssociateProfessor for Professor, and so on). Every
way's full answer at its last event is counted and compared with the engine's.
"""
