"""One EP-SPARQL query over its streams: events in, answers out. All its state is here.

    push ─ arrivals ─ events of complete instants ─ facts ─ rules, stratum by stratum ─ the query's operators ─ answers

Instants are processed many at a time, unless rules feed each other: then one by one, each to its fixpoint.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.bounds import MADE, ROUNDS, ROWS, TRIPLES
from oxiseq.engine.errors import LimitError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.faults import Faults, Unfit
from oxiseq.engine.flow.delta import Buffer, Delta
from oxiseq.engine.flow.epsparql.facts import FACT, Arriving, Known, Piece, Stamps, at_tick, merged
from oxiseq.engine.flow.epsparql.knowledge import KnowledgeReader
from oxiseq.engine.flow.epsparql.query import IntervalPlan
from oxiseq.engine.flow.epsparql.rules import Rules
from oxiseq.engine.flow.epsparql.standing import Query, Standing
from oxiseq.engine.flow.flow import Flow
from oxiseq.engine.flow.ordering import in_order_of_time
from oxiseq.engine.flow.times import NEVER
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.kernels.flow.facts import read_rows
from oxiseq.engine.kernels.flow.moments import INTERVAL
from oxiseq.engine.kernels.memory.pointers import call
from oxiseq.engine.omissions import raised
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.run.concern import Concern, keys_in, predicate_of
from oxiseq.engine.run.family import Candidate, Family, Kept, OneQuery, in_groups
from oxiseq.engine.run.resets import Resets
from oxiseq.engine.run.with_kb import KbRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SameTerms, SavedTerms, State, record, unsaved, value
from oxiseq.grammar.algebra import Construct
from oxiseq.grammar.epsparql.rules import Stratum

START, END = 0, 1
"""Letters of an answer's interval."""
CHUNK: Final = 1 << 16
"""Triples processed at a time, as far as instants allow, so that memory does not grow with a batch."""
_MANY: Final = 64
"""Facts of a piece from which on it may leave much behind that is of no use any more."""
_CHOSEN: Final = 1 << 9
"""The same where solutions are chosen: operators find all that there could be in so many."""


