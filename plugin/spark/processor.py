"""What Spark calls: packed rows and the watermark in, rows of matches out, a snapshot in the state store.

In the flow: shuffled rows → **processor** → bucket (steps.py). Spark reads this module in processes that do none of
the work, to learn the operator's state; so the engine is imported where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from oxiseq.grammar.records import dataclass
from oxiseq.spark.errors import check_buckets
from oxiseq.spark.order import Form, Order

DEALT: Final = "bucket int, number int, stream int, high bigint, events binary, home binary, place bigint"
"""What the dealer passes on: the row's bucket as Spark hashes it and its number, the stream's number, the largest time
(µs) of the events dealt together, packed events, whose home it is, and where they stand in a micro-batch: by partition,
then as they come."""

STATE: Final = "snapshot"
"""A state variable: a bucket's run, and how many buckets there are. Beside it stand `steps`, those since, and `token`,
which says which state it is (kept.py)."""


@dataclass(frozen=True, slots=True)
class Dealing:
    """For `mapInArrow`: rows of one stream's events → packed rows. `keys`: by bucket the value that Spark hashes."""

    order: Order
    stream: int
    keys: tuple[int, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Spark calls it with the record batches of a partition."""
        from oxiseq.spark.steps import deal  # noqa: PLC0415  see the module's text

        task = TaskContext.get()
        yield from deal(self.order, self.stream, self.keys, 0 if task is None else task.partitionId(), batches)


def whole_of(order: Order, form: Form) -> Callable[[Any, Any], Any]:
    """For `applyInArrow`: all rows of a bucket, over streams that have ended. Spark wants a plain function."""

    def whole(key: Any, table: Any) -> Any:
        from oxiseq.spark import steps  # noqa: PLC0415  see the module's text

        return steps.whole(order, table, form)

    return whole


class Buckets(StatefulProcessor):
    """For `transformWithStateInPandas`, grouped by bucket."""

    def __init__(self, order: Order, keys: tuple[int, ...], form: Form, late: bool) -> None:
        self._order = order
        self._numbers = {key: number for number, key in enumerate(keys)}
        self._form = form
        self._late = late

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark has made the operator for a partition."""
        self._handle = handle
        self._state = handle.getValueState(STATE, "data binary, buckets int")
        self._steps = handle.getListState("steps", "data binary")
        self._token = handle.getValueState("token", "data binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        """A bucket's rows of a micro-batch."""
        yield from self._step(key, rows, timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:
        """The watermark has come to what a bucket waits for."""
        yield from self._step(key, iter(()), timerValues)

    def close(self) -> None:
        """The partition is done."""

    def _step(self, key: Any, rows: Iterator[Any], timers: Any) -> Iterator[Any]:
        from oxiseq.spark.steps import step  # noqa: PLC0415  see the module's text

        number, mark = self._numbers[key[0]], timers.getCurrentWatermarkInMs()
        done = step(self._order, number, self, rows, mark, self._form, self._late)
        yield from done.frames
        if done.change.snapshot is None:
            self._steps.appendValue((done.change.step,))
        else:
            self._state.update((done.change.snapshot, self._order.buckets))
            self._steps.clear()
        self._token.update((done.change.token,))
        if done.wake is not None:
            self._handle.registerTimer(done.wake)

    # --- what is stored of the bucket -----------------------------------------------------------------

    @property
    def token(self) -> bytes | None:
        """As `Stored` has it."""
        saved = self._token.get()
        return None if saved is None else bytes(saved[0])

    def steps(self) -> Iterator[bytes]:
        """As `Stored` has it."""
        return (bytes(step) for (step,) in self._steps.get())

    def snapshot(self) -> bytes | None:
        """As `Stored` has it. Raises CheckpointError."""
        saved = self._state.get()
        if saved is None:
            return None
        data, buckets = saved
        check_buckets(buckets, self._order.buckets)
        return bytes(data)
