"""Patterns and rules at work: timed triples of complete instants in, solutions out.

Where it stands: facts and knowledge → **plans at work** → rules' facts, answers. A fact is a row of a plan's source:
its interval, subject, predicate, object. Facts come in order of their ends; each instant is a tick.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from oxiseq.engine import kinds
from oxiseq.engine.flow.delta import I64, Buffer, Delta, Ids
from oxiseq.engine.flow.epsparql.algebra import Answered, Plan, TimelessPlan, TriplePlan, everything
from oxiseq.engine.flow.epsparql.knowledge import Knowledge
from oxiseq.engine.flow.epsparql.lowering import INTERVAL, Low, Lowered, lowered, lowered_choice
from oxiseq.engine.flow.epsparql.order import in_order
from oxiseq.engine.flow.epsparql.rows import Column, Rows, concat
from oxiseq.engine.flow.epsparql.using import Uses, numbered
from oxiseq.engine.flow.flow import Flow
from oxiseq.engine.flow.nodes.closure import Closure
from oxiseq.engine.flow.nodes.distinct import Distinct
from oxiseq.engine.flow.nodes.happening import Cover, Look
from oxiseq.engine.flow.nodes.node import Chosen, Node
from oxiseq.engine.flow.plan import Lifetime
from oxiseq.engine.flow.times import NO_END, NO_START, halves_of, times_at
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Construct, TriplePattern

FACT: Final = INTERVAL + 3
"""Columns of a fact."""
_TIMELESS: Final = halves_of(np.array([NO_START, NO_END])).reshape(1, INTERVAL)


def facts_of(rows: Rows) -> Ids:
    """Rows with intervals as a plan has them: u32[n, 4 + columns]."""
    return np.concatenate([halves_of(rows.start), halves_of(rows.end), rows.values], axis=1)


def rows_of(rows: Ids) -> Rows:
    """And back, in memory of their own."""
    return Rows(rows[:, INTERVAL:].copy(), times_at(rows, 0), times_at(rows, 2))


class Facts:
    """The facts of the instants in work, each once."""

    def __init__(self) -> None:
        self._come = Buffer(FACT)
        self._come.raw = tuple(range(INTERVAL))
        self._known = Distinct(self._come, lifetime=Lifetime(0))

    def new(self, at: I64, rows: Ids) -> Delta:
        """Those that are not known yet; views until the next ones come."""
        self._come.put(Delta(at, np.ones(len(rows), np.int64), rows))
        self._known.out.clear()
        self._known.step()
        return self._known.out.delta

    def over(self, passed: int) -> None:
        """Instants before `passed` are over."""
        self._known.forget(passed)


class Standing:
    """Some patterns at work."""

    def __init__(self, lowered: Lowered, plans: Sequence[Plan], terms: TermDictionary) -> None:
        self._lowered, self._terms = lowered, terms
        self._every = [each for plan in plans for each in everything(plan)]
        self.flow = Flow(lowered.plan, terms)
        self._timed = [node for node in self.flow.nodes if isinstance(node, Cover | Closure)]
        self._looking = [node for node in self.flow.nodes if isinstance(node, Look)]
        self._forgetting = [node for node in self.flow.nodes if node.forgets]

    def step(self, facts: Delta, since: int) -> None:
        """Facts of complete instants, or of a round of one. since: when the first of the instants was."""
        place = self._lowered.now
        if place is not None:
            self.flow.feed(place, self._telling(facts))
        self._go(since, int(facts.at[0]))

    def finish(self, facts: Delta) -> None:
        """All facts of an instant, when it is over, for what is looked for in the past."""
        if self._lowered.past is not None and len(facts):
            self.flow.feed(self._lowered.past, self._telling(facts))
            self._go(int(times_at(facts.rows, 2)[0]), int(facts.at[0]))

    def _go(self, since: int, tick: int) -> None:
        for node in self._timed:
            node.begin_at(since)
        self.flow.step(tick)

    def _telling(self, facts: Delta) -> Delta:
        if not self._lowered.uses:
            return facts
        return Delta(facts.at, facts.weight, np.concatenate([facts.rows, numbered(facts.at)], axis=1))

    def rows(self, number: int) -> Delta:
        """What the last step has brought for one of the patterns, as views."""
        return self.flow.rows(self._lowered.roots[number])

    def root(self) -> Buffer:
        """The same of the first, as it stands in memory."""
        return self.flow.nodes[self._lowered.roots[0]].out

    def learn(self, knowledge: Knowledge, tick: int) -> None:
        """Let go of what has no time, and hand out what the knowledge base holds now. What has a time stays as it was
        found."""
        self.keep(lambda rows: times_at(rows, 0) != NO_START)
        asked = [knowledge.triples(each.places) for each in self._every if isinstance(each, TriplePlan)]
        known = [rows for rows in asked if len(rows)]
        if known:
            facts = _timeless(known[0] if len(known) == 1 else np.unique(np.concatenate(known), axis=0), tick)
            if self._lowered.uses:
                never = np.zeros((len(facts), self._lowered.uses), np.uint32)
                facts = Delta(facts.at, facts.weight, np.concatenate([facts.rows, never], axis=1))
            for place in (self._lowered.now, self._lowered.past):
                if place is not None:
                    self.flow.feed(place, facts)
        for place, plan in self._lowered.timeless:
            self.flow.feed(place, _timeless(self._rows(plan, knowledge), tick))
        self._go(NO_START, tick)
        for node in self._looking:
            node.learn()

    def _rows(self, plan: TimelessPlan, knowledge: Knowledge) -> Ids:
        if plan.asked:
            return knowledge.answer(plan.asked, plan.columns)
        ids = [[0 if t is None else self._terms.constant(t) for t in row] for row in plan.rows]
        return np.array(ids, np.uint32).reshape(len(plan.rows), len(plan.columns))

    # --- what it keeps --------------------------------------------------------------------------------

    @property
    def nodes(self) -> list[Node]:
        """Its operators."""
        return self.flow.nodes

    def forget(self, passed: int, *, now: bool = False) -> None:
        """Instants before `passed` are over."""
        for node in self._forgetting:
            node.forget(passed, now=now)

    def keep(self, chosen: Chosen) -> None:
        """Of all rows those that are chosen."""
        for node in self.flow.nodes:
            node.keep(chosen)

    def drop_used(self, uses: Uses) -> None:
        """Let go of what is made of used triples."""
        for place, lows in self._lowered.used:
            self.flow.nodes[place].keep(lambda rows, lows=lows: uses.free(rows, lows))  # type: ignore[misc]


def _timeless(values: Ids, tick: int) -> Delta:
    count = len(values)
    rows = np.concatenate([np.repeat(_TIMELESS, count, axis=0), values], axis=1)
    return Delta(np.full(count, tick), np.ones(count, np.int64), rows)


# --- the query -----------------------------------------------------------------------------------------


class Query:
    """The query's pattern at work. Where answers use up triples, its solutions are chosen before they are shown."""

    def __init__(self, answered: Answered, distinct: bool, terms: TermDictionary) -> None:
        made = lowered([answered], distinct)
        self.standing = Standing(made, [answered.plan], terms)
        self._uses = None
        if answered.uses is not None:
            columns = made.columns[0]
            unseen = answered.uses.unseen
            seen = [i for i, c in enumerate(columns) if not isinstance(c, Low) and c not in unseen]
            self._seen = [*range(INTERVAL), *(INTERVAL + i for i in seen)]
            self._uses = Uses(answered.uses, columns)
            self._shown = Standing(lowered_choice(answered, distinct, [columns[i] for i in seen]), [], terms)

    @property
    def parts(self) -> list[Standing]:
        """All plans at work."""
        return [self.standing] if self._uses is None else [self.standing, self._shown]

    def answers(self, facts: Delta, since: int) -> Rows:
        """The rows that are shown of some instants."""
        self.standing.step(facts, since)
        if self._uses is None:
            return rows_of(self.standing.rows(0).rows)
        told = self._uses.told(self.standing.root())
        if not len(told):
            return rows_of(np.zeros((0, self._shown.root().width), np.uint32))
        self._shown.step(Delta(told.at, told.weight, told.rows[:, self._seen]), since)
        return rows_of(self._shown.rows(0).rows)

    def tidy(self, *, now: bool = False) -> None:
        """Let go of what is made of used triples, if there is much of it, or `now`."""
        uses = self._uses
        if uses is not None and len(uses) and (now or uses.many(self.standing.flow.records)):
            self.standing.drop_used(uses)
            uses.clear()


