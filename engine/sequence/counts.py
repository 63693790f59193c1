"""What a run has counted, as Python's integers: no number is too large for them.

In the flow: run → **counts** → groups of matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.matches.records import CARRIED, SATURATES
from oxiseq.engine.kernels.sequence import records as k
from oxiseq.grammar.records import dataclass

_NONE = np.zeros(0, np.int64)
MOST_LIMBS = 64
"""Counts are exact below 2^4096; what is more is 2^4096."""


@dataclass(frozen=True, slots=True)
class Counts:
    """n sets of matches: `bucket` i64[n] of their ends (tallies.py), `edge` i64[n] of the state graph and `key`
    i64[n, w], whose columns are that edge's live values, and how many there are of each: `numbers`, u64[n], or Python's
    integers where some are larger."""

    bucket: NDArray[np.int64]
    edge: NDArray[np.int64]
    key: NDArray[np.int64]
    numbers: NDArray[Any]

    @classmethod
    def joined(cls, parts: Sequence[Counts]) -> Counts:
        """Those of all parts, in order."""
        if not parts:
            return cls(_NONE, _NONE, _NONE[:, None], np.zeros(0, np.uint64))
        columns = zip(*((each.bucket, each.edge, each.key, each.numbers) for each in parts), strict=True)
        return cls(*map(np.concatenate, columns))

    def __len__(self) -> int:
        return len(self.bucket)

    def take(self, index: NDArray[np.int64] | slice) -> Counts:
        """Some."""
        return Counts(self.bucket[index], self.edge[index], self.key[index], self.numbers[index])


def take_counts(S: k.Memory) -> Counts:
    """Returns the counts so far and resets them."""
    used = int(S.scalars[k.TALLIES])
    keys, limbs = S.tally_keys[:used].copy(), S.tally[:used]
    if limbs.shape[1] == 1:
        numbers = limbs[:, 0].copy()
    else:
        numbers = np.empty(len(limbs), object)
        numbers[:] = [_number(row) for row in limbs]
    S.scalars[k.TALLIES] = 0
    S.tally_table["number"] = 0
    return Counts(keys[:, 0], keys[:, 1], keys[:, 2:], numbers)


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
