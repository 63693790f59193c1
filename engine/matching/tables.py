"""The flat arrays that the match kernel reads (matching.md, section 3).

In the flow: slots, instances, filters → **tables** → kernels/matching/match.py. Immutable once made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine import kinds
from oxiseq.engine.kernels.expressions import machine
from oxiseq.engine.kernels.matching.match import fill_objects
from oxiseq.engine.kernels.matching.records import HAS_OBJECT, HAS_SUBJECT, MatchTables
from oxiseq.engine.kernels.memory.pointers import I32, I64
from oxiseq.engine.matching.bgp import Instance, Slot, join_order
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.records import dataclass

_Whole = TypeVar("_Whole", np.int32, np.int64)

MAX_SHARING: Final = 62
"""GPMs of one instance: bits of a mask."""

LADDER_FROM: Final = 4
"""So many comparisons of one variable with numbers at one step become a ladder: one search answers them all."""

_FALSE_BELOW: Final = frozenset([machine.ABOVE, machine.AT_LEAST, machine.EQUAL])
_FALSE_ABOVE: Final = frozenset([machine.BELOW, machine.AT_MOST, machine.EQUAL])


@dataclass(frozen=True, slots=True)
class NativeFilter:
    """A compiled conjunct: its program and the numbers of its variables in the instance."""

    code: tuple[int, ...]
    variables: frozenset[int]
    late: bool
    """Goes after the others of its step: it may need Python."""

    def with_memo(self, table: int) -> NativeFilter:
        """The same look-up in another memo table (it is FRAME, depth, MEMO, table, slot)."""
        return replace(self, code=(*self.code[:3], table, *self.code[4:]))


@dataclass(frozen=True, slots=True)
class NativeGpm:
    """A GPM for the kernel."""

    instance: Instance
    filters: tuple[NativeFilter, ...]
    columns: tuple[int, ...]


def build_tables(gpms: Sequence[NativeGpm], terms: TermDictionary) -> MatchTables:
    """Tables for the GPMs of one stream; every instance has at least one pattern."""
    groups = _share(gpms)
    slots = list(dict.fromkeys(step.slot for instance, _ in groups for step in instance.patterns))
    number = {slot: i for i, slot in enumerate(slots)}
    orders = _Orders(number, _Filters(terms))
    for instance, members in groups:
        orders.add(instance, [gpms[g] for g in members])
    routes = Routes()
    for place, slot in enumerate(slots):
        routes.add(place, slot.predicate, slot.object)
    slot0, slot_at = csr(routes.lists)
    object0, object_slot = csr([*routes.by_object.values()])
    triggers = _triggers([instance for instance, _ in groups], number)
    trigger0, trigger = csr(triggers)
    gpm0, gpm = csr([members for _, members in groups])
    column0, column = csr([g.columns for g in gpms])
    filters = orders.filters
    program0, code = csr(list(filters.programs))
    return MatchTables(
        predicate=routes.predicate[0],
        slot0=slot0,
        slot=slot_at,
        objects=routes.objects,
        object0=object0,
        object_slot=object_slot,
        with_object=routes.with_object,
        slots=_table(
            [(s.subject, s.object, _flags(s), *ends, 0) for s, ends in zip(slots, pairwise(trigger0), strict=True)],
            6,
            np.int64,
        ),
        trigger=trigger,
        instance0=_i32(orders.instance0),
        pattern_slot=_i32(orders.pattern_slot),
        order0=_i32(orders.order0),
        steps=_table(orders.steps, 7, np.int32),
        filters=_table(filters.rows, 5, np.int32),
        filter_number=np.array(filters.numbers, np.float64),
        filter_mask=np.array(filters.masks, np.int64),
        ladders=_table(filters.ladders, 5, np.int64),
        rung=np.array(filters.rungs, np.float64),
        rung_fails=np.array(filters.fails, np.int64),
        gpm0=gpm0,
        gpm=gpm,
        column0=column0,
        column=column,
        program0=program0,
        code=code,
        widths=np.array(
            [
                max((i.width for i, _ in groups), default=0) + 1,
                max((len(i.patterns) for i, _ in groups), default=0) + 1,
                max((p[1] for p in filters.programs), default=1),
                max(routes.widest, 1),
            ],
            np.int64,
        ),
    )


def csr(lists: Sequence[Sequence[int]]) -> tuple[I32, I32]:
    """Lists as where each begins, and all their numbers."""
    starts = np.zeros(len(lists) + 1, np.int32)
    np.cumsum([len(x) for x in lists], out=starts[1:])
    return starts, _i32([v for x in lists for v in x])


def _i32(values: Sequence[int]) -> I32:
    return np.array(values, np.int32).reshape(-1)


def _table(rows: Iterable[Sequence[int]], width: int, dtype: type[_Whole]) -> NDArray[_Whole]:
    return np.array(list(rows), dtype).reshape(-1, width)


def _share(gpms: Sequence[NativeGpm]) -> list[tuple[Instance, list[int]]]:
    """GPMs by instance, at most MAX_SHARING together."""
    by_instance: dict[Instance, list[int]] = {}
    for number, gpm in enumerate(gpms):
        by_instance.setdefault(gpm.instance, []).append(number)
    return [
        (instance, members[k : k + MAX_SHARING])
        for instance, members in by_instance.items()
        for k in range(0, len(members), MAX_SHARING)
    ]


def _flags(slot: Slot) -> int:
    """What remains to be compared once a triple has been led to the slot."""
    object_left = slot.object != 0 and slot.predicate == 0
    return slot.equal | (HAS_SUBJECT if slot.subject else 0) | (HAS_OBJECT if object_left else 0)


class Routes:
    """From a triple's source, predicate and object to the numbers of those that may accept it."""

    def __init__(self, sources: int = 1) -> None:
        self._sources = sources
        self._numbers: dict[tuple[int, int], int] = {}
        self.lists: list[list[int]] = [[] for _ in range(1 + sources)]
        """None, for any predicate by source, for any object by predicate's number."""
        self.by_object: dict[int, list[int]] = {}

    def add(self, number: int, predicate: int, object_: int, source: int = 0) -> None:
        """Another one, with its constants; 0: any."""
        if predicate == 0:
            self.lists[1 + source].append(number)
            return
        at = self._numbers.setdefault((source, predicate), len(self.lists))
        if at == len(self.lists):
            self.lists.append([])
        (self.by_object.setdefault(at << 32 | object_, []) if object_ else self.lists[at]).append(number)

    @property
    def predicate(self) -> NDArray[np.int32]:
        """The lists' numbers by source and predicate."""
        found = np.zeros((self._sources, max((p for _, p in self._numbers), default=0) + 1), np.int32)
        for key, at in self._numbers.items():
            found[key] = at
        return found

    @property
    def with_object(self) -> I32:
        """By predicate's number: whether there are some with a constant object."""
        found = np.zeros(len(self.lists), np.int32)
        found[[key >> 32 for key in self.by_object]] = 1
        return found

    @property
    def objects(self) -> I64:
        """The hash table from predicate's number << 32 | object to the number of a list in `by_object`."""
        table = np.full((1 << max(3, (2 * len(self.by_object)).bit_length()), 2), -1, np.int64)
        fill_objects(table, np.array(list(self.by_object), np.int64))
        return table

    @property
    def widest(self) -> int:
        """Most that may accept one triple, of one source."""
        each = self.lists[1:2], self.lists[2:], self.by_object.values()
        return sum(max(map(len, some), default=0) for some in each)


