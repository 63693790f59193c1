"""READ: each row of an instant looks for the groups that it joins.

Nothing is changed but what can be undone: new nodes, the lists of pending prefixes, fired groups and finals. So
the instant can be read again when something was full or Python had to decide a filter.
"""

from __future__ import annotations

from typing import Any, Final

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.compiling.yielding import yield_after
from oxiseq.engine.kernels.matches.counting import extend, unite
from oxiseq.engine.kernels.matches.records import (
    DONE,
    FINALS,
    NEED_NODES,
    NEED_STACK,
    NODE_BASE,
    NODE_TOP,
    PLACE_BITS,
    SPINE,
    MatchMemory,
)
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.sequence import records as v
from oxiseq.engine.kernels.sequence.buckets import find_bucket
from oxiseq.engine.kernels.sequence.entries import first_entry, next_entry
from oxiseq.engine.kernels.sequence.groups import killed, mark
from oxiseq.engine.kernels.sequence.hashing import hash_key
from oxiseq.engine.kernels.sequence.joining import ASK, NO, UNKNOWN, YES, folded, joins
from oxiseq.engine.kernels.sequence.leads import NEVER_SEEN, last_lead
from oxiseq.engine.kernels.sequence.queues import content
from oxiseq.engine.kernels.sequence.records import (
    ANY,
    ASKED,
    ATTEMPT,
    BEYOND,
    FIRED,
    FOR_MADE,
    FROM_CLOCK,
    FROM_FOLD,
    FROM_NEGATED,
    FROM_TIME,
    HEAP,
    LEADS,
    LISTED,
    MOST_READS,
    NEED_DECISIONS,
    NEED_FINALS,
    NEED_FIRED,
    NEED_LEADS,
    NEED_PENDING,
    NEVER,
    NO_AGE,
    NO_SLOT,
    PARTITIONED,
    PENDING,
    PROBES,
    READ_BY,
    READS,
    STAMP,
    TOUCHED,
    WHOLE_READ,
    WORK_OF,
    Memory,
    Rows,
    Tables,
)
from oxiseq.engine.kernels.sequence.windows import cut, window_begin
from oxiseq.engine.kernels.terms.columns import Columns

GROUP_BITS: Final = 32
"""Of the number of a group, where it stands behind that of a probe."""


@inner
def read(T: Ptr[Tables], S: Ptr[Memory], R: Ptr[Rows], C: Columns, k: int) -> int:
    scalars = v.scalars(S)
    scalars[NODE_BASE] = scalars[NODE_TOP]
    scalars[ATTEMPT] += 1
    scalars[PENDING] = 0
    scalars[FIRED] = 0
    scalars[FINALS] = 0
    scalars[ASKED] = 0
    v.meter(S)[READS] = 0
    v.meter(S)[WHOLE_READ] = 0
    asking = False
    leads = scalars[LEADS]
    for r in range(v.first(R)[k], v.first(R)[k + 1]):
        leads += v.leads_at(T)[v.letter(R)[r] + 1] - v.leads_at(T)[v.letter(R)[r]]
    if leads > v.lead_keys(S).shape[0]:
        return NEED_LEADS
    for r in range(v.first(R)[k], v.first(R)[k + 1]):
        letter = v.letter(R)[r]
        for i in range(v.starts_at(T)[letter], v.starts_at(T)[letter + 1]):
            p = i64(v.starts_of(T)[i])
            need = _charged(T, S, p, _start(T, S, R, C, k, r, p))
            if need == NEED_DECISIONS:
                asking = True
            elif need != DONE:
                return need
        need = _fire(T, S, R, C, k, r)
        if need == NEED_DECISIONS:
            asking = True
        elif need != DONE:
            return need
        for i in range(v.guards_at(T)[letter], v.guards_at(T)[letter + 1]):
            need = _kill(T, S, R, C, k, r, i64(v.guards_of(T)[i]))
            if need == NEED_DECISIONS:
                asking = True
            elif need != DONE:
                return need
    return NEED_DECISIONS if asking else DONE


