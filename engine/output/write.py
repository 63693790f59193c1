"""Row ids of matches → answers: KB enrichment, scopes, expressions, DISTINCT.

In the flow: run → **answers** → rows for the user. Works on whole batches of matches; only SELECT
expressions are computed one by one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.bounds import MATCHES, InstantBound
from oxiseq.engine.kernels.matches.records import NO_LIMIT, PLACE_BITS
from oxiseq.engine.kernels.memory.pointers import Pointers, call
from oxiseq.engine.kernels.output.answers import AnswerColumns, write_answers
from oxiseq.engine.kernels.output.paths import choose, count_products, resolve, visible
from oxiseq.engine.kernels.sequence.letter_rows import RowBlock
from oxiseq.engine.matches.found import Found
from oxiseq.engine.matches.ranking import Ranking
from oxiseq.engine.matching.enrich import KbAnswer
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.output.compute import ExpressionColumns
from oxiseq.engine.output.parts import MatchRows
from oxiseq.engine.output.ranked import OfEnd, told
from oxiseq.engine.output.rows import KnownRows, RowStore
from oxiseq.engine.output.suppression import Suppressor, texts_of
from oxiseq.engine.output.window_ranks import Candidates, End, WindowRanks
from oxiseq.engine.plan.query import GpmPlan, QueryPlan
from oxiseq.engine.sequence.positions import Automaton
from oxiseq.engine.sequence.states import PARTITION
from oxiseq.engine.terms.dictionary import AnyIds, TermDictionary
from oxiseq.engine.terms.order import Key
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.grammar.places import suppression_keys
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class _Flat:
    """The rows of all matches one after the other, with their bindings. `origin`: of each match, which of those that
    were found it is made of; the knowledge base may make several of one. `at`: i64, when each of those is decided;
    None: with its last event."""

    block: RowBlock
    ids: NDArray[np.int64]
    places: NDArray[np.int32]
    ends: NDArray[np.int64]
    values: NDArray[np.uint32]
    origin: NDArray[np.int64]
    at: NDArray[np.int64] | None = None

    @property
    def time(self) -> NDArray[np.int64]:
        """When each match ends."""
        return self.block.time[self.ends[1:] - 1]

    @property
    def decided(self) -> NDArray[np.int64] | None:
        """When each match is decided; None: at its end."""
        return None if self.at is None else self.at[self.origin]


class AnswerWriter:
    """Writes the matches of one query."""

    def __init__(self, plan: QueryPlan, terms: TermDictionary) -> None:
        self._plan = plan
        self._terms = terms
        self._late = enriched_gpms(plan)
        enriched = [v for g in self._late for v in g.parts.kb_variables]
        stored, written = plan.runner.stored, plan.runner.written
        wanted = [v for v in (*stored, *enriched) if v in written.wanted or v in stored]
        self._variables = tuple(dict.fromkeys(wanted))
        self._index = {v: i for i, v in enumerate(self._variables)}
        self._again, self._inside = _repeats(plan.runner.automaton, plan.runner.sequence.places)
        self._expressions = ExpressionColumns(plan, self._variables, terms)
        ranking = plan.ranking
        self._suppressor = None
        if plan.query.suppression is not None and plan.summary is None:
            keys, limit, partition = suppression_keys(plan.query, grouped=False), plan.query.limit, plan.query.partition
            shown = [column.expression or column.variable for column in written.columns]
            most = None if limit is None else limit.count
            self._suppressor = Suppressor(plan.query.suppression, len(keys), most, shown)
            self._apart = [self._index.get(v) for v in keys]
            self._shares = [self._index.get(v) for v in (() if partition is None else partition.by)]
            self._named = [self._index[v] for v in sorted(self._index, key=lambda v: v.value)]
            self._defined = _defined(plan)
        self.ranks = None
        if ranking is not None and ranking.window is not None:
            self.ranks = WindowRanks(ranking, ranking.window, terms)
        self.paged = 0
        """Of how many listed matches a page was taken."""
        self._left_out: dict[int, tuple[InstantBound, int]] = {}
        """Instants of which the knowledge base makes too many matches; none between batches."""
        self._seen: dict[tuple[int, int], set[bytes]] = {}
        """By end, and when it is decided."""
        computed = any(column.expression is not None for column in written.columns)
        checked = computed or written.filters or written.distinct or plan.ranking is not None
        checked = checked or self._suppressor is not None
        self._plain = not (plan.runner.automaton.ambiguous or plan.runner.limit or self._late or checked)
        self._pointers = Pointers(self._answer_columns())

    def _answer_columns(self) -> AnswerColumns:
        stored = {v: i for i, v in enumerate(self._plan.runner.stored)}
        columns = [stored.get(column.variable, -1) for column in self._plan.runner.written.columns]
        inside = np.ascontiguousarray(self._inside, np.uint8)
        return AnswerColumns(self._again, inside, np.array(columns, np.int32), np.zeros((inside.shape[1], 1), np.uint8))

    def write(self, found: Found, rows: RowStore, start: int = 0, drawn_from: Sequence[int] = ()) -> list[MatchBatch]:
        """The answers for a run's matches; rows of the store are read now, ids mean nothing later. Those that windows
        report when they close are kept in `ranks`: `start` is the window's t; `drawn_from`, where matches are samples:
        of how many, end by end. For what is left out see `take_left_out`."""
        batch = self._write_plain(found, rows) if self._plain else self._write_any(found, rows, start, drawn_from)
        self._expressions.forget()
        self._terms.hold(batch.values)
        return [batch] if len(batch) else []

    @property
    def written(self) -> Hashable | None:
        """The same in writers that write the same for the same matches, each by itself; None: in no other."""
        arrays = self._pointers.arrays
        return tuple((array.shape, array.tobytes()) for array in arrays[:3]) if self._plain else None

    def write_all(self, found: Found, rows: RowStore) -> MatchBatch:
        """The answers for matches of several queries whose `written` this has."""
        batch = self._write_plain(found, rows)
        self._terms.hold(batch.values)
        return batch

    def passing(self, found: Found, rows: KnownRows) -> NDArray[np.int64]:
        """Which matches pass the FILTERs behind SEQ, with some of the mappings that the knowledge base gives them."""
        flat = self._gather(found, rows)
        for gpm in self._late:
            flat = self._enrich(gpm, flat, rows)
        passing = self._expressions.passing(_match_rows(self._resolved(flat), flat))
        self._expressions.forget()
        return np.unique(flat.origin[passing])

    def _write_any(self, found: Found, rows: RowStore, start: int, drawn_from: Sequence[int]) -> MatchBatch:
        if self._plan.runner.automaton.ambiguous:
            found = _without_repeats(found)
        flat = self._gather(found, rows)
        ranking = self._plan.ranking
        for gpm in self._late:
            flat = self._enrich(gpm, flat, rows)
        if self._plan.runner.written.filters:
            flat = _taken(flat, self._expressions.passing(_match_rows(self._resolved(flat), flat)))
        if self._plan.runner.limit is not None:
            flat = _first_of_each_end(flat, self._plan.runner.limit, self._index.get(PARTITION))
        if self._suppressor is not None:
            flat = _taken(flat, self._in_order(flat))
        ends: list[OfEnd] = []
        if ranking is not None:
            ends = self._told(flat, ranking)
            flat = _taken(flat, np.array([m for end in ends for m in end.told], np.int64))
        dropped = None
        if self._suppressor is not None:
            flat, dropped = self._unsuppressed(self._suppressor, flat)
        resolved = self._resolved(flat)
        time = flat.time
        values = self._columns(resolved, flat, dropped)
        batch = MatchBatch(time, values, flat.ends, flat.block.letter, flat.block.time, flat.decided)
        if self.ranks is not None:
            counts = drawn_from or [end.total for end in ends]
            self._keep(self.ranks, batch, flat, [len(end.told) for end in ends], counts, start)
            return batch.take(np.zeros(0, np.int64))
        if self._plan.runner.written.distinct and len(batch):
            batch = self._distinct(batch)
        return batch

    def _keep(
        self,
        ranks: WindowRanks,
        batch: MatchBatch,
        flat: _Flat,
        sizes: Sequence[int],
        counts: Sequence[int],
        start: int,
    ) -> None:
        """Have matches kept until their windows close. `sizes`: how many are of each end, `counts`: of how many they
        were chosen."""
        matches = _match_rows(self._resolved(flat), flat)
        keys = np.zeros((len(batch), len(ranks.order_by)), np.uint32)
        for place, expression in enumerate(ranks.order_by):
            keys[:, place] = self._expressions.ranked(expression, matches)
        highs = np.cumsum(sizes).tolist()
        ends = [End(high - size, high, count) for size, high, count in zip(sizes, highs, counts, strict=True) if size]
        ranks.hold(Candidates(batch, keys, flat.block.clock[flat.ends[1:] - 1], flat.ids), ends, start)

    def _told(self, flat: _Flat, ranking: Ranking) -> list[OfEnd]:
        """What ORDER BY and SAMPLE leave of the matches of each end, or a page of those of one."""
        if ranking.page is not None and ranking.listed is not None:
            count = len(flat.ends) - 1
            before, self.paged = self.paged, self.paged + count
            first = max(ranking.offset - before, 0)
            return [OfEnd(range(count)[first : max(ranking.offset + ranking.page.size - before, 0)], count)]
        matches = _match_rows(self._resolved(flat), flat) if ranking.order_by else None

        def keys(m: int) -> list[Key]:
            assert matches is not None
            return [self._expressions.rank(expression, matches, m) for expression, _ in ranking.order_by]

        if self._suppressor is not None:  # in order, those of all partitions
            return told(ranking, flat.time, None, list(np.arange(len(flat.ends) - 1)[:, None]), keys)
        return told(ranking, *self._ends(flat), np.split(flat.ids, flat.ends[1:-1]), keys)

    def _ends(self, flat: _Flat) -> tuple[NDArray[np.int64], NDArray[np.uint32] | None]:
        """When each match ends, and in which partition."""
        last, column = flat.ends[1:] - 1, self._index.get(PARTITION)
        return flat.block.time[last], None if column is None else flat.values[last, column]

    def _resolved(self, flat: _Flat) -> NDArray[np.uint32]:
        """The bindings of each match: u32[matches, variables]."""
        shown = np.zeros(len(flat.places), np.bool_)
        visible(flat.places, flat.ends, self._again, self._inside, shown)
        resolved = np.zeros((len(flat.ends) - 1, len(self._variables)), np.uint32)
        resolve(flat.values, shown, flat.ends, resolved)
        return resolved

    def save(self, rows: RowStore, terms: SavedTerms) -> State:
        """What DISTINCT remembers, and what the KB has answered, as far as it concerns the rows held: those rows are
        enriched by what held for them, whatever the KB says when the run continues."""
        width = len(self._plan.runner.written.columns)
        known = [row for end in sorted(self._seen) for row in sorted(self._seen[end])]
        values = np.frombuffer(b"".join(known), np.uint32).reshape(len(known), width) if width else None
        return {
            "suppressed": None if self._suppressor is None else self._suppressor.save(terms),
            "ranks": None if self.ranks is None else self.ranks.save(terms),
            "ends": np.array([end for end, at in sorted(self._seen) for _ in self._seen[end, at]], np.int64),
            "decided": np.array([at for end, at in sorted(self._seen) for _ in self._seen[end, at]], np.int64),
            "known": None if values is None else terms.ids(values),
            "epochs": [self._save_answers(epoch, rows, terms) for epoch in rows.held_epochs],
        }

    def _save_answers(self, epoch: int, rows: RowStore, terms: SavedTerms) -> State:
        block, answers, saved = rows.block, rows.answers(epoch), {}
        for gpm in self._late:
            assert gpm.kb is not None
            if gpm.name not in answers:  # it has no rows of then
                continue
            letters = np.array([gpm.name in plan.letter for plan in self._plan.letters])
            mine = np.flatnonzero(letters[block.letter] & (block.epoch == epoch))
            shared = [self._plan.runner.stored.index(v) for v in gpm.kb.shared]
            saved[gpm.name] = answers[gpm.name].save(terms, block.stored[mine][:, shared])
        return saved

    def restore(self, state: State, terms: KnownTerms) -> list[dict[str, KbAnswer]]:
        """Continues with the saved rows; returns the answers for the rows, by epoch."""
        if self.ranks is not None:
            self.ranks.restore(state["ranks"], terms)
        if self._suppressor is not None:
            self._suppressor.restore(state["suppressed"], terms)
        values = state["known"]
        rows = [b""] * len(state["ends"]) if values is None else [row.tobytes() for row in terms.ids(values)]
        self._seen = {}
        decided = state["decided"] if "decided" in state else state["ends"]  # earlier versions did not know
        for end, at, row in zip(state["ends"].tolist(), decided.tolist(), rows, strict=True):
            self._seen.setdefault((end, at), set()).add(row)
        patterns = {gpm.name: gpm.kb for gpm in self._late if gpm.kb is not None}
        return [
            {name: patterns[name].restored(answer, terms) for name, answer in epoch.items()}
            for epoch in state["epochs"]
        ]

    @property
    def remembered(self) -> int:
        """How many rows DISTINCT remembers, keys SUPPRESS, and matches that wait for their windows to close."""
        waiting = 0 if self.ranks is None else self.ranks.records
        waiting += 0 if self._suppressor is None else len(self._suppressor)
        return waiting + sum([len(rows) for rows in self._seen.values()])

    def held_ids(self) -> Iterator[AnyIds]:
        """The rows that DISTINCT remembers, the keys of SUPPRESS, and the matches that wait."""
        if self._suppressor is not None:
            yield from self._suppressor.held_ids()
        if self.ranks is not None:
            yield from self.ranks.held_ids()
        for rows in self._seen.values():
            yield np.frombuffer(b"".join(rows), np.uint32)

    def _write_plain(self, found: Found, rows: RowStore) -> MatchBatch:
        """Every column is a variable that rows bind."""
        n, f = len(found), len(found.rows)
        time, event_letter, event_time = np.empty(n, np.int64), np.empty(f, np.int32), np.empty(f, np.int64)
        values = np.empty((n, len(self._plan.runner.written.columns)), np.uint32)
        call(
            write_answers,
            self._pointers,
            rows.pointers,
            rows.offset,
            found.rows,
            found.ends,
            time,
            values,
            event_letter,
            event_time,
        )
        return MatchBatch(time, values, found.ends, event_letter, event_time, found.at)

    def _gather(self, found: Found, rows: KnownRows) -> _Flat:
        block = rows.take(found.rows >> PLACE_BITS)
        places = (found.rows & ((1 << PLACE_BITS) - 1)).astype(np.int32)
        values = np.zeros((len(places), len(self._variables)), np.uint32)
        values[:, : len(self._plan.runner.stored)] = block.stored
        return _Flat(block, found.rows >> PLACE_BITS, places, found.ends, values, np.arange(len(found)), found.at)

    def _enrich(self, gpm: GpmPlan, flat: _Flat, rows: KnownRows) -> _Flat:
        """Join the rows of a late GPM with the KB answer that they were checked against."""
        assert gpm.kb is not None
        letters = np.array([gpm.name in plan.letter for plan in self._plan.letters])
        mine = np.flatnonzero(letters[flat.block.letter])
        counts = np.ones((len(flat.places), 1), np.int64)
        shared = [self._index[v] for v in gpm.kb.shared]
        asked: list[tuple[int, NDArray[np.int64], NDArray[np.uint32], NDArray[np.int64], NDArray[np.int64]]] = []
        for epoch in np.unique(flat.block.epoch[mine]).tolist():
            at = mine[flat.block.epoch[mine] == epoch]
            keys, inverse = np.unique(flat.values[at][:, shared], axis=0, return_inverse=True)
            keys, inverse = np.ascontiguousarray(keys), inverse.reshape(-1)
            sizes = rows.answers(epoch)[gpm.name].partners(keys)
            counts[at, 0] = sizes[inverse]
            asked.append((epoch, at, keys, inverse, sizes))
        kept = self._within(flat, counts[:, 0])
        if len(kept) < len(flat.ends) - 1:
            return self._enrich(gpm, _taken(flat, kept), rows)
        per_row: dict[int, list[NDArray[np.int64]]] = {}
        for epoch, at, keys, inverse, sizes in asked:
            _, kb_row = rows.answers(epoch)[gpm.name].join(keys)
            starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
            per_row[epoch] = [at, starts[inverse], kb_row]
        source, choice, ends = _expand(counts, flat.ends)
        block = flat.block
        values = flat.values[source]
        columns = [
            (i, self._index[v]) for i, v in enumerate(self._answer_variables(gpm, rows, per_row)) if v in self._index
        ]
        for epoch, (at, starts, kb_row) in per_row.items():
            first = np.full(len(flat.places), -1, np.int64)
            first[at] = starts
            here = np.flatnonzero(first[source] >= 0)
            chosen = kb_row[first[source[here]] + choice[here, 0]]
            answer = rows.answers(epoch)[gpm.name]
            for i, column in columns:
                ids = answer.columns[chosen, i]
                values[here, column] = np.where(ids != 0, ids, values[here, column])
        taken = RowBlock(*[column[source] for column in block])
        origin = flat.origin[np.searchsorted(flat.ends, source[ends[:-1]], "right") - 1]
        return _Flat(taken, flat.ids[source], flat.places[source], ends, values, origin, flat.at)

    def _within(self, flat: _Flat, counts: NDArray[np.int64]) -> NDArray[np.intp]:
        """The matches of instants at which, with so many answers of the knowledge base for each row, no more end than
        are listed; notes the others."""
        if not len(counts):
            return np.arange(len(flat.ends) - 1)
        ways = np.multiply.reduceat(counts.astype(np.float64), flat.ends[:-1])
        times, place = np.unique(flat.time, return_inverse=True)
        given = np.bincount(place, ways)
        beyond = given > self._terms.bounds.matches
        for time, count in zip(times[beyond].tolist(), given[beyond].tolist(), strict=True):
            self._left_out[time] = MATCHES, int(min(count, NO_LIMIT))
        return np.flatnonzero(~beyond[place])

    def take_left_out(self) -> dict[int, tuple[InstantBound, int]]:
        """The instants since the last call of which the knowledge base makes more matches than are listed."""
        left_out, self._left_out = self._left_out, {}
        return left_out

    @staticmethod
    def _answer_variables(
        gpm: GpmPlan, rows: KnownRows, per_row: dict[int, list[NDArray[np.int64]]]
    ) -> tuple[Variable, ...]:
        for epoch in per_row:
            return rows.answers(epoch)[gpm.name].variables
        return ()

    def _unsuppressed(self, suppressor: Suppressor, flat: _Flat) -> tuple[_Flat, NDArray[np.int64]]:
        """The matches that SUPPRESS and LIMIT leave of some in order, and how many have been dropped before each."""
        resolved, at = self._resolved(flat), flat.time if flat.decided is None else flat.decided
        shares = np.column_stack([flat.time, _values_of(resolved, self._shares).astype(np.int64)])
        share = np.unique(shares, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
        emitted = suppressor.emitted(np.ascontiguousarray(at), _values_of(resolved, self._apart), share)
        return _taken(flat, emitted.rows), emitted.dropped

    def _in_order(self, flat: _Flat) -> NDArray[np.int64]:
        """The numbers of matches in the order of semantics.md 2.6a."""
        at = flat.time if flat.decided is None else flat.decided
        order = np.lexsort((flat.time, at))
        if len(order) < 2:
            return order
        new = np.flatnonzero((np.diff(at[order]) != 0) | (np.diff(flat.time[order]) != 0)) + 1
        ties = [(low, high) for low, high in pairwise([0, *new.tolist(), len(order)]) if high - low > 1]
        if not ties:
            return order
        texts = texts_of(self._resolved(flat)[:, self._named], self._terms)
        for low, high in ties:
            some = order[low:high].tolist()
            order[low:high] = sorted(some, key=lambda m: (*self._events_of(flat, m), texts[m]))
        return order

    def _events_of(self, flat: _Flat, m: int) -> tuple[list[tuple[int, int]], list[list[tuple[int, int]]]]:
        """The events of match `m`, each with its time and its stream's place: all, and those of each GPM."""
        first, last = int(flat.ends[m]), int(flat.ends[m + 1])
        of_gpms: list[set[tuple[int, int]]] = [set() for _ in self._plan.query.gpms]
        times, letters = flat.block.time[first:last].tolist(), flat.block.letter[first:last].tolist()
        for time, letter in zip(times, letters, strict=True):
            for gpm, stream in self._defined[letter]:
                of_gpms[gpm].add((time, stream))
        return sorted(set().union(*of_gpms)), [sorted(events) for events in of_gpms]

    def _columns(
        self, resolved: NDArray[np.uint32], flat: _Flat, dropped: NDArray[np.int64] | None
    ) -> NDArray[np.uint32]:
        answer = self._plan.runner.written
        values = np.zeros((len(resolved), len(answer.columns)), np.uint32)
        for i, column in enumerate(answer.columns):
            if column.expression is None and column.variable in self._index:
                values[:, i] = resolved[:, self._index[column.variable]]
        self._expressions.fill(_match_rows(resolved, flat, dropped), values)
        return values

    def _distinct(self, batch: MatchBatch) -> MatchBatch:
        """Equal rows of equal end once, if they are decided together. Matches come in order of that moment, so those of
        earlier ones are forgotten."""
        keep = []
        for i, (end, at) in enumerate(zip(batch.time.tolist(), batch.at.tolist(), strict=True)):
            seen = self._seen.setdefault((end, at), set())
            row = batch.values[i].tobytes()
            if row not in seen:
                seen.add(row)
                keep.append(i)
        newest = int(batch.at.max())
        self._seen = {key: known for key, known in self._seen.items() if key[1] == newest}
        return batch.take(np.array(keep, np.int64))


