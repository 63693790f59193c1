"""The plan: all that is known of a query before the first event, immutable.

query.py    query → automaton and tables, graph patterns, what each GPM must pass on
answer.py   what the query answers, and what its columns read
"""
