"""Graph patterns on events: an event batch becomes rows of each GPM's occurrences.

    plan.py           GpmRequests of a stream → StreamPlan: which way each is answered
    matcher.py        EventBatch → Occurrences per GPM: the match kernel, and the operators behind it
    leaves.py         basic graph patterns as sources of operators
    operator_plan.py  patterns that are more: operators over those; operators.py: at work
    joined_exists.py  EXISTS of stateful FILTERs, evaluated in a store; kb_graphs.py: the KB's graphs beside its events

Plans are immutable; what changes while events pass (memo tables, the cached answers of the KB, operators) belongs to
the matcher. An event's rows, and their order, depend on that event alone.
"""
