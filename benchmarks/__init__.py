"""Benchmarks: `python -m benchmarks` from the project's root measures everything and prints a table.

    data.py       events as columns of term ids, made with NumPy
    drive.py      a query run over prepared batches
    measure.py    several ways to do one thing, interleaved, CPU time, medians
    sequences.py  `:` sequences of 3 to 24 steps over stock events
    shapes.py     V-shape with `;`, Kleene with rising prices
    formats.py    from files to matches; the same question asked of a store by SPARQL
    reading.py    N-Quads to event batches; memory of a long stream
    knowledge.py  KB enrichment, 10 thousand to 1 million triples; knowledge_sparql.py, the same by SPARQL
    queries.py    1 to 100 registered queries
    push.py       single pushes
    flink.py      the V-shape by Apache Flink, in a process of its own: flink_job.py
    textbook.py   the textbook's NFA in plain Python; rivals.py, beside a query
    windowed.py   a store that holds a window's graphs
    patterns.py   graph patterns alone; passes.py, many of them in one pass
    emission.py   matches to Arrow, SPARQL JSON, Python objects
    profile.py    where one case spends its time
    report.py     the tables
    charts.py     what the pictures show; pictures.py and style.mplstyle, how
    machine.py    processor and versions
    sharing.py    a hundred queries over one window, over one: `python -m benchmarks.sharing`
    standing.py   a thousand queries over the store, from an update to a subscriber: `python -m benchmarks.standing`
    upstream.py   in front of Oxigraph's server with a million triples: `python -m benchmarks.upstream`
    batches.py    CEQL over tables in batches of few rows; partitions.py, PARTITION BY; filters.py, string functions;
                  texts.py, events as Turtle and JSON-LD; start.py, a new process; compiling.py, kernels made here;
                  shipped.py, kernels that come compiled beside these: `python -m benchmarks.batches`...
    papers/       the five papers' figures, one by one, with their published values: `python -m benchmarks.papers`
    spectra/      graph patterns over windows, incrementally and by evaluating them again
    soak/         one query over a hundred million events, counted a second time

What is compared stands side by side in one run: the machine's speed cancels out of the ratios.
"""
