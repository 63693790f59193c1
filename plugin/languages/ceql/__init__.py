"""CEQL for users: complex events over tuple events, from tables or RDF.

tables, files, (time, graph) pairs ─ rows ─▶ batches ─ shape.py ─▶ blocks of matches (oxiseq.matches)
"""
