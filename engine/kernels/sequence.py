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

from typing import Any

import numpy as np

from oxiseq.engine.kernels import views as v
from oxiseq.engine.kernels.compact_set import SPINE, emit, meld, output
from oxiseq.engine.kernels.groups import (
    enqueue,
    expire,
    find_bucket,
    find_group,
    hash_key,
    hash_row,
    link,
    mark,
    new_bucket,
    new_group,
    pop_closing,
    push_closing,
    remove_group,
)
from oxiseq.engine.kernels.joining import ASK, NO, YES, joins, key_order, measured, order_kind
from oxiseq.engine.kernels.options import inner, kernel
from oxiseq.engine.kernels.records import (
    ASKED,
    ATTEMPT,
    BEGIN,
    BUCKET_COUNT,
    CHAINED,
    CLOSINGS,
    COLUMNS,
    DIRECT,
    DONE,
    EMIT,
    EMIT_CLOSED,
    ENTRY_TOP,
    FINALS,
    FIRED,
    FROM_CLOCK,
    FROM_NEGATED,
    GROUP_COUNT,
    HEAP,
    HEAP_TIME,
    INSTANT,
    LEADS,
    LISTED,
    NEED_BUCKETS,
    NEED_CLOSINGS,
    NEED_DECISIONS,
    NEED_ENTRIES,
    NEED_FINALS,
    NEED_FIRED,
    NEED_GROUPS,
    NEED_LEADS,
    NEED_NODES,
    NEED_PENDING,
    NEED_STACK,
    NEVER,
    NEXT,
    NO_SLOT,
    NODE_BASE,
    NODE_TOP,
    PENDING,
    PHASE,
    POSITION_BITS,
    PROBES,
    PROGRESS,
    READ,
    SLIDING,
    STAMP,
    STRICT,
    TOUCHED,
    WINDOW,
    WINDOWED,
    WRITE,
)

_NEVER_SEEN = -(1 << 62)


@kernel
def advance(T: Any, S: Any, R: Any, C: Any, until: int) -> int:
    """Work through the rows' instants; then let the clock reach `until`. DONE, or what is needed.

    `T` tables, `S` memory, `R` rows, `C` term columns. `until`: the smallest clock that may still come;
    matches that wait for a window to close before it are emitted.
    """
    scalars = v.scalars(S)
    last = v.clock(R).shape[0]
    while scalars[INSTANT] <= last:
        k = scalars[INSTANT]
        clock = v.clock(R)[k] if k < last else until
        tau = v.tau(R)[k] if k < last else np.int64(0)
        if scalars[PHASE] == BEGIN:
            need = _close_waits(T, S, clock)
            if need != DONE:
                return need
            if scalars[FINALS] > 0:
                scalars[PROGRESS] = 0
                scalars[PHASE] = EMIT_CLOSED
            elif k == last:
                return DONE
            else:
                if v.sizes(T)[WINDOWED]:
                    expire(T, S, tau, clock)
                scalars[PHASE] = READ
        if scalars[PHASE] == EMIT_CLOSED:
            need = emit(S)
            if need != DONE:
                return need
            scalars[FINALS] = 0
            scalars[PHASE] = BEGIN
            continue
        if scalars[PHASE] == READ:
            need = _read(T, S, R, C, k)
            if need != DONE:
                scalars[NODE_TOP] = scalars[NODE_BASE]
                return need
            _settle(T, S, R, k)
            scalars[PROGRESS] = 0
            scalars[PHASE] = WRITE
        if scalars[PHASE] == WRITE:
            need = _write(T, S, C, v.instant(R)[k], clock, tau)
            if need != DONE:
                return need
            scalars[PENDING] = 0
            scalars[PROGRESS] = 0
            scalars[PHASE] = EMIT
        if scalars[FINALS] > 0:
            need = emit(S)
            if need != DONE:
                return need
            scalars[FINALS] = 0
        scalars[PHASE] = BEGIN
        scalars[INSTANT] = k + 1
    return DONE


