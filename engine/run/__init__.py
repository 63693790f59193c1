"""A query at work: all that changes.

clock.py    events in any order → complete instants (watermark, late events)
letters.py  GPM occurrences → rows of letters (KB joins, `&`)
query.py    one query over its streams
shared.py   many queries: those that take events alike share the clock and the matching (joint_matching.py)
dozing.py   those of them whose rows are without effect: they work when a match may end, or somebody looks
alike.py    which of them find their matches together; narrowed.py: in windows of their own
together.py queries over windows: those in the same state share it; recent.py: the contents of their windows
merging.py  CEQL: marks of events in any order → all of them, each at its position
tuples.py   one CEQL query over its streams
concern.py  which events a query must get at once
backlog.py  events that some queries have not got yet
apart.py    many queries of other languages than SPAseq: each works when events concern it, or somebody looks
runs.py     the queries of a store, of all languages
"""
