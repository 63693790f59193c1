"""The running state of windows whose matches are only counted and summed: no prefix is kept, only what each step of the
window does to them (kernels/matches/composed.py; answers.md 1.7, tier S). One for both runners of sequences: what a row
does to which states is theirs (cea/composed.py, sequence/composed.py).

In the flow: rows with symbols and values → **composed windows** → weights of ends → rows of groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.matches import composed as c
from oxiseq.engine.kernels.matches import records as matches
from oxiseq.engine.kernels.matches import weights as w
from oxiseq.engine.kernels.memory.growing import longer
from oxiseq.engine.kernels.memory.pointers import Pointers, PointerTables, call
from oxiseq.engine.matches.measures import Columns, Measures, new_form, reformed, words_of
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State, Stateful, part, unsaved, value

MOST_STATES: Final = 12
"""Of the automaton: each step's map has the square of that many weights."""
COLLECT_EVERY: Final = 1 << 16
_MOST_OUT: Final = 1 << 16
_REPORTS_AT_ONCE: Final = 4
"""Of all partitions, that there is room for."""
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
Arcs = Sequence[tuple[int, int, int]]
"""What a row does: source, target or END, place."""


def reports_of(row: I64, cut: I64, order: I64 | None) -> Pointers[c.Reports]:
    """Reports of a batch, for `ComposedWindows.feed`: before which rows they come, and from which clocks on they tell.
    `order`: of the rows; None: they are in order."""
    order = np.zeros(0, np.int64) if order is None else order
    return Pointers(c.Reports(row.astype(np.int64), cut.astype(np.int64), np.zeros(c.CURSOR, np.int64), order))


NO_REPORTS: Final = reports_of(np.zeros(0, np.int64), np.zeros(0, np.int64), None)


class Ended(NamedTuple):
    """What ends at rows: their positions, and the weight of each, u64[n, words], of this form; where all matches so far
    are told of u64[n, 2 words]: before each and after it. With reports, `at`: which one; `of`: i64[n, 2], where
    partitions are apart: whose, and a number by which they are in the order in which they began to have matches."""

    at: I64
    weights: U64
    form: I64
    of: I64


class Rules:
    """The automaton as the kernel reads it: what rows of each symbol do."""

    def __init__(
        self,
        kind: int,
        size: int = 0,
        *,
        consume: int = 0,
        once: int = 0,
        merges: bool = False,
        so_far: int = 0,
        reports: int = c.NO_REPORTS,
    ) -> None:
        settings = np.zeros(c.SETTINGS, np.int64)
        settings[c.KIND], settings[c.SIZE], settings[c.LEAST], settings[c.CONSUME] = kind, size, 1, consume
        settings[c.STATES], settings[c.ONCE], settings[c.MERGES] = 1, once, merges
        settings[c.SO_FAR], settings[c.REPORTS] = so_far, reports
        self.arrays = c.Automaton.allocate(symbols=0, arcs=0)._replace(settings=settings)
        self._arcs = 0
        self._counting = np.zeros(0, np.bool_)

    @property
    def settings(self) -> I64:
        return self.arrays.settings

    @property
    def slides(self) -> bool:
        """Whether matches leave the window one by one."""
        return self.settings[c.KIND] not in (c.UNBOUNDED, c.TUMBLING)

    @property
    def so_far(self) -> bool:
        """Whether all matches of the window are told of whenever some end."""
        return bool(self.settings[c.SO_FAR]) and self.settings[c.REPORTS] == c.NO_REPORTS

    @property
    def apart(self) -> bool:
        """Whether reports tell of each partition."""
        return bool(self.settings[c.REPORTS] == c.OF_EACH)

    @property
    def adds_up(self) -> bool:
        """Whether it is those of all partitions."""
        return self.so_far and bool(self.settings[c.MERGES])

    def put(self, symbol: int, keep: int, arcs: Arcs) -> None:
        """Such rows do this from now on. `keep`: states (bits) in which matches stay when one comes."""
        arrays = self.arrays
        if symbol >= len(arrays.keep):
            arrays = arrays.grow("symbols", max(2 * len(arrays.keep), symbol + 1))
        if self._arcs + len(arcs) > len(arrays.arcs):
            arrays = arrays.grow("arcs", 2 * (self._arcs + len(arcs)))
        first, self._arcs = self._arcs, self._arcs + len(arcs)
        for at, arc in enumerate(arcs, first):
            arrays.arcs[at] = (*arc, 0)
        self._count(arrays.arcs[first : self._arcs])
        arrays.keep[symbol], arrays.spans[symbol] = keep, (first, self._arcs)
        self.arrays = arrays

    def count_at(self, places: NDArray[np.bool_]) -> None:
        """At which places rows count with any values, bool[places]: at the others they only go on."""
        self._counting = places
        self._count(self.arrays.arcs)

    def _count(self, arcs: NDArray[np.void]) -> None:
        if len(self._counting):
            arcs["place"][~self._counting[arcs["place"]]] = 0


