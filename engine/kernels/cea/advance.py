"""Complex event automata, event by event (CORE, PVLDB 2022, Algorithm 1).

    READ   the live states of the event's partition move on (moving.py)
    EMIT   the strategy chooses (kernels/matches/choice/); the complex events that end here are enumerated
           (kernels/matches/emit.py), or noted, to be weighed; CONSUME BY forgets

Whenever something is full or a step of the automaton is not known the kernel returns what it needs and is called
again: READ starts over, EMIT continues where it stopped.
"""

from __future__ import annotations

from oxiseq.engine.kernels.cea import records as v
from oxiseq.engine.kernels.cea.clocks import query_of
from oxiseq.engine.kernels.cea.moving import passed, read
from oxiseq.engine.kernels.cea.records import (
    AT,
    CHOOSES,
    CONSUME,
    EMIT,
    EPOCH,
    LIMIT,
    NOTES,
    PHASE,
    READ,
    Cache,
    Events,
    Memory,
)
from oxiseq.engine.kernels.cea.symbols import is_read
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.matches.emit import begin_emission, emit, end_emission, note
from oxiseq.engine.kernels.matches.records import (
    CHOSEN,
    DONE,
    EMITTED,
    EVERYTHING,
    FINALS,
    NEED_CHOICE,
    NODE_BASE,
    NODE_TOP,
    NOTHING,
    PROGRESS,
    THE_PARTITION,
)
from oxiseq.engine.kernels.memory.pointers import Ptr


@kernel
def advance(A: Ptr[Cache], S: Ptr[Memory], E: Ptr[Events]) -> int:
    """Work through the events from scalars[AT] on. DONE, or what is needed.

    `A` cache, `S` memory, `E` events: addresses of their pointer tables.
    """
    scalars = v.scalars(S)
    count = v.partition(E).shape[0]
    while True:
        if scalars[PHASE] == READ:
            at = _skip(A, S, E, scalars[AT])
            scalars[AT] = at
            if at == count:
                return DONE
            need = read(A, S, E, at)
            if need != DONE:
                return need
            scalars[PROGRESS] = 0
            begin_emission(S)
            v.quotas(S)[0] = v.sizes(A)[LIMIT]
        if scalars[FINALS] > 0 or scalars[CHOSEN]:
            scalars[PHASE] = EMIT
            need = DONE
            if v.sizes(A)[NOTES]:
                need = note(S, scalars[AT])
            elif v.sizes(A)[CHOOSES] and not scalars[CHOSEN]:
                need = NEED_CHOICE
            else:
                need = emit(S, scalars[AT])
            if need != DONE:
                return need
            if scalars[CHOSEN]:
                scalars[CHOSEN] = 0
                scalars[NODE_TOP] = scalars[NODE_BASE]
            p = v.partition(E)[scalars[AT]]
            _consume(A, S, p)
            if scalars[EMITTED] > 0:
                v.queries(A)[query_of(A, p)].omitted = 0
            end_emission(S)
            scalars[PHASE] = READ
        scalars[AT] += 1


@inner
def _skip(A: Ptr[Cache], S: Ptr[Memory], E: Ptr[Events], at: int) -> int:
    """The next event that may change something."""
    partition, parts = v.partition(E), v.parts(S)
    count = partition.shape[0]
    while at < count:
        p = partition[at]
        if p >= 0:
            if parts[p].restless or is_read(A, E, at):
                return at
            passed(A, S, E, parts[p], at)
        at += 1
    return at


@inner
def _consume(A: Ptr[Cache], S: Ptr[Memory], p: int) -> None:
    """CONSUME BY, after the complex events of an event of partition `p`."""
    policy = v.sizes(A)[CONSUME]
    if policy == NOTHING or v.scalars(S)[EMITTED] == 0:
        return
    if policy == EVERYTHING:
        v.scalars(S)[EPOCH] += 1
    elif policy == THE_PARTITION:
        v.parts(S)[p].count = 0
        v.parts(S)[p].restless = 0