def _defined(plan: QueryPlan) -> list[list[tuple[int, int]]]:
    """Of each letter its GPMs: their places among DEFINE's, those of their streams among FROM STREAM's."""
    streams = list(dict.fromkeys(stream.iri for stream in plan.query.streams))
    iris = {stream.name: stream.iri for stream in plan.query.streams}
    gpms = {gpm.name: (place, streams.index(iris[gpm.stream])) for place, gpm in enumerate(plan.query.gpms)}
    return [[gpms[name] for name in letter.letter] for letter in plan.letters]


def enriched_gpms(plan: QueryPlan) -> list[GpmPlan]:
    """The GPMs whose rows in matches are joined with the KB's answers."""
    positive = {name for letter in plan.letters if letter.positive for name in letter.letter}
    return [gpm for gpm in plan.runner.gpms.values() if gpm.enriched and gpm.name in positive]


def _first_of_each_end(flat: _Flat, limit: int, partition: int | None) -> _Flat:
    """The first `limit` matches of each end and partition (a column), which are adjacent."""
    last = flat.ends[1:] - 1
    time = flat.block.time[last]
    if not len(time):
        return flat
    number = np.arange(len(time))
    begins = np.concatenate([[True], time[1:] != time[:-1]])
    if partition is not None:
        own = flat.values[last, partition]
        begins[1:] |= own[1:] != own[:-1]
    keep = np.flatnonzero(number - np.maximum.accumulate(np.where(begins, number, 0)) < limit)
    return _taken(flat, keep)


