"""One EP-SPARQL query over its streams: events in, answers out. All its state is here.

    push ─ timed triples ─ complete instants ─ rules, stratum by stratum ─ the query's operators ─ answers

Instants are worked through many at a time, unless rules feed each other: then one by one, each to its fixpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from oxiseq.engine import kinds
from oxiseq.engine.errors import LimitError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.faults import Faults, Unfit
from oxiseq.engine.intervals.conditions import RowExpression
from oxiseq.engine.intervals.knowledge import KnowledgeReader
from oxiseq.engine.intervals.nodes.build import build
from oxiseq.engine.intervals.nodes.node import Arrived, Node
from oxiseq.engine.intervals.order import in_order
from oxiseq.engine.intervals.plan import Answered
from oxiseq.engine.intervals.query import IntervalPlan
from oxiseq.engine.intervals.rows import Column, Rows, concat, empty
from oxiseq.engine.intervals.stamps import Stamps
from oxiseq.engine.intervals.using import Uses
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.kb_in_time import KbInTime
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.run.alone import AloneRun
from oxiseq.engine.run.resets import Resets
from oxiseq.engine.run.timed import Waiting
from oxiseq.engine.terms.blanks import KbBlanks
from oxiseq.engine.terms.dictionary import AnyIds, TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.grammar.algebra import Construct, TriplePattern

START, END = 0, 1
"""Letters of an answer's interval."""
MAX_ROUNDS: Final = 10_000
"""Rounds of rules at one instant, past which LimitError is raised: rules that make new terms for ever."""
MAX_DERIVED: Final = 10_000_000
"""Triples derived at one time, past which LimitError is raised."""
CHUNK: Final = 1 << 16
"""Triples worked through at a time, as far as instants allow, so that memory does not grow with a batch."""


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
        self._rules = [_Rule(rule.form.template, answered, terms) for rule, answered in
                       zip(plan.rules, plan.derived, strict=True) if isinstance(rule.form, Construct)]  # fmt: skip
        self._query = _Shown(plan.answered, terms)
        uses = plan.answered.uses
        self._uses = None if uses is None else Uses(uses, self._query.root, terms)
        self._nodes = [node for shown in (*self._rules, self._query) for node in shown.root.everything()]
        self._tables = [table for node in self._nodes for table in node.tables]
        terms.register(self)

    @property
    def plan(self) -> IntervalPlan:
        return self._plan

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
        for table in self._tables:
            yield table.held

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
        """Work through all instants that are complete by now; the answers, in order of their ends."""
        found: list[MatchBatch] = []
        for passed in self._kb.stretches(self._waiting.passed):
            found += self._work(self._waiting.take(passed))
        return found

    def _work(self, triples: Rows) -> list[MatchBatch]:
        if not len(triples):
            return []
        version = self._kb.version
        if version != self._version:
            self._learn()
            self._version = version
        found = []
        for part in _pieces(triples, 1 if self.plan.one_by_one else CHUNK):
            answers = self._step(part)
            if len(answers):
                found.append(answers)
            for node in self._nodes:
                node.begin()
            self._completed = int(part.end[-1])
            for table in self._tables:
                table.forget(self._completed + 1)
        self.matches += sum(len(batch) for batch in found)
        return found

    def _learn(self) -> None:
        """Let go of what has no time, and hand out what the knowledge base holds at the instant."""
        knowledge = self._knowledge.now
        for table in self._tables:
            table.drop_timeless()
        arrived = Arrived(empty(3), knowledge)
        for shown in (*self._rules, self._query):
            shown.root.step(arrived)

    def _step(self, triples: Rows) -> MatchBatch:
        """Complete instants, to the fixpoint of the rules and the query's answers."""
        for rule in self._rules:
            rule.begin()
        known = triples.distinct()
        for stratum in self.plan.strata:
            new, rounds = known, 0
            while len(new):
                derived = concat([self._rules[i].derive(new) for i in stratum.rules], 3)
                grown = concat([known, derived], 3)
                new = grown.distinct(len(known)) if len(derived) else empty(3)
                known = concat([known, new], 3)
                rounds += 1
                if not stratum.recursive:
                    break
                _guard(rounds, len(known))
        return self._answers(self._query.shown(self._solutions(known)))

    def _solutions(self, triples: Rows) -> Rows:
        """The query's new solutions, each once; those that are told, where triples are used up."""
        if self._uses is None:
            return self._query.solutions(Arrived(triples))
        return self._uses.told(self._query.solutions(Arrived(self._uses.numbered(triples)))).distinct()

    def _answers(self, rows: Rows) -> MatchBatch:
        if self.plan.distinct:
            rows = rows.distinct()
        rows = in_order(rows, self._terms)
        times = np.stack([rows.start, rows.end], axis=1).reshape(-1)
        letters = np.tile(np.array([START, END], np.int32), len(rows))
        self._terms.hold(rows.values)
        return MatchBatch(rows.end, rows.values, np.arange(0, len(times) + 1, 2, dtype=np.int64), letters, times)

    def forget(self, at: int) -> None:
        """Between batches: give up all that is kept, and go on as if registered now; what waits goes on."""
        self.resets = self.resets.another(at, self._completed, self.records)
        for table in self._tables:
            table.clear()
        self._version = None

    def collect(self) -> None:
        """Free what is dead now, so that `records` tells what lives."""
        for table in self._tables:
            table.forget(self._completed + 1, now=True)

    # --- saved and restored -----------------------------------------------------------------------------

    def save(self, terms: SavedTerms) -> State:
        """Its state between batches. What the knowledge base knows is asked again, but for instants that were not
        complete when it changed; its blank nodes keep their ids."""
        return {
            "matches": self.matches, "resets": self.resets.save(), "faults": self.faults.save(),
            "completed": self._completed, "waiting": self._waiting.save(terms),
            "tables": [table.save(terms) for table in self._tables],
            "blanks": self._blanks.save(terms), "kept": self._kb.save(terms),
        }  # fmt: skip

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state; for a run that has not seen any event."""
        self.matches, self._completed = int(state["matches"]), int(state["completed"])
        self.resets, self.faults = Resets.restored(state["resets"]), Faults.restored(state["faults"])
        self._waiting.restore(state["waiting"], terms)
        self._blanks.restore(state["blanks"], terms)
        for table, saved in zip(self._tables, state["tables"], strict=True):
            table.restore(saved, terms)
        self._kb.restore(state["kept"], terms)

    # --- what it tells ----------------------------------------------------------------------------------

    @property
    def state(self) -> dict[str, int]:
        """How many rows are kept; and `left_out`."""
        return {"rows": self.records, "left_out": self.faults.count}

    @property
    def records(self) -> int:
        """How many rows are kept; some may be dead by now (`collect`)."""
        return sum(len(table) for table in self._tables)

    @property
    def bytes(self) -> int:
        """How large what is kept is."""
        return sum(table.bytes for table in self._tables)


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


class _Shown:
    """A pattern's operators, and the columns that are shown of its solutions."""

    def __init__(self, answered: Answered, terms: TermDictionary) -> None:
        self.root: Node = build(answered.plan, terms)
        self._places: list[int | RowExpression] = []
        unseen = frozenset[Column]() if answered.uses is None else answered.uses.unseen
        columns: list[Column] = [c for c in self.root.columns if c not in unseen]
        for column, expression in answered.columns:
            if expression is not None:
                self._places.append(RowExpression(expression, columns, terms))
                columns.append(column)
            else:
                self._places.append(columns.index(column) if column in columns else -1)

    def solutions(self, arrived: Arrived) -> Rows:
        """The new solutions, each once."""
        return self.root.step(arrived).timed().distinct()

    def shown(self, rows: Rows) -> Rows:
        """Their columns."""
        out = []
        for place in self._places:
            if isinstance(place, RowExpression):
                computed = place.values(rows)
                rows = Rows(np.concatenate([rows.values, computed[:, None]], axis=1), rows.start, rows.end)
                out.append(computed)
            else:
                out.append(rows.values[:, place] if place >= 0 else np.zeros(len(rows), np.uint32))
        values = np.stack(out, axis=1) if out else np.zeros((len(rows), 0), np.uint32)
        return Rows(np.ascontiguousarray(values), rows.start, rows.end)


