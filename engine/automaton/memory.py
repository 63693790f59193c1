"""One query's part of the memory of an automaton, taken out of it and put into one.

Out of it comes the memory of a run of the query's own tables, in the state in which it would be alone. Instants are
numbered by the automaton's clock, which may have begun before the query: the difference is `shift`. Where windows count
instants, all clocks of windows differ by it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.matches.records import MATCH_SCALARS, NODE_TOP, PLACE_BITS, SATURATES, SPINE, MatchMemory
from oxiseq.engine.kernels.memory.pointers import Array, Pointers, call
from oxiseq.engine.kernels.sequence import records as k
from oxiseq.engine.kernels.sequence.entries import chain_entries
from oxiseq.engine.kernels.sequence.extraction import adopt_groups, keep_begun, nodes_below
from oxiseq.engine.kernels.sequence.hashing import rehash_buckets, rehash_groups
from oxiseq.engine.kernels.sequence.leads import rebuild_leads
from oxiseq.engine.matches.memory import append_nodes, match_sizes, shift_links, with_room_for_nodes
from oxiseq.engine.output.deferred import renumbered
from oxiseq.engine.sequence.counts import with_limbs
from oxiseq.engine.sequence.memory import Capacities, allocate, free_entries, restore_memory, standing_entries
from oxiseq.engine.sequence.states import ValueKind
from oxiseq.engine.sequence.tables import SequenceTables
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import SameTerms, State

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]

# where the clocks of windows are, in records and in keys
_CLOCKS: Final = {
    "groups": ("maxs", "queued", "close"),
    "nodes": ("maxs",),
    "entries": ("maxs",),
    "closings": ("close",),
}
_KEPT_CLOCKS: Final = ValueKind.START, ValueKind.NEGATED


class Renumbered(NamedTuple):
    """By a query's own numbers of partitions: those of the automaton, and how many instants more it has seen there."""

    place: I64
    more: I64


class TableSpan(NamedTuple):
    """What of an automaton's tables is a query's: edges and leading negations. `shift`: see above; `clocks`: how much
    smaller its clocks are alone."""

    query: int
    edge: int
    edges: int
    lead: int
    leads: int
    shift: int
    clocks: int


def with_tables(S: k.Memory, compiled: SequenceTables, capacities: Capacities, terms: TermDictionary) -> k.Memory:
    """Memory for tables to which queries have been added."""
    new = allocate(compiled, Capacities.smallest())
    floors = _widened(S.floors, new.floors.shape[1], k.BEFORE_ALL)
    S = S.grow("edges", len(new.ages)).grow("queries", len(new.origins))._replace(floors=floors)
    if _of_one_shape(S, new):
        return S
    state = dict[str, Any](S.save())
    for name in ("keys", "lead_keys", "entry_keys"):
        state[name] = _widened(state[name], getattr(new, name).shape[1], 0)
    return restore_memory(state, compiled, capacities, SameTerms(terms), terms.columns)


def _widened(array: I64, columns: int, fill: int) -> I64:
    """The array with so many columns, at least as many as before."""
    wide = np.full((len(array), columns), fill, np.int64)
    wide[:, : array.shape[1]] = array
    return wide


def _of_one_shape(S: k.Memory, new: k.Memory) -> bool:
    """Whether records are as wide, and what does not grow as long, as in new memory."""
    widths = ("keys", "lead_keys", "memo", "asked")
    lengths = ("vector", "key", "scratch")
    return (
        all(getattr(S, name).shape[1] == getattr(new, name).shape[1] for name in widths)
        and all(len(getattr(S, name)) == len(getattr(new, name)) for name in lengths)
        and len(S.links) // max(len(S.groups), 1) == len(new.links) // max(len(new.groups), 1)
        and (len(S.aged) > 0, len(S.memo) > 1) == (len(new.aged) > 0, len(new.memo) > 1)
    )


