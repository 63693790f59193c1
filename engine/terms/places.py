"""Ids numbered as they first appear, without sorting."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

AnyIds = NDArray[np.integer]


def first_places(ids: AnyIds, bound: int) -> NDArray[np.int64]:
    """For each of n ids where it stands first among them. `bound`: all are below; so much memory is reserved, of which
    only what the ids point to is touched."""
    place = np.arange(len(ids))
    first = np.empty(bound, np.int64)
    first[ids[::-1]] = place[::-1]  # of an id that comes again, the first appearance is written last
    return first[ids]


def numbered(ids: AnyIds, bound: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct ids in the order of their first appearance; and for each id its number there, from 1."""
    first = first_places(ids, bound)
    new = np.flatnonzero(first == np.arange(len(ids)))
    number = np.empty(len(ids), np.int64)
    number[new] = np.arange(1, len(new) + 1)
    return ids[new].astype(np.int64), number[first]