@inner
def _close_waits(T: Any, S: Any, clock: int) -> int:
    """Groups whose window has closed before `clock` become final."""
    scalars, closings, groups = v.scalars(S), v.closings(S), v.groups(S)
    while scalars[CLOSINGS] > 0 and closings[0].close < clock:
        g, close = np.int64(closings[0].group), closings[0].close
        if groups[g].edge >= 0 and groups[g].serial == closings[0].serial:
            if scalars[FINALS] == v.finals(S).shape[0]:
                return NEED_FINALS
            if not _killed(T, S, g):
                cut = close - v.sizes(T)[WINDOW]
                v.finals(S)[scalars[FINALS], 0] = groups[g].node
                v.finals(S)[scalars[FINALS], 1] = cut if v.sizes(T)[SLIDING] else cut + 1
                scalars[FINALS] += 1
            remove_group(T, S, g)
        pop_closing(S)
    return DONE


@inner
def _killed(T: Any, S: Any, g: int) -> bool:
    """Whether a negated row came after the group's last insert."""
    group = v.groups(S)[g]
    edge = v.edges(T)[group.edge]
    if edge.stamps == 0:
        return False
    probes = v.sizes(T)[PROBES]
    for p in range(edge.probe0, edge.probe1):
        if v.probes(T)[p].index == STAMP:
            bucket = v.links(S)[g * probes + v.probes(T)[p].local].bucket
            if v.buckets(S)[bucket].kill > group.inserted:
                return True
    return False


# --- READ -------------------------------------------------------------------------------------------


@inner
def _read(T: Any, S: Any, R: Any, C: Any, k: int) -> int:
    scalars = v.scalars(S)
    scalars[NODE_BASE] = scalars[NODE_TOP]
    scalars[ATTEMPT] += 1
    scalars[PENDING] = 0
    scalars[FIRED] = 0
    scalars[FINALS] = 0
    scalars[ASKED] = 0
    asking = False
    leads = scalars[LEADS]
    for r in range(v.first(R)[k], v.first(R)[k + 1]):
        leads += v.leads_at(T)[v.letter(R)[r] + 1] - v.leads_at(T)[v.letter(R)[r]]
    if leads > v.lead_keys(S).shape[0]:
        return NEED_LEADS
    for r in range(v.first(R)[k], v.first(R)[k + 1]):
        letter = v.letter(R)[r]
        for i in range(v.starts_at(T)[letter], v.starts_at(T)[letter + 1]):
            need = _start(T, S, R, C, k, r, np.int64(v.starts_of(T)[i]))
            if need == NEED_DECISIONS:
                asking = True
            elif need != DONE:
                return need
        for i in range(v.arms_at(T)[letter], v.arms_at(T)[letter + 1]):
            need = _fire(T, S, R, C, k, r, np.int64(v.arms_of(T)[i]))
            if need == NEED_DECISIONS:
                asking = True
            elif need != DONE:
                return need
        for i in range(v.guards_at(T)[letter], v.guards_at(T)[letter + 1]):
            need = _kill(T, S, R, C, k, r, np.int64(v.guards_of(T)[i]))
            if need == NEED_DECISIONS:
                asking = True
            elif need != DONE:
                return need
    return NEED_DECISIONS if asking else DONE


@inner
def _room(S: Any) -> int:
    """Room for one more output, its pending entries aside."""
    if v.scalars(S)[NODE_TOP] + SPINE > v.nodes(S).shape[0]:
        return NEED_NODES
    if v.scalars(S)[FINALS] + 1 > v.finals(S).shape[0]:
        return NEED_FINALS
    return DONE


@inner
def _pos(R: Any, r: int, probe: Any) -> int:
    return ((v.base(R)[0] + r) << POSITION_BITS) | probe.position


@inner
def _start(T: Any, S: Any, R: Any, C: Any, k: int, r: int, p: int) -> int:
    probe = v.probes(T)[p]
    if probe.filter0 < probe.filter1:  # all that stands left was skipped: its variables are unbound
        outcome = joins(T, S, p, v.values(R), r, v.keys(S), 0, C)
        if outcome != YES:
            return NEED_DECISIONS if outcome == ASK else DONE
    seen = np.int64(_NEVER_SEEN)
    tau = v.tau(R)[k]
    if probe.lead0 < probe.lead1:
        seen = _last_lead(T, S, R, r, probe)
        if v.sizes(T)[SLIDING] == 0:
            if seen != _NEVER_SEEN and (v.sizes(T)[WINDOWED] == 0 or seen >= tau):
                return DONE
        elif seen < tau:
            seen = np.int64(_NEVER_SEEN)
    need = _room(S)
    if need != DONE:
        return need
    node = output(v.nodes(S), v.scalars(S), -1, _pos(R, r, probe), v.clock(R)[k])
    return _deliver(T, S, R, k, r, p, node, -1, v.keys(S), seen)