@inner
def _charged(T: Ptr[Tables], S: Ptr[Memory], p: int, need: int) -> int:
    """`need`, or BEYOND if what a row has just done for the query of probe `p` is too much for the instant."""
    meter, work, attempt = v.meter(S), v.work(S), v.scalars(S)[ATTEMPT]
    query = i64(v.edges(T)[v.probes(T)[p].edge].query)
    if work[query, WORK_OF] != attempt:
        work[query, WORK_OF] = attempt
        work[query, READ_BY] = 0
    work[query, READ_BY] += meter[READS]
    meter[WHOLE_READ] += meter[READS]
    meter[READS] = 0
    return i64(BEYOND) if work[query, READ_BY] > meter[MOST_READS] else need


@inner
def _room(S: Ptr[MatchMemory]) -> int:
    """Room for one more output, its pending entries aside."""
    if v.scalars(S)[NODE_TOP] + SPINE > v.nodes(S).shape[0]:
        return NEED_NODES
    if v.scalars(S)[FINALS] + 1 > v.finals(S).shape[0]:
        return NEED_FINALS
    return DONE


@inner
def _pos(R: Ptr[Rows], r: int, probe: Any) -> int:
    return ((v.base(R)[0] + r) << PLACE_BITS) | probe.place


@inner
def _start(T: Ptr[Tables], S: Ptr[Memory], R: Ptr[Rows], C: Columns, k: int, r: int, p: int) -> int:
    probe = v.probes(T)[p]
    if probe.filter0 < probe.filter1:  # all to the left was skipped: its variables are unbound
        outcome = joins(T, S, p, v.values(R), r, v.keys(S), 0, C)
        if outcome != YES:
            return NEED_DECISIONS if outcome == ASK else DONE
    seen = i64(NEVER_SEEN)
    if probe.lead0 < probe.lead1:
        begin = _window_begin(T, S, R, k, i64(probe.edge))
        seen = last_lead(T, S, R, r, probe, begin)
        if seen < begin:
            seen = i64(NEVER_SEEN)
        elif seen != NEVER_SEEN and v.windows(T)[v.edges(T)[probe.edge].query].slides == 0:
            return DONE
    need = _room(S)
    if need != DONE:
        return need
    node = extend(S, -1, _pos(R, r, probe), v.clock(R)[k])
    return _deliver(T, S, R, k, r, p, node, -1, v.keys(S), seen)


@inner
def _window_begin(T: Ptr[Tables], S: Ptr[Memory], R: Ptr[Rows], k: int, edge: int) -> int:
    """The first clock of the window of an edge's query at instant `k`."""
    return window_begin(T, S, i64(v.edges(T)[edge].query), v.clock(R)[k])


@inner
def _deliver(
    T: Ptr[Tables], S: Ptr[Memory], R: Ptr[Rows], k: int, r: int, p: int, node: int, at: int, keys: Array, seen: int
) -> int:
    """The output `node` has reached the probe's target: note its end and its next waits.

    `keys[at]` is the key of the group it came from; `seen` the clock of a leading negation at a start.
    """
    probe, scalars = v.probes(T)[p], v.scalars(S)
    v.meter(S)[READS] += FOR_MADE * (probe.final + probe.next1 - probe.next0)
    if probe.negated >= 0:
        seen = keys[at, probe.negated]
    clear = probe.negated == NO_SLOT or seen < _window_begin(T, S, R, k, i64(probe.edge))
    asking = False
    if probe.final == 1 and clear:
        v.finals(S)[scalars[FINALS], 0] = node
        v.finals(S)[scalars[FINALS], 1] = cut(T, S, i64(probe.edge))
        v.finals(S)[scalars[FINALS], 2] = v.edges(T)[probe.edge].query
        scalars[FINALS] += 1
    next_, fills, values = v.next(T), v.fill(T), v.values(R)
    pending, pending_keys = v.pending(S), v.pending_keys(S)
    for n in range(probe.next0, probe.next1):
        edge, fill = next_[n, 0], next_[n, 1]
        waits, width = v.edges(T)[edge].waits, v.edges(T)[edge].width
        if waits != 0 and not clear:
            continue
        i = scalars[PENDING]
        if i == pending.shape[0]:
            return NEED_PENDING
        pending[i, 0] = edge
        pending[i, 1] = node
        pending[i, 2] = at if probe.moves == 1 else -1
        for s in range(width):
            column, slot = fills[fill + s, 0], fills[fill + s, 1]
            if column >= 0:
                held = values[r, column]
                if held == 0 and slot >= 0:
                    held = keys[at, slot]
            elif column == FROM_CLOCK:
                held = v.clock(R)[k]
            elif column == FROM_NEGATED:
                held = seen
            elif column == FROM_TIME:
                held = v.time(R)[k]
            elif column == FROM_FOLD:
                held = folded(T, S, values, r, keys, at, slot)
                asking = asking or held == UNKNOWN
            else:
                held = keys[at, slot]
            pending_keys[i, s] = held
        scalars[PENDING] = i + 1
    return NEED_DECISIONS if asking else DONE


