"""Events that are kept to make operators again come back as they were (engine/run/recent.py)."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from oxiseq.engine.events.batch import EventBatch, offsets
from oxiseq.engine.run.recent import _Packed

LARGEST = np.iinfo(np.int64).max
TIMES = st.integers(-LARGEST - 1, LARGEST) | st.integers(0, 300)


@given(st.lists(st.tuples(TIMES, st.integers(0, 3) | st.just(300)), max_size=8).map(sorted))
@example([(-LARGEST - 1, 1), (LARGEST, 0)])
def test_packed_events_are_the_same(given_events: list[tuple[int, int]]) -> None:
    offset = offsets(np.array([size for _, size in given_events], np.int64))
    ids = [np.arange(column, column + offset[-1], dtype=np.uint32) for column in range(3)]
    batch = EventBatch(np.array([time for time, _ in given_events], np.int64), offset, *ids)
    packed = _Packed.of(batch, None)
    assert len(packed) == len(batch)
    assert packed.events.same(batch)
    assert packed.bytes <= batch.bytes
