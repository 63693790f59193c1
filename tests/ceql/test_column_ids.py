"""Ids of cells: those of the terms that the cells stand for, however many values the column has beside them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import numpy as np
import pyarrow as pa
import pytest

from oxiseq.engine.cea.column_ids import ColumnIds
from oxiseq.engine.events.cells import Coded, cell_terms, read_cells
from oxiseq.engine.terms.dictionary import TermDictionary

MANY = [f"text {n}" for n in range(5_000)]
COLUMNS = {
    "few texts": pa.array(["x", None, "y", "x"]).dictionary_encode(),
    "none": pa.array([None, None], pa.string()),
    "many texts": pa.array([*MANY, None, "text 7"]).dictionary_encode(),
    "dates": pa.array([date(2026, 1, 1), None, date(2026, 1, 1)]),
    "integers": pa.array([3, None, -5, 3, 2**62, -(2**63)]),
    "floats": pa.array([0.0, -0.0, np.nan, None, 1e300, float("-inf")]),
    "many integers": pa.array([*(n * 7 % 17_001 - 9 for n in range(17_001)), None, 3]),
    "many floats": pa.array([*(n / 7 for n in range(2_000)), np.nan, -0.0, None, 0.0]),
    "narrow floats": pa.array([0.1, None, 0.1], pa.float32()),
}


def expected(column: pa.Array) -> list[str | None]:
    cells = read_cells(column, "c")
    if isinstance(cells, Coded):
        terms = cell_terms(cells.values) if len(cells.values) else []
        return [str(terms[code]) if code >= 0 else None for code in cells.codes.tolist()]
    return [str(cells.term(v)) if there else None for v, there in zip(cells.values, cells.present, strict=True)]


def shown(terms: TermDictionary, ids: Sequence[int]) -> list[str | None]:
    return [str(terms.term(number)) if number else None for number in ids]


@pytest.mark.parametrize("name", COLUMNS)
def test_ids_are_those_of_the_terms(name: str) -> None:
    """Of all rows, of the last ones of a long column, of none; again when ids have been freed."""
    column, terms = COLUMNS[name], TermDictionary()
    ids, wanted = ColumnIds(terms), expected(column)
    for rows in (slice(None), np.arange(len(column))[-3:], np.zeros(0, np.int64)):
        for _ in range(2):
            found = ids.of(read_cells(column, "c"), rows)
            assert shown(terms, found.tolist()) == [wanted[i] for i in np.arange(len(column))[rows]]
        terms.collect()
        terms.intern_all(cell_terms(pa.array(["another"])))
