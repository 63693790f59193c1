"""CEQL for users: complex events over tuple events, from tables or RDF.

    tables, files, (time, graph) pairs ─ replay.py ─▶ matches.py: a `ComplexMatches` of `ComplexEvent`s (event.py)
                                                       columns.py, formats.py: Arrow, CSV, JSON...
"""