def deadlines_by_query(S: k.Memory, compiled: SequenceTables) -> tuple[NDArray[np.bool_], I64]:
    """By query whether something waits for the clock, and when time alone may complete a match (µs), NEVER_CLOSES where
    only an event can."""
    tables, groups = compiled.tables, S.groups
    edges = groups["edge"][: S.scalars[k.GROUP_TOP]]
    waiting = np.zeros(len(tables.windows), np.bool_)
    waiting[tables.edges["query"][edges[(edges >= 0) & (tables.edges["waits"][edges] > 0)]]] = True
    lapses = np.zeros(len(tables.windows), np.bool_)
    lasting = (tables.edges["waits"] > 0) & (tables.edges["lasting0"] < tables.edges["lasting1"])
    lapses[tables.edges["query"][lasting]] = True
    due = np.full(len(tables.windows), k.NEVER_CLOSES, np.int64)
    closes = waiting & (tables.sizes[k.NUMBERED] == 0)
    for heap, count, ends in ((S.closings, k.CLOSINGS, closes), (S.lapses, k.LAPSES, lapses)):
        entries = standing_entries(S, heap[: S.scalars[count]])
        query = tables.edges["query"][groups["edge"][entries["group"]]]
        np.minimum.at(due, query[ends[query]], entries["close"][ends[query]])
    deciding = tables.aged[tables.sizes[k.MOVING] : tables.sizes[k.AGEING]]
    deciding = deciding[S.ages["oldest"][deciding] >= 0]
    times = S.aged["time"][S.ages["oldest"][deciding]] + tables.edges["limit"][deciding]
    np.minimum.at(due, tables.edges["query"][deciding], times)
    due[~waiting] = k.NEVER_CLOSES
    return waiting, due


def part_of(
    S: k.Memory, own: SequenceTables, span: TableSpan, held: I64, capacities: Capacities, terms: TermDictionary
) -> tuple[k.Memory, I64]:
    """A query's part of an automaton's memory, which has just been collected, and the ids of the rows that it names,
    or that are `held`, each once. `own`: the tables of the query alone; its rows have other ids there: the positions
    among these."""
    tables, scalars = own.tables, np.zeros(k.SCALARS, np.int64)
    groups, picked = _groups_of(S, span)
    place = np.full(len(S.groups) + 1, -1, np.int32)  # one more: -1 stays -1
    place[picked] = np.arange(len(picked))
    state: State = {"groups": groups, "keys": S.keys[picked, : tables.sizes[k.WIDTH]].copy()}
    queue = np.flatnonzero(tables.edges["waits"][groups["edge"]] == 0)
    queue = queue[np.lexsort((groups["serial"][queue], groups["queued"][queue]))]
    groups["next"], groups["prev"] = -1, -1
    groups["next"][queue[:-1]], groups["prev"][queue[1:]] = queue[1:], queue[:-1]
    state["aged"], state["ages"] = _aged_of(S, span, groups, place)
    for name, count in (("closings", k.CLOSINGS), ("lapses", k.LAPSES)):
        state[name] = _waits_of(S, getattr(S, name)[: S.scalars[count]], place)
        scalars[count] = len(state[name])
    state |= _entries_of(S, own, span)
    if own.tables.sizes[k.PARTITIONED]:
        state |= {"floors": S.floors, "moments": S.moments, "numbers": S.numbers}
    leads = S.lead_keys[: S.scalars[k.LEADS]]
    leads = leads[(leads[:, 0] >= span.lead) & (leads[:, 0] < span.lead + span.leads)].copy()
    leads[:, 0] -= span.lead
    width = 2 + int(tables.sizes[k.WIDTH]) + int((tables.leads["equal1"] - tables.leads["equal0"]).max())
    state["lead_keys"] = np.ascontiguousarray(leads[:, :width])
    nodes, rows, weights = _nodes_of(S, [groups, state["aged"], state["entries"]], held)
    state |= {"nodes": nodes, "weights": weights, "origins": S.origins[[span.query]]}
    scalars[SATURATES] = S.scalars[SATURATES] and weights.shape[1] == S.weights.shape[1]
    state["floors"] = S.floors[:, [span.query]].copy()
    scalars[[k.GROUP_TOP, k.GROUP_COUNT]] = len(groups)
    scalars[[k.GROUP_FREE, k.BUCKET_FREE, k.AGED_FREE, k.ENTRY_FREE]] = -1
    scalars[[k.QUEUE_FRONT, k.QUEUE_BACK]] = (queue[0], queue[-1]) if len(queue) else (-1, -1)
    scalars[[k.AGED_TOP, k.AGED_COUNT]] = len(state["aged"])
    scalars[k.ENTRY_TOP], scalars[k.LEADS], scalars[NODE_TOP] = len(state["entries"]), len(leads), len(nodes)
    scalars[[k.SERIAL, k.CLOCK, k.WAVE]] = S.scalars[[k.SERIAL, k.CLOCK, k.WAVE]]
    scalars[[k.FORGOTTEN, k.CONSUMED, k.DUE]] = k.BEFORE_ALL
    scalars[k.WAITING] = tables.edges["waits"][groups["edge"]].sum()
    state["scalars"] = scalars
    _move_clocks(state, own, -span.clocks)
    return restore_memory(state, own, capacities, SameTerms(terms), terms.columns), rows


