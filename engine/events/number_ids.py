"""Ids of the terms that numbers of a table stand for: Arrow writes them, the dictionary's kernel normalises them.

In the flow: cells (cells.py) → **ids** → triples of rows (row_events.py), PARTITION BY and aggregates of CEQL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine import kinds
from oxiseq.engine.events.cells import number_term
from oxiseq.engine.extras import needed
from oxiseq.engine.terms.dictionary import MANY, TermDictionary
from oxiseq.engine.terms.normal import XSD

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
else:
    pa = needed("pyarrow")
    pc = needed("pyarrow.compute")

_NAMES: Final = {kinds.INTEGER: "integer", kinds.FLOAT: "float", kinds.DOUBLE: "double"}


def number_ids(terms: TermDictionary, kind: int, values: NDArray[Any]) -> NDArray[np.uint32]:
    """u32[n], of n numbers of one kind: i64[n] (INTEGER) or f64[n] (FLOAT, DOUBLE)."""
    if len(values) < MANY:
        return terms.intern_all([number_term(kind, value) for value in values])
    odd = np.zeros(0, np.int64) if kind == kinds.INTEGER else np.flatnonzero(~np.isfinite(values))
    plain = values
    if len(odd):
        plain = values.copy()
        plain[odd] = 0.0
    wide = pa.int64() if values.dtype == np.int64 else pa.float64()
    column = pa.Array.from_buffers(wide, len(plain), [None, pa.py_buffer(np.ascontiguousarray(plain))])
    if kind == kinds.FLOAT:
        column = column.cast(pa.float32())
    quoted = pc.binary_join_element_wise('"', column.cast(pa.string()), f'"^^<{XSD}{_NAMES[kind]}>', "")
    _, ends, data = quoted.buffers()
    places = np.frombuffer(ends, np.int32)[quoted.offset : quoted.offset + len(quoted) + 1].astype(np.int64)
    ids = terms.intern_texts(np.frombuffer(data, np.uint8), places)
    if len(odd):
        ids[odd] = terms.intern_all([number_term(kind, value) for value in values[odd]])
    return ids
