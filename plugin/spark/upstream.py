"""The operators before `match` in a streaming DataFrame: whether it has a watermark, whether something stateful emits
it.

Spark allows one watermark from a source to a sink, and passes it through stateful operators: what these emit in a
micro-batch lies between the watermark of the micro-batch before and its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql import DataFrame

_WATERMARKS: Final = {"EventTimeWatermark", "UpdateEventTimeWatermarkColumn"}
_STATEFUL: Final = (
    "Aggregate",
    "Deduplicate",
    "Distinct",
    "FlatMapGroups",
    "Join",
    "Limit",
    "MapGroups",
    "TransformWithState",
    "UpdateEventTimeWatermarkColumn",
)


def has_watermark(frame: DataFrame) -> bool:
    """Whether the events have a watermark, or come from something that has."""
    return any(node.nodeName() in _WATERMARKS for node in _operators(frame))


def is_behind_state(frame: DataFrame) -> bool:
    """Whether something with a state emits the events under a watermark."""
    names = [node.nodeName() for node in _operators(frame)]
    return any(n in _WATERMARKS for n in names) and any(part in n for n in names for part in _STATEFUL)


def metric_names(frame: DataFrame) -> set[str]:
    """What observes the events on their way, by name."""
    return {node.name() for node in _operators(frame) if node.nodeName() == "CollectMetrics"}


def _operators(frame: DataFrame) -> Iterator[Any]:
    """The nodes of the logical plan."""
    waiting: list[Any] = [frame._jdf.queryExecution().analyzed()]
    while waiting:
        node = waiting.pop()
        yield node
        children = node.children()
        waiting += [children.apply(i) for i in range(children.size())]