def _values_of(resolved: NDArray[np.uint32], columns: Sequence[int | None]) -> NDArray[np.uint32]:
    """Some columns, C-contiguous; where there is none, nothing is bound."""
    found = np.zeros((len(resolved), len(columns)), np.uint32)
    for place, column in enumerate(columns):
        if column is not None:
            found[:, place] = resolved[:, column]
    return found


def _match_rows(resolved: NDArray[np.uint32], flat: _Flat, dropped: NDArray[np.int64] | None = None) -> MatchRows:
    at = flat.time if flat.decided is None else flat.decided
    return MatchRows(resolved, flat.values, flat.ends, flat.block.letter, flat.block.time, at, dropped)


def _taken(flat: _Flat, keep: NDArray[np.int64]) -> _Flat:
    """Those matches, in that order."""
    sizes = np.diff(flat.ends)[keep]
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    at = np.repeat(flat.ends[:-1][keep] - ends[:-1], sizes) + np.arange(ends[-1])
    block = RowBlock(*[column[at] for column in flat.block])
    return _Flat(block, flat.ids[at], flat.places[at], ends, flat.values[at], flat.origin[keep], flat.at)


def _expand(
    counts: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    ways = np.zeros(len(ends) - 1, np.int64)
    count_products(counts, ends, ways)
    total = int((ways * np.diff(ends)).sum())
    source = np.zeros(total, np.int64)
    choice = np.zeros((total, counts.shape[1]), np.int64)
    new_ends = np.zeros(int(ways.sum()) + 1, np.int64)
    choose(counts, ends, ways, source, choice, new_ends)
    return source, choice, new_ends


def _repeats(
    automaton: Automaton, places: Sequence[tuple[int, int | None]]
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Per place the repeat that restarts there (-1: none), and in which repeats it lies."""
    repeats = 1 + max((loop for p in automaton.positions for loop in p.loops), default=0)
    again = np.array([-1 if repeat is None else repeat for _, repeat in places], np.int32)
    inside = np.zeros((len(places), repeats), np.bool_)
    for i, (position, _) in enumerate(places):
        inside[i, list(automaton.positions[position].loops)] = True
    return again, inside


def _without_repeats(found: Found) -> Found:
    """A match that two paths have found is one match."""
    rows, ends = found.rows >> PLACE_BITS, found.ends
    seen: set[bytes] = set()
    keep = []
    for i in range(len(found)):
        key = rows[ends[i] : ends[i + 1]].tobytes()
        if key not in seen:
            seen.add(key)
            keep.append(i)
    return found.take(np.array(keep))