class ComposedWindows(Stateful):
    """`held`: which of `measures` a row counts with at each place, bool[places, measures]; `states`: how many there may
    be; `parts`, `out`: partitions and ends that there is room for to begin with."""

    made_of = part("measures"), value("tau"), unsaved("_memory"), unsaved("rules.arrays")

    def __init__(
        self, rules: Rules, measures: Measures, held: NDArray[np.bool_], states: int, parts: int, out: int
    ) -> None:
        self.rules, self.measures, self._held, self._states = rules, measures, held, states
        self._parts, self._out = parts, out
        rules.count_at(np.asarray(held.any(axis=1)))
        self._tables = PointerTables()
        self.tau = _BEFORE_ALL
        """What begins before this clock has left all windows."""
        self.begin(0)

    def begin(self, position: int) -> None:
        """Memory without anything; `position`: of the next row."""
        form, states, count = new_form(1, self.measures), self._states, self._parts
        words = words_of(form)
        held, masks = self.measures.masks(self._held)
        memory = c.Composed.allocate(
            parts=0,
            line=(states if self.rules.slides else 1) * words,
            entries=0,
            vector=states * words,
            values=int(form[w.SUMS] + form[w.LEASTS]),
            terms=4 * states,
            out=self._out,
            told=2 * words if self.rules.so_far else words,
            apart=int(self.rules.apart),
            totals=2 if self.rules.adds_up else 0,
            weight=words,
        )
        tally = np.array([0, 0, -1, _BEFORE_ALL], np.int64)
        self._memory = memory._replace(form=form, held=held, masks=masks, work=_work(states, words), tally=tally)
        self._memory.scalars[[c.BASE, c.FREE]] = position, -1
        self._collected = 0
        self.begin_partitions(np.arange(count), count)

    def _room(self, out: int, words: int) -> U64:
        return np.zeros((out, 2 * words if self.rules.so_far else words), np.uint64)

    def columns(self, ids: I64) -> Columns:
        """What rows with these ids of attributes add, for `feed`. Collects before, if it is time."""
        if self._collected >= max(COLLECT_EVERY, 2 * len(self._memory.parts)):
            self.collect()
        columns = self.measures.of(ids)
        self._reform(int(self._memory.form[w.LIMBS]))
        return columns

    def feed(
        self, steps: Pointers[c.Steps], count: int, columns: Columns, reports: Pointers[c.Reports] = NO_REPORTS
    ) -> list[Ended]:
        """Take in so many rows; what ends in them, or what reports tell: the caller reads its least and largest values
        before the next call of `columns`, which may forget them."""
        found: list[Ended] = []
        self._memory.scalars[[c.AT, c.COUNT]] = 0, count
        table = self._tables.of
        V = Pointers(c.Values(columns.values, columns.flags))
        while True:
            A, S = table(self.rules.arrays), table(self._memory)
            need = call(c.compose, A, S, steps, V, reports)
            if need in (matches.DONE, matches.OUT_FULL):
                self._drain(found)
                if need == matches.DONE:
                    break
            elif need == matches.NEED_LIMBS:
                self._reform(int(self._memory.form[w.LIMBS]) * 2)
            elif need == c.NEED_TERMS:
                wanted = int(self._memory.scalars[c.WANTED])
                self._memory = self._memory._replace(terms=np.zeros((2 * wanted, 4), np.int64))
            elif need == c.NEED_QUEUE:
                self._memory = _longer_queue(self._memory)
            else:
                self._memory = _more_entries(self._memory)
        self._memory.scalars[c.BASE] += count
        self._collected += count
        return found

    def _drain(self, found: list[Ended]) -> None:
        memory = self._memory
        count = int(memory.scalars[c.OUT])
        if count:
            at = memory.out_at[:count].copy()
            if self.rules.settings[c.REPORTS] == c.NO_REPORTS:
                at += memory.scalars[c.BASE]
            found.append(Ended(at, memory.out[:count].copy(), memory.form, memory.out_of[:count].copy()))
            memory.scalars[c.OUT] = 0
        if count == len(memory.out_at) and count < _MOST_OUT:
            self._memory = memory.grow("out")

    def _reform(self, limbs: int) -> None:
        """Weights of so many limbs, and of as many sums as there are by now; labels as they are by now."""
        before, measures = self._memory.form, self.measures
        if limbs != before[w.LIMBS] or measures.sums != before[w.SUMS]:
            self._put_form(limbs, np.arange(before[w.SUMS]))
        memory, form = self._memory, self._memory.form
        for place, before, now in measures.relabelled():
            _relabel(memory.values[:, measures.sums + place], before, now)
            word = words_of(form) - measures.leasts + place
            for name in _WEIGHTS:
                array = getattr(memory, name).view(np.int64)
                _relabel(array.reshape(-1, words_of(form))[:, word], before, now)

    def _put_form(self, limbs: int, kept: I64) -> None:
        """Weights of so many limbs; the first sums are those that had the numbers `kept`, others are new."""
        memory, measures = self._memory, self.measures
        form = new_form(limbs, measures)
        held, masks = measures.masks(self._held)
        values = np.zeros((len(memory.values), measures.sums + measures.leasts), np.int64)
        values[:, : len(kept)] = memory.values[:, kept]
        values[:, measures.sums :] = memory.values[:, int(memory.form[w.SUMS]) :]
        lines = {name: reformed(getattr(memory, name), memory.form, form, kept) for name in _WEIGHTS}
        self._memory = memory._replace(form=form, values=values, held=held, masks=masks, **lines)

    def _shrink(self) -> None:
        """Forget sums that nothing adds to, and limbs that no number needs: what has come once makes nothing slow for
        ever."""
        memory = self._memory
        limbs, sums = int(memory.form[w.LIMBS]), int(memory.form[w.SUMS])
        call(c.wipe, Pointers(memory))
        used: NDArray[np.bool_] = (memory.values[:, :sums] != 0).any(axis=0)
        needed = 1
        for array in (memory.maps, memory.vectors, memory.totals):
            numbers = _weights(array, memory.form)[..., 1 : 1 + (1 + sums) * limbs].reshape(-1, 1 + sums, limbs)
            used = used | numbers[:, 1:].any(axis=(0, 2))
            needed = max(needed, _limbs_of(numbers.view(np.int64)))
        kept = self.measures.keep(used)
        if needed < limbs or len(kept) < sums:
            self._put_form(needed, kept)

    def collect(self) -> None:
        """Drop what has left the windows, and sums, limbs and labels that nothing has."""
        self._collected = 0
        self.settle(np.zeros(len(self._memory.parts), np.uint8))
        self._shrink()
        measures, memory = self.measures, self._memory
        if measures.leasts:
            words = words_of(memory.form)
            lines = [getattr(memory, name).view(np.int64).reshape(-1, words) for name in _LASTING]
            measures.forget(
                [
                    np.concatenate(
                        [memory.values[:, measures.sums + i], *(a[:, words - measures.leasts + i] for a in lines)]
                    )
                    for i in range(measures.leasts)
                ]
            )

    def settle(self, used: NDArray[np.uint8]) -> None:
        """Clear partitions that all rows have left; in which something may go on."""
        call(c.settle, Pointers(self.rules.arrays), Pointers(self._memory), used, self.tau)

    def begin_partitions(self, fresh: I64, count: int) -> None:
        """There are `count` partitions; those `fresh` are new, or have another meaning from now on."""
        memory = self._memory
        if count > len(memory.parts):
            memory = memory.grow("parts", count)._replace(maps=longer(memory.maps, count * self._states))
            if self.rules.apart:
                memory = memory._replace(began=longer(memory.began, count))
                memory = memory.grow("out", max(len(memory.out_at), _REPORTS_AT_ONCE * count))
            if self.rules.adds_up and self.rules.slides:
                memory = memory._replace(totals=_higher(memory.totals, count))
            self._memory = memory
        call(c.begin, Pointers(memory), fresh.astype(np.int64))

    def partitions_in_use(self, count: int) -> NDArray[np.bool_]:
        """Of which of the `count` partitions something is remembered."""
        used = np.zeros(count, np.uint8)
        self.settle(used)
        return used.astype(np.bool_)

    def pass_by(self, count: int) -> None:
        """So many rows have come of the only partition there is, and changed nothing."""
        self._memory.scalars[c.BASE] += count
        self._memory.parts[0]["clock"] += count

    @property
    def partitions(self) -> int:
        """How many there is room for."""
        return len(self._memory.parts)

    @property
    def position(self) -> int:
        """How many rows came in."""
        return int(self._memory.scalars[c.BASE])

    @property
    def state(self) -> dict[str, int]:
        """Numbers of records."""
        return {"entries": int(self._memory.scalars[c.ENTRIES]), "limbs": int(self._memory.form[w.LIMBS])}

    @property
    def records(self) -> int:
        """Rows of windows, and partitions in which something has begun."""
        return int(self._memory.scalars[c.ENTRIES]) + int(self._memory.parts["begun"].sum())

    def save(self, terms: SavedTerms) -> State:
        """Its state between batches, without the rules."""
        self.collect()
        arrays = {name: getattr(self._memory, name) for name in self._saved}
        return {**super().save(terms), **arrays}

    @property
    def _saved(self) -> Sequence[str]:
        return (*_SAVED, *(_ADDED_UP if self.rules.adds_up else ()), *(("began",) if self.rules.apart else ()))

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Continue from a saved state; for windows that have not seen anything. Raises KeyError, ValueError for one of
        another layout: fingerprints of plans do not depend on it."""
        layout = state["parts"].dtype, state["entries"].dtype, len(state["scalars"]), state["vectors"].shape[1]
        if layout != (c.PART, c.ENTRY, c.SCALARS, self._states * words_of(state["form"])):
            raise ValueError("composed windows of another layout")
        super().restore(state, terms)
        self._memory = self._memory._replace(**{name: state[name].copy() for name in self._saved})
        words = words_of(self._memory.form)
        held, masks = self.measures.masks(self._held)
        room = len(self._memory.out_at)
        if self.rules.apart:
            room = max(room, _REPORTS_AT_ONCE * len(self._memory.parts))
        self._memory = self._memory._replace(
            held=held,
            masks=masks,
            work=_work(self._states, words),
            out_at=longer(self._memory.out_at, room),
            out=self._room(room, words),
            out_of=np.zeros((room if self.rules.apart else 0, 2), np.int64),
        )


_BEFORE_ALL: Final = 1 - (1 << 63)
_LASTING: Final = ("maps", "vectors", "totals")
_WEIGHTS: Final = (*_LASTING, "work", "out")
_SAVED: Final = ("scalars", "form", "parts", "maps", "entries", "vectors", "values", "flags")
_ADDED_UP: Final = ("totals", "queue", "tally")


def _work(states: int, words: int) -> U64:
    return np.zeros((2 * states + 1, max(states, 3) * words), np.uint64)


def _higher(totals: U64, count: int) -> U64:
    """A tree with so many leaves: that of before is its left end."""
    while len(totals) < 2 * count:
        made = np.zeros((2 * len(totals), totals.shape[1]), np.uint64)
        made[1], row = totals[1], 1
        while row < len(totals):
            made[2 * row : 3 * row] = totals[row : 2 * row]
            row *= 2
        totals = made
    return totals


def _longer_queue(memory: c.Composed) -> c.Composed:
    """With room for twice as many, the first in front."""
    size = len(memory.queue)
    queue = np.zeros((2 * size, 2), np.int64)
    queue[:size] = np.roll(memory.queue, -int(memory.tally[c.HEAD]), axis=0)
    memory.tally[c.HEAD] = 0
    return memory._replace(queue=queue)


def _weights(array: U64, form: I64) -> U64:
    """Lines of weights of this form, u64[lines, weights, words]."""
    words = words_of(form)
    return array.reshape(len(array), array.shape[1] // words, words)


def _limbs_of(numbers: I64) -> int:
    """A power of two, or all: so many of their limbs, the last axis, say what all numbers are."""
    most, limbs = int(numbers.shape[2]), 1
    signs = numbers >> 63
    while limbs < most and (
        (numbers[..., limbs:] != signs[..., -1:]).any() or (signs[..., limbs - 1] != signs[..., -1]).any()
    ):
        limbs *= 2
    return min(limbs, most)


def _relabel(labels: I64, before: I64, now: I64) -> None:
    """Other numbers for these labels, in place."""
    place = np.searchsorted(before, labels)
    place[place == len(before)] = 0
    same = before[place] == labels if len(before) else np.zeros(len(labels), np.bool_)
    labels[same] = now[place[same]]


def _more_entries(memory: c.Composed) -> c.Composed:
    """Room for as many entries as a step wants, or for twice as many as there are."""
    count = len(memory.entries)
    size = max(2 * count, 4, count + int(memory.scalars[c.WANTED]))
    memory = memory.grow("entries", size)
    entries = memory.entries
    entries["next"][count:] = np.arange(count + 1, size + 1)
    entries["next"][size - 1] = memory.scalars[c.FREE]
    memory.scalars[c.FREE] = count
    return memory