@inner
def _fire(T: Ptr[Tables], S: Ptr[Memory], R: Ptr[Rows], C: Columns, k: int, r: int) -> int:
    """Row `r` extends every group that it joins: probe by probe, and of each probe the youngest group first. So the
    order of what it finds does not depend on how groups of several edges lie in one bucket."""
    stack, top, letter = v.stack(S), i64(0), v.letter(R)[r]
    for i in range(v.arms_at(T)[letter], v.arms_at(T)[letter + 1]):
        top = _gather(T, S, R, r, i64(v.arms_of(T)[i]), top)
        if top < 0:
            return NEED_STACK
    _put_in_order(stack, top)
    i, asking = i64(0), False
    chained, last = i64(v.chained_at(T)[letter]), i64(v.chained_at(T)[letter + 1])
    while i < top or chained < last:
        if chained < last and (i == top or v.chained_of(T)[chained] < stack[i, 0] >> GROUP_BITS):
            p = i64(v.chained_of(T)[chained])
            need = _charged(T, S, p, _fire_chain(T, S, R, C, k, r, p))
            chained += 1
        else:
            p = stack[i, 0] >> GROUP_BITS
            i, need = _fire_found(T, S, R, C, k, r, i, top)
            need = _charged(T, S, p, need)
        if need == NEED_DECISIONS:
            asking = True
        elif need != DONE:
            return need
    return NEED_DECISIONS if asking else DONE


@inner
def _fire_found(
    T: Ptr[Tables], S: Ptr[Memory], R: Ptr[Rows], C: Columns, k: int, r: int, low: int, top: int
) -> tuple[int, int]:
    """Extend the groups that entry `low` of the stack and those behind it name, as far as they are of one probe:
    (the first entry of the next one, need)."""
    stack = v.stack(S)
    p = stack[low, 0] >> GROUP_BITS
    acc, asking = i64(-1), False
    while low < top and stack[low, 0] >> GROUP_BITS == p:
        g, sure = stack[low, 0] & ((1 << GROUP_BITS) - 1), stack[low, 1] & 1 == 1
        acc, need = _extend(T, S, R, C, k, r, p, g, acc, sure)
        if need == NEED_DECISIONS:
            asking = True
        elif need != DONE:
            return low, need
        low += 1
    if asking:
        return low, i64(NEED_DECISIONS)
    return low, i64(DONE) if acc < 0 else _accumulated(T, S, R, k, r, p, acc)