class _Filters:
    """Filters of all steps: those of one step lie together, ladders first."""

    def __init__(self, terms: TermDictionary) -> None:
        self.programs: dict[tuple[int, ...], int] = {}
        self.rows: list[tuple[int, int, int, int, int]] = []
        self.numbers: list[float] = []
        self.masks: list[int] = []
        self.ladders: list[tuple[int, int, int, int, int]] = []
        self.rungs: list[float] = []
        self.fails: list[int] = []
        self._columns = terms.columns

    def add(self, ready: Sequence[tuple[NativeFilter, int]]) -> tuple[int, int]:
        """The filters that one step evaluates, each with the bit of its GPM; the range that they get."""
        first = len(self.rows)
        masks: dict[NativeFilter, int] = {}
        for native, bit in sorted(ready, key=lambda item: item[0].late):
            masks[native] = masks.get(native, 0) | 1 << bit
        by_variable: dict[int, list[tuple[NativeFilter, int]]] = {}
        for native, mask in masks.items():
            by_variable.setdefault(native.code[4] if self._quick(native.code) else -1, []).append((native, mask))
        plain = by_variable.pop(-1, [])
        for variable, members in by_variable.items():
            if len(members) < LADDER_FROM:
                plain = [*members, *plain]
            else:
                self._add_ladder(variable, members)
        for native, mask in plain:
            self._add(native.code, mask, -1)
        return first, len(self.rows)

    def _quick(self, code: tuple[int, ...]) -> bool:
        """Whether it is a comparison of a variable with a number that doubles mostly decide."""
        if len(code) != 6 or code[2] != machine.FUSED:
            return False
        constant = code[5]
        rounded = self._columns.quality[constant] & kinds.ROUNDED
        return bool(self._columns.kind[constant] != kinds.FLOAT and rounded)

    def _add(self, code: tuple[int, ...], mask: int, ladder: int) -> None:
        program = self.programs.setdefault(code, len(self.programs))
        self.masks.append(mask)
        if self._quick(code):
            outcomes = (int(code[3] not in _FALSE_BELOW), int(code[3] not in _FALSE_ABOVE))
            self.rows.append((program, code[4], *outcomes, ladder))
            self.numbers.append(float(self._columns.number[code[5]]))
        else:
            self.rows.append((program, -1, 0, 0, ladder))
            self.numbers.append(0.0)

    def _add_ladder(self, variable: int, members: Sequence[tuple[NativeFilter, int]]) -> None:
        number = {native: float(self._columns.number[native.code[5]]) for native, _ in members}
        rungs = sorted({c for c in number.values() if c == c})
        place_of = {c: place for place, c in enumerate(rungs)}
        ladder, every = len(self.ladders), 0
        for i, (native, mask) in enumerate(members):
            self._add(native.code, mask, ladder if i == 0 else -1)
            every |= mask
        self.ladders.append((variable, every, len(self.rungs), len(rungs), len(self.rows)))
        for place in range(len(rungs) + 1):  # the value lies between the rungs place - 1 and place
            fails = 0
            for native, mask in members:
                op, constant = native.code[3], number[native]
                if constant != constant:  # NaN
                    failing = op != machine.UNEQUAL
                else:
                    failing = op in (_FALSE_BELOW if place <= place_of[constant] else _FALSE_ABOVE)
                fails |= mask if failing else 0
            self.fails.append(fails)
        self.rungs += [*rungs, float("nan")]


