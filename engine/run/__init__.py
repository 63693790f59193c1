"""A query at work: all that changes.

    clock.py    events in any order → complete instants (watermark, late events)
    letters.py  GPM occurrences → rows of letters (KB joins, `&`)
    query.py    one query over its streams
"""