@inner
def _deliver(
    T: Any, S: Any, R: Any, k: int, r: int, p: int, node: int, at: int, keys: Any, seen: int
) -> int:
    """The output `node` has reached the probe's target: note its end and its next waits.

    `keys[at]` is the key of the group it came from; `seen` the clock of a leading negation at a start.
    """
    probe, scalars = v.probes(T)[p], v.scalars(S)
    if probe.negated >= 0:
        seen = keys[at, probe.negated]
    clear = probe.negated == NO_SLOT or seen < v.tau(R)[k]
    if probe.final == 1 and clear:
        v.finals(S)[scalars[FINALS], 0] = node
        v.finals(S)[scalars[FINALS], 1] = v.tau(R)[k]
        scalars[FINALS] += 1
    for n in range(probe.next0, probe.next1):
        edge, fill = v.next(T)[n, 0], v.next(T)[n, 1]
        if v.edges(T)[edge].waits == 1 and not clear:
            continue
        i = scalars[PENDING]
        if i == v.pending(S).shape[0]:
            return NEED_PENDING
        v.pending(S)[i, 0] = edge
        v.pending(S)[i, 1] = node
        for s in range(v.edges(T)[edge].width):
            column, slot = v.fill(T)[fill + s, 0], v.fill(T)[fill + s, 1]
            if column >= 0:
                held = v.values(R)[r, column]
                if held == 0 and slot >= 0:
                    held = keys[at, slot]
            elif column == FROM_CLOCK:
                held = v.clock(R)[k]
            elif column == FROM_NEGATED:
                held = seen
            else:
                held = keys[at, slot]
            v.pending_keys(S)[i, s] = held
        scalars[PENDING] = i + 1
    return DONE


@inner
def _fire(T: Any, S: Any, R: Any, C: Any, k: int, r: int, p: int) -> int:
    """Row `r` extends every group that it joins on probe `p`."""
    probe = v.probes(T)[p]
    if probe.index == CHAINED:
        return _fire_chain(T, S, R, C, k, r, p)
    if probe.index == DIRECT:
        for i in range(probe.equal0, probe.equal1):
            v.key(S)[v.equal(T)[i, 0]] = v.values(R)[r, v.equal(T)[i, 1]]
        width = v.edges(T)[probe.edge].width
        g = find_group(S, probe.edge, hash_key(probe.edge, v.key(S), width), v.key(S), width)
        if g < 0:
            return DONE
        acc, need = _extend(T, S, R, C, k, r, p, g, -1, False)
        return need if need != DONE or acc < 0 else _accumulated(T, S, R, k, r, p, acc)
    return _fire_bucket(T, S, R, C, k, r, p)


@inner
def _extend(
    T: Any, S: Any, R: Any, C: Any, k: int, r: int, p: int, g: int, acc: int, sure: bool
) -> tuple[int, int]:
    """Try group `g`: (union of row-only prefixes so far, need). `sure`: the filters are known to hold."""
    probe, groups, tau = v.probes(T)[p], v.groups(S), v.tau(R)[k]
    v.scalars(S)[TOUCHED] += 1
    if groups[g].maxs < tau or _killed(T, S, g):
        if v.scalars(S)[FIRED] == v.fired(S).shape[0]:
            return acc, NEED_FIRED
        mark(S, g, v.scalars(S)[ATTEMPT])
        return acc, DONE
    if not sure:
        outcome = joins(T, S, p, v.values(R), r, v.keys(S), g, C)
        if outcome == ASK:
            return acc, NEED_DECISIONS
        if outcome == NO:
            return acc, DONE
    if v.edges(T)[probe.edge].op == NEXT:
        if v.scalars(S)[FIRED] == v.fired(S).shape[0]:
            return acc, NEED_FIRED
        mark(S, g, v.scalars(S)[ATTEMPT])
    need = _room(S)
    if need != DONE:
        return acc, need
    if probe.rowonly == 1:
        return meld(v.nodes(S), v.scalars(S), v.spine(S), acc, np.int64(groups[g].node), tau), DONE
    node = output(v.nodes(S), v.scalars(S), groups[g].node, _pos(R, r, probe), groups[g].maxs)
    return acc, _deliver(T, S, R, k, r, p, node, g, v.keys(S), _NEVER_SEEN)