def _move_clocks(state: State, own: SequenceTables, by: int) -> None:
    """Clocks of a query's own memory become larger; those that mean never, or before all, stay so."""
    if not by:
        return
    columns = [state[name][column] for name, columns in _CLOCKS.items() for column in columns]
    columns += [state["lead_keys"][:, 1], state["origins"], state["scalars"][k.CLOCK : k.CLOCK + 1]]
    places = np.zeros((len(own.keys), int(own.tables.sizes[k.WIDTH])), np.bool_)
    for edge, key in enumerate(own.keys):
        places[edge, : len(key)] = [value.kind in _KEPT_CLOCKS for value in key]
    for column in columns:
        column[np.abs(column) < k.NEVER_CLOSES] += by
    for records, keys in (("groups", "keys"), ("entries", "entry_keys")):
        edges, held = state[records]["edge"], state[keys]
        held[places[edges] & (edges >= 0)[:, None] & (np.abs(held) < k.NEVER_CLOSES)] += by


def _renumber(state: State, own: SequenceTables, parts: Renumbered) -> None:
    """A query's own memory has the numbers of partitions that the automaton has."""
    for records, keys in (("groups", "keys"), ("entries", "entry_keys")):
        there = np.flatnonzero(state[records]["edge"] >= 0)
        slots = own.tables.edges["part"][state[records]["edge"][there]]
        numbers = state[keys][there, slots] - 1
        state[keys][there, slots] = parts.place[numbers] + 1
        if records == "groups":
            state[records]["inserted"][there] += parts.more[numbers]
    slots = 2 + own.tables.leads["part"][state["lead_keys"][:, 0]]
    at = np.arange(len(slots))
    state["lead_keys"][at, slots] = parts.place[state["lead_keys"][at, slots] - 1] + 1


def _groups_of(S: k.Memory, span: TableSpan) -> tuple[Array, I64]:
    """A query's groups, with its own numbers of edges and instants, and which groups they are."""
    edges = S.groups["edge"][: S.scalars[k.GROUP_TOP]]
    picked = np.flatnonzero((edges >= span.edge) & (edges < span.edge + span.edges))
    groups = S.groups[picked].copy()
    groups["edge"] -= span.edge
    groups["inserted"] -= span.shift
    groups["fired"], groups["reach"] = 0, 0
    return groups, picked