# --- rules ---------------------------------------------------------------------------------------------


class Rules:
    """The rules of a stratum at work."""

    def __init__(self, rules: Sequence[tuple[Construct, Answered]], terms: TermDictionary) -> None:
        answered = [each for _, each in rules]
        self.standing = Standing(lowered(answered), [each.plan for each in answered], terms)
        self._templates = [_Template(form.template, each, terms) for form, each in rules]

    def derive(self, facts: Delta, since: int) -> Rows:
        """What they make of facts."""
        self.standing.step(facts, since)
        found: list[Rows] = []
        for number, template in enumerate(self._templates):
            solutions = self.standing.rows(number)
            if len(solutions):
                found += template.made(rows_of(solutions.rows))
        return concat(found, 3)


class _Template:
    """What a rule makes of a solution."""

    def __init__(self, template: Sequence[TriplePattern], answered: Answered, terms: TermDictionary) -> None:
        self._terms = terms
        names = [column for column, _ in answered.columns]
        self._blanks: list[BlankNode] = []
        self._template = [
            [self._term(t, names) for t in (triple.subject, triple.predicate, triple.object)] for triple in template
        ]

    def _term(self, term: object, names: Sequence[Column]) -> tuple[str, int]:
        """Where a term comes from: a column, a blank node of the row, a constant."""
        if isinstance(term, Variable):
            return ("column", names.index(term)) if term in names else ("constant", 0)
        if isinstance(term, BlankNode):
            if term not in self._blanks:
                self._blanks.append(term)
            return "blank", self._blanks.index(term)
        assert isinstance(term, NamedNode | Literal)
        return "constant", self._terms.constant(term)

    def made(self, rows: Rows) -> Iterator[Rows]:
        """The triples of new solutions."""
        if self._blanks:
            rows = in_order(rows, self._terms)
        blanks = [self._terms.blanks(len(rows)) for _ in self._blanks]
        sources: dict[str, Callable[[int], NDArray[np.uint32]]] = {
            "column": lambda i: rows.values[:, i],
            "blank": lambda i: blanks[i],
            "constant": lambda i: np.full(len(rows), i, np.uint32),
        }
        for triple in self._template:
            values = np.stack([sources[source](i) for source, i in triple], axis=1)
            kind = self._terms.columns.kind[values]
            subject = (kind[:, 0] == kinds.IRI) | (kind[:, 0] == kinds.BLANK)
            good = subject & (kind[:, 1] == kinds.IRI) & (values[:, 2] != 0)
            yield Rows(values, rows.start, rows.end).take(good)