@inner
def _accumulated(T: Any, S: Any, R: Any, k: int, r: int, p: int, acc: int) -> int:
    """One output for all groups whose future no longer depends on where they came from."""
    probe = v.probes(T)[p]
    need = _room(S)
    if need != DONE:
        return need
    node = output(v.nodes(S), v.scalars(S), acc, _pos(R, r, probe), v.nodes(S)[acc].maxs)
    return _deliver(T, S, R, k, r, p, node, -1, v.keys(S), _NEVER_SEEN)


@inner
def _bucket_of(T: Any, S: Any, R: Any, r: int, p: int) -> int:
    probe = v.probes(T)[p]
    width = probe.equal1 - probe.equal0
    for i in range(width):
        v.key(S)[i] = v.values(R)[r, v.equal(T)[probe.equal0 + i, 1]]
    return find_bucket(S, p, hash_key(p, v.key(S), width), v.key(S), width)


@inner
def _fire_bucket(T: Any, S: Any, R: Any, C: Any, k: int, r: int, p: int) -> int:
    b = _bucket_of(T, S, R, r, p)
    if b < 0:
        return DONE
    acc, asking = np.int64(-1), False
    stack, top = v.stack(S), _gather(T, S, R, r, p, b)
    if top < 0:
        return NEED_STACK
    for i in range(top):
        acc, need = _extend(T, S, R, C, k, r, p, stack[i, 0], acc, stack[i, 1] == 1)
        if need == NEED_DECISIONS:
            asking = True
        elif need != DONE:
            return need
    if asking:
        return NEED_DECISIONS
    return DONE if acc < 0 else _accumulated(T, S, R, k, r, p, acc)


@inner
def _gather(T: Any, S: Any, R: Any, r: int, p: int, b: int) -> int:
    """List the groups of bucket `b` that may join row `r`: (group, surely) in the stack, their number.

    A heap is walked from its top and no further than the inequality holds, so this is linear in what
    passes it. -1: the stack is too small.
    """
    probe, bucket, stack = v.probes(T)[p], v.buckets(S)[b], v.stack(S)
    probes, local = v.sizes(T)[PROBES], probe.local
    kind, measure = NEVER, 0.0
    every = probe.index != HEAP
    if not every:
        kind = np.int64(v.measure_kinds(R)[r, probe.measure])
        measure = v.measures(R)[r, probe.measure] * probe.sign
        if kind == NEVER:
            return 0
    top = 0
    for which in range(2):
        root = np.int64(bucket.number if which == 0 else bucket.time)
        if root < 0 or (not every and kind != LISTED and kind != which):
            continue
        bounded = not every and kind == which
        low = top
        if top >= stack.shape[0]:
            return -1
        if not bounded or v.links(S)[root * probes + local].value <= measure:
            stack[top, 0] = root
            top += 1
        # the list so far is also the queue of the walk
        while low < top:
            g = stack[low, 0]
            own = v.links(S)[g * probes + local]
            stack[low, 1] = 1 if bounded and probe.sole == 1 and own.value < measure else 0
            low += 1
            if top + 2 > stack.shape[0]:
                return -1
            if own.left >= 0 and (not bounded or v.links(S)[own.left * probes + local].value <= measure):
                stack[top, 0] = own.left
                top += 1
            if own.right >= 0 and (not bounded or v.links(S)[own.right * probes + local].value <= measure):
                stack[top, 0] = own.right
                top += 1
    g = np.int64(bucket.list)
    while g >= 0:
        if top >= stack.shape[0]:
            return -1
        stack[top, 0], stack[top, 1] = g, 0
        top += 1
        g = np.int64(v.links(S)[g * probes + local].left)
    return top


