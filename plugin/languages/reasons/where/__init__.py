"""WHERE clauses as `why` sees them, over any data: windows, streams of triples with intervals, a store.

WHERE ─ parts.py ─▶ ever larger parts, and each without one condition: subject.py
origins.py: what the windows held, and what a row was made of
"""
