"""Why a WHERE clause has rows or not, whatever its patterns are asked of: windows (reasons/rsp) or streams of
triples with intervals (reasons/intervals).

    WHERE ─ parts.py ─▶ ever larger parts ─ asked ─▶ rows.py ─ relax.py, near_rows.py ─▶ reasons for where it ends
"""
