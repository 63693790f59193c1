"""What a run has counted, as Python's integers: no number is too large for them.

In the flow: run → **counts** → groups of matches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.matches.records import CARRIED, SATURATES
from oxiseq.engine.kernels.sequence import records as k
from oxiseq.engine.sequence.states import RUN_START, Value
from oxiseq.grammar.records import dataclass

ANY_LENGTH: Final = 1 << 62
MOST_LIMBS = 64
"""Counts are exact below 2^4096; what is more is 2^4096."""


@dataclass(frozen=True, slots=True)
class Counts:
    """n sets of matches: `bucket` i64[n] of their ends (records.BUCKET_WIDTH), `edge` i64[n] of the state graph and
    `key` i64[n, w], whose columns are that edge's live values, and how many there are of each: `numbers`, u64[n, q], or
    Python's integers where some are larger, of each of q queries of a family."""

    bucket: NDArray[np.int64]
    edge: NDArray[np.int64]
    key: NDArray[np.int64]
    numbers: NDArray[Any]

    def __len__(self) -> int:
        return len(self.bucket)

    @property
    def times(self) -> list[int]:
        """The numbers of one query."""
        times: list[int] = self.numbers[:, 0].tolist()
        return times

    def take(self, index: NDArray[np.int64], member: int) -> Counts:
        """Some, of one query."""
        numbers = self.numbers[index, member : member + 1]
        return Counts(self.bucket[index], self.edge[index], self.key[index], numbers)

    def by_query(self, queries: NDArray[np.int32]) -> Iterator[tuple[int, Counts]]:
        """Those of each query that has some. `queries`: by edge."""
        owners = queries[self.edge]
        order = np.argsort(owners, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(owners[order])) + 1) if len(order) else ():
            yield int(owners[rows[0]]), Counts(self.bucket[rows], self.edge[rows], self.key[rows], self.numbers[rows])


class Case(NamedTuple):
    """Whose numbers: of which query of a family, and how long a match may last, in the window's unit."""

    member: int = 0
    size: int = ANY_LENGTH


WHOLE: Final = Case()
"""All that is counted, where there is no family."""


def lengths_of(counts: Counts, keys: Sequence[Sequence[Value]]) -> NDArray[np.int64]:
    """How long those matches have lasted that are counted in sliding windows, apart by starts; others 0. `keys`: by
    edge."""
    place = np.array([key.index(RUN_START) if RUN_START in key else -1 for key in keys], np.int64)[counts.edge]
    start = counts.key[np.arange(len(counts)), np.maximum(place, 0)] if counts.key.shape[1] else counts.bucket
    return np.where(place < 0, 0, counts.bucket - start)


def take_counts(S: k.Memory) -> Counts:
    """Returns the counts so far and resets them."""
    used = int(S.scalars[k.TALLIES])
    members = len(S.tally) // len(S.tally_keys)
    keys, limbs = S.tally_keys[:used].copy(), S.tally[: used * members]
    if limbs.shape[1] == 1:
        numbers = limbs.copy()
    else:
        numbers = np.empty(len(limbs), object)
        numbers[:] = [_number(row) for row in limbs]
    S.scalars[k.TALLIES] = 0
    S.tally_table[:] = -1
    return Counts(keys[:, 0], keys[:, 1], keys[:, 2:], numbers.reshape(used, members))


def _number(limbs: NDArray[np.uint64]) -> int:
    number = int.from_bytes(limbs.astype("<u8").tobytes(), "little")
    most = 1 << (64 * MOST_LIMBS)
    return most if number == most - 1 else number


def more_tallies(S: k.Memory) -> k.Memory:
    """Twice the room for counts; those that were there have been taken."""
    return S.grow("tallies")


def with_limbs(S: k.Memory, limbs: int) -> k.Memory:
    """Numbers of so many limbs; counts have been taken."""
    weights = np.zeros((len(S.weights), limbs), np.uint64)
    weights[:, : S.weights.shape[1]] = S.weights
    return S._replace(weights=weights, tally=np.zeros((len(S.tally), limbs), np.uint64))


def more_limbs(S: k.Memory) -> k.Memory:
    """Numbers of twice as many limbs; of the most, what does not fit is too many."""
    limbs = S.weights.shape[1]
    S.scalars[CARRIED] = 0
    if limbs == MOST_LIMBS:
        S.scalars[SATURATES] = 1
        return S
    return with_limbs(S, 2 * limbs)
