"""The questions of case `knowledge`, asked by SPARQL of one store with the KB and the window's graphs."""

from __future__ import annotations

from collections.abc import Sequence
from time import process_time
from typing import Final

from pyoxigraph import Store

from benchmarks.data import NS, SECOND, START
from benchmarks.drive import Prepared
from benchmarks.measure import Clocked
from benchmarks.windowed import COMPANY, PRICE, TIME, Graph, WindowStore
from oxiseq.engine.events.batch import EventBatch

WINDOW: Final = 2_000
"""Events, as in the queries of the case."""
_KB: Final = f"<{NS}kb>"
_FOUND: Final = f"""{{{{ SELECT ?sector ?c ?t1 ?p1 WHERE {{{{
    GRAPH {_KB} {{{{ {{company}} <{NS}sector> ?sector . ?c <{NS}sector> ?sector }}}}
    GRAPH ?g1 {{{{ ?a {COMPANY} ?c ; {PRICE} ?p1 }}}} ?g1 {TIME} ?t1 }}}} }}}}"""
TEXTS: Final = {
    "shown": f"""SELECT ?t1 ?sector ?label WHERE {{{{
  {{{{ SELECT ?t1 (MIN(?t2) AS ?next) WHERE {{{{
    GRAPH ?g1 {{{{ ?a {COMPANY} {{company}} ; {PRICE} ?p1 }}}} ?g1 {TIME} ?t1 .
    GRAPH ?g2 {{{{ ?b {COMPANY} {{company}} ; {PRICE} ?p2 }}}} ?g2 {TIME} ?t2 .
    FILTER(?t1 < ?t2 && ?p2 < ?p1) }}}} GROUP BY ?t1 }}}}
  FILTER(?next = {{time}})
  GRAPH {_KB} {{{{ {{company}} <{NS}sector> ?sector ; <{NS}label> ?label }}}} }}}}""",
    "compared": f"""SELECT ?t1 ?c ?sector WHERE {{{{
  {{{{ SELECT ?t1 ?c ?sector (MIN(?t2) AS ?next) WHERE {{{{
    {_FOUND}
    {_FOUND.replace("?c ?t1 ?p1", "?t2 ?p2").replace("?c", "?d").replace("?t1", "?t2").replace("?p1", "?p2")}
    FILTER(?t1 < ?t2 && ?p2 < ?p1) }}}} GROUP BY ?t1 ?c ?sector }}}}
  FILTER(?next = {{time}}) }}}}""",
}
"""For the matches that end with an event of this time and company. The next such B is the earliest one; the company
stands in every pattern, and sub-SELECTs go from the KB to the events: other forms took 10 to 1,000 times as long."""


def ask_each(kind: str, kb: Store, graphs: Sequence[Graph]) -> Clocked:
    """The matches that end with the events after the first window, and the time that asking at each of them took.

    `kb` is left as it was.
    """
    store, text = WindowStore(WINDOW, kb), TEXTS[kind]
    for number, graph in enumerate(graphs[:WINDOW]):
        store.add(graph, number)
    begin, found = process_time(), 0
    for number in range(WINDOW, len(graphs)):
        graph = graphs[number]
        time = store.add(graph, number)
        found += sum(1 for _ in store.ask(text.format(time=time, company=graph[0].object)))
    spent = process_time() - begin
    store.clear()
    return Clocked(found, spent)


def expected(prepared: Prepared, batches: Sequence[EventBatch]) -> int:
    """What oxiseq finds there."""
    after = START + SECOND * WINDOW
    return sum(int((batch.time >= after).sum()) for batch in prepared.run(batches))
