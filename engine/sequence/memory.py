"""The running state of a sequence: allocation and growth of the kernels' arrays; saving and restoring (terms/saved.py).

Everything starts small and doubles on demand; nothing is ever sized by the window or the stream. Records are saved as
they are, but for what can be made again: buckets, hash tables, chains of `,` waits, decisions, room for work.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.matches import records as matches
from oxiseq.engine.kernels.matches.records import SPINE
from oxiseq.engine.kernels.memory.pointers import Array, Pointers, call
from oxiseq.engine.kernels.sequence import records as k
from oxiseq.engine.kernels.sequence.collect import collect
from oxiseq.engine.kernels.sequence.entries import chain_entries
from oxiseq.engine.kernels.sequence.hashing import hash_again, rehash_buckets, rehash_groups
from oxiseq.engine.kernels.sequence.indexes import index_groups
from oxiseq.engine.kernels.sequence.joining import remember
from oxiseq.engine.kernels.sequence.leads import rebuild_leads
from oxiseq.engine.kernels.sequence.partitions import sweep, used_partitions
from oxiseq.engine.kernels.terms.columns import TermColumns
from oxiseq.engine.matches.memory import EMPTY_BETWEEN_BATCHES, match_sizes, with_room_for_nodes
from oxiseq.engine.sequence.counts import with_limbs
from oxiseq.engine.sequence.states import PARTITION, Value
from oxiseq.engine.sequence.tables import SequenceTables
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.engine.window import window_start
from oxiseq.grammar.records import dataclass

_ASKED = 256
_MOST_ASKED = 1 << 14
_MUCH_READ: Final = ((1 << 23, 16), (1 << 20, 4))
"""Reads of an instant that are not to be done again for each doubling, and by how much room grows then."""
_COUNTED_NODES = 1 << 14
_BUSY_NODES = 1 << 12
"""Room for nodes where those of one batch are collected again and again: 128 KiB."""
_MEMO = 1024
"""Initial slots where Python decides anything; `keep_answers` doubles them at most once for _ASKED more."""
_MEMO_LIMIT = 1 << 20
_OF_STRICTS: Final = ("entries", "entry_keys", "waits")
"""What only sequences with a `,` have something in."""


_ROOMS: Final = {
    k.NEED_GROUPS: "groups",
    k.NEED_BUCKETS: "buckets",
    k.NEED_ENTRIES: "entries",
    k.NEED_PENDING: "pending",
    k.NEED_FIRED: "fired",
    k.NEED_CLOSINGS: "closings",
    k.NEED_AGED: "aged",
    k.NEED_LAPSES: "lapses",
    k.NEED_FINALS: "finals",
    matches.NEED_STACK: "stack",
}
"""What there is to be more room for."""


@dataclass(frozen=True, slots=True)
class Capacities:
    """Numbers of records to begin with; the smallest are for tests."""

    nodes: int = 256
    groups: int = 32
    pending: int = 16
    out: int = 128
    stack: int = 32

    @classmethod
    def smallest(cls) -> Capacities:
        """So small that every array has to grow at once."""
        return cls(nodes=SPINE + 2, groups=1, pending=1, out=4, stack=4)


def allocate(compiled: SequenceTables, sizes: Capacities) -> k.Memory:
    """Empty memory for one run of a compiled sequence."""
    tables = compiled.tables
    width, probes = int(tables.sizes[k.WIDTH]), int(tables.sizes[k.PROBES])
    lead = int((tables.leads["equal1"] - tables.leads["equal0"]).max())
    S = k.Memory.allocate(
        **match_sizes(sizes.nodes, sizes.pending, sizes.stack, sizes.out, int(compiled.counted)),
        scalars=k.SCALARS,
        groups=sizes.groups,
        probes=probes,
        buckets=max(sizes.groups, 1) * probes,
        width=width,
        entries=sizes.pending,
        pending=sizes.pending,
        fired=sizes.pending,
        closings=sizes.pending,
        lapses=sizes.pending,
        aged=sizes.pending if tables.sizes[k.AGEING] else 0,
        edges=len(tables.edges),
        queries=len(tables.windows),
        memo=_MEMO if compiled.filters else 1,
        answer=2 + max((int(f["uses1"] - f["uses0"]) for f in tables.filters), default=0),
        asked=_ASKED if compiled.filters else 1,
        question=1 + compiled.vector,
        leads=sizes.groups,
        lead=2 + width + lead,
        key=width + lead,
        vector=compiled.vector,
        depth=compiled.depth,
        partitions=1,
        tallies=sizes.out if compiled.counted else 1,
        tally=2 + width,
        counted=1,
    )
    S.scalars[[k.GROUP_FREE, k.BUCKET_FREE, k.QUEUE_FRONT, k.QUEUE_BACK, k.AGED_FREE, k.ENTRY_FREE]] = -1
    S.scalars[k.DUE] = k.NEVER_CLOSES
    S.scalars[[k.CLOCK, k.FORGOTTEN, k.CONSUMED]] = k.BEFORE_ALL
    return S


def grow(
    T: Pointers[k.Tables], memory: Pointers[k.Memory], S: k.Memory, need: int, compiled: SequenceTables
) -> k.Memory:
    """Memory with twice the room for what the kernel lacks (`need`). `T`, `memory`: as of `make_nodes`."""
    if need == k.NEED_GROUPS and (compiled.clauses.partitioned or len(compiled.tables.windows) > 1):
        call(sweep, T, memory)
        if 2 * int(S.scalars[k.GROUP_COUNT]) < len(S.groups):
            return S
    if need == k.NEED_LEADS:
        return _grow_leads(S, compiled)
    S = S.grow(_ROOMS[need], _more(S) * S.room(_ROOMS[need]))
    if need == k.NEED_GROUPS:
        rehash_groups(S.table, S.groups, S.scalars[k.GROUP_TOP])
    elif need == k.NEED_BUCKETS:
        rehash_buckets(S.bucket_table, S.buckets, S.scalars[k.BUCKET_TOP])
    elif need == k.NEED_ENTRIES:
        call(chain_entries, T, Pointers(S))
    return S


def _grow_leads(S: k.Memory, compiled: SequenceTables) -> k.Memory:
    """Drop leading negations that no window still holds; more room if that does not free half."""
    count, tau = int(S.scalars[k.LEADS]), _oldest_lead(S, compiled)
    alive = int((S.lead_keys[:count, 1] >= tau).sum())
    size = len(S.lead_keys) if 2 * alive < len(S.lead_keys) and alive < count else 2 * len(S.lead_keys)
    old = S.lead_keys.copy()
    S = S.grow("leads", size)
    call(rebuild_leads, Pointers(compiled.tables), Pointers(S), old, count, tau)
    return S


def _oldest_lead(S: k.Memory, compiled: SequenceTables) -> int:
    """Leading negations before this clock are out of all windows."""
    windows, clock = compiled.tables.windows, int(S.scalars[k.CLOCK])
    if clock == k.BEFORE_ALL or not windows["size"].all() or compiled.tables.sizes[k.COUNTED]:
        return k.BEFORE_ALL  # where they are counted each partition has another clock
    each = zip(windows[["size", "slides"]].tolist(), S.origins.tolist(), strict=True)
    return min(int(window_start(clock, size, slides, origin)) for (size, slides), origin in each)


def make_nodes(
    T: Pointers[k.Tables], memory: Pointers[k.Memory], S: k.Memory, again: bool, *, owners: int, busy: bool
) -> tuple[k.Memory, int]:
    """Collect dead nodes; double the room if more than half is still in use, or if that did not help before.

    `T`, `memory`: pointer tables of the compiled sequence and of `S`; `owners`: as of `collect`; `busy`: that has
    happened often in this batch.
    Returns the memory and the smallest row id that a node still refers to.
    """
    marks, floors = np.zeros(len(S.nodes), np.int32), np.zeros(owners + 1, np.int64)
    oldest = int(call(collect, T, memory, marks, floors))
    # few of them live long: room for many saves collections
    least = _COUNTED_NODES if S.weights.shape[1] else _BUSY_NODES if busy else 0
    S = with_room_for_nodes(S, again, least)
    return (S.grow("nodes", _more(S) // 2 * len(S.nodes)) if again else S), oldest


def _more(S: k.Memory) -> int:
    """By how much what is too small grows."""
    return next((more for read, more in _MUCH_READ if S.meter[k.WHOLE_READ] > read), 2)


def without_spare_nodes(S: k.Memory) -> k.Memory:
    """Memory that has given back most of the room for nodes that nobody needs."""
    room = 2 * int(S.scalars[matches.NODE_TOP]) + 2 * SPINE
    return S._replace(nodes=S.nodes[:room].copy(), weights=S.weights[:room].copy())


def rows_named(M: k.Memory) -> NDArray[np.int64]:
    """The ids of the rows that a collected memory's nodes name, each once; where matches are counted they name none."""
    if M.weights.shape[1]:
        return np.zeros(0, np.int64)
    nodes = M.nodes[: M.scalars[matches.NODE_TOP]]
    rows: NDArray[np.int64] = np.unique(nodes["pos"][nodes["leaf"] < 0] >> matches.PLACE_BITS)
    return rows


