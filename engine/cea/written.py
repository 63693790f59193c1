"""Complex events as the kernel writes them, before silent parts are taken out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Written:
    """Complex event i: `rows[offsets[i]:offsets[i + 1]]`, each position << PLACE_BITS | place, ascending and
    beginning with its start; `last[i]` is its end."""

    rows: NDArray[np.int64]
    offsets: NDArray[np.int64]
    last: NDArray[np.int64]

    def of(self, shown: NDArray[np.bool_]) -> Written:
        """The same complex events without some rows."""
        hidden = np.concatenate([[0], np.cumsum(~shown)])
        return Written(self.rows[shown], self.offsets - hidden[self.offsets], self.last)

    def take(self, numbers: NDArray[np.int64]) -> Written:
        """Only the complex events with these numbers."""
        lengths = np.diff(self.offsets)[numbers]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        places = np.repeat(self.offsets[:-1][numbers] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Written(self.rows[places], offsets, self.last[numbers])


def joined(parts: Sequence[Written]) -> Written:
    """One after the other."""
    if not parts:
        return Written(np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64))
    if len(parts) == 1:
        return parts[0]
    before = np.cumsum([0, *(len(part.rows) for part in parts)])
    offsets = [np.zeros(1, np.int64), *(p.offsets[1:] + b for p, b in zip(parts, before, strict=False))]
    return Written(
        np.concatenate([p.rows for p in parts]), np.concatenate(offsets), np.concatenate([p.last for p in parts])
    )
