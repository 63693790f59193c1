"""ORDER BY and SAMPLE over the matches of a tumbling window: those reported when it closes (semantics.md 2.6b).

In the flow: the best matches of each end, or a sample of them → **the best of the window so far** → rows, at its close.
The best of a window are among the best of each of its ends, and a sample of two sets is made of samples of both, so no
other match is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.bounds import KEPT, InstantBound
from oxiseq.engine.kernels.memory.growing import flat
from oxiseq.engine.matches.ranking import Ranking
from oxiseq.engine.matches.sampling import sample, share_of
from oxiseq.engine.omissions import LeftOut
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.terms.dictionary import AnyIds, TermDictionary
from oxiseq.engine.terms.order import Key, order_key, sort_by
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.engine.window import end_of, number_of
from oxiseq.grammar.algebra import Expression, Window


class End(NamedTuple):
    """Some matches of one end, of which there are `total`: those from the one at `low` to before the one at `high`."""

    low: int
    high: int
    total: int


class Candidates(NamedTuple):
    """Matches that may be reported: their rows, what ORDER BY compares of each (u32[n, keys]), the window's clock at
    the end of each, and the id of each event's row, in the order of the batch's events."""

    batch: MatchBatch
    keys: NDArray[np.uint32]
    clock: NDArray[np.int64]
    rows: NDArray[np.int64]


class _Match(NamedTuple):
    keys: tuple[Key, ...]
    rows: tuple[int, ...]
    """Ids that rise with the stream: they decide ties."""
    key_ids: tuple[int, ...]
    values: tuple[int, ...]
    letters: tuple[int, ...]
    times: tuple[int, ...]


class _Window:
    """What has come of one window so far."""

    def __init__(self) -> None:
        self.matches: list[_Match] = []
        self.count = 0
        """How many have come, also of those that are not kept."""


class WindowRanks:
    """Those of one query."""

    def __init__(self, ranking: Ranking, window: Window, terms: TermDictionary) -> None:
        self._ranking, self._window, self._terms = ranking, window, terms
        self._windows: dict[int, _Window] = {}
        self._left_out: dict[int, tuple[InstantBound, int]] = {}
        """The closes of windows that had too many matches; none between batches."""

    @property
    def order_by(self) -> tuple[Expression, ...]:
        """What is compared."""
        return tuple(expression for expression, _ in self._ranking.order_by)

    @property
    def records(self) -> int:
        """How many matches are kept."""
        return sum([len(window.matches) for window in self._windows.values()])

    @property
    def waits(self) -> bool:
        """Whether some window has matches and is open."""
        return bool(self._windows)

    def deadline(self, start: int) -> int | None:
        """The last time (µs) of the oldest window that has matches; `start`: the window's t."""
        return min([end_of(self._window, number, start) - 1 for number in self._windows], default=None)

    @property
    def _wanted(self) -> int | None:
        """The best matches of a window that are kept; None: all, as many as may be reported at an instant."""
        ranking, most = self._ranking, self._terms.bounds.matches
        wanted = most + 1 if ranking.limit is None else ranking.offset + ranking.limit
        return wanted if wanted <= most else None

    def hold(self, found: Candidates, ends: Sequence[End], start: int) -> None:
        """Take matches, those of one end together, in order of their ends. `start`: the window's t."""
        wanted = self._wanted
        for end in ends:
            number = number_of(self._window, int(found.clock[end.low]), start)
            window = self._windows.setdefault(number, _Window())
            matches = list(self._matches(found, range(end.low, end.high)))
            if self._ranking.sample is not None:
                seed = f"{self._ranking.seed} {int(found.batch.time[end.low])} {window.count}"
                self._draw(window, matches, end.total, seed)
                continue
            window.matches += matches
            window.count += len(matches)
            if wanted is None and window.count > self._terms.bounds.matches:
                window.matches = []  # nothing is reported when it closes
            elif wanted is not None and len(window.matches) > 2 * wanted:
                window.matches = self._ordered(window.matches)[:wanted]

    def _draw(self, window: _Window, matches: list[_Match], count: int, seed: str) -> None:
        """`matches` is a sample of `count`, those of the window one of all before: have one of both together."""
        assert self._ranking.sample is not None
        wanted = min(self._ranking.sample.count, window.count + count)
        fresh = share_of(count, window.count, wanted, f"share {seed}")
        old = sample(len(window.matches), wanted - fresh, f"kept {seed}")
        new = sample(len(matches), fresh, f"new {seed}")
        window.matches = [window.matches[i] for i in old] + [matches[i] for i in new]
        window.count += count

    def _matches(self, found: Candidates, which: Sequence[int]) -> Iterator[_Match]:
        batch = found.batch
        for m in which:
            low, high = int(batch.ends[m]), int(batch.ends[m + 1])
            ids = tuple(found.keys[m].tolist())
            yield _Match(
                self._keys(ids),
                tuple(found.rows[low:high].tolist()),
                ids,
                tuple(batch.values[m].tolist()),
                tuple(batch.event_letter[low:high].tolist()),
                tuple(batch.event_time[low:high].tolist()),
            )

    def _keys(self, ids: Sequence[int]) -> tuple[Key, ...]:
        return tuple(order_key(self._terms.term(i) if i else None) for i in ids)

    def _ordered(self, matches: list[_Match]) -> list[_Match]:
        """In the order of ORDER BY; ties by positions. A sample without ORDER BY stays as it was drawn."""
        if not self._ranking.order_by:
            return matches
        ordered = sorted(matches, key=lambda match: match.rows)
        sort_by(ordered, attrgetter("keys"), [descending for _, descending in self._ranking.order_by])
        return ordered

    def take(
        self, until: int, start: int, lasts: Mapping[int, int] | None, ended: Mapping[int, int]
    ) -> list[MatchBatch]:
        """The rows of the windows that have closed. `until`: the smallest clock that may still come, `start`: the
        window's t; `lasts`: the time of each window's last instant, where windows count instants; `ended`: when the end
        of the streams has closed one that was not full."""
        closed = sorted(number for number in self._windows if end_of(self._window, number, start) <= until)
        batches = []
        for number in closed:
            time = end_of(self._window, number, start) - 1 if lasts is None else lasts[number]
            window = self._windows.pop(number)
            ordered = self._ordered(window.matches)[self._ranking.offset :][: self._ranking.limit]
            given = len(ordered) if self._ranking.sample is not None or self._wanted is not None else window.count
            if given > self._terms.bounds.matches:
                self._left_out[time] = KEPT, given
            elif ordered:
                batches.append(self._batch(ordered, time, ended.get(number)))
        return batches

    def take_left_out(self) -> LeftOut:
        """The closes of windows since the last call that had more matches than are reported at an instant."""
        left_out, self._left_out = self._left_out, {}
        return left_out

    def closing(self, until: int, start: int) -> list[int]:
        """The numbers of the windows that `take` would report."""
        return [number for number in self._windows if end_of(self._window, number, start) <= until]

    def _batch(self, matches: Sequence[_Match], time: int, ended: int | None) -> MatchBatch:
        decided = None if ended is None or ended == time else np.full(len(matches), ended, np.int64)
        return MatchBatch(
            np.full(len(matches), time, np.int64),
            np.array([match.values for match in matches], np.uint32).reshape(len(matches), -1),
            np.cumsum([0, *(len(match.rows) for match in matches)]).astype(np.int64),
            flat([match.letters for match in matches], np.int32),
            flat([match.times for match in matches], np.int64),
            decided,
        )

    # --- what it keeps --------------------------------------------------------------------------------

    def held_ids(self) -> Iterator[AnyIds]:
        """The terms of the matches that are kept."""
        for window in self._windows.values():
            for match in window.matches:
                yield np.array([*match.key_ids, *match.values], np.int64)

    def save(self, terms: SavedTerms) -> State:
        """Its state between batches."""
        matches = [match for window in self._windows.values() for match in window.matches]
        return {
            "windows": np.array([(n, len(w.matches)) for n, w in self._windows.items()], np.int64).reshape(-1, 2),
            "counts": [str(window.count) for window in self._windows.values()],
            "keys": terms.ids(_table([match.key_ids for match in matches])),
            "values": terms.ids(_table([match.values for match in matches])),
            "lengths": np.array([len(match.rows) for match in matches], np.int64),
            "rows": flat([match.rows for match in matches], np.int64),
            "letters": flat([match.letters for match in matches], np.int64),
            "times": flat([match.times for match in matches], np.int64),
        }

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Continue with a saved state."""
        cuts = np.cumsum(state["lengths"])[:-1] if len(state["lengths"]) else np.zeros(0, np.int64)
        flat = [[tuple(part.tolist()) for part in np.split(state[n], cuts)] for n in ("rows", "letters", "times")]
        keys, values = (map(tuple, terms.ids(state[name]).tolist()) for name in ("keys", "values"))
        matches = [
            _Match(self._keys(ids), rows, ids, shown, letters, times)
            for ids, shown, rows, letters, times in zip(keys, values, *flat, strict=False)
        ]
        self._windows, at = {}, 0
        for (number, size), count in zip(state["windows"].tolist(), state["counts"], strict=True):
            window = self._windows[number] = _Window()
            window.matches, window.count = matches[at : at + size], max(int(count), size)
            at += size


def _table(rows: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    return np.array(rows, np.int64).reshape(len(rows), len(rows[0]) if rows else 0)
