"""One query's runs, instant by instant: read, write, emit (engine.md, section 4).

    BEGIN  what waited for its window to close is emitted; dead groups go
    READ   each row looks for the groups it joins; nothing is changed but what can be undone
    WRITE  fired groups go, kills are stamped, pending prefixes become groups
    EMIT   finished matches are enumerated

A row sees only what was there before its instant, so simultaneous events never follow each other. Whenever
something is full the kernel returns what it needs and is called again: READ starts over, the other phases
go on where they stopped.
"""

from __future__ import annotations

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.matches.emit import begin_emission, emit, end_emission, note
from oxiseq.engine.kernels.matches.records import (
    CARRIED,
    CHOSEN,
    DONE,
    EVERYTHING,
    FINALS,
    NEED_CHOICE,
    NEED_LIMBS,
    NODE_BASE,
    NODE_TOP,
    NOTHING,
    PROGRESS,
)
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Ptr
from oxiseq.engine.kernels.sequence import records as v
from oxiseq.engine.kernels.sequence.ages import pass_lapses, pass_time
from oxiseq.engine.kernels.sequence.closings import add_final, close_waits
from oxiseq.engine.kernels.sequence.groups import expire
from oxiseq.engine.kernels.sequence.joining import measured, order_kind, read_row
from oxiseq.engine.kernels.sequence.partitions import close_waits_of, enter_partition
from oxiseq.engine.kernels.sequence.reading import read
from oxiseq.engine.kernels.sequence.records import (
    AGEING,
    BEGIN,
    CHOICE,
    CHOOSES,
    CLOCK,
    CONSUMED,
    COUNTED,
    EMIT,
    EMIT_CLOSED,
    HEAP_TIME,
    HERE,
    INSTANT,
    LISTS_REACHED,
    MOVING,
    NEED_FINALS,
    NOTES,
    NUMBERED,
    PARTITIONED,
    PENDING,
    PHASE,
    REACHES,
    READ,
    WAVE,
    WINDOW_END,
    WRITE,
    Memory,
    Rows,
    Tables,
)
from oxiseq.engine.kernels.sequence.windows import cut
from oxiseq.engine.kernels.sequence.writing import settle, write
from oxiseq.engine.kernels.terms.columns import Columns


@kernel
def advance(T: Ptr[Tables], S: Ptr[Memory], R: Ptr[Rows], C: Columns, until: int, passed: int) -> int:
    """Work through the rows' instants; then let the clock reach `until`. DONE, or what is needed.

    `T` tables, `S` memory, `R` rows, `C` term columns. `until`: the smallest clock that may still come;
    matches that wait for a window to close before it are emitted. `passed` is the same in µs.
    """
    scalars = v.scalars(S)
    last = v.clock(R).shape[0]
    while scalars[INSTANT] <= last:
        k = scalars[INSTANT]
        clock = v.clock(R)[k] if k < last else until
        if scalars[PHASE] == BEGIN:
            need = _pass(T, S, R, C, k, clock, passed)
            if need != DONE:
                return need
            if scalars[FINALS] > 0:
                scalars[PROGRESS] = 0
                scalars[WAVE] += 1
                scalars[PHASE] = EMIT_CLOSED
                _begin_emission(T, S)
            elif k == last:
                return DONE
            elif not _has_rows(R, k):
                scalars[INSTANT] = k + 1
                continue
            else:
                need = _open(T, S, R, C, k, clock)
                if need != DONE:
                    return need
                scalars[PHASE] = READ
        if scalars[PHASE] == EMIT_CLOSED:
            need = emit(S, scalars[WAVE])
            if need != DONE:
                return need
            end_emission(S)
            scalars[WAVE] += 1
            scalars[PHASE] = BEGIN
            continue
        if scalars[PHASE] == READ:
            need = read(T, S, R, C, k)
            if need != DONE:
                scalars[NODE_TOP] = scalars[NODE_BASE]
                return need
            if scalars[CARRIED]:
                scalars[NODE_TOP] = scalars[NODE_BASE]
                return NEED_LIMBS
            settle(T, S, R, k)
            scalars[PROGRESS] = 0
            scalars[PHASE] = WRITE
        if scalars[PHASE] == WRITE:
            need = write(T, S, C, v.instant(R)[k], clock, v.time(R)[k])
            if need == DONE and v.sizes(T)[CHOICE] >= REACHES:
                need = _reach(T, S, R, k)
            if need != DONE:
                return need
            scalars[PENDING] = 0
            scalars[PROGRESS] = 0
            _begin_emission(T, S)
            scalars[CHOSEN] = 0
            scalars[PHASE] = EMIT
        if scalars[FINALS] > 0:
            choice = v.sizes(T)[CHOICE]
            if choice == CHOOSES and not scalars[CHOSEN]:
                return NEED_CHOICE
            if choice == NOTES:
                need = note(S, k)
            else:
                need = emit(S, scalars[WAVE])
            if need != DONE:
                return need
            _consume(T, S, R, k, clock)
            end_emission(S)
            if choice == CHOOSES:
                scalars[NODE_TOP] = scalars[NODE_BASE]
        scalars[PHASE] = BEGIN
        scalars[INSTANT] = k + 1
    return DONE


@inner
def _begin_emission(T: Ptr[Tables], S: Ptr[Memory]) -> None:
    """Nothing of the finals has been emitted yet."""
    begin_emission(S)
    for i in range(v.scalars(S)[FINALS]):
        query = v.finals(S)[i, 2]
        v.quotas(S)[query] = v.windows(T)[query].limit


