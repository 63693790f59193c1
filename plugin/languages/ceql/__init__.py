"""CEQL for users: complex events over tuple events, from tables or RDF.

tables, files, (graph, time) pairs ─ rows ─▶ batches ─ language.py ─▶ blocks of matches (oxiseq.matches)
"""
