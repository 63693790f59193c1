"""A run of a compiled CEQL query whose complex events are only counted and summed: it keeps no prefix, only what each
event of the window does to them (kernels/cea/composed.py; answers.md 1.7, tier S).

In the flow: events → tuples → symbols, values → **run** → weights of ends → rows (output/end_totals.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.cea.cache import StepCache
from oxiseq.engine.cea.events import MarkedEvents, sizes_of
from oxiseq.engine.cea.memory import Capacities
from oxiseq.engine.cea.plan import CeaPlan
from oxiseq.engine.cea.positions import bits
from oxiseq.engine.cea.subsets import FIRST_MASK, Subsets
from oxiseq.engine.cea.subsets import State as Letters
from oxiseq.engine.cea.windows import Placed, plain
from oxiseq.engine.errors import LimitError
from oxiseq.engine.kernels.cea import composed as c
from oxiseq.engine.kernels.cea import records as k
from oxiseq.engine.kernels.matches import records as matches
from oxiseq.engine.kernels.matches import weights as w
from oxiseq.engine.kernels.memory.growing import longer
from oxiseq.engine.kernels.memory.pointers import Pointers, PointerTables, call
from oxiseq.engine.matches.measures import MOST_LIMBS, MOST_MEASURES, WEIGHED, Measures, reformed, words_of
from oxiseq.engine.terms.dictionary import AnyIds
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.grammar.ceql_algebra import AttributeWindow, aggregates
from oxiseq.grammar.render_ceql import render_predicate

MOST_STATES: Final = 12
"""Of the determinised automaton: each event's map has the square of that many weights."""
_MOST_STEPS: Final = 2_000
_MOST_ATOMS: Final = 14
"""Symbols are not more than two to that."""
_U64, _I64 = np.dtype(np.uint64), np.dtype(np.int64)
_COLLECT_EVERY: Final = 1 << 16
_MOST_OUT: Final = 1 << 16
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]


def not_composed(plan: CeaPlan) -> str | None:
    """Why what ends at an event cannot be counted by composed windows; None: it can. Of a plan with totals."""
    query = plan.query
    assert query.totals is not None
    found = aggregates(query.totals)
    if query.selection is not None and not plan.runner.strict:
        return f"{query.selection.strategy.value} chooses among those of an event"
    if isinstance(query.window, AttributeWindow):
        return "a window of an attribute may reach back"
    if plan.runner.ambiguous and any(aggregate.arg is not None for aggregate in found):
        return "several variables may hold an event"
    for aggregate in found:
        if aggregate.distinct or aggregate.name not in WEIGHED:
            return f"{render_predicate(aggregate)} needs each value"
    if len({aggregate.arg for aggregate in found} - {None}) > MOST_MEASURES:
        return f"they are over more than {MOST_MEASURES} things"
    if automaton_of(plan) is None:
        return f"the automaton has more than {MOST_STATES} states"
    return None


class Automaton(NamedTuple):
    """How many states the determinised automaton has, with that before a match, and whether an event that no letter
    reads may change something."""

    states: int
    restless: bool


def automaton_of(plan: CeaPlan) -> Automaton | None:
    """The determinised automaton of a plan; None: it has too many states."""
    if len(plan.letters) > _MOST_ATOMS:
        return None
    subsets = Subsets(plan.runner)
    found: dict[Letters | None, None] = {None: None}
    steps = 0
    for state in _growing(found):
        atoms = [*bits(subsets.relevant(state))]
        steps += 1 << len(atoms)
        if steps > _MOST_STEPS:
            return None
        for chosen in range(1 << len(atoms)):
            letters = subsets.letters(sum(1 << atom for i, atom in enumerate(atoms) if chosen >> i & 1))
            move = subsets.begin(letters) if state is None else subsets.step(state, letters)
            found |= dict.fromkeys(each for each in (move.marked, move.other) if each is not None)
        if len(found) > MOST_STATES:
            return None
    return Automaton(len(found), any(state.restless for state in found if state is not None))