@inner
def _pass(T: Ptr[Tables], S: Ptr[Memory], R: Ptr[Rows], C: Columns, k: int, clock: int, passed: int) -> int:
    """What waited for time becomes matches: those of one moment, or of windows that have closed, then the caller emits
    them and calls again. A window that counts instants is full when its last one is done, in a partition its own last
    one: then all instants are here, whether they have rows or not.
    """
    sizes, scalars, at = v.sizes(T), v.scalars(S), k < v.clock(R).shape[0]
    rows = at and _has_rows(R, k)
    need = DONE
    if sizes[COUNTED] and k > 0:  # the partition of the instant before may have had the last one of a window
        need = close_waits_of(T, S, v.partition(R)[k - 1], v.clock(R)[k - 1] + 1)
        if need != DONE:
            return need
    if sizes[NUMBERED] and not sizes[COUNTED]:
        need = close_waits(T, S, clock)
    if need == DONE and sizes[AGEING] > 0:  # also again, for the rest of the moment in work
        need = pass_time(T, S, C, v.time(R)[k] if at else passed, clock, rows)
    if need != DONE or (scalars[FINALS] > 0 and sizes[MOVING] < sizes[AGEING]):
        return need  # without such bounds they are of windows, for which there was no room before: the others follow
    if sizes[COUNTED] == 1 and at:
        return need
    if sizes[COUNTED] == 1 or (not sizes[NUMBERED] and sizes[MOVING] == sizes[AGEING]):
        return close_waits(T, S, clock)
    return need  # `pass_time` has closed windows in between


@inner
def _reach(T: Ptr[Tables], S: Ptr[Memory], R: Ptr[Rows], k: int) -> int:
    """Sequences end at instant `k`, and wait for time to decide them: how late the latest of them starts. Where they
    are to be listed, they are finals of the instant, too."""
    scalars, pending = v.scalars(S), v.pending(S)
    ending = i64(0)
    for i in range(scalars[PENDING]):
        if _begins_to_wait(T, S, i):
            v.reach(R)[k] = max(v.reach(R)[k], v.nodes(S)[pending[i, 1]].maxs)
            ending += 1
    if v.sizes(T)[CHOICE] == LISTS_REACHED:
        if scalars[FINALS] + ending > v.finals(S).shape[0]:
            return NEED_FINALS
        for i in range(scalars[PENDING]):
            if _begins_to_wait(T, S, i):
                edge = i64(pending[i, 0])
                add_final(S, i64(pending[i, 1]), cut(T, S, edge), i64(v.edges(T)[edge].query))
    return i64(DONE)


@inner
def _begins_to_wait(T: Ptr[Tables], S: Ptr[Memory], i: int) -> bool:
    """Whether a pending prefix is a sequence that ends, and waits: not one that goes on, nor one that has ended before
    and takes a step of a negated group."""
    edge = i64(v.pending(S)[i, 0])
    return edge >= 0 and v.edges(T)[edge].waits == WINDOW_END and v.pending(S)[i, 2] < 0


@inner
def _has_rows(R: Ptr[Rows], k: int) -> bool:
    """Whether instant `k` has rows: where windows count instants and bounds pass in between, all instants are here."""
    return v.first(R)[k] < v.first(R)[k + 1]


@inner
def _open(T: Ptr[Tables], S: Ptr[Memory], R: Ptr[Rows], C: Columns, k: int, clock: int) -> int:
    """What is alive at instant `k`; dead groups go. It is called again where something was full."""
    v.scalars(S)[CLOCK] = clock
    if v.sizes(T)[PARTITIONED]:
        enter_partition(T, S, R, k)
    if not v.sizes(T)[COUNTED]:
        expire(T, S, clock)
    return pass_lapses(T, S, C, v.time(R)[k], clock)


@inner
def _consume(T: Ptr[Tables], S: Ptr[Memory], R: Ptr[Rows], k: int, clock: int) -> None:
    """Instant `k` has had the matches of the finals: each query forgets what its CONSUME BY names."""
    scalars = v.scalars(S)
    for i in range(scalars[FINALS]):
        query = v.finals(S)[i, 2]
        consumes = v.windows(T)[query].consumes
        if consumes == EVERYTHING and v.sizes(T)[PARTITIONED]:
            scalars[CONSUMED] = v.moment(R)[k]
        elif consumes != NOTHING:
            v.floors(S)[scalars[HERE], query] = clock + 1


@kernel
def measure(T: Ptr[Tables], S: Ptr[Memory], R: Ptr[Rows], C: Columns) -> None:
    """The row sides of the inequalities of each row's letter: `v.measures(R)`, by row and the letter's measures, and
    their heap order."""
    for r in range(v.letter(R).shape[0]):
        letter = v.letter(R)[r]
        low, high = i64(v.measures_at(T)[letter]), i64(v.measures_at(T)[letter + 1])
        if low < high:
            read_row(T, S, v.values(R), r)
        for m in range(low, high):
            kind, number, exact, quality = measured(T, S, C, v.measured(T)[m, 0], v.measured(T)[m, 1])
            order = order_kind(kind, number, quality)
            v.measure_kinds(R)[r, m - low] = order
            v.measures(R)[r, m - low] = np.float64(exact) if order == HEAP_TIME else number
