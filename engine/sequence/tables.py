"""Flat tables for the kernels: edges, probes, filters, fills (engine.md, sections 2 and 3).

In the flow: states and live keys → **tables** → runner. A *probe* is one letter's way to find the groups
of one edge: an arm that fires them or a guard that kills them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final, NamedTuple, Protocol

import numpy as np
from pyoxigraph import Variable

from oxiseq.engine.errors import LimitError
from oxiseq.engine.expressions.program import compile_program
from oxiseq.engine.kernels.matches.records import PLACE_BITS
from oxiseq.engine.kernels.memory.pointers import Array
from oxiseq.engine.kernels.sequence import records as k
from oxiseq.engine.matches.plan import NO_CLAUSES, Clauses
from oxiseq.engine.sequence.asked import Fold
from oxiseq.engine.sequence.liveness import edges_by_source, ends_here, kept_values, live_keys
from oxiseq.engine.sequence.positions import START, Letter
from oxiseq.engine.sequence.states import (
    LAST_NEGATED,
    PARTITION,
    Arm,
    Check,
    Column,
    Edge,
    Either,
    FilterCheck,
    Folded,
    GuardCheck,
    Kept,
    LetterScope,
    Move,
    NegatedClock,
    RowClock,
    RowTime,
    Source,
    StateGraph,
    Unbound,
    Value,
    ValueKind,
)
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Call, Expression, Op, Window
from oxiseq.grammar.functions import MIRRORED_ORDER
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import expression_variables, holds_exists

_NO_GRAPH: Final = StateGraph((), ())
_PARTITION_VALUE: Final = Value(ValueKind.BOUND, 0, PARTITION)
_OPS = {Op.STRICT: k.STRICT, Op.NEXT: k.NEXT, Op.ANY: k.ANY}
_INDEX_NAMES = {
    k.LIST: "list",
    k.HEAP: "heap",
    k.STAMP: "stamp",
    k.CHAINED: "chain",
    k.STARTS: "start",
}


@dataclass(frozen=True, slots=True)
class CompiledFilter:
    """A stateful filter with the place of each variable in the value vector, for exact decisions."""

    check: FilterCheck
    places: tuple[tuple[Variable, int], ...]


@dataclass(frozen=True, slots=True)
class CompiledFold:
    """An aggregate over iterations with the places of what a row adds, and of the run's value, if there is one."""

    fold: Fold
    places: tuple[tuple[Variable, int], ...]
    kept: int | None


@dataclass(frozen=True, slots=True)
class SequenceTables:
    """All that the runner needs of a compiled sequence."""

    tables: k.Tables
    letters: tuple[Letter, ...]
    columns: tuple[tuple[Variable, ...], ...]
    """Per letter the variables that its rows bring to the kernel."""
    filters: tuple[CompiledFilter | CompiledFold, ...]
    """By their numbers among the filters of `tables`."""
    graph: StateGraph
    keys: tuple[tuple[Value, ...], ...]
    indexes: tuple[tuple[str, ...], ...]
    """Per edge how each of its probes finds groups, in words."""
    places: tuple[tuple[int, int | None], ...]
    """The meaning of an output's place: the position taken, and the repeat that began again there."""
    vector: int
    """Length of the value vector."""
    depth: int
    """Of the stack that filters and measures need."""
    measure_count: int
    """Most measures of a letter's rows."""
    clauses: Clauses
    scopes: Mapping[Letter, LetterScope] = field(repr=False)

    @property
    def counted(self) -> bool:
        """Whether matches are counted and not listed."""
        return any(edge.counts is not None for edge in self.graph.edges)


def build_tables(
    graph: StateGraph,
    scopes: Mapping[Letter, LetterScope],
    window: Window | None,
    terms: TermDictionary,
    clauses: Clauses = NO_CLAUSES,
) -> SequenceTables:
    """Tables of a state graph; constants of filters are interned in `terms`."""
    keys = live_keys(graph, window is not None and window.sliding)
    builder, own = TableBuilder(terms), OwnLetters()
    own.want_all(graph, keys, scopes)
    indexes, places = builder.add(graph, keys, scopes, window, clauses, own)
    return SequenceTables(
        builder.tables(len(own.letters), clauses, counts_instants=window is not None and window.events),
        tuple(own.letters),
        tuple(tuple(c) for c in own.columns),
        tuple(builder.compiled),
        graph,
        keys,
        indexes,
        places,
        builder.vector,
        builder.depth,
        builder.measure_count,
        clauses,
        scopes,
    )


