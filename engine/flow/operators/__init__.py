"""Operators over rows that come and go (operators.md): of each its description, which is a part of a plan, and the
running one, which takes the rows of its inputs and puts its results into a buffer; their kernels are in kernels/flow.

    sources.py      where rows come from: patterns, the store, the knowledge base, VALUES
    rows.py         row by row: other columns, the opposite weight, UNION
    computing.py    FILTER, BIND
    arrange.py      rows kept to be found
    join.py         joins; new rows that look for kept ones; rows and the rows of a table that compare with them
    follow.py       pairs in order of time
    in_time.py      rows that happen at some time, row by row
    distinct.py     DISTINCT; equal rows of a tick as one
    group.py        GROUP BY; group_values.py: what of its sums is kept in Python
    best.py         ranks: ORDER BY with LIMIT, MIN, MAX, SAMPLE, FIRST, LAST
    reach.py        paths of any length; closure.py: in time
    node.py         the base of all that run; build.py: a plan's
"""
