"""The plan: all that is known of a query before the first event, immutable.

query.py    query → automaton and tables, graph patterns, what each GPM must pass on
answer.py   the query's answer, and the values that its columns read
"""