def _record(dtype: np.dtype[np.void], rows: Sequence[dict[str, int]]) -> Array:
    out, names = np.zeros(max(len(rows), 1), dtype), dtype.names or ()
    nothing, count = dict.fromkeys(names, 0), len(names)
    if rows:  # the padding stays 0: fingerprints of plans read it
        out[:] = [tuple((nothing | row).values())[:count] for row in rows]
    return out


def _pairs(rows: Sequence[tuple[int, ...]], width: int) -> Array:
    return np.array(rows or [(0,) * width], np.int32).reshape(-1, width)


class _CommonBuckets(NamedTuple):
    """The common part of probes that find their groups in the same buckets (kernels/sequence/records.py)."""

    letter: int
    guards: bool
    columns: tuple[int, ...]
    kind: int
    measure: int
    sign: int


class Lettering(Protocol):
    """Which letter of the rows a query's letter is, and which columns of its rows have a variable."""

    def number(self, letter: Letter) -> int:
        """Of a letter of the query."""

    def columns_of(self, letter: Letter) -> Mapping[Variable, int]:
        """Of the query's variables that its rows bring."""


class OwnLetters:
    """The letters of one query, whose rows bring what something compares."""

    def __init__(self) -> None:
        self.letters: list[Letter] = []
        self.columns: list[dict[Variable, int]] = []
        self._numbers: dict[Letter, int] = {}

    def number(self, letter: Letter) -> int:
        number = self._numbers.setdefault(letter, len(self.letters))
        if number == len(self.letters):
            self.letters.append(letter)
            self.columns.append({})
        return number

    def columns_of(self, letter: Letter) -> Mapping[Variable, int]:
        return self.columns[self.number(letter)]

    def want_all(
        self,
        graph: StateGraph,
        keys: Sequence[tuple[Value, ...]],
        scopes: Mapping[Letter, LetterScope],
    ) -> None:
        """Have rows bring all that the edges of a state graph compare, or that its keys take from them."""
        leaving = edges_by_source(graph)
        for edge in graph.edges:
            for letter, _ in edge.compared:
                self.number(letter)
            for move in edge.moves:
                self._want(move.letter, _check_columns(move.check))
            for arm in edge.arms:
                self._want(arm.letter, _arm_columns(arm, leaving, keys))
            for guard in edge.guards:
                self._want(guard.letter, _check_columns(guard.check))
                if edge.source == START:
                    for arm in edge.arms:
                        shared = _shared(scopes, arm.letter, guard.letter)
                        self._want(guard.letter, shared)
                        self._want(arm.letter, shared)

    def _want(self, letter: Letter, variables: Iterable[Variable]) -> None:
        columns = self.columns[self.number(letter)]
        for variable in variables:
            columns.setdefault(variable, len(columns))