def _aged_of(S: k.Memory, span: TableSpan, groups: Array, place: I32) -> tuple[Array, Array]:
    """A query's runs in age segments, and by edge the ends of their chains."""
    top = int(S.scalars[k.AGED_TOP])
    owners = S.aged["group"][:top]
    picked = np.flatnonzero((owners >= 0) & (place[owners] >= 0))
    moved = np.full(len(S.aged) + 1, -1, np.int32)
    moved[picked] = np.arange(len(picked))
    aged, ages = S.aged[picked].copy(), S.ages[span.edge : span.edge + span.edges].copy()
    aged["group"] = place[aged["group"]]
    for name in ("next", "before", "after"):
        aged[name] = moved[aged[name]]
    for name in ("old", "new"):
        groups[name] = moved[groups[name]]
    for name in ("oldest", "newest"):
        ages[name] = moved[ages[name]]
    return aged, ages


def _waits_of(S: k.Memory, heap: Array, place: I32) -> Array:
    """Those of a heap of closings whose groups are a query's, in order of time, hence a heap."""
    mine = heap[(place[heap["group"]] >= 0) & (S.groups["serial"][heap["group"]] == heap["serial"])].copy()
    mine["group"] = place[mine["group"]]
    ordered: Array = mine[np.lexsort((mine["serial"], mine["close"]))]
    return ordered


def _entries_of(S: k.Memory, own: SequenceTables, span: TableSpan) -> State:
    """A query's `,` waits, of each partition in the order in which they were made."""
    picked, following, waits = list[int](), list[int](), S.waits.copy()
    for p in np.flatnonzero(waits["first"] >= 0).tolist():
        at, low = int(waits["first"][p]), len(picked)
        while at >= 0:
            if span.edge <= S.entries["edge"][at] < span.edge + span.edges:
                picked.append(at)
            at = int(S.entries["sister"][at])
        high = len(picked)
        following += [*range(low + 1, high), *[-1] * (high > low)]
        waits["first"][p], waits["last"][p] = (low, high - 1) if high > low else (-1, -1)
    entries = S.entries[picked].copy()
    entries["edge"] -= span.edge
    entries["sister"] = following
    entries["chain"] = -1
    waits["instant"] -= span.shift
    keys = S.entry_keys[picked, : own.tables.sizes[k.WIDTH]].copy()
    return {"entries": entries, "entry_keys": keys.reshape(len(picked), int(own.tables.sizes[k.WIDTH])), "waits": waits}


def _nodes_of(S: k.Memory, holders: list[Array], held: I64) -> tuple[Array, I64, Array]:
    """The nodes that groups, runs in age segments and `,` waits hold, which get their new numbers, the rows that they
    name, or that are `held`, and what is counted below them, in as many limbs as that takes."""
    names = [(each, name) for each in holders for name in ("node", "union") if name in (each.dtype.names or ())]
    roots = np.ascontiguousarray(np.concatenate([each[name] for each, name in names]))
    top = int(S.scalars[NODE_TOP])
    marks, found = np.full(top + 1, -1, np.int32), np.empty(top, np.int32)
    count = int(call(nodes_below, Pointers(S), roots, marks, found))
    found = np.sort(found[:count])
    marks[found] = np.arange(count)
    for each, name in names:
        each[name] = marks[each[name]]
    nodes = S.nodes[found].copy()
    for link in ("left", "right", "leaf"):
        nodes[link] = marks[nodes[link]]
    weights = np.zeros((0, 0), np.uint64)
    if S.weights.shape[1]:
        weights, limbs = S.weights[found], 1
        while limbs < weights.shape[1] and weights[:, limbs:].any():
            limbs *= 2
        return nodes, np.zeros(0, np.int64), np.ascontiguousarray(weights[:, :limbs])
    outputs = nodes["leaf"] < 0
    rows: I64 = np.union1d(nodes["pos"][outputs] >> PLACE_BITS, held)
    nodes["pos"][outputs] = renumbered(nodes["pos"][outputs], rows, 0)
    return nodes, rows, weights