@inner
def _extend(
    T: Ptr[Tables], S: Ptr[Memory], R: Ptr[Rows], C: Columns, k: int, r: int, p: int, g: int, acc: int, sure: bool
) -> tuple[int, int]:
    """Try group `g`: (union of row-only prefixes so far, need). `sure`: the filters are known to hold."""
    probe, groups, tau = v.probes(T)[p], v.groups(S), cut(T, S, i64(v.probes(T)[p].edge))
    _touch(S)
    if probe.moves == 1 and groups[g].fired == v.scalars(S)[ATTEMPT]:
        return acc, DONE  # another row of the instant has moved or fired it
    edge = v.edges(T)[probe.edge]
    if _is_dead(T, S, R, k, i64(probe.edge), g, tau):
        if v.scalars(S)[FIRED] == v.fired(S).shape[0]:
            return acc, NEED_FIRED
        mark(S, g, v.scalars(S)[ATTEMPT], True)
        return acc, DONE
    v.meter(S)[READS] += 1
    if not sure:
        outcome = joins(T, S, p, v.values(R), r, v.keys(S), g, C)
        if outcome == ASK:
            return acc, NEED_DECISIONS
        if outcome == NO:
            return acc, DONE
    prefixes = i64(groups[g].node)
    if edge.limit != NO_AGE:
        need = _room(S)
        if need != DONE:
            return acc, need
        prefixes = content(S, g, tau)
        if prefixes < 0:
            return acc, DONE
    if edge.op != ANY or probe.moves == 1:
        if v.scalars(S)[FIRED] == v.fired(S).shape[0]:
            return acc, NEED_FIRED
        mark(S, g, v.scalars(S)[ATTEMPT], probe.moves == 0)
    if probe.moves == 1:
        return acc, _deliver(T, S, R, k, r, p, prefixes, g, v.keys(S), NEVER_SEEN)
    need = _room(S)
    if need != DONE:
        return acc, need
    if probe.rowonly == 1:
        v.meter(S)[READS] += FOR_MADE
        return unite(S, acc, prefixes, tau), DONE
    node = extend(S, prefixes, _pos(R, r, probe), v.nodes(S)[prefixes].maxs)
    return acc, _deliver(T, S, R, k, r, p, node, g, v.keys(S), NEVER_SEEN)


@inner
def _touch(S: Ptr[Memory]) -> None:
    """A group, or an entry, is looked at."""
    scalars = v.scalars(S)
    scalars[TOUCHED] += 1
    yield_after(scalars[TOUCHED])


@inner
def _is_dead(T: Ptr[Tables], S: Ptr[Memory], R: Ptr[Rows], k: int, edge: int, g: int, tau: int) -> bool:
    """Whether nothing can become of group `g`, of `edge`, any more."""
    return v.groups(S)[g].maxs < tau or killed(T, S, g) or _overdue(T, R, k, edge, v.keys(S), g)


@inner
def _overdue(T: Ptr[Tables], R: Ptr[Rows], k: int, edge: int, keys: Array, at: int) -> bool:
    """Whether something that LASTING bounds has lasted too long for `keys[at]`: then it is dead."""
    for i in range(v.edges(T)[edge].lasting0, v.edges(T)[edge].lasting1):
        if v.time(R)[k] - keys[at, v.lasting(T)[i, 0]] > v.lasting(T)[i, 1]:
            return True
    return False


@inner
def _in_time(T: Ptr[Tables], edge: int, age: int) -> bool:
    """Whether the gap of a `,` edge is as its bounds want it."""
    return v.edges(T)[edge].least <= age <= v.edges(T)[edge].most


@inner
def _accumulated(T: Ptr[Tables], S: Ptr[Memory], R: Ptr[Rows], k: int, r: int, p: int, acc: int) -> int:
    """One output for all groups whose future no longer depends on where they came from."""
    probe = v.probes(T)[p]
    need = _room(S)
    if need != DONE:
        return need
    node = extend(S, acc, _pos(R, r, probe), v.nodes(S)[acc].maxs)
    return _deliver(T, S, R, k, r, p, node, -1, v.keys(S), NEVER_SEEN)


@inner
def bucket_of(T: Ptr[Tables], S: Ptr[Memory], R: Ptr[Rows], r: int, s: int) -> int:
    """The bucket of signature `s` in which groups wait for row `r`, or -1."""
    signature = v.signatures(T)[s]
    width = signature.equal1 - signature.equal0
    for i in range(width):
        v.key(S)[i] = v.values(R)[r, v.equal(T)[signature.equal0 + i, 1]]
    return find_bucket(S, s, hash_key(s, v.key(S), width), v.key(S), width)


