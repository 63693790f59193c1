"""Basic graph patterns on events: an event batch becomes rows of each pattern's occurrences.

    bgp.py         patterns as slots and instances
    tables.py      the flat arrays that the match kernel reads
    conditions.py  filters: the kernel's, those that are evaluated once per term, exact answers where it cannot decide
    enrich.py      KB patterns, whose answers are joined with the rows

What is more than a basic graph pattern is `engine/patterns`. See matching.md.
"""