@dataclass(slots=True)
class TableBuilder:
    """Tables of one query after the other: `add` appends, nothing that is there changes. A query's edges, and what its
    edges have, lie together."""

    terms: TermDictionary
    windows: list[dict[str, int]] = field(default_factory=list)
    edges: list[dict[str, int]] = field(default_factory=list)
    probes: list[dict[str, int]] = field(default_factory=list)
    signatures: dict[_CommonBuckets, dict[str, int]] = field(default_factory=dict)
    filters: list[dict[str, int]] = field(default_factory=list)
    leads: list[dict[str, int]] = field(default_factory=list)
    equal: list[tuple[int, ...]] = field(default_factory=list)
    compatible: list[tuple[int, ...]] = field(default_factory=list)
    either: list[tuple[int, ...]] = field(default_factory=list)
    uses: list[int] = field(default_factory=list)
    chain: list[int] = field(default_factory=list)
    next: list[tuple[int, ...]] = field(default_factory=list)
    fill: list[tuple[int, ...]] = field(default_factory=list)
    code: list[int] = field(default_factory=list)
    measures: dict[int, dict[tuple[int, ...], int]] = field(default_factory=dict)
    """Of each letter the row sides of indexed inequalities, programs, and where they begin."""
    compiled: list[CompiledFilter | CompiledFold] = field(default_factory=list)
    lead_letters: list[int] = field(default_factory=list)
    lasting: list[tuple[int, ...]] = field(default_factory=list)
    moving: list[int] = field(default_factory=list)
    """Edges that runs leave with time, for another one."""
    deciding: list[int] = field(default_factory=list)
    """Edges at which they become matches with time; then those of them in a negated group's gap."""
    deciding_groups: list[int] = field(default_factory=list)
    width: int = 1
    wide: int = 1
    most: int = 1
    """Probes of an edge."""
    eithers: int = 0
    depth: int = 1
    stricts: bool = False
    _graph: StateGraph = _NO_GRAPH
    _keys: tuple[tuple[Value, ...], ...] = ()
    _scopes: Mapping[Letter, LetterScope] = field(default_factory=dict)
    _letters: Lettering = field(default_factory=OwnLetters)
    _places: dict[tuple[int, int | None], int] = field(default_factory=dict)
    _first: int = 0
    """Of the query that is being added, and the number of its first edge."""

    def add(
        self,
        graph: StateGraph,
        keys: tuple[tuple[Value, ...], ...],
        scopes: Mapping[Letter, LetterScope],
        window: Window | None,
        clauses: Clauses,
        letters: Lettering,
    ) -> tuple[tuple[tuple[str, ...], ...], tuple[tuple[int, int | None], ...]]:
        """Append the next query; per edge how its probes find groups, in words, and the meanings of its places."""
        self._graph, self._keys, self._scopes, self._letters = graph, keys, scopes, letters
        self._places, self._first = {}, len(self.edges)
        size, slides = (window.size, int(window.sliding)) if window else (0, 0)
        together = int(clauses.together and size > 0)
        own = {"limit": clauses.limit, "consumes": clauses.consumes, "together": together, "reach": clauses.reach}
        self.windows.append({"size": size, "slides": slides, **own})
        leaving = edges_by_source(graph)
        self.width = max(self.width, *map(len, keys), 1)
        compared = {letter for edge in graph.edges for letter, _ in edge.compared}
        self.wide = max([self.wide, *(1 + column for each in compared for column in letters.columns_of(each).values())])
        indexes = tuple(self._edge(i, edge, leaving) for i, edge in enumerate(graph.edges))
        self.most = max([self.most, *(e["probe1"] - e["probe0"] for e in self.edges[self._first :])])
        for i, edge in enumerate(graph.edges, self._first):
            if edge.limit is not None and not edge.waits:
                self.moving.append(i)
            if edge.passes:
                (self.deciding_groups if edge.lasting else self.deciding).append(i)
        self.stricts = self.stricts or any(e.op is Op.STRICT and e.source != START for e in graph.edges)
        return indexes, tuple(self._places)

    @property
    def vector(self) -> int:
        """Length of the value vector."""
        return 1 + k.STRIDE * max(self.wide, self.width, self.eithers)

    @property
    def measure_count(self) -> int:
        """Most measures of a letter."""
        return max(map(len, self.measures.values()), default=0)

    def tables(
        self,
        letters: int,
        clauses: Clauses = NO_CLAUSES,
        *,
        counts_instants: bool = False,
        gone: Collection[int] = (),
    ) -> k.Tables:
        """The tables of all, over so many letters. gone: queries whose edges nothing starts or reaches any more."""
        there = [p for p, probe in enumerate(self.probes) if self.edges[probe["edge"]]["query"] not in gone]
        by_letter = {p: self.probes[p]["letter"] for p in there}
        starts_of, starts_at = _csr([p for p in there if self.probes[p]["index"] == k.STARTS], by_letter, letters)
        chained_of, chained_at = _csr([p for p in there if self.probes[p]["index"] == k.CHAINED], by_letter, letters)
        used = {self.probes[p]["signature"] for p in there}
        signatures = [(s, each) for s, each in enumerate(self.signatures) if s in used]
        by_letter = {s: each.letter for s, each in signatures}
        arms_of, arms_at = _csr([s for s, each in signatures if not each.guards], by_letter, letters)
        guards_of, guards_at = _csr([s for s, each in signatures if each.guards], by_letter, letters)
        led = {n for p in there for n in range(*(self.probes[p].get(end, 0) for end in ("lead0", "lead1")))}
        leads_of, leads_at = _csr(led, dict(enumerate(self.lead_letters)), letters)
        measured = [(at, at + len(code)) for n in range(letters) for code, at in self.measures.get(n, {}).items()]
        measures_at = np.cumsum([0, *(len(self.measures.get(n, ())) for n in range(letters))]).astype(np.int32)
        sizes = [
            self.width,
            self.wide,
            self.most,
            k.NOTES if clauses.notes else int(clauses.chooses),
            int(any(window["reach"] for window in self.windows)),
            int(clauses.partitioned),
            int(clauses.partitioned and counts_instants),
            len(self.moving),
            len(self.moving) + len(self.deciding) + len(self.deciding_groups),
            int(counts_instants),
            int(self.stricts),
        ]
        return k.Tables(
            _record(k.WINDOW, self.windows),
            _record(k.EDGE, self.edges),
            _record(k.PROBE, self.probes),
            _record(k.FILTER, self.filters),
            _record(k.LEAD, self.leads),
            _record(k.SIGNATURE, [*self.signatures.values()]),
            arms_of,
            arms_at,
            starts_of,
            starts_at,
            chained_of,
            chained_at,
            _pairs(measured, 2),
            measures_at,
            guards_of,
            guards_at,
            leads_of,
            leads_at,
            _pairs(self.equal, 2),
            _pairs(self.compatible, 2),
            _pairs(self.either, 3),
            np.array(self.uses or [0], np.int32),
            np.array(self.chain or [0], np.int32),
            _pairs(self.next, 2),
            _pairs(self.fill, 2),
            np.array(self.code or [0], np.int32),
            np.array(self.lasting or [(0, 0)], np.int64),
            np.array([*self.moving, *self.deciding, *self.deciding_groups] or [0], np.int32),
            np.array(sizes, np.int64),
        )

    # --- edges --------------------------------------------------------------------------------------

    def _edge(self, index: int, edge: Edge, leaving: Mapping[int, list[int]]) -> tuple[str, ...]:
        key = self._keys[index]
        slots = {value: slot for slot, value in enumerate(key)}
        first = len(self.probes)
        chained, words = edge.op is Op.STRICT and bool(edge.arms) and edge.source != START, []
        common = _common_slots(edge, slots) if chained else []
        guards = edge.guards if edge.source != START else ()
        places: list[Arm | GuardCheck | Move] = [*edge.arms, *guards, *edge.moves]
        for place in places:
            probe = self._probe(index, place, slots, len(self.probes) - first, common, chained, edge)
            if isinstance(place, Arm):
                self._arm(probe, place, slots, edge, leaving)
            elif isinstance(place, Move):
                self._move(probe, place, slots)
            if probe["index"] in (k.LIST, k.HEAP, k.STAMP):
                probe["signature"] = self._signature(probe, guards=isinstance(place, GuardCheck))
            self.probes.append(probe)
            alone = probe["index"] == k.LIST and not isinstance(place, GuardCheck)
            alone = alone and _takes_the_whole_key(place.check, key)
            words.append("key" if alone else _INDEX_NAMES[probe["index"]])
        self.edges.append(
            {
                "query": len(self.windows) - 1,
                "op": _OPS[edge.op],
                "width": len(key),
                "probe0": first,
                "probe1": len(self.probes),
                "waits": _waits_for(edge),
                "chained": len(common),
                "chain0": len(self.chain),
                "stamps": int(any(p["index"] == k.STAMP for p in self.probes[first:])),
                "part": slots.get(_PARTITION_VALUE, -1),
                "limit": k.NO_AGE if edge.limit is None else edge.limit,
                "then": -1 if edge.then is None else self._first + edge.then,
                "least": edge.least,
                "most": k.NEVER_CLOSES if edge.most is None else edge.most,
                "lasting0": len(self.lasting),
                "lasting1": len(self.lasting) + len(edge.lasting),
            }
        )
        self.chain += common
        if edge.then is not None and edge.limit is None:
            self.chain += [slots[value] for value in self._keys[edge.then]]
        self.lasting += [(slots[value], span) for value, span in edge.lasting]
        return tuple(words)

    def _probe(
        self,
        index: int,
        place: Arm | GuardCheck | Move,
        slots: Mapping[Value, int],
        local: int,
        common: list[int],
        chained: bool,
        edge: Edge,
    ) -> dict[str, int]:
        letter, columns, check = self._letters.number(place.letter), self._letters.columns_of(place.letter), place.check
        pairs = [(slots[value], columns[variable]) for variable, value in check.equal]
        pairs.sort(key=lambda pair: (pair[0] not in common, pair[0]) if chained else (pair[1], pair[0]))
        probe = {
            "edge": self._first + index,
            "local": local,
            "letter": letter,
            "signature": -1,
            "equal0": len(self.equal),
            "equal1": len(self.equal) + len(pairs),
            "compatible0": len(self.compatible),
            "compatible1": len(self.compatible) + len(check.compatible),
            "filter0": len(self.filters),
            "filter1": len(self.filters) + len(check.filters),
            "either0": len(self.either),
            "negated": k.NO_SLOT,
        }
        self.equal += pairs
        self.compatible += [(slots[value], columns[variable]) for variable, value in check.compatible]
        places = self._filters(check, slots, columns)
        probe["either1"] = len(self.either)
        if isinstance(place, Arm) and edge.source == START:
            probe["index"] = k.STARTS
        elif isinstance(place, Arm) and chained:
            probe["index"] = k.CHAINED
        elif isinstance(place, GuardCheck) and not check.filters and not check.compatible:
            probe["index"] = k.STAMP
        else:
            probe["index"] = k.LIST
            if isinstance(place, GuardCheck) or not _takes_the_whole_key(check, slots):
                self._heap(probe, check, places, letter)
        return probe

    def _signature(self, probe: dict[str, int], *, guards: bool) -> int:
        """The number of the probe's signature."""
        columns = tuple(column for _, column in self.equal[probe["equal0"] : probe["equal1"]])
        how = {name: probe.get(name, 0) for name in ("index", "measure", "sign")}
        signature = _CommonBuckets(probe["letter"], guards, columns, *how.values())
        first = {**how, "equal0": probe["equal0"], "equal1": probe["equal1"], "number": len(self.signatures)}
        return self.signatures.setdefault(signature, first)["number"]

    def _filters(
        self, check: Check, slots: Mapping[Value, int], columns: Mapping[Variable, int]
    ) -> list[Mapping[Variable, int]]:
        """Compile the filters of a check; per filter, the places of its variables in the value vector."""
        coalesced: dict[Either, int] = {}
        compiled: list[Mapping[Variable, int]] = []
        for condition in check.filters:
            places = {v: self._place(s, slots, columns, coalesced) for v, s in condition.sources}
            start = len(self.code)
            self._program(condition.condition, places)
            used = sorted(set(places.values()))
            self.filters.append(
                {"code0": start, "code1": len(self.code), "uses0": len(self.uses), "uses1": len(self.uses) + len(used)}
            )
            self.uses += used
            self.compiled.append(CompiledFilter(condition, tuple(places.items())))
            compiled.append(places)
        self.eithers = max(self.eithers, len(coalesced))
        return compiled

    def _place(
        self,
        source: Source,
        slots: Mapping[Value, int],
        columns: Mapping[Variable, int],
        coalesced: dict[Either, int],
    ) -> int:
        match source:
            case Column(variable):
                return k.COLUMN + k.STRIDE * columns[variable]
            case Kept(value):
                return k.KEY + k.STRIDE * slots[value]
            case Either(variable, value):
                if source not in coalesced:
                    coalesced[source] = k.COALESCED + k.STRIDE * len(coalesced)
                    self.either.append((coalesced[source], columns[variable], slots[value]))
                return coalesced[source]
            case _:
                return 0

    def _heap(self, probe: dict[str, int], check: Check, places: list[Mapping[Variable, int]], letter: int) -> None:
        """Index the first inequality that has the row on one side and the run on the other."""
        for condition, place in zip(check.filters, places, strict=True):
            sides = _inequality(condition)
            if sides is None:
                continue
            row_side, key_side, sign = sides
            measure = self._measure(letter, self._code(row_side, place))
            key0 = self._code(key_side, place)
            sole = len(check.filters) == 1 and not check.compatible
            probe |= {
                "index": k.HEAP,
                "measure": measure,
                "key0": key0,
                "key1": len(self.code),
                "sign": sign,
                "sole": int(sole),
            }
            return

    def _measure(self, letter: int, code0: int) -> int:
        """Which of the letter's measures it is whose code has just been written, from `code0` on."""
        known, code = self.measures.setdefault(letter, {}), tuple(self.code[code0:])
        if known.setdefault(code, code0) != code0:
            del self.code[code0:]
        return [*known].index(code)

    def _code(self, expression: Expression, places: Mapping[Variable, int]) -> int:
        start = len(self.code)
        self._program(expression, places)
        return start

    def _program(self, expression: Expression, places: Mapping[Variable, int]) -> None:
        code = compile_program(expression, places, self.terms).code
        self.code += [int(x) for x in code]
        self.depth = max(self.depth, int(code[1]))

    # --- arms ---------------------------------------------------------------------------------------

    def _arm(
        self,
        probe: dict[str, int],
        arm: Arm,
        slots: Mapping[Value, int],
        edge: Edge,
        leaving: Mapping[int, list[int]],
    ) -> None:
        fill = dict(arm.fill)
        columns, state = self._letters.columns_of(arm.letter), self._graph.states[arm.target]
        probe["place"] = self._place_of(state.position, edge.again)
        rowonly = True
        probe |= {"final": int(state.final), "next0": len(self.next)}
        if state.negated and ends_here(self._graph, leaving, arm.target):
            source = fill[LAST_NEGATED]
            probe["negated"] = slots[source.value] if isinstance(source, Kept) else k.AT_START
            rowonly = not isinstance(source, Kept)
        for following in leaving.get(arm.target, ()):
            self.next.append((self._first + following, len(self.fill)))
            for value in self._keys[following]:
                self.fill.append(self._fill_pair(fill[value], columns, slots))
                rowonly = rowonly and not any(True for _ in kept_values(fill[value]))
        probe |= {"next1": len(self.next), "rowonly": int(rowonly), "lead0": len(self.leads)}
        if edge.source == START:
            for guard in edge.guards:
                self._lead(guard.letter, arm.letter)
        probe["lead1"] = len(self.leads)

    def _move(self, probe: dict[str, int], move: Move, slots: Mapping[Value, int]) -> None:
        """Runs continue to an edge of the same gap, with the same key and no event more."""
        probe |= {"moves": 1, "next0": len(self.next), "next1": len(self.next) + 1}
        self.next.append((self._first + move.to, len(self.fill)))
        self.fill += [(-1, slot) for slot in range(len(slots))]

    def _fill_pair(
        self, source: Source, columns: Mapping[Variable, int], slots: Mapping[Value, int]
    ) -> tuple[int, int]:
        if not isinstance(source, Folded):
            return _fill_pair(source, columns, slots)
        places = [(v, self._place(Column(v), slots, columns, {})) for v in source.fold.variables]
        kept = None if source.value is None else self._place(Kept(source.value), slots, columns, {})
        used = [place for _, place in places] + ([] if kept is None else [kept])
        code, uses = len(self.code), len(self.uses)
        self.filters.append({"code0": code, "code1": code, "uses0": uses, "uses1": uses + len(used)})
        self.uses += used
        self.compiled.append(CompiledFold(source.fold, tuple(places), kept))
        return k.FROM_FOLD, len(self.filters) - 1

    def _place_of(self, position: int, again: int | None) -> int:
        place = self._places.setdefault((position, again), len(self._places))
        if place >= 1 << PLACE_BITS:
            raise LimitError(place + 1, 1 << PLACE_BITS, "ways into positions of the unrolled sequence")
        return place

    def _lead(self, negated: Letter, starting: Letter) -> None:
        shared = _shared(self._scopes, negated, starting)
        a, b = self._letters.columns_of(negated), self._letters.columns_of(starting)
        certain = self._scopes[negated].certain & self._scopes[starting].certain
        self.leads.append(
            {
                "equal0": len(self.equal),
                "equal1": len(self.equal) + len(shared),
                "compatible": int(not set(shared) <= certain),
                "part": shared.index(PARTITION) if PARTITION in shared else -1,
            }
        )
        self.equal += [(a[v], b[v]) for v in shared]
        self.lead_letters.append(self._letters.number(negated))