@inner
def _fire_chain(T: Any, S: Any, R: Any, C: Any, k: int, r: int, p: int) -> int:
    """`,`: only what was put here at the instant just before."""
    probe, edge = v.probes(T)[p], v.edges(T)[v.probes(T)[p].edge]
    for i in range(edge.chained):
        v.key(S)[i] = v.values(R)[r, v.equal(T)[probe.equal0 + i, 1]]
    h = hash_key(probe.edge, v.key(S), edge.chained) & np.uint64(v.chains(S).shape[0] - 1)
    if v.chains(S)[h].stamp != v.instant(R)[k] - 1:
        return DONE
    at = np.int64(v.chains(S)[h].head)
    acc, asking = np.int64(-1), False
    while at >= 0:
        entry = v.entries(S)[at]
        following = np.int64(entry.next)
        v.scalars(S)[TOUCHED] += 1
        if entry.edge == probe.edge and entry.maxs >= v.tau(R)[k]:
            outcome = YES
            for i in range(probe.equal0, probe.equal1):
                if v.entry_keys(S)[at, v.equal(T)[i, 0]] != v.values(R)[r, v.equal(T)[i, 1]]:
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
                    acc = meld(v.nodes(S), v.scalars(S), v.spine(S), acc, np.int64(entry.node), v.tau(R)[k])
                else:
                    node = output(v.nodes(S), v.scalars(S), entry.node, _pos(R, r, probe), entry.maxs)
                    need = _deliver(T, S, R, k, r, p, node, at, v.entry_keys(S), _NEVER_SEEN)
                    if need != DONE:
                        return need
        at = following
    if asking:
        return NEED_DECISIONS
    return DONE if acc < 0 else _accumulated(T, S, R, k, r, p, acc)


@inner
def _kill(T: Any, S: Any, R: Any, C: Any, k: int, r: int, p: int) -> int:
    """A negated row: note the bucket to be stamped, or mark the groups it joins."""
    b = _bucket_of(T, S, R, r, p)
    if b < 0:
        return DONE
    if v.probes(T)[p].index == STAMP:
        return DONE  # stamped in `_settle`, when the instant's reading is over
    top = _gather(T, S, R, r, p, b)
    if top < 0:
        return NEED_STACK
    asking = False
    for i in range(top):
        g = v.stack(S)[i, 0]
        v.scalars(S)[TOUCHED] += 1
        outcome = YES if v.stack(S)[i, 1] == 1 else joins(T, S, p, v.values(R), r, v.keys(S), g, C)
        if outcome == ASK:
            asking = True
        elif outcome == YES:
            if v.scalars(S)[FIRED] == v.fired(S).shape[0]:
                return NEED_FIRED
            mark(S, g, v.scalars(S)[ATTEMPT])
    return NEED_DECISIONS if asking else DONE


# --- leading negations ------------------------------------------------------------------------------


@inner
def _lead_place(S: Any, number: int, width: int, h: Any) -> int:
    """Where the lead's values (in `v.key(S)`) are or belong in the lead table."""
    mask = np.uint64(v.lead_table(S).shape[0] - 1)
    i = h & mask
    while True:
        at = np.int64(v.lead_table(S)[i])
        if at < 0:
            return np.int64(i)
        if v.lead_keys(S)[at, 0] == number:
            same = True
            for c in range(width):
                if v.lead_keys(S)[at, 2 + c] != v.key(S)[c]:
                    same = False
                    break
            if same:
                return np.int64(i)
        i = (i + np.uint64(1)) & mask


@inner
def _last_lead(T: Any, S: Any, R: Any, r: int, probe: Any) -> int:
    """The last clock at which a negated row that joins row `r` was seen before this instant."""
    latest = np.int64(_NEVER_SEEN)
    for l in range(probe.lead0, probe.lead1):
        lead = v.leads(T)[l]
        width = lead.equal1 - lead.equal0
        if lead.compatible == 0:
            for i in range(width):
                v.key(S)[i] = v.values(R)[r, v.equal(T)[lead.equal0 + i, 1]]
            at = np.int64(v.lead_table(S)[_lead_place(S, l, width, hash_key(l, v.key(S), width))])
            if at >= 0:
                latest = max(latest, v.lead_keys(S)[at, 1])
            continue
        for at in range(v.scalars(S)[LEADS]):
            if v.lead_keys(S)[at, 0] != l:
                continue
            joined = True
            for i in range(width):
                mine, theirs = v.values(R)[r, v.equal(T)[lead.equal0 + i, 1]], v.lead_keys(S)[at, 2 + i]
                if mine != theirs and mine != 0 and theirs != 0:
                    joined = False
                    break
            if joined:
                latest = max(latest, v.lead_keys(S)[at, 1])
    return latest


