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
_HOLDING: Final = (
    "Aggregate",
    "Distinct",
    "FlatMapGroups",
    "Join",
    "MapGroups",
    "TransformWithState",
    "UpdateEventTimeWatermarkColumn",
)
"""Parts of the names of operators that emit rows later than they come, when all that they read streams. A limit, a
deduplication and a join with a table pass rows on at once."""


def has_watermark(frame: DataFrame) -> bool:
    """Whether the events have a watermark, or come from something that has."""
    return any(node.nodeName() in _WATERMARKS for node in _operators(frame))


def is_behind_state(frame: DataFrame) -> bool:
    """Whether something holds the events back, and emits them under a watermark."""
    return has_watermark(frame) and any(_holds_back(node) for node in _operators(frame))


def _holds_back(node: Any) -> bool:
    return any(part in node.nodeName() for part in _HOLDING) and all(each.isStreaming() for each in _children(node))


def metric_names(frame: DataFrame) -> set[str]:
    """What observes the events on their way, by name."""
    return {node.name() for node in _operators(frame) if node.nodeName() == "CollectMetrics"}


def _operators(frame: DataFrame) -> Iterator[Any]:
    """The nodes of the logical plan."""
    waiting: list[Any] = [frame._jdf.queryExecution().analyzed()]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += _children(node)


def _children(node: Any) -> list[Any]:
    children = node.children()
    return [children.apply(i) for i in range(children.size())]