def _fill_pair(source: Source, columns: Mapping[Variable, int], slots: Mapping[Value, int]) -> tuple[int, int]:
    match source:
        case Column(variable):
            return columns[variable], -1
        case Kept(value):
            return -1, slots[value]
        case Either(variable, value):
            return columns[variable], slots[value]
        case RowClock():
            return k.FROM_CLOCK, k.FROM_CLOCK
        case NegatedClock():
            return k.FROM_NEGATED, k.FROM_NEGATED
        case RowTime():
            return k.FROM_TIME, k.FROM_TIME
        case Unbound() | Folded():
            raise AssertionError("no value of a state is unbound for sure, and folds have a number")


def _csr(items: Iterable[int], letter_of: Mapping[int, int], letters: int) -> tuple[Array, Array]:
    """Numbers by letter."""
    ordered = sorted(items, key=lambda i: (letter_of[i], i))
    counts = np.bincount([letter_of[i] for i in ordered], minlength=letters) if ordered else np.zeros(letters, np.int64)
    return np.array(ordered or [0], np.int32), np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


def _shared(scopes: Mapping[Letter, LetterScope], a: Letter, b: Letter) -> list[Variable]:
    return sorted(scopes[a].variables & scopes[b].variables, key=str)


def _arm_columns(arm: Arm, leaving: Mapping[int, list[int]], keys: Sequence[tuple[Value, ...]]) -> Iterable[Variable]:
    yield from _check_columns(arm.check)
    fill = dict(arm.fill)
    for following in leaving.get(arm.target, ()):
        for value in keys[following]:
            source = fill[value]
            if isinstance(source, Column | Either):
                yield source.variable
            elif isinstance(source, Folded):
                yield from source.fold.variables