def counted_of(S: k.Memory, span: TableSpan, has: Callable[[I64, I64], NDArray[np.bool_]]) -> k.Memory:
    """An automaton's memory, to be read, with the runs at the edges of a query that it `has`, by own numbers of edges
    and keys."""
    groups, entries = S.groups.copy(), S.entries.copy()
    for each, keys, count in ((groups, S.keys, k.GROUP_TOP), (entries, S.entry_keys, k.ENTRY_TOP)):
        edges = each["edge"][: S.scalars[count]]
        mine = np.flatnonzero((edges >= span.edge) & (edges < span.edge + span.edges))
        edges[mine[~has(edges[mine] - span.edge, keys[mine])]] = -1
    return S._replace(groups=groups, entries=entries)


def begun_with(S: k.Memory, begins: NDArray[np.uint8], base: int) -> k.Memory:
    """An automaton's memory, to be read, with what it holds of matches that begin with rows that `begins` has, from row
    `base` on."""
    nodes, made = _nodes_begun(S, begins, base)
    groups, entries, scalars = S.groups.copy(), S.entries.copy(), S.scalars.copy()
    for each in (groups[: scalars[k.GROUP_TOP]], entries[: scalars[k.ENTRY_TOP]]):
        held = np.flatnonzero((each["edge"] >= 0) & (each["node"] >= 0))
        node = made[each["node"][held]]
        each["node"][held], each["edge"][held[node < 0]] = node, -1
        each["maxs"][held[node >= 0]] = nodes["maxs"][node[node >= 0]]
    scalars[NODE_TOP] = len(nodes)
    return S._replace(nodes=nodes, groups=groups, entries=entries, scalars=scalars)


def finals_begun_with(S: k.Memory, finals: Array, begins: NDArray[np.uint8], base: int) -> tuple[k.Memory, Array]:
    """Memory with more nodes, and finals of them: of the matches below these `finals` those that begin so."""
    nodes, made = _nodes_begun(S, begins, base)
    S, top = append_nodes(S, nodes)
    kept: Array = finals[made[finals[:, 0]] >= 0]
    kept[:, 0] = made[kept[:, 0]] + top
    return S, kept


def _nodes_begun(S: k.Memory, begins: NDArray[np.uint8], base: int) -> tuple[Array, I32]:
    """The nodes of what begins so, and by node of the memory which of them it is, or -1."""
    top, done = int(S.scalars[NODE_TOP]), 0
    own = MatchMemory.allocate(**match_sizes(top + 2 * SPINE, 0, 0, 0), scalars=MATCH_SCALARS, queries=0)
    made = np.full(max(top, 1), -1, np.int32)
    while (done := int(call(keep_begun, Pointers(S), Pointers(own), begins, base, made, done))) < top:
        own = with_room_for_nodes(own, again=True)
    return own.nodes[: own.scalars[NODE_TOP]], made