def _growing(found: dict[Letters | None, None]) -> Iterator[Letters | None]:
    """What is in it, and what comes to be in it meanwhile."""
    at = 0
    while at < len(found):
        yield next(islice(found, at, None))
        at += 1


class Ended(NamedTuple):
    """What ends at events: their positions, and the weight of each, u64[n, words], of this form."""

    at: I64
    weights: U64
    form: I64


class ComposedRun:
    """The running state of one query. Between batches it needs no event any more: `oldest` is the next position."""

    behind = 0
    """No window of an attribute reaches back."""

    def __init__(
        self,
        plan: CeaPlan,
        capacities: Capacities | None,
        measures: Measures,
        variables: Sequence[int],
        least: int,
    ) -> None:
        """`variables`: that hold the events of each of `measures`; `least`: fewer complex events are not written."""
        found = automaton_of(plan)
        assert found is not None
        self._plan, self._measures, self._automaton = plan, measures, found
        self._capacities = capacities or Capacities()
        subsets = Subsets(plan.runner)
        self._sizes = sizes_of(plan, self._capacities, picks=False)
        self._sizes[k.LEAST] = least
        self._cache = StepCache(plan, subsets, self._sizes, self._capacities.moves)
        masks = [0] * FIRST_MASK + [*subsets.masks]
        self._held = np.array([[mask >> v & 1 for v in variables] for mask in masks], np.bool_)
        self._held = self._held.reshape(len(masks), len(variables))
        self._tables = PointerTables()
        self._placed = Placed(plan.query, plan.runner.words)
        self._by_time = self._sizes[k.KIND] == k.BY_TIME
        self._tau = k.BEFORE_ALL
        self._begin(0)

    def _begin(self, position: int) -> None:
        """Memory without anything."""
        form = np.array([1, self._measures.sums, self._measures.leasts, 0], np.int64)
        words, states, count = words_of(form), self._automaton.states, self._capacities.parts
        values = int(form[w.SUMS] + form[w.LEASTS])
        held, masks = self._measures.masks(self._held)
        self._memory = c.Composed(
            scalars=np.zeros(c.SCALARS, np.int64),
            form=form,
            parts=np.zeros(0, c.PART),
            maps=np.zeros((0, self._columns * words), np.uint64),
            entries=np.zeros(0, c.ENTRY),
            vectors=np.zeros((0, states * words), np.uint64),
            values=np.zeros((0, values), np.int64),
            flags=np.zeros(0, np.uint64),
            held=held,
            masks=masks,
            work=np.zeros((2 * states + 1, max(states, 2) * words), np.uint64),
            dirty=np.zeros(states, np.int64),
            out_at=np.zeros(self._capacities.out, np.int64),
            out=np.zeros((self._capacities.out, words), np.uint64),
        )
        self._memory.scalars[[c.BASE, c.FREE, c.STATES]] = position, -1, self._cache.states
        self._memory.scalars[c.RESTLESS] = self._automaton.restless
        self._collected = 0
        self.begin_partitions(np.arange(count), count)

    @property
    def _columns(self) -> int:
        """Weights of a line of maps."""
        return 1 if self._sizes[k.KIND] == k.UNBOUNDED else self._automaton.states

    def feed(self, events: MarkedEvents, ids: I64) -> list[Ended]:
        """Take in a batch of events whose attributes have these ids, i64[n, attributes]; what ends in it: the caller
        reads its least and largest values before the next call, which may forget them."""
        if self._collected >= max(_COLLECT_EVERY, 2 * len(self._memory.parts)):
            self.collect()
        columns = self._measures.of(ids)
        self._reform(int(self._memory.form[w.LIMBS]))
        symbol, partition, time = plain(events.symbol, _U64), plain(events.partition, _I64), plain(events.time, _I64)
        E = self._placed.place(symbol, partition, time, None)
        if self._by_time and len(time):
            self._tau = self._placed.cut(time.item(-1))
        found: list[Ended] = []
        self._memory.scalars[c.AT] = 0
        table = self._tables.of
        V = Pointers(c.Values(columns.values, columns.flags))
        while True:
            A, S = table(self._cache.arrays), table(self._memory)
            need = c.compose(A.address, S.address, E.address, V.address)
            if need in (matches.DONE, matches.OUT_FULL):
                self._drain(found)
                if need == matches.DONE:
                    break
            else:
                self._give(need)
        self._memory.scalars[c.BASE] += len(events)
        self._collected += len(events)
        return found

    def _drain(self, found: list[Ended]) -> None:
        memory = self._memory
        count = int(memory.scalars[c.OUT])
        if count:
            found.append(Ended(memory.out_at[:count] + memory.scalars[c.BASE], memory.out[:count].copy(), memory.form))
            memory.scalars[c.OUT] = 0
        if count == len(memory.out_at) and count < _MOST_OUT:
            out = longer(memory.out_at, 2 * count), longer(memory.out, 2 * count)
            self._memory = memory._replace(out_at=out[0], out=out[1])

    def _give(self, need: int) -> None:
        """What the kernel lacks; it then repeats the event."""
        memory, cache = self._memory, self._cache
        scalars = memory.scalars
        if need == matches.NEED_LIMBS:
            self._reform(int(memory.form[w.LIMBS]) * 2)
        elif need == c.NEED_ENTRIES:
            self._memory = _more_entries(memory)
        elif need == k.NEED_SYMBOL:
            cache.grow(symbols=True, beyond=True)
        elif not cache.add_step(int(scalars[c.WANTED_STATE]), int(scalars[c.WANTED_SYMBOL])):
            cache.grow(symbols=False, beyond=True)
        scalars[c.STATES] = cache.states

    def _reform(self, limbs: int) -> None:
        """Weights of so many limbs, and of as many sums as there are by now; labels as they are by now."""
        before, measures = self._memory.form, self._measures
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
        memory, measures = self._memory, self._measures
        form = np.array([min(limbs, MOST_LIMBS), measures.sums, measures.leasts, limbs >= MOST_LIMBS], np.int64)
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
        for array in (memory.maps, memory.vectors):
            numbers = _weights(array, memory.form)[..., 1 : 1 + (1 + sums) * limbs].reshape(-1, 1 + sums, limbs)
            used = used | numbers[:, 1:].any(axis=(0, 2))
            needed = max(needed, _limbs_of(numbers.view(np.int64)))
        kept = self._measures.keep(used)
        if needed < limbs or len(kept) < sums:
            self._put_form(needed, kept)

    def collect(self) -> None:
        """Drop what has left the windows, and sums, limbs and labels that nothing has."""
        self._collected = 0
        used = np.zeros(len(self._memory.parts), np.uint8)
        self._settle(used)
        self._shrink()
        measures, memory = self._measures, self._memory
        if measures.leasts:
            words = words_of(memory.form)
            lines = [getattr(memory, name).view(np.int64).reshape(-1, words) for name in ("maps", "vectors")]
            measures.forget(
                [
                    np.concatenate(
                        [memory.values[:, measures.sums + i], *(a[:, words - measures.leasts + i] for a in lines)]
                    )
                    for i in range(measures.leasts)
                ]
            )

    def _settle(self, used: NDArray[np.uint8]) -> None:
        call(c.settle, Pointers(self._cache.arrays), Pointers(self._memory), used, self._tau)

    def begin_partitions(self, fresh: I64, count: int) -> None:
        """As of CeaRun."""
        memory = self._memory
        known = len(memory.parts)
        if count > known:
            parts = longer(memory.parts, count)
            parts["front"][known:] = parts["back"][known:] = -1
            maps = longer(memory.maps, count * self._automaton.states)
            self._memory = memory = memory._replace(parts=parts, maps=maps)
        call(c.begin, Pointers(memory), fresh.astype(np.int64))

    def partitions_in_use(self, count: int) -> NDArray[np.bool_]:
        """As of CeaRun."""
        used = np.zeros(count, np.uint8)
        self._settle(used)
        return used.astype(np.bool_)

    def take_error(self) -> LimitError | None:
        """None: nothing is past a limit."""
        return None

    @property
    def idles(self) -> bool:
        """As of CeaRun."""
        if self.records:
            self._settle(np.zeros(len(self._memory.parts), np.uint8))
        return not self.records

    def pass_by(self, count: int, last: int) -> None:
        """As of CeaRun."""
        self._memory.scalars[c.BASE] += count
        self._memory.parts[0]["clock"] += count
        if self._by_time:
            self._tau = self._placed.cut(last)

    @property
    def position(self) -> int:
        """How many events came in."""
        return int(self._memory.scalars[c.BASE])

    @property
    def oldest(self) -> int:
        return self.position

    @property
    def state(self) -> dict[str, int]:
        """Numbers of records."""
        return {
            "entries": int(self._memory.scalars[c.ENTRIES]),
            "limbs": int(self._memory.form[w.LIMBS]),
            "states": self._cache.states,
            "symbols": self._cache.symbols,
            "steps": self._cache.steps,
            "bytes": self.bytes,
        }

    @property
    def records(self) -> int:
        """Events of windows, and partitions in which something has begun."""
        return int(self._memory.scalars[c.ENTRIES]) + int(self._memory.parts["begun"].sum())

    @property
    def bytes(self) -> int:
        """Of all arrays."""
        return sum(a.nbytes for a in (*self._memory, *self._cache.arrays))

    def forget(self) -> None:
        """As of CeaRun."""
        self._begin(self.position)

    def held_ids(self) -> Iterator[AnyIds]:
        """The values that may be the least or the largest."""
        return self._measures.held_ids()

    def save(self, terms: SavedTerms) -> State:
        """Its state between batches."""
        self.collect()
        arrays = {name: getattr(self._memory, name) for name in _SAVED}
        states = [self._cache.state(number) for number in range(1, self._cache.states)]
        return {
            **arrays,
            "symbols": self._cache.arrays.symbols[: self._cache.symbols],
            "states": [[hex(s.at_once), hex(s.later), s.strict] for s in states],
            "measures": self._measures.save(terms),
            "tau": self._tau,
        }

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Continue from a saved state; for a run that has not seen any event. Raises KeyError, ValueError for one of
        another layout: fingerprints of plans do not depend on it, for earlier versions saved sets."""
        if (state["parts"].dtype, state["entries"].dtype, len(state["scalars"])) != (c.PART, c.ENTRY, c.SCALARS):
            raise ValueError("composed windows of another layout")
        self._measures.restore(state["measures"], terms)
        self._cache.begin(
            [Letters(int(at_once, 16), int(later, 16), strict) for at_once, later, strict in state["states"]]
        )
        self._cache.put_symbols(state["symbols"])
        self._memory = self._memory._replace(**{name: state[name].copy() for name in _SAVED})
        form = self._memory.form
        words, count = words_of(form), self._automaton.states
        held, masks = self._measures.masks(self._held)
        self._memory = self._memory._replace(
            held=held,
            masks=masks,
            work=np.zeros((2 * count + 1, max(count, 2) * words), np.uint64),
            out=np.zeros((len(self._memory.out_at), words), np.uint64),
        )
        self._memory.scalars[c.STATES] = self._cache.states
        self._tau = int(state["tau"])


_WEIGHTS: Final = ("maps", "vectors", "work", "out")
_SAVED: Final = ("scalars", "form", "parts", "maps", "entries", "vectors", "values", "flags")


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
    """Twice the room for entries, of which none is free."""
    count = len(memory.entries)
    size = max(2 * count, 4)
    entries = longer(memory.entries, size)
    entries["next"][count:] = np.arange(count + 1, size + 1)
    entries["next"][size - 1] = -1
    memory.scalars[c.FREE] = count
    return memory._replace(
        entries=entries,
        vectors=longer(memory.vectors, size),
        values=longer(memory.values, size),
        flags=longer(memory.flags, size),
    )
