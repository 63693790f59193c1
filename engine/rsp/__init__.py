"""Queries over windows: continuous SPARQL and RSEP-QL (semantics.md 4 and 6).

    plan.py       algebra → what is kept, what is asked, how it is told
    asking.py     WHERE as SPARQL for Oxigraph, windows and MATCH being graphs
    arrivals.py   events in any order → events in order, each by itself
    items.py      the events that windows may still hold, and what each window holds at an instant
    schedule.py   the instants at which the query is answered
    dataset.py    the store that WHERE is asked of: windows' contents, the KB's graphs, mappings of MATCH
    reports.py    all answers, the new ones, those that are gone

Conjunctions over windows and the KB go to `engine/windows` instead, which answers them incrementally:

    incremental.py  whether a query is one, and what is kept; or why Oxigraph is asked
    knowledge.py    what the KB answers, as events of sources that hold the newest answer
    native.py       the window run, and what follows it
    changes.py      rows that come and go
    grouping.py     GROUP BY: groups touched at an instant; aggregates.py: COUNT, SUM, AVG, MIN, MAX
    counting.py     how often each row is there: DISTINCT, ASK, bags
"""
