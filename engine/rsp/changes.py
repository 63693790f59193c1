"""Rows that come and go, and what an answer tells of them.

Where it stands: rows of the joined patterns that are new or gone, by instant → folds (`counting.py`, `grouping.py`) →
**rows to tell**.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
Ids = NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """n rows, each come or gone. at: i64[n], ascending, the instant's number; sign: i64[n], −1 before 1 within an
    instant; values: u32[n, columns]."""

    at: I64
    sign: I64
    values: Ids

    def __len__(self) -> int:
        return len(self.at)

    @classmethod
    def of(cls, at_new: I64, new: Ids, at_ended: I64, ended: Ids) -> Changes:
        """Of rows that are new and rows that have ended, both in order of instants."""
        if not len(at_ended):
            return cls(at_new, np.ones(len(new), np.int64), new)
        at, values = np.concatenate([at_ended, at_new]), np.concatenate([ended, new])
        sign = np.repeat(np.array([-1, 1]), (len(ended), len(new)))
        order = np.argsort(at, kind="stable")
        return cls(at[order], sign[order], values[order])

    def columns(self, places: Sequence[int]) -> Ids:
        """Some columns, −1 being unbound: u32[n, these]."""
        return picked(self.values, places)

    def steps(self) -> Iterator[tuple[int, int, int]]:
        """(instant, from, to): the rows of each instant that has some."""
        if not len(self):
            return
        cuts = [0, *(np.flatnonzero(self.at[1:] != self.at[:-1]) + 1).tolist(), len(self)]
        for low, high in pairwise(cuts):
            yield int(self.at[low]), low, high


def picked(values: Ids, places: Sequence[int]) -> Ids:
    """Columns of rows, −1 being unbound."""
    found = np.zeros((len(values), len(places)), np.uint32)
    for number, place in enumerate(places):
        if place >= 0:
            found[:, number] = values[:, place]
    return found


def keys_of(values: Ids) -> list[bytes]:
    """A key for each row, its columns one after the other."""
    width = values.shape[1]
    if not width:
        return [b""] * len(values)
    found: list[bytes] = np.ascontiguousarray(values).view(f"V{4 * width}").reshape(-1).tolist()
    return found


def rows_of_keys(keys: Sequence[bytes], width: int) -> Ids:
    """Their rows again."""
    return np.frombuffer(bytearray(b"".join(keys)), np.uint32).reshape(len(keys), width)
