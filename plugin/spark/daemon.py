"""Spark's Python daemon with the engine read and its kernels loaded, so that each worker that it forks has them.

In the flow: `spark.python.daemon.module oxiseq.spark.daemon` → **the daemon of an executor** → workers. Spark ends
workers that have had nothing to do for a minute; a new one reads the engine again, a second of CPU, unless its daemon
has.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.daemon import manager

from oxiseq.grammar.languages import ours
from oxiseq.languages.registry import language_named
from oxiseq.spark.kept import Snapshot
from oxiseq.spark.order import Order
from oxiseq.spark.steps import deal, step
from oxiseq.spark.work import work

_QUERY: Final = """PREFIX : <urn:oxiseq:> SELECT ?k WITHIN 9 SECONDS SLIDING FROM STREAM S <urn:oxiseq:s>
WHERE { SEQ(A; B) DEFINE GPM A ON S { ?x :k ?k ; :v ?a }
                  DEFINE GPM B ON S { ?y :k ?k ; :v ?b FILTER(?b > ?a) } }"""
_EVENT: Final = '_:e <urn:oxiseq:k> 1 .\n_:e <urn:oxiseq:v> "{}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'


def load() -> None:
    """All languages of ours; deal and match two events, twice in a bucket: that loads what most queries need."""
    for language in ours():
        language_named(language.name)
    order = Order(_QUERY, None, None, ("urn:oxiseq:s",), 2)
    rows = pa.record_batch({"time": [1, 2], "graph": [_EVENT.format(n) for n in (1, 2)]})
    dealt = [batch.to_pandas() for batch in deal(order, 0, (0, 1), 0, iter([rows]))]
    for number in (0, 1):
        stored = Snapshot()
        for mark in (0, 1_000):
            given = iter([part[part["number"] == number] for part in dealt] if mark == 0 else [])
            stored = Snapshot(step(order, number, stored, given, mark, "text", late=False).change.snapshot)
            work(order).kept.clear()  # so that it is restored, too


if __name__ == "__main__":
    load()
    manager()