@inner
def _see_lead(T: Any, S: Any, R: Any, r: int, l: int, clock: int) -> None:
    lead = v.leads(T)[l]
    width = lead.equal1 - lead.equal0
    for i in range(width):
        v.key(S)[i] = v.values(R)[r, v.equal(T)[lead.equal0 + i, 0]]
    place = _lead_place(S, l, width, hash_key(l, v.key(S), width))
    at = np.int64(v.lead_table(S)[place])
    if at < 0:
        at = v.scalars(S)[LEADS]
        v.scalars(S)[LEADS] = at + 1
        v.lead_table(S)[place] = at
        v.lead_keys(S)[at, 0] = l
        for c in range(width):
            v.lead_keys(S)[at, 2 + c] = v.key(S)[c]
    v.lead_keys(S)[at, 1] = clock


@kernel
def rebuild_leads(T: Any, S: Any, keys: Any, count: int, tau: int) -> None:
    """Fill the (new, empty) lead arrays with what is not older than `tau`."""
    v.lead_table(S)[:] = -1
    v.scalars(S)[LEADS] = 0
    for at in range(count):
        if keys[at, 1] < tau:
            continue
        l = keys[at, 0]
        width = v.leads(T)[l].equal1 - v.leads(T)[l].equal0
        for c in range(width):
            v.key(S)[c] = keys[at, 2 + c]
        to = v.scalars(S)[LEADS]
        v.lead_table(S)[_lead_place(S, l, width, hash_key(l, v.key(S), width))] = to
        v.lead_keys(S)[to, :] = keys[at, :]
        v.scalars(S)[LEADS] = to + 1


# --- WRITE ------------------------------------------------------------------------------------------


@inner
def _settle(T: Any, S: Any, R: Any, k: int) -> None:
    """Stamp kills, remove what was marked, clear the last `,` waits, note leading negations."""
    scalars = v.scalars(S)
    for r in range(v.first(R)[k], v.first(R)[k + 1]):
        letter = v.letter(R)[r]
        for i in range(v.guards_at(T)[letter], v.guards_at(T)[letter + 1]):
            p = np.int64(v.guards_of(T)[i])
            if v.probes(T)[p].index == STAMP:
                b = _bucket_of(T, S, R, r, p)
                if b >= 0:
                    v.buckets(S)[b].kill = v.instant(R)[k]
    for i in range(scalars[FIRED]):
        remove_group(T, S, v.fired(S)[i])
    scalars[FIRED] = 0
    scalars[ENTRY_TOP] = 0
    for r in range(v.first(R)[k], v.first(R)[k + 1]):
        letter = v.letter(R)[r]
        for i in range(v.leads_at(T)[letter], v.leads_at(T)[letter + 1]):
            _see_lead(T, S, R, r, np.int64(v.leads_of(T)[i]), v.clock(R)[k])


@inner
def _write(T: Any, S: Any, C: Any, instant: int, clock: int, tau: int) -> int:
    """Pending prefixes become groups, or `,` entries; resumes at the item where something was full."""
    scalars = v.scalars(S)
    while scalars[PROGRESS] < scalars[PENDING]:
        i = scalars[PROGRESS]
        edge = np.int64(v.pending(S)[i, 0])
        if v.edges(T)[edge].op == STRICT and v.edges(T)[edge].waits == 0:
            need = _put_entry(T, S, i, edge, instant)
        else:
            need = _put_group(T, S, C, i, edge, instant, clock, tau)
        if need != DONE:
            return need
        scalars[PROGRESS] = i + 1
    return DONE


@inner
def _put_entry(T: Any, S: Any, i: int, edge: int, instant: int) -> int:
    scalars = v.scalars(S)
    at = scalars[ENTRY_TOP]
    if at == v.entries(S).shape[0]:
        return NEED_ENTRIES
    node = np.int64(v.pending(S)[i, 1])
    width = v.edges(T)[edge].width
    chained, first = v.edges(T)[edge].chained, v.edges(T)[edge].chain0
    for c in range(chained):
        v.key(S)[c] = v.pending_keys(S)[i, v.chain(T)[first + c]]
    h = hash_key(edge, v.key(S), chained) & np.uint64(v.chains(S).shape[0] - 1)
    chain = v.chains(S)[h]
    entry = v.entries(S)[at]
    entry.edge = edge
    entry.node = node
    entry.maxs = v.nodes(S)[node].maxs
    entry.next = chain.head if chain.stamp == instant else -1
    for c in range(width):
        v.entry_keys(S)[at, c] = v.pending_keys(S)[i, c]
    chain.stamp = instant
    chain.head = at
    scalars[ENTRY_TOP] = at + 1
    return DONE


