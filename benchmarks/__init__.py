"""Benchmarks: `python -m benchmarks` from the project's root measures everything and prints a table.

    data.py       events as columns of term ids, made with NumPy
    drive.py      a query run over prepared batches
    measure.py    several ways to do one thing, interleaved, CPU time, medians
    sequences.py  `:` sequences of 3 to 24 steps over stock events
    shapes.py     V-shape with `;`, Kleene with rising prices
    formats.py    from files to matches; the same question asked of a store by SPARQL
    reading.py    N-Quads to event batches; memory of a long stream
    knowledge.py  KB enrichment, 10 thousand to 1 million triples
    profile.py    where one case spends its time
    report.py     the tables

What is compared stands side by side in one run: the machine's speed cancels out of the ratios.
"""
