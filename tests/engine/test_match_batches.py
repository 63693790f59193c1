"""Matches as columns: what is cut out of a batch is what `take` gives."""

from __future__ import annotations

from dataclasses import astuple
from itertools import pairwise

import numpy as np
import pytest

from oxiseq.engine.output.batch import MatchBatch


@pytest.mark.parametrize("sizes", [[2, 2, 2, 2], [1, 0, 3, 2], [0, 0, 0, 0]])
@pytest.mark.parametrize("bounds", [[0, 4], [0, 1, 4], [1, 2, 3], [0, 0, 4, 4]])
def test_stretches_are_cut_out(sizes: list[int], bounds: list[int]) -> None:
    ends = np.cumsum([0, *sizes], dtype=np.int64)
    events = int(ends[-1])
    whole = MatchBatch(
        np.arange(4),
        np.arange(8, dtype=np.uint32).reshape(4, 2),
        ends,
        np.arange(events, dtype=np.int32),
        np.arange(events),
    )
    for (low, high), part in zip(pairwise(bounds), whole.cut(bounds), strict=True):
        for mine, taken in zip(astuple(part), astuple(whole.take(np.arange(low, high))), strict=True):
            np.testing.assert_array_equal(mine, taken)


def test_nothing_is_cut_out_of_nothing() -> None:
    assert [len(part) for part in MatchBatch.concat([], 3).cut([0, 0])] == [0]


def test_a_few_of_many_keep_nothing_else_alive() -> None:
    whole = MatchBatch.of_groups(np.arange(100), np.zeros((100, 2), np.uint32))
    few, most = whole.cut([0, 10, 100])
    assert few.values.base is None and few.time.base is None
    assert most.values.base is whole.values