def _takes_the_whole_key(check: Check, key: Collection[Value]) -> bool:
    """Whether equalities fix all values of an edge's key, so that there is one group at most."""
    return len(check.equal) == len(key) and not check.compatible


def _waits_for(edge: Edge) -> int:
    """What an edge waits for but rows."""
    if edge.counts is not None:
        return k.COUNTED_END
    return k.WINDOW_END if edge.waits else 0


def _check_columns(check: Check) -> Iterable[Variable]:
    for variable, _ in (*check.equal, *check.compatible):
        yield variable
    for condition in check.filters:
        for _, source in condition.sources:
            if isinstance(source, Column | Either):
                yield source.variable


def _common_slots(edge: Edge, slots: Mapping[Value, int]) -> list[int]:
    """Key slots that every arm compares by equality: the hash of a `,` edge."""
    per_arm = [{slots[value] for _, value in arm.check.equal} for arm in edge.arms]
    return sorted(set.intersection(*per_arm)) if per_arm else []


def _inequality(check: FilterCheck) -> tuple[Expression, Expression, int] | None:
    """(row side, run side, sign) of an inequality between the two; sign 1: the run's is the smaller."""
    condition = check.condition
    if not isinstance(condition, Call) or condition.name not in MIRRORED_ORDER or len(condition.args) != 2:
        return None
    if holds_exists(condition):
        return None
    sources = dict(check.sources)
    left, right = condition.args
    name = condition.name
    if _all(left, sources, Kept) and _all(right, sources, Column):
        left, right, name = right, left, MIRRORED_ORDER[name]
    if not (_all(left, sources, Column) and _all(right, sources, Kept)):
        return None
    return left, right, 1 if name.startswith(">") else -1


def _all(expression: Expression, sources: Mapping[Variable, Source], kind: type[Source]) -> bool:
    variables = expression_variables(expression)
    return bool(variables) and all(isinstance(sources[v], kind) for v in variables)
