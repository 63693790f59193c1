"""One EP-SPARQL query over its streams: events in, answers out. All its state is here.

    push ─ timed triples ─ complete instants ─ rules, stratum by stratum ─ the query's operators ─ answers

Instants are worked through many at a time, unless rules feed each other: then one by one, each to its fixpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

import numpy as np

from oxiseq.engine.errors import LimitError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.faults import Faults, Unfit
from oxiseq.engine.flow.delta import I64, Delta
from oxiseq.engine.flow.epsparql.algebra import TriplePlan, everything
from oxiseq.engine.flow.epsparql.knowledge import KnowledgeReader
from oxiseq.engine.flow.epsparql.order import in_order
from oxiseq.engine.flow.epsparql.query import IntervalPlan
from oxiseq.engine.flow.epsparql.rows import Rows
from oxiseq.engine.flow.epsparql.stamps import Stamps
from oxiseq.engine.flow.epsparql.standing import FACT, Facts, Query, Rules, facts_of
from oxiseq.engine.flow.times import times_at
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.kb_in_time import KbInTime
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.run.alone import AloneRun
from oxiseq.engine.run.concern import Concern, keys_of
from oxiseq.engine.run.resets import Resets
from oxiseq.engine.run.timed import Waiting
from oxiseq.engine.terms.blanks import KbBlanks
from oxiseq.engine.terms.dictionary import AnyIds, TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.grammar.algebra import Construct

START, END = 0, 1
"""Letters of an answer's interval."""
MAX_ROUNDS: Final = 10_000
"""Rounds of rules at one instant, past which LimitError is raised: rules that make new terms for ever."""
MAX_DERIVED: Final = 10_000_000
"""Triples derived at one time, past which LimitError is raised."""
CHUNK: Final = 1 << 16
"""Triples worked through at a time, as far as instants allow, so that memory does not grow with a batch."""
_CHOSEN: Final = 1 << 9
"""The same where solutions are chosen: operators find all that there could be in so many."""


