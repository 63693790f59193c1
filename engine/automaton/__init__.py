"""One automaton for the SPAseq queries of a clock: an event costs what it touches, whatever the number of queries.

complete instants ─ letters, numbered once for all queries ─ **one run of all queries' edges** ─ each query's matches
"""
