"""The best of very many matches, and samples: what the completing event costs where none is listed, and where all are.

    python -m benchmarks.ranked [--loops 16 30 100 200]

`A : B:+ : C`, in CEQL `A AS a; B+ AS b; C AS c`, over one A, n B's and one C: 2^n - 1 matches end with the C. CPU time
(median of seven runs) from the C on, rows written out; all that comes before is the same for every query. `list` is the
plain query, up to 16 B's; `page` is `matches_at` of an instant.
"""

from __future__ import annotations

import argparse
import statistics
from time import process_time
from typing import Final

from pyoxigraph import Store

from benchmarks.machine import machine
from oxiseq.engine.cea.plan import compile_ceql
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.matches.paging import Page
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.run.tuples import TupleRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load

E: Final = "http://example.org/"
MOST_LISTED: Final = 16
TAILS: Final = {
    "list": "",
    "best 10 by SUM(?v)": "ORDER BY DESC(SUM(?v)) LIMIT 10",
    "latest 10": "ORDER BY DESC(STARTTIME()) LIMIT 10",
    "shortest 10 by COUNT(B)": "ORDER BY COUNT(B) LIMIT 10",
    "sample of 10": "SAMPLE 10",
    "any 10": "LIMIT 10",
    "best 10 when the window closes": "ORDER BY DESC(SUM(?v)) LIMIT 10 REPORT ON WINDOW CLOSE",
    "sample of 10 when it closes": "SAMPLE 10 REPORT ON WINDOW CLOSE",
    "page of 10 in the middle": "",
}


CEQL_TAILS: Final = {
    "CEQL: list": "",
    "CEQL: best 10 by SUM(b[v])": "ORDER BY SUM(b[v]) DESC LIMIT 10",
    "CEQL: latest 10": "ORDER BY START DESC LIMIT 10",
    "CEQL: sample of 10": "SAMPLE 10",
}


def text(tail: str) -> str:
    """The query."""
    gpms = " ".join(
        f"DEFINE GPM {name} ON S {{ ?{name.lower()} :{name.lower()} ?{value} }}"
        for name, value in (("A", "x"), ("B", "v"), ("C", "y"))
    )
    window = "WITHIN 1000 EVENTS" if tail.endswith("CLOSE") else ""
    return f"PREFIX : <{E}> SELECT ?x ?y {window} FROM STREAM S <{E}s> WHERE {{ SEQ(A : B:+ : C) {gpms} }} {tail}"


def completing(tail: str, loops: int, page: Page | None = None) -> tuple[float, int]:
    """Seconds from the C on, and how many rows there are."""
    terms = TermDictionary()
    run = QueryRun(compile_query(load(text(tail)), terms, page=page), terms, StoreKb(Store()))
    events = [(1 + i, f"<{E}e> <{E}{'b' if i else 'a'}> {i * 37 % 100} .") for i in range(loops + 1)]
    run.push(E + "s", encode_events(events, terms))
    run.advance()
    last = encode_events([(loops + 2, f"<{E}e> <{E}c> 1 .")], terms)
    begun = process_time()
    run.push(E + "s", last)
    found = run.advance()
    run.close()
    found += run.advance()
    return process_time() - begun, sum(len(batch) for batch in found)


def page_of(_: str, loops: int) -> tuple[float, int]:
    """The same of a page."""
    return completing("", loops, Page(loops + 2, 2 ** (loops - 1), 10))


def completing_in_ceql(tail: str, loops: int) -> tuple[float, int]:
    """The same over tuple events."""
    terms = TermDictionary()
    text = f"VOCAB <{E}> SELECT * FROM s WHERE A AS a; B+ AS b; C AS c {tail}"
    run = TupleRun(compile_ceql(load(text, "ceql")), terms)
    a_type = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
    events = [
        (1 + i, f"<{E}e> <{a_type}> <{E}{kind}> . <{E}e> <{E}v> {i * 37 % 100} .")
        for i, kind in enumerate(["A", *["B"] * loops, "C"])
    ]
    run.push(E + "s", encode_events(events[:-1], terms))
    run.advance()
    last = encode_events(events[-1:], terms)
    begun = process_time()
    run.push(E + "s", last)
    found = run.advance()
    run.close()
    found += run.advance()
    return process_time() - begun, sum(len(batch) for batch in found)


def main() -> None:
    """The table."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.ranked")
    options.add_argument("--loops", type=int, nargs="+", default=[MOST_LISTED, 30, 100, 200])
    print(f"{machine()}\n\n| query | B's | matches | rows | ms |\n|---|---:|---:|---:|---:|")
    for loops in options.parse_args().loops:
        queries = [(*each, page_of if each[0].startswith("page") else completing) for each in TAILS.items()]
        for name, tail, measured in (*queries, *((*each, completing_in_ceql) for each in CEQL_TAILS.items())):
            if tail or measured is page_of or loops <= MOST_LISTED:
                taken = [measured(tail, loops) for _ in range(8)][1:]
                ms = 1e3 * statistics.median(seconds for seconds, _ in taken)
                print(f"| {name} | {loops} | 2^{loops} - 1 | {taken[0][1]:,} | {ms:.2f} |", flush=True)


if __name__ == "__main__":
    main()
