"""Rows look for what a table has for them: an arrangement that does not change while rows come (plan.Lookup)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from oxiseq.engine.kernels.compiling.options import kernel
from oxiseq.engine.kernels.flow import arrangement as v
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.flow.arrangement import DIED, LINK0, NEVER, ROW, WEIGHT, WIDTH
from oxiseq.engine.kernels.flow.arranging import first_of_chain
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT
from oxiseq.engine.kernels.memory.pointers import Array, view_of

NEXT, ENTRY, PLACES = range(3)
"""The row that looks next; the next entry of the chain that it walks, -1: it walks none yet."""


class Searching(NamedTuple):
    """How rows look, and where they are."""

    places: Array
    """i64[PLACES]."""
    key: Array
    """i64: the columns of a row that are the table's key."""
    loose: Array
    """i64[0]: such a table has no loose columns."""


_places: Any = view_of(Searching, "places", np.int64)
_key: Any = view_of(Searching, "key", np.int64)
_loose: Any = view_of(Searching, "loose", np.int64)


@kernel
def search(S: int, D: int, A: int, out: int) -> int:
    """Write each row of the delta D with each row of the arrangement A that has its key."""
    places, key, loose = _places(S), _key(S), _loose(S)
    rows, count, words, halves, links = buffers.rows(D), buffers.count(D)[0], v.words(A), v.halves(A), v.links(A)
    at, weight, made, top = buffers.at(out), buffers.weight(out), buffers.rows(out), buffers.count(out)
    own, width, link0, room = rows.shape[1], v.scalars(A)[WIDTH], v.scalars(A)[LINK0], at.shape[0]
    n = top[0]
    for i in range(places[NEXT], count):
        e = places[ENTRY] if places[ENTRY] >= 0 else first_of_chain(A, rows, i, key, loose, 0, 0, 0)
        while e >= 0:
            if words[e, DIED] == NEVER:
                if n == room:
                    places[NEXT], places[ENTRY], top[0] = i, e, n
                    return NEED_OUT
                at[n], weight[n] = buffers.at(D)[i], buffers.weight(D)[i] * words[e, WEIGHT]
                for c in range(own):
                    made[n, c] = rows[i, c]
                for c in range(width):
                    made[n, own + c] = halves[e, ROW + c]
                n += 1
            e = np.int64(links[e, link0])
        places[ENTRY] = -1
    places[NEXT], top[0] = 0, n
    return DONE
