"""A query from algebra to matches: the plan (compiled, immutable) and its run (all state).

    plan.py     query → automaton, tables, graph patterns, what each GPM must hand on
    clock.py    events in any order → complete instants (watermark, late events)
    letters.py  GPM occurrences → rows of letters (KB joins, `&`)
    rows.py     the rows that matches still refer to
    run.py      one query over its streams
"""