def begin_partitions(S: k.Memory, fresh: NDArray[np.int64], count: int) -> k.Memory:
    """Memory for so many partitions, of which those `fresh` have not seen anything."""
    if count > len(S.floors):
        S = S.grow("partitions", 2 * count)
    S.floors[fresh] = k.BEFORE_ALL
    S.moments[fresh] = S.numbers[fresh] = -1
    return S


def partitions_in_use(S: k.Memory, compiled: SequenceTables, count: int) -> NDArray[np.bool_]:
    """Which of the partitions have a group or a leading negation; dead ones go first."""
    used = np.zeros(count, np.uint8)
    tables, memory = Pointers(compiled.tables), Pointers(S)
    call(sweep, tables, memory)
    leads = S.lead_keys[: S.scalars[k.LEADS]].copy()
    call(rebuild_leads, tables, memory, leads, len(leads), _oldest_lead(S, compiled))
    call(used_partitions, tables, memory, used)
    return used.astype(np.bool_)


def keep_answers(S: k.Memory, compiled: SequenceTables, answers: NDArray[np.int64]) -> k.Memory:
    """Keep Python's decisions on the questions in `S.asked`, in their order."""
    asked, size = S.asked, len(S.memo)
    while 2 * (int(S.scalars[k.MEMOS]) + len(answers)) > size:
        size *= 2
    if size > len(S.memo):
        old = S.memo[S.memo[:, 0] != 0]
        S = S._replace(memo=np.zeros((size, S.memo.shape[1]), np.int64))
        _refill(S, compiled, old)
    tables, memory = Pointers(compiled.tables), Pointers(S)
    for n, answer in enumerate(answers):
        call(remember, tables, memory, asked, n, answer)
    return S