def with_part(
    S: k.Memory,
    compiled: SequenceTables,
    M: k.Memory,
    own: SequenceTables,
    span: TableSpan,
    rows: tuple[I64, int],
    parts: Renumbered | None,
    terms: TermDictionary,
) -> k.Memory:
    """An automaton's memory with that of a query's own run, just collected, which nobody needs any more. Its rows of
    these ids have in the automaton the ids from a number on; `parts`: where instants are those of partitions."""
    _move_clocks(M.save(), own, span.clocks)
    if parts is not None:
        _renumber(M.save(), own, parts)
    order = _order_of_groups(M)
    first, nodes, aged = (S.scalars.item(at) for at in (k.GROUP_TOP, NODE_TOP, k.AGED_TOP))
    if M.weights.shape[1] > S.weights.shape[1]:
        S = with_limbs(S, M.weights.shape[1])
    S.scalars[SATURATES] |= M.scalars[SATURATES]
    S = _with_room(S, M, len(order))
    place = np.full(len(M.groups) + 1, -1, np.int32)
    place[order] = first + np.arange(len(order))
    _put_nodes(S, M, nodes, rows)
    groups = M.groups[order].copy()
    serials = np.argsort(np.argsort(groups["serial"])) + 1 + S.scalars[k.SERIAL]
    heaps = [(k.CLOSINGS, "closings"), (k.LAPSES, "lapses")]
    for count, name in heaps:
        _put_waits(S, M, count, name, place, serials, first)
    groups["serial"] = serials
    groups["edge"] += span.edge
    groups["inserted"] += span.shift
    groups["fired"], groups["reach"] = 0, 0
    shift_links(groups, ("node",), nodes)
    shift_links(groups, ("old", "new"), aged)
    S.groups[first : first + len(order)] = groups
    S.keys[first : first + len(order)] = 0
    S.keys[first : first + len(order), : M.keys.shape[1]] = M.keys[order]
    S.scalars[[k.GROUP_TOP, k.GROUP_COUNT, k.SERIAL]] += len(order)
    _put_aged(S, M, span, place, nodes, aged)
    _put_entries(S, M, span, nodes, parts)
    S.scalars[k.CLOCK] = max(S.scalars[k.CLOCK], M.scalars[k.CLOCK])
    S.floors[0, span.query] = M.floors[0, 0]
    tables, memory = Pointers(compiled.tables), Pointers(S)
    call(adopt_groups, tables, memory, Pointers(terms.columns), first, first + len(order))
    if compiled.tables.sizes[k.STRICTS]:
        call(chain_entries, tables, memory)
    return _with_leads(S, compiled, M, span)


def _order_of_groups(M: k.Memory) -> I64:
    """Groups in the order in which they expire."""
    there = np.flatnonzero(M.groups["edge"][: M.scalars[k.GROUP_TOP]] >= 0)
    order: I64 = there[np.lexsort((M.groups["serial"][there], M.groups["queued"][there]))]
    return order


def _with_room(S: k.Memory, M: k.Memory, groups: int) -> k.Memory:
    """Room for what is to come, in whatever order."""
    top, probes = int(S.scalars[k.GROUP_TOP]) + groups, len(S.links) // max(len(S.groups), 1)
    if top > len(S.groups):
        S = S.grow("groups", 2 * top)
        rehash_groups(S.table, S.groups, S.scalars[k.GROUP_TOP])
    if (buckets := int(S.scalars[k.BUCKET_COUNT]) + groups * probes) > len(S.buckets):
        S = S.grow("buckets", 2 * buckets)
        rehash_buckets(S.bucket_table, S.buckets, S.scalars[k.BUCKET_TOP])
    for name, count in (("aged", k.AGED_TOP), ("closings", k.CLOSINGS), ("lapses", k.LAPSES), ("entries", k.ENTRY_TOP)):
        needed = int(S.scalars[count] + M.scalars[count])
        if needed > len(getattr(S, name)):
            S = S.grow(name, 2 * needed)
    needed = int(S.scalars[NODE_TOP] + M.scalars[NODE_TOP]) + SPINE
    return S.grow("nodes", 2 * needed) if needed > len(S.nodes) else S


def _put_nodes(S: k.Memory, M: k.Memory, first: int, rows: tuple[I64, int]) -> None:
    nodes, (ids, base) = M.nodes[: M.scalars[NODE_TOP]].copy(), rows
    if (limbs := M.weights.shape[1]) > 0:
        S.weights[first : first + len(nodes)] = 0
        S.weights[first : first + len(nodes), :limbs] = M.weights[: len(nodes)]
    else:
        outputs = nodes["leaf"] < 0
        nodes["pos"][outputs] = renumbered(nodes["pos"][outputs], ids, base)
    append_nodes(S, nodes)  # there is room


