"""A query at work: all that changes.

run.py        what every run can do
sequence.py   the run of a plan about the order of events: query.py (SPAseq), tuples.py or joined.py (CEQL)
rsp.py        one query over windows; intervals.py: one of EP-SPARQL
finder.py     the matches of live keys: letters.py makes rows of GPM occurrences (KB joins, `&`), teller.py tells them
ranks.py      how many of some thresholds a value passes
concern.py    which events a query must get at once
progress.py   how far a query has come that writes a stream
recent.py     what the windows of a query may still hold
"""
