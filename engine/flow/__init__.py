"""Standing queries as delta operators: changes in, changes of the answer out (operators.md).

plan.py        a query as a table of operators; relations.py: what SPARQL's algebra makes of them
sparql/        a query's algebra as such a table
delta.py       rows that come and go
operators/     of each its description, and the running one
sharing/       several plans as one
"""