class IntervalRun(KbRun):
    """The running state of an EP-SPARQL query. `lateness` in microseconds; events before `start` are not seen.

    A row of an answer has two events, with the letters START and END and the times of its interval. `faults`: events
    that are no intervals, since they start after they end, are left out.
    """

    made_of = *KbRun.made_of, record("faults", Faults), value("_completed"), unsaved("_flows")

    __slots__ = ("one",)  # as there
    one: OneQuery
    """The query's own part."""
    fits: Hashable = "intervals"

    def __init__(
        self,
        plan: IntervalPlan | OneQuery,
        terms: TermDictionary,
        kb: KnowledgeBase,
        start: int | None = None,
        lateness: int = 0,
        family: Family | None = None,
    ) -> None:
        self.one = plan if isinstance(plan, OneQuery) else OneQuery(plan)
        plan = self.one.plan
        self._family = Family(self.one, terms) if family is None else family
        self._emitted: list[MatchBatch] = []
        """What `advance` had found when it raised an error."""
        super().__init__(terms, kb, plan.streams, start, lateness)
        self.resets, self.faults = Resets(), Faults()
        self._completed = 0
        self._knowledge = self._kb.materialised("knowledge", KnowledgeReader(self._family.plans, terms, self._blanks))
        self._version: int | None = None
        """Of the KB that has been returned."""
        self._stamps = Stamps(terms)
        self._most = 1 if plan.one_by_one else CHUNK if plan.answered.uses is None else _CHOSEN
        self._begun: _Operators | None = None  # a query among many may never see an event that concerns it
        terms.register(self)

    def another(self) -> Self:
        return self._another(None)

    def _another(self, family: Family | None) -> Self:
        return type(self)(self.one, self._terms, self._kb.present, self.order.start, self.lateness, family)

    @property
    def plan(self) -> IntervalPlan:
        return self.one.plan

    # --- with others that are alike ---------------------------------------------------------------------

    @property
    def shares(self) -> bool:
        """Whether its state is that of others, too, which are not equal."""
        return self._family.tabled

    @property
    def alike(self) -> Hashable | None:
        return self.one.alike

    @property
    def number(self) -> int:
        return self._family.number(self.one)

    def may_share(self, other: Self) -> bool:
        begun = other._begun is not None or other._knowledge.made
        return other._family.has(self.one) or not begun

    def share(self, other: Self) -> None:
        other._family.take_in(self.one)
        super().share(other)

    @property
    def unites(self) -> bool:
        return self.one.alike is not None

    def expect(self, others: Sequence[Self]) -> None:
        self._family.expect([other._family for other in others])

    def unite(self, others: Sequence[Self]) -> Sequence[Sequence[Self]]:
        found: list[Sequence[Self]] = []
        for (host, kept), *rest in in_groups([self, *others]):
            same = [each for each in rest if each[0].order.same(host.order)]
            taken = host._absorb(kept, same) if same else ()
            if taken:
                found.append((host, *taken))
        return found

    @property
    def kept(self) -> Kept | None:
        """Its rows that have a time; None for none."""
        if self._begun is None:
            return None
        self.collect()
        terms = SavedTerms(self._terms)
        found = Kept([part.save(terms, None) for part in self._parts], self._begun.query.standing.numbered)
        return None if found.is_nothing else found

    @property
    def family(self) -> Family:
        """The queries that are in its state."""
        return self._family

    @property
    def is_steady(self) -> bool:
        """Whether its state depends only on events, and on the present knowledge base: blank nodes of that stand
        in the order in which each query meets them."""
        whole = not any(part.flow.failed for part in self._parts) and not self._left
        return whole and not self._kb.waits and not len(self._blanks.ids)

    def _absorb(self, kept: Kept | None, others: Sequence[Candidate[Self]]) -> list[Self]:
        """Takes over the state of others, too; returns which. The knowledge base's content is emitted again."""
        taken: list[Self] = []
        own: list[tuple[Kept, Mapping[int, int]]] = []
        known = {constants: (kept, number) for constants, number in self._family.members}
        for other, theirs in others:
            new = {constants: (theirs, number) for constants, number in other._family.members}
            if any(self._own(*known[equal]) != self._own(*new[equal]) for equal in known.keys() & new.keys()):
                continue  # an equal query, which has seen something else
            known |= new
            numbers = self._family.absorb(other._family)
            self._completed = max(self._completed, other._completed)
            taken.append(other)
            if theirs is not None:
                ids = self._family.ids(numbers).tolist(), self._family.ids(numbers.values()).tolist()
                own.append((theirs, dict(zip(*ids, strict=True))))
        self._begin_anew([] if kept is None else kept.with_others(own))
        return taken

    def _own(self, kept: Kept | None, number: int) -> bytes:
        """A digest of a query's own part."""
        return b"" if kept is None else kept.of(int(self._family.ids([number])[0]))

    def _begin_anew(self, parts: Sequence[State]) -> None:
        """Makes the plan again, of all queries that it has now; parts: the kept rows, none for nothing."""
        tick = 1 if self._begun is None else self._begun.arriving.tick
        self._begun, self._version = None, None
        self._knowledge.made.clear()
        if not parts:
            self._family.begin_anew()
            return
        self._work.arriving.tick = tick
        for part, saved in zip(self._parts, parts, strict=True):
            part.flow.restore(deepcopy(saved), SameTerms(self._terms))

    def part(self, terms: TermDictionary) -> None:
        alone = self._another(self._family.copy())
        alone._restore(deepcopy(self._saved(SavedTerms(terms), None)), SameTerms(terms))
        alone._had = dict(self._had)
        self.share(alone)

    def narrow(self, others: Sequence[Self]) -> None:
        kept = {run.number: run.one for run in others}
        if self._begun is None or not self._family.tabled or 2 * len(kept) > len(self._family):
            return
        self._tidy(now=True)
        self._family.narrow(kept.values())
        self._begun.query.standing.keep_of(self._family.ids(kept))

    def of_each(self, found: Sequence[Any]) -> Mapping[int, Sequence[Any]] | None:
        if not self._family.tabled:
            return None
        each: dict[int, list[MatchBatch]] = {}
        for batch in found:
            whole = batch.take(np.argsort(batch.values[:, 0], kind="stable"))
            ids, first = np.unique(whole.values[:, 0], return_index=True)
            whole.values = np.ascontiguousarray(whole.values[:, 1:])
            for number, own in zip(self._family.numbers(ids), whole.cut([*first.tolist(), len(whole)]), strict=True):
                each.setdefault(number, []).append(own)
        return each

    def advance_all(self) -> list[MatchBatch]:
        found = [*self.left(), *super().advance()]
        if omitted := self._streak.take():
            self.omitted, self._emitted = self.omitted.more(omitted), found
            raise raised(omitted)
        return found

    def left(self) -> list[MatchBatch]:
        found, self._emitted = self._emitted, []
        return found

    def advance(self) -> list[MatchBatch]:
        found = self.advance_all()
        each = self.of_each(found)
        return found if each is None else [*each.get(self.number, ())]

    def counted(self, found: list[MatchBatch]) -> list[MatchBatch]:
        whole = self.put_together(found)
        for batch in whole:
            counts: Iterable[tuple[int, int]] = [(self.number, len(batch))]
            if self._family.tabled:
                ids, count = np.unique(batch.values[:, 0], return_counts=True)
                counts = zip(self._family.numbers(ids), count.tolist(), strict=True)
            for number, more in counts:
                self._had[number] = self._had.get(number, 0) + more
        return whole

    # --- its parts ---------------------------------------------------------------------------------------

    @property
    def concern(self) -> Concern | None:
        """An answer ends with an event that has a triple of a pattern of the query, or of a rule, that is not only kept
        for a later one; triples that are kept are needed then."""
        keys, waking = self._family.keys, self._family.waking
        if keys is None or waking is None:
            return None
        kept, reach = frozenset(map(predicate_of, keys - waking)), self._family.reach
        return Concern(
            dict.fromkeys(self.plan.streams, waking),
            needed=self._stamps.predicates,
            kept=kept,
            reach=None if reach >= NEVER else reach,
        )

    def reserve(self) -> None:
        assert self._work is self._begun

    @property
    def _work(self) -> _Operators:
        if self._begun is None:
            self._begun = _Operators(self.plan, self._family, self._terms, self._most)
        return self._begun

    @property
    def _parts(self) -> Sequence[Standing]:
        return () if self._begun is None else self._begun.parts

    def _are_nothing(self, events: EventBatch) -> bool:
        """Whether nothing comes of events that are the first ones."""
        keys = self._family.keys
        if self._begun is not None or keys is None:
            return False
        return next(keys_in(events, keys, {predicate_of(key) for key in keys}), None) is None

    @property
    def reads_kb(self) -> bool:
        """Every pattern may see the knowledge base's default graph."""
        return True

    # --- events -----------------------------------------------------------------------------------------

    def push(self, stream: str, batch: EventBatch) -> Any:
        """Take events of a stream in order of arrival; returns the late ones, if any. Call `advance` for answers.

        Events that are no intervals are left out (`faults`).
        """
        if self.omitted.over:
            return None
        wrong = self._stamps.unfit(stream, batch, self._stamps.starts(batch).wrong)
        if wrong is not None:
            self.faults = self.faults.more(wrong)
            batch = batch.take(wrong.fit)
        return super().push(stream, batch)

    def unfit(self, stream: str, batch: EventBatch, terms: TermDictionary) -> Unfit | None:
        """Those that are no intervals."""
        stamps = Stamps(terms)
        return stamps.unfit(stream, batch, stamps.starts(batch).wrong)

    def _through(self, passed: int) -> Iterator[MatchBatch]:
        events = merged(self._arrivals.take(passed))
        if not len(events):
            return
        if self._are_nothing(events):
            self._completed = int(events.time[-1])
            return
        version = self._kb.version
        if version != self._version:
            self._learn()
            self._version = version
        for piece in self._work.arriving.pieces(events, self._stamps.starts(events).start):
            before = self._streak.running
            try:
                found = self._step(piece)
            except LimitError as error:  # operators keep rows for all time: they cannot be made again
                self._streak.give_up(MADE, error, piece.until)
                return
            if self._streak.running > before:
                if self._streak.over:
                    return
            elif found:
                answers = self._answers(found)
                if len(answers) > self._streak.bounds.rows or before:
                    answers = self._bounded(answers)
                yield answers
                if self._streak.over:
                    return
            self._completed = piece.until
            self._tidy()
            if piece.facts > _MANY:
                self._forget_old()

    def _forget_old(self, *, now: bool = False) -> None:
        for part in self._parts:
            part.forget(self._completed + 1, now=now)

    def _tidy(self, *, now: bool = False) -> None:
        if self._begun is not None:
            self._begun.query.tidy(now=now)

    def _learn(self) -> None:
        """Emits the knowledge base's content at the instant."""
        arriving = self._work.arriving
        self._tidy(now=True)
        arriving.tick = max(part.learn(self._knowledge.now, arriving.tick) for part in self._parts)

    def _step(self, piece: Piece) -> Buffer:
        """Complete instants, to the fixpoint of the rules and the query's answers."""
        tick, work = piece.tick, self._work
        if work.strata:
            known = work.arriving.facts.delta
            for recursive, rules in work.strata:
                known = self._closed(known, rules, piece) if recursive else rules.derive_all(known, piece.since)
            work.query.standing.feed(known)
            tick = int(known.at[0])
        return work.query.step(piece.since, tick)

    def _bounded(self, answers: MatchBatch) -> MatchBatch:
        """Without the answers of instants at which there are too many, and all behind one that stops the query;
        of queries that share a state, each is counted by itself."""
        kept, streak = np.ones(len(answers), np.bool_), self._streak
        for time in np.unique(answers.time).tolist():
            mine = answers.time == time
            given = int(np.count_nonzero(mine))
            if self._family.tabled and given > streak.bounds.rows:
                given = int(np.unique(answers.values[mine, 0], return_counts=True)[1].max())
            if given <= streak.bounds.rows:
                streak.answered()
                continue
            streak.leave_out(ROWS, given, time)
            kept &= answers.time < time if streak.over else ~mine
            if streak.over:
                break
        return answers.take(np.flatnonzero(kept))

    def _closed(self, known: Delta, rules: Rules, piece: Piece) -> Delta:
        """One instant, with all that rules make of it, round by round; with nothing of it where that is too much."""
        seen, bounds = self._work.known, self._streak.bounds
        seen.begin()
        new = seen.new(known)
        every, rounds, derived = [new], 0, 0
        while len(new):
            made = rules.derive(at_tick(new, self._next_tick()), piece.since, again=rounds > 0)
            rounds += 1
            if not len(made):
                break
            new = seen.new(made)
            every.append(new)
            derived += len(new)
            if rounds > bounds.rounds or derived > bounds.triples:
                bound, given = (ROUNDS, rounds) if rounds > bounds.rounds else (TRIPLES, derived)
                self._streak.leave_out(bound, given, piece.until)
                every = every[:1]
                break
        known = Delta.concat(every, FACT)
        rules.standing.finish(at_tick(known, self._next_tick()), piece.since)
        return at_tick(known, self._next_tick())

    def _next_tick(self) -> int:
        arriving = self._work.arriving
        arriving.tick += 1
        return arriving.tick - 1

    def _answers(self, found: Buffer) -> MatchBatch:
        count = len(found)
        ends, times = np.empty(count, np.int64), np.empty(2 * count, np.int64)
        values = np.empty((count, found.width - INTERVAL), np.uint32)
        numbered = self._family.tabled
        if call(read_rows, found, ends, values, times) or numbered:
            order = in_order_of_time(values, times[::2], ends, self._terms, numbered=numbered)
            ends, values, times = ends[order], values[order], times.reshape(-1, 2)[order].reshape(-1)
        letters = np.zeros(2 * count, np.int32)
        letters[1::2] = END
        return MatchBatch(ends, values, np.arange(0, 2 * count + 1, 2), letters, times)

    def forget(self, at: int) -> None:
        """Between batches: drops all that is kept, and continues as if registered now; waiting events stay."""
        self.resets = self.resets.another(at, self._completed, self.records)
        for part in self._parts:
            part.keep(lambda rows: np.zeros(len(rows), np.bool_))
        self._tidy(now=True)
        self._version = None

    def collect(self) -> None:
        """Frees dead memory, so that `records` counts what lives."""
        self._tidy(now=True)
        self._forget_old(now=True)

    # --- saved and restored -----------------------------------------------------------------------------

    def save(self, terms: SavedTerms) -> State:
        """Its state between batches. The knowledge base is queried again, but for instants that were not
        complete when it changed; its blank nodes keep their ids."""
        return self._saved(terms, self._family.ids([self.number]))

    def _saved(self, terms: SavedTerms, numbers: NDArray[np.uint32] | None) -> State:
        """numbers: of the rows that are some query's only those of these."""
        self._tidy(now=True)
        query = None if self._begun is None else self._begun.query.standing
        return {
            "matches": self.matches,
            **super().save(terms),
            "number": self.number,
            "slots": None if self._begun is None else [*(self._family.slots or ())],
            "tick": None if self._begun is None else self._begun.arriving.tick,
            "parts": [part.save(terms, numbers if part is query else None) for part in self._parts],
        }

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Continue from a saved state; for a run that has not seen any event."""
        if state["slots"] is not None:
            self._family.restore(self.one, int(state["number"]), state["slots"])
        self._restore(state, terms)
        self._before = int(state["matches"])

    def _restore(self, state: State, terms: KnownTerms) -> None:
        super().restore(state, terms)
        if state["tick"] is not None:
            self._work.arriving.tick = int(state["tick"])
        for part, saved in zip(self._parts, state["parts"], strict=True):
            part.flow.restore(saved, terms)

    # --- its state and counters -------------------------------------------------------------------------

    @property
    def state(self) -> dict[str, int]:
        """How many rows are kept; and `ignored`."""
        return {"rows": self.records, "ignored": self.faults.count}

    @property
    def records(self) -> int:
        """How many rows are kept; some may be dead by now (`collect`)."""
        return sum(part.flow.records for part in self._parts)

    @property
    def bytes(self) -> int:
        """The size of its memory, or its part of it."""
        return -(-super().bytes // len(self._family))

    @property
    def _flows(self) -> list[Flow]:
        return [part.flow for part in self._parts]


class _Operators:
    """The run of a query once an event may lead to a result. `most`: facts of a piece."""

    def __init__(self, plan: IntervalPlan, family: Family, terms: TermDictionary, most: int) -> None:
        self.arriving = Arriving(terms, most)
        self.known = Known()
        layers = zip(plan.strata, plan.derived, strict=True)
        self.strata = [(layer.recursive, Rules(_forms(plan, layer), lowered, terms)) for layer, lowered in layers]
        self.query = Query(family.lowered(), plan.answered, terms, family.plans)
        if not self.strata:
            self.query.standing.read(self.arriving.facts)
        self.parts: Sequence[Standing] = [*(rules.standing for _, rules in self.strata), *self.query.parts]


def _forms(plan: IntervalPlan, stratum: Stratum) -> list[Construct]:
    forms = [plan.rules[number].form for number in stratum.rules]
    return [form for form in forms if isinstance(form, Construct)]
