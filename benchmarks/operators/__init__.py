"""Every operator of continuous SPARQL over sliding windows of a thousand to a million triples: `python -m
benchmarks.operators`.

    queries.py   the operators, as the body of a query
    stream.py    readings of sensors and alarms, coded and as quads
    ways.py      the engine in batches and in single pushes; a store that is queried again; the sequences of EP-SPARQL
    page.py      what was found, as Markdown
"""
