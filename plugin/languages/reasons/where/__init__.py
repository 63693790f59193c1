"""Why a WHERE clause has rows or not, over any data: windows, or streams of triples with
intervals.

    WHERE ─ parts.py ─▶ ever larger parts ─ evaluated ─▶ rows.py ─ relax.py ─▶ reasons.py: for where it ends
    contents.py: what the windows held ─▶ origins.py: what a row was made of
"""