@inner
def _gather(T: Ptr[Tables], S: Ptr[Memory], R: Ptr[Rows], r: int, s: int, low: int) -> int:
    """List what may join row `r` by signature `s`, from entry `low` of the stack on; the end of the list. An entry is
    the probe and the group, then the group's serial and whether it surely joins.

    A heap is walked from its top and no further than the inequality holds, so this is linear in what
    passes it. -1: the stack is too small.
    """
    b, first, top = bucket_of(T, S, R, r, s), low, low
    if b < 0:
        return top
    signature, bucket, stack, links = v.signatures(T)[s], v.buckets(S)[b], v.stack(S), v.links(S)
    kind, measure = NEVER, 0.0
    every = signature.index != HEAP
    if not every:
        kind = i64(v.measure_kinds(R)[r, signature.measure])
        measure = v.measures(R)[r, signature.measure] * signature.sign
        if kind == NEVER:
            return top
    for which in range(2):
        root = i64(bucket.number if which == 0 else bucket.time)
        if root < 0 or (not every and kind != LISTED and kind != which):
            continue
        bounded = not every and kind == which
        if top >= stack.shape[0]:
            return -1
        if not bounded or links[root].value <= measure:
            stack[top, 0] = root
            top += 1
        # the list so far is also the queue of the walk
        while low < top:
            own = links[stack[low, 0]]
            stack[low, 1] = 1 if bounded and own.value < measure else 0
            low += 1
            if top + 2 > stack.shape[0]:
                return -1
            if own.left >= 0 and (not bounded or links[own.left].value <= measure):
                stack[top, 0] = own.left
                top += 1
            if own.right >= 0 and (not bounded or links[own.right].value <= measure):
                stack[top, 0] = own.right
                top += 1
    x = i64(bucket.list)
    while x >= 0:
        if top >= stack.shape[0]:
            return -1
        stack[top, 0], stack[top, 1] = x, 0
        top += 1
        x = i64(links[x].left)
    probes = v.sizes(T)[PROBES]
    for i in range(first, top):
        g = stack[i, 0] // probes
        p = v.edges(T)[v.groups(S)[g].edge].probe0 + stack[i, 0] % probes
        stack[i, 0] = (p << GROUP_BITS) | g
        stack[i, 1] = (v.groups(S)[g].serial << 1) | (stack[i, 1] & v.probes(T)[p].sole)
    return top


