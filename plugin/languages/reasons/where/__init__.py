"""WHERE clauses as `why` sees them, over any data: windows, streams of triples with intervals, a store.

WHERE ─ parts.py ─▶ ever larger parts, and each without one condition: subject.py
contents.py: what the windows held ─▶ origins.py: what a row was made of
"""