def more_questions(S: k.Memory) -> k.Memory:
    """Room for more questions at once: an instant is read again when they have been answered."""
    count, width = S.asked.shape
    return S if count >= _MOST_ASKED else S._replace(asked=np.zeros((4 * count, width), np.int64))


def _refill(S: k.Memory, compiled: SequenceTables, rows: Array) -> None:
    S.scalars[k.MEMOS] = 0
    tables = compiled.tables
    question = np.zeros((1, S.asked.shape[1]), np.int64)
    pointers = Pointers(tables), Pointers(S)
    for row in rows:
        f = int(row[0]) - 1
        used = tables.uses[tables.filters["uses0"][f] : tables.filters["uses1"][f]]
        question[0, 0] = f
        question[0, 1 + used] = row[2 : 2 + len(used)]
        call(remember, *pointers, question, 0, row[1])


def forget_answers(S: k.Memory, changed: bool) -> None:
    """Between batches: forget all decisions once there are very many, or when ids have been freed."""
    if changed or S.scalars[k.MEMOS] > _MEMO_LIMIT:
        S.memo[:] = 0
        S.scalars[k.MEMOS] = 0


def free_entries(S: k.Memory, wait: Any) -> None:
    """What has waited for the very next instant has waited in vain; the chains are to be made again."""
    at = int(wait["first"])
    while at >= 0:
        following = int(S.entries["sister"][at])
        S.entries["edge"][at], S.entries["next"][at] = -1, S.scalars[k.ENTRY_FREE]
        S.scalars[k.ENTRY_FREE], at = at, following
    wait["first"] = wait["last"] = -1