class IntervalRun(AloneRun):
    """The running state of an EP-SPARQL query. `lateness` in microseconds; events before `start` are not seen.

    A row of an answer has two events, with the letters START and END and the times of its interval. Counter:
    `matches` found. `faults`: events that are no intervals, since they start after they end, are left out.
    """

    leaves_out: ClassVar[bool] = True

    def __init__(
        self, plan: IntervalPlan, terms: TermDictionary, kb: KnowledgeBase,
        start: int | None = None, lateness: int = 0,
    ) -> None:
        self._plan = plan
        self.matches = 0
        self.resets, self.faults = Resets(), Faults()
        self._completed = 0
        self._terms = terms
        self._kb = KbInTime(kb)
        self._blanks = KbBlanks(terms)
        self._knowledge = self._kb.materialised("knowledge", KnowledgeReader(plan.plans, terms, self._blanks))
        self._version: int | None = None
        """Of the KB that has been handed out."""
        self._stamps = Stamps(terms)
        self._waiting = Waiting(len(plan.streams), lateness, start)
        self._facts = Facts()
        self._one_by_one = plan.one_by_one
        self._most = 1 if self._one_by_one else CHUNK if plan.answered.uses is None else _CHOSEN
        """Triples that are worked through at a time."""
        self._strata = [(stratum.recursive, self._rules(stratum.rules)) for stratum in plan.strata]
        self._query = Query(plan.answered, plan.distinct, terms)
        self._parts = [*(rules.standing for _, rules in self._strata), *self._query.parts]
        self._tick = 1
        """Of the next instant, or round of one."""
        terms.register(self)

    def _rules(self, numbers: tuple[int, ...]) -> Rules:
        """Some rules at work."""
        found = []
        for number in numbers:
            form = self._plan.rules[number].form
            assert isinstance(form, Construct)
            found.append((form, self._plan.derived[number]))
        return Rules(found, self._terms)

    @property
    def plan(self) -> IntervalPlan:
        return self._plan

    @property
    def concern(self) -> Concern | None:
        """An answer ends with an event that a pattern of the query, or of a rule, has a triple of."""
        patterns = [p.places for plan in self._plan.plans for p in everything(plan) if isinstance(p, TriplePlan)]
        keys = keys_of([(predicate, object_) for _, predicate, object_ in patterns], self._terms)
        if keys is None:
            return None
        return Concern(dict.fromkeys(self._plan.streams, keys), needed=self._stamps.predicates)

    @property
    def order(self) -> Waiting:
        return self._waiting

    @property
    def reads_kb(self) -> bool:
        """Every pattern may see the knowledge base's default graph."""
        return True

    @property
    def kb_texts(self) -> tuple[str, ...]:
        return self._kb.texts

    def held_ids(self) -> Iterator[AnyIds]:
        """The terms of all that it may still look at (see `TermDictionary`)."""
        yield from self._waiting.held_ids()
        yield from self._blanks.held_ids()
        for part in self._parts:
            yield from part.flow.held_ids()

    # --- events -----------------------------------------------------------------------------------------

    def push(self, stream: str, batch: EventBatch) -> EventBatch | None:
        """Take events of a stream in order of arrival; returns the late ones, if any. Call `advance` for answers.

        Events that are no intervals are left out (`faults`).
        """
        started = self._stamps.starts(batch)
        wrong = self._stamps.unfit(stream, batch, started.wrong)
        if wrong is not None:
            self.faults = self.faults.more(wrong)
            batch = batch.take(wrong.fit)
            started = self._stamps.starts(batch)
        late = self._waiting.push(self.plan.streams.index(stream), batch, started)
        return None if late is None else batch.take(late)

    def unfit(self, stream: str, batch: EventBatch, terms: TermDictionary) -> Unfit | None:
        """Those that are no intervals."""
        stamps = Stamps(terms)
        return stamps.unfit(stream, batch, stamps.starts(batch).wrong)

    def keep_answers(self) -> bool:
        return self._kb.keep(self._waiting.unfinished)

    def advance(self) -> list[MatchBatch]:
        """Work through all instants that are complete by now; the answers, in order of their ends. Raises LimitError,
        KbError. An error of the KB loses nothing: the next call tells what this one did not."""
        found, self._left = [*self._left], ()
        for passed in self._kb.stretches(self._waiting.passed):
            if self._waiting.complete(passed):
                if not self._asked(self._kb, found):
                    break
                found += self._work(self._waiting.take(passed))
        return found

    def _work(self, triples: Rows) -> list[MatchBatch]:
        version = self._kb.version
        if version != self._version:
            self._learn()
            self._version = version
        found = []
        for part in _pieces(triples, self._most):
            rows = self._step(part)
            if len(rows):
                found.append(self._answers(rows))
            self._completed = int(part.end[-1])
            self._over()
        self.matches += sum(len(batch) for batch in found)
        return found

    def _over(self) -> None:
        """Some instants are over."""
        self._facts.over(self._completed + 1)
        for part in self._parts:
            part.forget(self._completed + 1)
        self._query.tidy(now=self._one_by_one)

    def _learn(self) -> None:
        """Let go of what has no time, and hand out what the knowledge base holds at the instant."""
        for part in self._parts:
            part.learn(self._knowledge.now, self._tick)
        self._tick += 1

    def _step(self, triples: Rows) -> Rows:
        """Complete instants, to the fixpoint of the rules and the query's answers."""
        ends = np.unique(triples.end) if len(triples) > 1 else triples.end
        known = self._new(triples, ends)
        if self._strata:
            known = _owned(known)
        for recursive, rules in self._strata:
            known = self._closed(known, rules) if recursive else self._derived(known, rules, ends)
        rows = self._query.answers(known, int(ends[0]))
        self._tick += len(ends)
        return rows

    def _new(self, triples: Rows, ends: I64) -> Delta:
        """Facts that are not known, at the ticks of the instants that end then, which ascend."""
        if len(ends) == 1:
            return self._facts.new(np.full(len(triples), self._tick), facts_of(triples))
        at = ends.searchsorted(triples.end)
        if (at[1:] < at[:-1]).any():
            order = np.argsort(at, kind="stable")
            at, triples = at[order], triples.take(order)
        return self._facts.new(at + self._tick, facts_of(triples))

    def _derived(self, known: Delta, rules: Rules, ends: I64) -> Delta:
        """With what rules make that do not feed each other."""
        made = rules.derive(known, int(ends[0]))
        return Delta.concat([known, _owned(self._new(made, ends))], FACT) if len(made) else known

    def _closed(self, known: Delta, rules: Rules) -> Delta:
        """One instant, with all that rules make of it, round by round."""
        now = times_at(known.rows, 2)[:1]
        new, rounds = known, 0
        while len(new):
            made = rules.derive(_moved(new, self._tick), int(now[0]))
            self._tick += 1
            rounds += 1
            if not len(made):
                break
            new = _owned(self._new(made, now))
            known = Delta.concat([known, new], FACT)
            _guard(rounds, len(known))
        rules.standing.finish(_moved(known, self._tick))
        self._tick += 1
        return _moved(known, self._tick)

    def _answers(self, rows: Rows) -> MatchBatch:
        rows = in_order(rows, self._terms)
        times = np.stack([rows.start, rows.end], axis=1).reshape(-1)
        letters = np.tile(np.array([START, END], np.int32), len(rows))
        self._terms.hold(rows.values)
        return MatchBatch(rows.end, rows.values, np.arange(0, len(times) + 1, 2, dtype=np.int64), letters, times)

    def forget(self, at: int) -> None:
        """Between batches: give up all that is kept, and go on as if registered now; what waits goes on."""
        self.resets = self.resets.another(at, self._completed, self.records)
        for part in self._parts:
            part.keep(lambda rows: np.zeros(len(rows), np.bool_))
        self._query.tidy(now=True)
        self._version = None

    def collect(self) -> None:
        """Free what is dead now, so that `records` tells what lives."""
        self._query.tidy(now=True)
        for part in self._parts:
            part.forget(self._completed + 1, now=True)

    # --- saved and restored -----------------------------------------------------------------------------

    def save(self, terms: SavedTerms) -> State:
        """Its state between batches. What the knowledge base knows is asked again, but for instants that were not
        complete when it changed; its blank nodes keep their ids."""
        self._query.tidy(now=True)
        return {
            "matches": self.matches, "tick": self._tick, "resets": self.resets.save(), "faults": self.faults.save(),
            "completed": self._completed, "waiting": self._waiting.save(terms),
            "parts": [part.flow.save(terms) for part in self._parts],
            "blanks": self._blanks.save(terms), "kept": self._kb.save(terms),
        }  # fmt: skip

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state; for a run that has not seen any event."""
        self.matches, self._completed = int(state["matches"]), int(state["completed"])
        self.resets, self.faults = Resets.restored(state["resets"]), Faults.restored(state["faults"])
        self._waiting.restore(state["waiting"], terms)
        self._blanks.restore(state["blanks"], terms)
        self._tick = int(state["tick"])
        for part, saved in zip(self._parts, state["parts"], strict=True):
            part.flow.restore(saved, terms)
        self._kb.restore(state["kept"], terms)

    # --- what it tells ----------------------------------------------------------------------------------

    @property
    def state(self) -> dict[str, int]:
        """How many rows are kept; and `left_out`."""
        return {"rows": self.records, "left_out": self.faults.count}

    @property
    def records(self) -> int:
        """How many rows are kept; some may be dead by now (`collect`)."""
        return sum(part.flow.records for part in self._parts)

    @property
    def bytes(self) -> int:
        """How large what is kept is."""
        return sum(part.flow.bytes for part in self._parts)


def _guard(rounds: int, triples: int) -> None:
    what = "rules that derive more and more at one instant: do they make new terms for ever?"
    if rounds > MAX_ROUNDS:
        raise LimitError(rounds, MAX_ROUNDS, f"{what} rounds")
    if triples > MAX_DERIVED:
        raise LimitError(triples, MAX_DERIVED, f"{what} triples")


def _pieces(triples: Rows, size: int) -> Iterator[Rows]:
    """Whole instants, at least so many triples at a time."""
    low = 0
    while low < len(triples):
        at = min(low + size, len(triples)) - 1
        high = int(np.searchsorted(triples.end, triples.end[at], "right"))
        yield triples if low == 0 and high == len(triples) else triples.take(slice(low, high))
        low = high


def _owned(delta: Delta) -> Delta:
    """The same, in memory of its own."""
    return Delta(delta.at.copy(), delta.weight.copy(), delta.rows.copy())


def _moved(delta: Delta, tick: int) -> Delta:
    """The same at another tick."""
    return Delta(np.full(len(delta), tick), delta.weight, delta.rows)