@inner
def _put_in_order(stack: Array, top: int) -> None:
    """Sort the first entries of the stack by probe, then by age, the youngest first. Mostly they are in order."""
    i = i64(1)
    while i < top and not _comes_before(stack, i, i - 1):
        i += 1
    if i >= top:
        return
    for root in range(top // 2 - 1, -1, -1):
        _sift(stack, i64(root), top)
    for last in range(top - 1, 0, -1):
        _swap(stack, i64(0), i64(last))
        _sift(stack, i64(0), i64(last))


@inner
def _comes_before(stack: Array, a: int, b: int) -> bool:
    mine, theirs = stack[a, 0] >> GROUP_BITS, stack[b, 0] >> GROUP_BITS
    return mine < theirs or (mine == theirs and stack[a, 1] > stack[b, 1])


@inner
def _swap(stack: Array, a: int, b: int) -> None:
    stack[a, 0], stack[b, 0] = stack[b, 0], stack[a, 0]
    stack[a, 1], stack[b, 1] = stack[b, 1], stack[a, 1]


@inner
def _sift(stack: Array, root: int, end: int) -> None:
    """Let an entry sink in the heap of those before `end`, the one that comes last on top."""
    while 2 * root + 1 < end:
        child = 2 * root + 1
        if child + 1 < end and _comes_before(stack, child, child + 1):
            child += 1
        if not _comes_before(stack, root, child):
            return
        _swap(stack, root, child)
        root = child


@inner
def _fire_chain(T: Ptr[Tables], S: Ptr[Memory], R: Ptr[Rows], C: Columns, k: int, r: int, p: int) -> int:
    """`,`: only what was put here at the instant just before, of the partition if there are some."""
    probe, edge, tau = v.probes(T)[p], v.edges(T)[v.probes(T)[p].edge], cut(T, S, i64(v.probes(T)[p].edge))
    wait = v.waits(S)[v.partition(R)[k] if v.sizes(T)[PARTITIONED] else i64(0)]
    if wait.first < 0 or wait.instant != v.instant(R)[k] - 1:
        return DONE
    if not _in_time(T, probe.edge, v.time(R)[k] - wait.time):
        return DONE
    at = i64(wait.last)
    if v.entries(S)[at].chain >= 0:
        for i in range(edge.chained):
            v.key(S)[i] = v.values(R)[r, v.equal(T)[probe.equal0 + i, 1]]
        at = first_entry(S, probe.edge, v.key(S), edge.chained)
    acc, asking = i64(-1), False
    while at >= 0:
        entry = v.entries(S)[at]
        following = next_entry(S, at)
        _touch(S)
        if entry.edge == probe.edge and entry.maxs >= tau:
            outcome = NO if _overdue(T, R, k, probe.edge, v.entry_keys(S), at) else YES
            v.meter(S)[READS] += outcome == YES
            for i in range(probe.equal0, probe.equal1):
                if outcome == NO or v.entry_keys(S)[at, v.equal(T)[i, 0]] != v.values(R)[r, v.equal(T)[i, 1]]:
                    outcome = NO
                    break
            if outcome == YES:
                outcome = joins(T, S, p, v.values(R), r, v.entry_keys(S), at, C)
            if outcome == ASK:
                asking = True
            elif outcome == YES:
                need = _room(S)
                if need != DONE:
                    return need
                if probe.rowonly == 1:
                    v.meter(S)[READS] += FOR_MADE
                    acc = unite(S, acc, i64(entry.node), tau)
                else:
                    node = extend(S, entry.node, _pos(R, r, probe), entry.maxs)
                    need = _deliver(T, S, R, k, r, p, node, at, v.entry_keys(S), NEVER_SEEN)
                    if need == NEED_DECISIONS:
                        asking = True
                    elif need != DONE:
                        return need
        at = following
    if asking:
        return NEED_DECISIONS
    return DONE if acc < 0 else _accumulated(T, S, R, k, r, p, acc)


@inner
def _kill(T: Ptr[Tables], S: Ptr[Memory], R: Ptr[Rows], C: Columns, k: int, r: int, s: int) -> int:
    """Row `r` is negated: mark the groups that it joins by signature `s`."""
    if v.signatures(T)[s].index == STAMP:
        return DONE  # stamped in `settle`, when the instant's reading is over
    top = _gather(T, S, R, r, s, i64(0))
    if top < 0:
        return NEED_STACK
    asking = False
    for i in range(top):
        p, g = v.stack(S)[i, 0] >> GROUP_BITS, v.stack(S)[i, 0] & ((1 << GROUP_BITS) - 1)
        _touch(S)
        edge = i64(v.probes(T)[p].edge)
        if _is_dead(T, S, R, k, edge, g, cut(T, S, edge)):
            continue
        v.meter(S)[READS] += 1
        outcome = YES if v.stack(S)[i, 1] & 1 == 1 else joins(T, S, p, v.values(R), r, v.keys(S), g, C)
        if _charged(T, S, p, i64(DONE)) != DONE:
            return i64(BEYOND)
        if outcome == ASK:
            asking = True
        elif outcome == YES:
            if v.scalars(S)[FIRED] == v.fired(S).shape[0]:
                return NEED_FIRED
            mark(S, g, v.scalars(S)[ATTEMPT], True)
    return NEED_DECISIONS if asking else DONE
