"""Which rows of groups are new at an instant (REPORT ON CONTENT CHANGE, semantics.md 2.6b).

In the flow: rows of groups before and after instants → **new rows**, a batch at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]


class Side(NamedTuple):
    """The rows that groups have before, or after, instants, in their order: the instant's time (µs), the number of the
    group among those of the batch, and the row's ids, u32[n, columns]."""

    time: I64
    group: I64
    rows: NDArray[np.uint32]


def news(before: Side, after: Side, *, apart: bool) -> I64:
    """Which rows of `after` are new: at each time those that are more than there were of the same, in bags. `apart`:
    groups of one time have different rows."""
    if not apart and not (after.time[1:] != after.time[:-1]).all():
        return _of_bags(before, after)
    same = np.zeros(len(after.group), np.bool_)
    if len(before.group):
        at = np.minimum(np.searchsorted(before.group, after.group), len(before.group) - 1)
        same = (before.group[at] == after.group) & (before.rows[at] == after.rows).all(axis=1)
    return np.flatnonzero(~same)


def _of_bags(before: Side, after: Side) -> I64:
    lines = [np.column_stack([side.time, side.rows.astype(np.int64)]) for side in (before, after)]
    which = np.unique(np.concatenate(lines), axis=0, return_inverse=True)[1].reshape(-1)
    old, new = which[: len(before.time)], which[len(before.time) :]
    order = np.argsort(new, kind="stable")
    first = np.searchsorted(new[order], new[order])
    place = np.empty(len(new), np.int64)
    place[order] = np.arange(len(new)) - first
    counts = np.bincount(old, minlength=len(which) + 1)
    return np.flatnonzero(place >= counts[new])