class _Rule(_Shown):
    """A CONSTRUCT rule at work."""

    def __init__(self, template: Sequence[TriplePattern], answered: Answered, terms: TermDictionary) -> None:
        super().__init__(answered, terms)
        self._terms = terms
        self.begin()
        names = [column for column, _ in answered.columns]
        self._blanks: list[BlankNode] = []
        self._template = [
            [self._term(t, names) for t in (triple.subject, triple.predicate, triple.object)] for triple in template
        ]

    def _term(self, term: object, names: Sequence[Column]) -> tuple[str, int]:
        """Where a term of the template comes from: a column, a blank node of the row, a constant."""
        if isinstance(term, Variable):
            return ("column", names.index(term)) if term in names else ("constant", 0)
        if isinstance(term, BlankNode):
            if term not in self._blanks:
                self._blanks.append(term)
            return "blank", self._blanks.index(term)
        assert isinstance(term, NamedNode | Literal)
        return "constant", self._terms.constant(term)

    def begin(self) -> None:
        """The instants before are over."""
        self._seen = empty(len(self.root.columns))

    def derive(self, triples: Rows) -> Rows:
        """The triples that the rule makes of what has come."""
        solutions = self.solutions(Arrived(triples))
        if self._blanks and len(solutions):  # found before at this instant, in another way: with the same blank nodes
            every = concat([self._seen, solutions], len(self.root.columns))
            solutions = every.distinct(len(self._seen))
            self._seen = concat([self._seen, solutions], len(self.root.columns))
        rows = self.shown(solutions)
        if not len(rows):
            return empty(3)
        if self._blanks:
            rows = in_order(rows, self._terms)
        blanks = [self._terms.blanks(len(rows)) for _ in self._blanks]
        sources: dict[str, Callable[[int], NDArray[np.uint32]]] = {
            "column": lambda i: rows.values[:, i],
            "blank": lambda i: blanks[i],
            "constant": lambda i: np.full(len(rows), i, np.uint32),
        }
        parts = []
        for triple in self._template:
            values = np.stack([sources[source](i) for source, i in triple], axis=1)
            kind = self._terms.columns.kind[values]
            subject = (kind[:, 0] == kinds.IRI) | (kind[:, 0] == kinds.BLANK)
            good = subject & (kind[:, 1] == kinds.IRI) & (values[:, 2] != 0)
            parts.append(Rows(values, rows.start, rows.end).take(good))
        return concat(parts, 3)
