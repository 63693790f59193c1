"""Rows that are null: faults, skipped if so asked."""

from __future__ import annotations

import pyarrow as pa
import pytest

from oxiseq.engine.errors import EventError
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.spark.decoding import Decoder

GRAPH = b"<http://e/a> <http://e/p> <http://e/o> ."
ROWS = [
    pa.record_batch([pa.array([1, None, 3, 4]), pa.array([GRAPH, GRAPH, None, GRAPH])], names=["time", "graph"]),
    pa.record_batch([pa.array([None, None], pa.string())], names=["events"]),
]


@pytest.mark.parametrize(("rows", "times"), list(zip(ROWS, ([1, 4], []), strict=True)))
def test_null_rows_are_faults(rows: pa.RecordBatch, times: list[int]) -> None:
    assert Decoder(TermDictionary(), "skip").decode(rows).time.tolist() == times
    with pytest.raises(EventError, match="is null"):
        Decoder(TermDictionary()).decode(rows)
