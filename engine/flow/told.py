"""What is told of an answer at an instant: all of it, what is new, what is gone (operators.md, 2.3).

Where it stands: changes of the answer, consolidated by tick → **rows to tell**, each as often as its multiplicity says.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oxiseq.engine.flow.delta import I64, Delta, Ids
from oxiseq.engine.flow.times import ids_in, known_rows, saved_rows
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.grammar.rsp_algebra import Report


class Told:
    """Remembers the answer, if all of it is told. compared: how many columns, from the first, tell rows apart; those
    behind are for the order in which rows are told. raw: columns that hold numbers."""

    def __init__(self, report: Report, width: int, compared: int, raw: Sequence[int] = ()) -> None:
        self._report, self._width, self._compared, self._raw = report, width, compared, raw
        self._answer: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._answer)

    def rows(self, delta: Delta, first: int, instants: int) -> tuple[I64, Ids]:
        """Numbers of instants, ascending, and the rows told at them; the instants are the ticks from `first` on."""
        if self._report is Report.RSTREAM:
            return self._all(delta, first, instants)
        if self._compared < self._width:
            delta = self._net(delta)
        weight = delta.weight if self._report is Report.ISTREAM else -delta.weight
        if len(weight) and (weight == 1).all():
            return delta.at - first, delta.rows.copy()
        kept = np.flatnonzero(weight > 0)
        index = np.repeat(kept, weight[kept])
        return delta.at[index] - first, delta.rows[index]

    def _net(self, delta: Delta) -> Delta:
        """What changes of the columns that are compared, each row with one of those that stand for it."""
        keyed = np.column_stack([delta.at, delta.rows[:, : self._compared]])
        _, first, inverse = np.unique(keyed, axis=0, return_index=True, return_inverse=True)
        weight = np.bincount(inverse.reshape(-1), delta.weight, len(first)).astype(np.int64)
        kept = np.sort(first[weight != 0])
        return Delta(delta.at[kept], weight[inverse.reshape(-1)[kept]], delta.rows[kept])

    def _all(self, delta: Delta, first: int, instants: int) -> tuple[I64, Ids]:
        keys = [row.tobytes() for row in delta.rows]
        weights = delta.weight.tolist()
        ends = np.searchsorted(delta.at, np.arange(first, first + instants), "right").tolist()
        parts, done, shown = list[Ids](), 0, None
        for end in ends:
            if end > done or shown is None:
                for key, weight in zip(keys[done:end], weights[done:end], strict=True):
                    count = self._answer.get(key, 0) + weight
                    if count:
                        self._answer[key] = count
                    else:
                        del self._answer[key]
                shown, done = self._shown(), end
            parts.append(shown)
        at = np.repeat(np.arange(instants), [len(part) for part in parts])
        return at, np.concatenate(parts) if parts else np.zeros((0, self._width), np.uint32)

    def _shown(self) -> Ids:
        """The answer, each row as often as it is there."""
        counts = np.array([*self._answer.values()], np.int64)
        return np.repeat(self._rows(), np.maximum(counts, 0), axis=0)

    def _rows(self) -> Ids:
        if not self._width:
            return np.zeros((len(self._answer), 0), np.uint32)
        return np.frombuffer(bytearray(b"".join(self._answer)), np.uint32).reshape(len(self._answer), self._width)

    # --- what it holds ------------------------------------------------------------------------------

    def held_ids(self) -> Ids:
        """The terms of the answer."""
        return ids_in(self._rows(), self._raw)

    def save(self, terms: SavedTerms) -> State:
        """The answer, in the order in which its rows came."""
        counts = np.array([*self._answer.values()], np.int64)
        return {"rows": saved_rows(self._rows(), self._raw, terms), "counts": counts}

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state."""
        counts = state["counts"].tolist()
        rows = known_rows(state["rows"], self._raw, terms)
        self._answer = {row.tobytes(): count for row, count in zip(rows, counts, strict=True)}
