"""SPECTRA's experiments (Gillani, Picard, Laforest: SPECTRA, SSDBM 2016, section 7): graph patterns over windows.

    streams.py   a university and power meters: seeded streams of triples
    queries.py   LUBM's queries in conjunctive form, power queries
    ways.py      incrementally, again by the engine, by pyoxigraph in two ways, by rdflib
    page.py      the tables

Like the original: events of one and of twenty triples; windows of 10^3 to 10^6 triples, tumbling or sliding by one
event; queries over LUBM and over power observations. Not its data: the generators here have the same vocabularies and
shapes, and no inference, so a query names concrete classes (Q4 AssociateProfessor for Professor, and so on). Every
way's full answer at its last event is counted and compared with the engine's.
"""