class _Orders:
    """Join orders of all instances, with each filter at the first step that has its variables."""

    def __init__(self, number: dict[Slot, int], filters: _Filters) -> None:
        self.number = number
        self.filters = filters
        self.instance0 = [0]
        self.pattern_slot: list[int] = []
        self.order0: list[int] = []
        self.steps: list[tuple[int, ...]] = []

    def add(self, instance: Instance, members: Sequence[NativeGpm]) -> None:
        self.pattern_slot += [self.number[step.slot] for step in instance.patterns]
        self.instance0.append(len(self.pattern_slot))
        variables = tuple([step.variables for step in instance.patterns])
        for start in range(len(instance.patterns)):
            self.order0.append(len(self.steps))
            bound: set[int] = set()
            waiting = [(f, k) for k, gpm in enumerate(members) for f in gpm.filters]
            for position, bits in join_order(variables, start):
                step = instance.patterns[position]
                bound.update(step.variables)
                ready = [item for item in waiting if item[0].variables <= bound]
                waiting = [item for item in waiting if not item[0].variables <= bound]
                self.steps.append((self.number[step.slot], *step.variables, bits, *self.filters.add(ready)))


def _triggers(instances: Sequence[Instance], number: dict[Slot, int]) -> list[list[int]]:
    """Each instance depends on one slot: one that few others use and few events fill."""
    subscribers: list[list[int]] = [[] for _ in number]
    users = Counter(step.slot for instance in instances for step in instance.patterns)
    for i, instance in enumerate(instances):
        chosen = min(
            (step.slot for step in instance.patterns),
            key=lambda s: (users[s], s.object == 0, s.predicate == 0, len(subscribers[number[s]])),
        )
        subscribers[number[chosen]].append(i)
    return subscribers
