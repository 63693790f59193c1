"""The flat arrays that the match kernel reads (matching.md, section 3).

Where it stands: slots, instances, filters → **tables** → kernels/match.py. Immutable once made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine import kinds
from oxiseq.engine.kernels import machine
from oxiseq.engine.matching.bgp import Instance, Slot, join_order
from oxiseq.engine.terms.dictionary import TermDictionary

MAX_SHARING = 62
"""GPMs of one instance: bits of a mask."""

I32 = NDArray[np.int32]


class MatchTables(NamedTuple):
    """All C-contiguous and writable, so that the kernel is compiled once. CSR: `x0` starts, `x` members."""

    predicate: I32
    """by term id: number of the predicate, 0 none; ids beyond its end are no predicate of a slot"""
    by_predicate0: I32
    by_predicate: I32
    """predicate → its slots"""
    any_predicate: I32
    """slots with a variable predicate"""
    slots: NDArray[np.int64]
    """[slot, 4]: subject, predicate, object (0: any), positions that must be equal"""
    trigger0: I32
    trigger: I32
    """slot → the instances that are looked at when it is hit"""
    instance0: I32
    """instance → its first pattern; patterns of all instances lie one after the other"""
    pattern_slot: I32
    order0: I32
    """pattern → first step of the join order that begins with it"""
    steps: I32
    """[step, 5]: slot, variable in s, p, o (−1 constant), bits bound before (1 s, 2 p, 4 o)"""
    filter0: I32
    filter_program: I32
    filter_mask: NDArray[np.int64]
    """step → (program, mask of the GPMs that have it)"""
    gpm0: I32
    gpm: I32
    """instance → its GPMs; the k-th has bit k"""
    column0: I32
    column: I32
    """GPM → the variables whose ids its rows hold"""
    program0: I32
    code: I32
    """program → its code"""
    quick: I32
    """[program, 3]: comparison, slot, usable, when it is `?v op number`"""
    quick_number: NDArray[np.float64]
    widths: NDArray[np.int64]
    """most variables of an instance, most patterns, stack depth, most slots that one triple can hit"""


@dataclass(frozen=True, slots=True)
class NativeFilter:
    """A compiled conjunct: its program and the numbers of its variables in the instance."""

    code: tuple[int, ...]
    variables: frozenset[int]
    late: bool
    """Goes after the others of its step: it may need Python."""


@dataclass(frozen=True, slots=True)
class NativeGpm:
    """A GPM for the kernel."""

    instance: Instance
    filters: tuple[NativeFilter, ...]
    columns: tuple[int, ...]


def _csr(lists: Sequence[Sequence[int]]) -> tuple[I32, I32]:
    starts = np.zeros(len(lists) + 1, np.int32)
    np.cumsum([len(x) for x in lists], out=starts[1:])
    return starts, _i32([v for x in lists for v in x])


def _i32(values: Sequence[int]) -> I32:
    return np.array(values, np.int32).reshape(-1)


def build_tables(gpms: Sequence[NativeGpm], terms: TermDictionary) -> MatchTables:
    """Tables for the GPMs of one stream; every instance has at least one pattern."""
    groups = _share(gpms)
    slots = list(dict.fromkeys(step.slot for instance, _ in groups for step in instance.patterns))
    number = {slot: i for i, slot in enumerate(slots)}
    programs: dict[tuple[int, ...], int] = {}
    orders = _Orders(number, programs)
    for instance, members in groups:
        orders.add(instance, [gpms[g] for g in members])
    predicate, by_predicate, anywhere = _slots_by_predicate(slots)
    by_predicate0, by_predicate_list = _csr(by_predicate)
    trigger0, trigger = _csr(_triggers([instance for instance, _ in groups], number))
    gpm0, gpm = _csr([members for _, members in groups])
    column0, column = _csr([g.columns for g in gpms])
    program0, code = _csr(list(programs))
    quick, quick_number = _quick(list(programs), terms)
    depth = max((p[1] for p in programs), default=1)
    widest = max((len(x) for x in by_predicate), default=0) + len(anywhere)
    filter0, filters = _csr([[p for p, _ in step] for step in orders.filters])
    return MatchTables(
        predicate=predicate,
        by_predicate0=by_predicate0,
        by_predicate=by_predicate_list,
        any_predicate=_i32(anywhere),
        slots=np.array([(s.subject, s.predicate, s.object, s.equal) for s in slots], np.int64).reshape(-1, 4),
        trigger0=trigger0,
        trigger=trigger,
        instance0=_i32(orders.instance0),
        pattern_slot=_i32(orders.pattern_slot),
        order0=_i32(orders.order0),
        steps=np.array(orders.steps, np.int32).reshape(-1, 5),
        filter0=filter0,
        filter_program=filters,
        filter_mask=np.array([m for step in orders.filters for _, m in step], np.int64),
        gpm0=gpm0,
        gpm=gpm,
        column0=column0,
        column=column,
        program0=program0,
        code=code,
        quick=quick,
        quick_number=quick_number,
        widths=np.array(
            [
                max((i.width for i, _ in groups), default=0) + 1,
                max((len(i.patterns) for i, _ in groups), default=0) + 1,
                depth,
                widest,
            ],
            np.int64,
        ),
    )


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


class _Orders:
    """Join orders of all instances, with each filter at the first step that has its variables."""

    def __init__(self, number: dict[Slot, int], programs: dict[tuple[int, ...], int]) -> None:
        self.number = number
        self.programs = programs
        self.instance0 = [0]
        self.pattern_slot: list[int] = []
        self.order0: list[int] = []
        self.steps: list[tuple[int, int, int, int, int]] = []
        self.filters: list[list[tuple[int, int]]] = []

    def add(self, instance: Instance, members: Sequence[NativeGpm]) -> None:
        self.pattern_slot += [self.number[step.slot] for step in instance.patterns]
        self.instance0.append(len(self.pattern_slot))
        for start in range(len(instance.patterns)):
            self.order0.append(len(self.steps))
            bound: set[int] = set()
            waiting = [(f, k) for k, gpm in enumerate(members) for f in gpm.filters]
            for position, bits in join_order(instance, start):
                step = instance.patterns[position]
                self.steps.append((self.number[step.slot], *step.variables, bits))
                bound.update(step.variables)
                ready = [item for item in waiting if item[0].variables <= bound]
                waiting = [item for item in waiting if not item[0].variables <= bound]
                self.filters.append(self._programs(ready))

    def _programs(self, ready: list[tuple[NativeFilter, int]]) -> list[tuple[int, int]]:
        masks: dict[int, int] = {}
        for native, bit in sorted(ready, key=lambda item: item[0].late):
            program = self.programs.setdefault(native.code, len(self.programs))
            masks[program] = masks.get(program, 0) | 1 << bit
        return list(masks.items())


def _slots_by_predicate(slots: Sequence[Slot]) -> tuple[I32, list[list[int]], list[int]]:
    """Predicate numbers by term id, the slots of each (number 0: none), the slots with any predicate."""
    longest = max((s.predicate for s in slots), default=0)
    predicate = np.zeros(longest + 1, np.int32)
    lists: list[list[int]] = [[]]
    anywhere = []
    for number, slot in enumerate(slots):
        if slot.predicate == 0:
            anywhere.append(number)
            continue
        if predicate[slot.predicate] == 0:
            predicate[slot.predicate] = len(lists)
            lists.append([])
        lists[predicate[slot.predicate]].append(number)
    return predicate, lists, anywhere


def _triggers(instances: Sequence[Instance], number: dict[Slot, int]) -> list[list[int]]:
    """Each instance hangs on one slot: one that few events fill."""
    subscribers: list[list[int]] = [[] for _ in number]
    for i, instance in enumerate(instances):
        chosen = min(
            (step.slot for step in instance.patterns),
            key=lambda s: (s.object == 0, s.predicate == 0, len(subscribers[number[s]])),
        )
        subscribers[number[chosen]].append(i)
    return subscribers


def _quick(programs: Sequence[tuple[int, ...]], terms: TermDictionary) -> tuple[I32, NDArray[np.float64]]:
    """Programs that are one comparison of a variable with a number which doubles mostly decide."""
    quick = np.zeros((len(programs), 3), np.int32)
    numbers = np.zeros(len(programs), np.float64)
    columns = terms.columns
    for i, code in enumerate(programs):
        if len(code) == 6 and code[2] == machine.FUSED:
            constant = code[5]
            usable = columns.kind[constant] != kinds.FLOAT and columns.quality[constant] & kinds.ROUNDED
            quick[i] = code[3], code[4], int(bool(usable))
            numbers[i] = columns.number[constant]
    return quick, numbers