def standing_entries(S: k.Memory, heap: Array) -> Array:
    """The entries of a heap of closings, or of lapses, whose group is still there."""
    groups = S.groups[heap["group"]]
    standing: Array = heap[(groups["edge"] >= 0) & (groups["serial"] == heap["serial"])]
    return standing


# --- saved states ------------------------------------------------------------------------------------


def save_memory(S: k.Memory, compiled: SequenceTables, terms: SavedTerms) -> State:
    """Between batches, when what is killed has gone. Proportional to the records in use."""
    state: State = S.save(terms.ids, partial(_id_places, compiled))
    if not compiled.tables.sizes[k.STRICTS]:
        state = {name: array for name, array in state.items() if name not in _OF_STRICTS}
    return state


def restore_memory(
    state: State, compiled: SequenceTables, sizes: Capacities, terms: KnownTerms, columns: TermColumns
) -> k.Memory:
    """Memory that continues from a saved state; `columns` are those of all terms."""
    S = allocate(compiled, sizes)
    limbs = state["weights"].shape[1]
    if limbs > S.weights.shape[1]:
        S = with_limbs(S, limbs)
    S = S.restore(state, terms.ids, partial(_id_places, compiled))
    S.scalars[[*EMPTY_BETWEEN_BATCHES, k.PENDING, k.FIRED, k.ASKED, k.MEMOS, k.TALLIES]] = 0
    tables, memory = Pointers(compiled.tables), Pointers(S)
    call(hash_again, tables, memory)
    call(chain_entries, tables, memory)
    rehash_groups(S.table, S.groups, S.scalars[k.GROUP_TOP])
    while call(index_groups, tables, memory, Pointers(columns)) == k.NEED_BUCKETS:
        S = S.grow("buckets")
        memory = Pointers(S)
    call(rebuild_leads, tables, memory, S.lead_keys.copy(), int(S.scalars[k.LEADS]), k.BEFORE_ALL)
    return S


# --- the arrays that hold ids --------------------------------------------------------------------


def _is_term(value: Value) -> bool:
    """Whether a value of a key is a term; else it is a clock, or the number of a partition."""
    return value.variable is not None and value.variable != PARTITION


def _id_places(compiled: SequenceTables, state: Mapping[str, Array]) -> dict[str, NDArray[np.bool_]]:
    """Which values of a state's keys are ids: that depends on the edge or leading negation of each."""
    tables = compiled.tables
    edges = np.zeros((max(len(compiled.keys), 1), int(tables.sizes[k.WIDTH])), np.bool_)
    for edge, key in enumerate(compiled.keys):
        edges[edge, : len(key)] = [_is_term(value) for value in key]
    leads = np.zeros((len(tables.leads), state["lead_keys"].shape[1]), np.bool_)
    for number, lead in enumerate(tables.leads):
        leads[number, 2 : 2 + lead["equal1"] - lead["equal0"]] = True
        if lead["part"] >= 0:
            leads[number, 2 + lead["part"]] = False
    owners = {
        "keys": (state["groups"]["edge"], edges),
        "lead_keys": (state["lead_keys"][:, 0], leads),
    }
    if "entries" in state:
        owners["entry_keys"] = state["entries"]["edge"], edges
    return {name: places[of] & (of >= 0)[:, None] for name, (of, places) in owners.items()}