def _put_waits(S: k.Memory, M: k.Memory, count: int, name: str, place: I32, serials: I64, first: int) -> None:
    """The closings of a heap, which is sorted then; those of groups that have gone are left behind."""
    heap = getattr(M, name)[: M.scalars[count]]
    mine = heap[(place[heap["group"]] >= 0) & (M.groups["serial"][heap["group"]] == heap["serial"])].copy()
    if not len(mine):
        return
    mine["group"] = place[mine["group"]]
    mine["serial"] = serials[mine["group"] - first]
    both = np.concatenate([getattr(S, name)[: S.scalars[count]], mine])
    S.scalars[count] = len(both)
    getattr(S, name)[: len(both)] = both[np.lexsort((both["serial"], both["close"]))]


def _put_aged(S: k.Memory, M: k.Memory, span: TableSpan, place: I32, nodes: int, first: int) -> None:
    """Runs in age segments keep their chains."""
    aged, ages = M.aged[: M.scalars[k.AGED_TOP]].copy(), M.ages[: span.edges].copy()
    shift_links(aged, ("next", "before", "after"), first)
    shift_links(aged, ("node", "union"), nodes)
    there = aged["group"] >= 0
    aged["group"][there] = place[aged["group"][there]]
    shift_links(ages, ("oldest", "newest"), first)
    S.aged[first : first + len(aged)] = aged
    S.ages[span.edge : span.edge + span.edges] = ages
    S.scalars[k.AGED_TOP] += len(aged)
    S.scalars[k.AGED_COUNT] += int(there.sum())
    if len(aged):
        S.scalars[k.DUE] = k.BEFORE_ALL
        for at in np.flatnonzero(~there).tolist():
            S.aged["next"][first + at] = S.scalars[k.AGED_FREE]
            S.scalars[k.AGED_FREE] = first + at


def _put_entries(S: k.Memory, M: k.Memory, span: TableSpan, nodes: int, parts: Renumbered | None) -> None:
    """What waits for the very next instant."""
    for p in np.flatnonzero(M.waits["first"] >= 0).tolist():
        place, more = (0, span.shift) if parts is None else (parts.place.item(p), parts.more.item(p))
        _put_waiting(S, M, (M.waits[p], S.waits[place], more), span, nodes)


def _put_waiting(S: k.Memory, M: k.Memory, waits: tuple[Any, Any, int], span: TableSpan, nodes: int) -> None:
    """In one partition, as far as its next instant is the same for both: the others have waited in vain."""
    mine, own, more = waits
    instant = int(mine["instant"]) + more
    if mine["first"] < 0 or (own["first"] >= 0 and own["instant"] > instant):
        return
    if own["instant"] < instant:
        free_entries(S, own)
    own["instant"], own["time"] = instant, mine["time"]
    at, last, top = int(mine["first"]), int(own["last"]), int(S.scalars[k.ENTRY_TOP])
    while at >= 0:
        S.entries[top] = M.entries[at]
        entry = S.entries[top]
        entry["edge"] += span.edge
        entry["node"] += nodes
        entry["sister"] = -1
        S.entry_keys[top] = 0
        S.entry_keys[top, : M.entry_keys.shape[1]] = M.entry_keys[at]
        if last < 0:
            own["first"] = top
        else:
            S.entries["sister"][last] = top
        own["last"] = last = top
        top, at = top + 1, int(M.entries["sister"][at])
    S.scalars[k.ENTRY_TOP] = top


def _with_leads(S: k.Memory, compiled: SequenceTables, M: k.Memory, span: TableSpan) -> k.Memory:
    mine = M.lead_keys[: M.scalars[k.LEADS]].copy()
    if not len(mine):
        return S
    mine[:, 0] += span.lead
    old = S.lead_keys[: S.scalars[k.LEADS]]
    both = np.zeros((len(old) + len(mine), S.lead_keys.shape[1]), np.int64)
    both[: len(old)] = old
    both[len(old) :, : mine.shape[1]] = mine
    if len(both) > len(S.lead_keys):
        S = S.grow("leads", 2 * len(both))
    call(rebuild_leads, Pointers(compiled.tables), Pointers(S), both, len(both), k.BEFORE_ALL)
    return S
