"""Continuous queries as an operator of Spark's Structured Streaming. The only place that imports pyspark.

rows of events ─ decode ─ deal by key ─ shuffle ─ a bucket's run, its snapshot in Spark's state ─ rows of matches

operator.py     `match`, `explain`: DataFrames in, a DataFrame out
upstream.py     whether a DataFrame has a watermark, and a state before it
source.py       a Data Source of RDF event files and of our server's streams
processor.py    what Spark calls: dealing in `mapInArrow`, buckets in `transformWithStateInPandas`
given.py        what is given for the streams: events, or rows with a mapping
checkpoint.py   whether the query can continue from a checkpoint, before it starts
types.py        the answer's columns as Spark's types; inference.py says which are certain, facts.py what it knows
answers.py      matches and late events as columns
bucket.py       a step of one bucket: state, rows, watermark → matches, late events, state
dealing.py      events → the buckets that own their keys
decoding.py     rows of DataFrames → event batches
work.py         what a worker compiles once
daemon.py       a Python daemon whose workers have the engine from their start
balance.py      keys that Spark's partitioning deals out evenly
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oxiseq.spark.errors import OnePartitionWarning, SparkError
    from oxiseq.spark.operator import explain, match
    from oxiseq.spark.source import EventSource

_HOMES = {
    "EventSource": "source",
    "OnePartitionWarning": "errors",
    "SparkError": "errors",
    "explain": "operator",
    "match": "operator",
}


def __getattr__(name: str) -> Any:
    """Names are imported when they are first used: what workers need of this package needs no pyspark (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return found


__all__ = ["EventSource", "OnePartitionWarning", "SparkError", "explain", "match"]