@inner
def _put_group(
    T: Any, S: Any, C: Any, i: int, edge: int, instant: int, clock: int, tau: int
) -> int:
    scalars, groups = v.scalars(S), v.groups(S)
    if scalars[NODE_TOP] + SPINE > v.nodes(S).shape[0]:
        return NEED_NODES
    node = np.int64(v.pending(S)[i, 1])
    width = v.edges(T)[edge].width
    h = hash_row(edge, v.pending_keys(S), i, width)
    for c in range(width):
        v.key(S)[c] = v.pending_keys(S)[i, c]
    g = find_group(S, edge, h, v.key(S), width)
    if g >= 0:
        if groups[g].maxs < tau or _killed(T, S, g):
            groups[g].node = node
        else:
            groups[g].node = meld(v.nodes(S), scalars, v.spine(S), node, np.int64(groups[g].node), tau)
        groups[g].maxs = v.nodes(S)[groups[g].node].maxs
        groups[g].inserted = instant
        return DONE
    if scalars[GROUP_COUNT] == v.groups(S).shape[0]:
        return NEED_GROUPS
    if scalars[BUCKET_COUNT] + v.sizes(T)[PROBES] > v.buckets(S).shape[0]:
        return NEED_BUCKETS
    if v.edges(T)[edge].waits == 1 and scalars[CLOSINGS] == v.closings(S).shape[0]:
        return NEED_CLOSINGS
    g = new_group(S, edge, h, v.key(S), width)
    groups[g].node = node
    groups[g].maxs = v.nodes(S)[node].maxs
    groups[g].inserted = instant
    if v.edges(T)[edge].waits == 1:
        start = v.nodes(S)[node].maxs
        close = start + v.sizes(T)[WINDOW] if v.sizes(T)[SLIDING] else tau + v.sizes(T)[WINDOW] - 1
        push_closing(S, close, g)
    else:
        enqueue(S, g, clock)
    _index(T, S, C, g, edge)
    return DONE


@inner
def _index(T: Any, S: Any, C: Any, g: int, edge: int) -> None:
    """Put a new group into the bucket of each probe that has an index."""
    probes = v.sizes(T)[PROBES]
    for p in range(v.edges(T)[edge].probe0, v.edges(T)[edge].probe1):
        probe = v.probes(T)[p]
        if probe.index == DIRECT or probe.index == CHAINED:
            continue
        kind, number = LISTED, 0.0
        if probe.index == HEAP:
            kind, number = key_order(T, S, p, v.keys(S), g, C)
        elif probe.index == STAMP:
            kind = NEVER
        width = probe.equal1 - probe.equal0
        for c in range(width):
            v.key(S)[c] = v.keys(S)[g, v.equal(T)[probe.equal0 + c, 0]]
        h = hash_key(p, v.key(S), width)
        b = find_bucket(S, p, h, v.key(S), width)
        if b < 0:
            b = new_bucket(S, p, h, v.key(S), width)
        link(S, probes, probe.local, g, b, kind, number)


@kernel
def measure(T: Any, S: Any, R: Any, C: Any, code0: int, code1: int, letter: int, column: int) -> None:
    """The row side of an inequality for all rows of `letter`: `v.measures(R)[:, column]` and its heap order."""
    vector = v.vector(S)
    for r in range(v.letter(R).shape[0]):
        if v.letter(R)[r] != letter:
            continue
        for c in range(v.sizes(T)[COLUMNS]):
            vector[1 + c] = v.values(R)[r, c]
        kind, number, exact, quality = measured(T, C, code0, code1, vector)
        order = order_kind(kind, number, quality)
        v.measure_kinds(R)[r, column] = order
        v.measures(R)[r, column] = np.float64(exact) if order == HEAP_TIME else number
