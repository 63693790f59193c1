"""`explain` for a plan about the order of events, of whatever language: one walk over the plan; and what is shown of
it.

In the flow: `SequencePlan` → **facts** (facts.py) → text, a picture or JSON. What differs between the runners
live_keys.py and sets.py write. Nothing is run; with a knowledge base its patterns are queried, so that their rows
can be counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, TypeAlias

from oxiseq.engine.cea.plan import DeterminisedSets
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.kernels.matches.records import EVERYTHING
from oxiseq.engine.matches.plan import AnySequencePlan, forgotten_by
from oxiseq.engine.plan.joined import JoinedPlan, Lowered
from oxiseq.engine.plan.keyed_tuples import tuple_correlation
from oxiseq.grammar.algebra import Query
from oxiseq.grammar.ceql.texts import render_formula
from oxiseq.grammar.places import suppression_keys
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.render import render_clause
from oxiseq.languages.explanation import WITH_EQUALS, Explanation
from oxiseq.languages.sequences.facts import EdgeFacts, GpmFacts, KbFacts, SequenceFacts, StateFacts, WaitFacts
from oxiseq.languages.sequences.live_keys import LiveKeysExplainer
from oxiseq.languages.sequences.sets import SetsExplainer
from oxiseq.pictures.drawing import Arrow, Drawing, Node

# --- explanation -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SequenceExplanation(SequenceFacts, Explanation):
    """The facts, and what can be done with them."""

    @property
    def drawing(self) -> Drawing:
        """The automaton: a box per state, double where a match ends, an arrow per wait."""
        nodes = [Node("start", ""), *map(_node, self.states)]
        if any(edge.op == "window" for edge in self.edges):
            aged = any(edge.op == "window" and edge.age for edge in self.edges)
            nodes.append(Node("end", "time is up" if aged else "window closed", True))
        return Drawing(self.sequence, nodes, [arrow for edge in self.edges for arrow in _arrows(edge)])

    def __str__(self) -> str:
        return as_text(self)

    @property
    def summary(self) -> tuple[str, ...]:
        gpms = (f"{gpm.name} on {gpm.stream}: {gpm.answered}" for gpm in self.gpms)
        atoms = (f"{atom.text}: a typed predicate" for atom in self.atoms)
        return (f"{self.sequence}, window: {self.window}", f"runner: {self.runner}", self.correlation, *gpms, *atoms)


def _node(state: StateFacts) -> Node:
    """Below it the variables that hold the event, but for its type."""
    names = [name for name in state.held or () if name != state.letter.partition("[")[0]]
    return Node(f"s{state.number}", state.letter, state.final, ", ".join(names))


def _arrows(edge: EdgeFacts) -> Iterator[Arrow]:
    source = "start" if edge.source < 0 else f"s{edge.source}"
    bounds = (*([edge.age] if edge.age else []), *edge.lasting)
    begun = (f"after {', '.join(edge.after)}",) if edge.after else ()
    without = (*bounds, *begun, *(f"no {' '.join([g.letter, *g.conditions])}" for g in edge.guards))
    key = (f"key: {', '.join(edge.live)}",) if edge.live and edge.source >= 0 else ()
    if edge.op == "window":
        yield Arrow(source, "end", without, dashed=True, more=key)
    for arm in edge.arms:
        op = "" if edge.source < 0 else f"{edge.op} "
        yield Arrow(source, f"s{arm.target}", (op + arm.letter, *arm.conditions, *without), more=key)
    for target in edge.targets:
        yield Arrow(source, f"s{target}", (edge.op,) if edge.op else ())


# --- text --------------------------------------------------------------------------------------------


def as_text(explanation: SequenceFacts) -> str:
    """The whole explanation, for a terminal."""
    return "\n".join(_lines(explanation)) + "\n"


def _lines(explanation: SequenceFacts) -> Iterator[str]:
    between = ", " if explanation.gpms == () or explanation.becomes else " "
    yield f"{explanation.form} {between.join(explanation.columns)}".rstrip()
    yield explanation.sequence
    yield f"runner: {explanation.runner}"
    if explanation.becomes:
        yield f"runs as: {explanation.becomes}"
    yield f"window: {explanation.window}"
    yield from explanation.clauses
    yield f"distributed to several runs, as on Spark: {explanation.correlation}"
    yield f"shares: {explanation.sharing}"
    yield ""
    yield "streams"
    for stream in explanation.streams:
        slots = "" if stream.slots is None else f": {_count(stream.slots, 'triple pattern')} looked for in one pass"
        yield f"  {stream.name} <{stream.iri}>{slots}"
    yield ""
    if explanation.gpms:
        yield "graph patterns"
    for gpm in explanation.gpms:
        yield from _gpm(gpm)
    if explanation.atoms:
        yield "atoms, typed predicates on one event"
    for atom in explanation.atoms:
        yield f"  {atom.number}: {atom.text}"
    yield ""
    yield "automaton"
    yield "  start"
    yield from _leaving(explanation, -1)
    for state in explanation.states:
        yield _state(state)
        yield from _leaving(explanation, state.number)


def _gpm(gpm: GpmFacts) -> Iterator[str]:
    role = ", negated" if gpm.negated else ""
    yield f"  {gpm.name} on {gpm.stream}{role}: {_answered(gpm)}"
    for condition in gpm.filters:
        yield f"    filter {condition.text}: {condition.how}"
    if gpm.keeps:
        yield f"    keeps {' '.join(gpm.keeps)}"
    if gpm.kb is not None:
        yield from _kb(gpm.kb)


def _answered(gpm: GpmFacts) -> str:
    if gpm.answered == "columns":
        return f"columnar, {_count(gpm.patterns, 'triple pattern')}"
    if gpm.answered == "always":
        return "every event, the pattern is empty"
    return f"operators over {_count(gpm.patterns, 'triple pattern')} in columns ({gpm.reason})"


_KB_MEANS: Final = {
    "semi-join": "rows are checked, it adds nothing to them",
    "late enrichment": "rows are checked, matches are enriched when written",
    "join": "row by row",
}


def _kb(kb: KbFacts) -> Iterator[str]:
    rows = "rows not known without --kb" if kb.rows is None else _count(kb.rows, "row")
    meaning = _KB_MEANS[kb.how]
    on = f" on {' '.join(kb.shared)}" if kb.shared else ""
    yield f"    knowledge base: {kb.how}{on} ({meaning}), {rows}"
    yield f"    gives {' '.join(kb.variables)}"
    for condition in kb.filters:
        yield f"    filter with the knowledge base {condition}"


def _state(state: StateFacts) -> str:
    final = ", a match" if state.final else ""
    bound = f" (may have bound {', '.join(state.bound)})" if state.bound else ""
    held = "" if state.held is None else f", held by {', '.join(state.held) or 'no variable'}"
    return f"  state {state.number}, after {state.letter}{held}{final}{bound}"


def _leaving(explanation: SequenceFacts, source: int) -> Iterator[str]:
    for edge in explanation.edges:
        if edge.source == source:
            yield from _edge(edge)


def _edge(edge: EdgeFacts) -> Iterator[str]:
    if edge.targets:
        op = f" ({edge.op})" if edge.op else ""
        yield f"    {edge.when}{op} → state {', '.join(map(str, edge.targets))}"
        return
    if edge.op == "window" and not edge.then:
        yield "    waits for the window's end, then is a match"
    if edge.age:
        then = f"; older, {edge.then}" if edge.then else ""
        yield f"    a run that has waited {edge.age}{then}"
    if edge.after:
        yield f"    of the negated group has come: {', '.join(edge.after)}"
    for step in edge.steps:
        yield f"    {step.letter} is the group's next step: {_wait(step)}"
    for arm in edge.arms:
        op = "" if edge.source < 0 else f" {edge.when} ({edge.op})"
        yield f"    {arm.letter}{op} → state {arm.target}: {_wait(arm)}"
    for guard in edge.guards:
        yield f"    not {guard.letter}: {_wait(guard)}"
    for span in edge.lasting:
        yield f"      the part that it lies in {span}"
    if edge.source >= 0:
        yield f"      runs are distinguished by {', '.join(edge.live) or 'nothing: all are one group'}"


def _wait(wait: WaitFacts) -> str:
    return ", ".join([wait.index, *wait.conditions])


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


# --- explain -----------------------------------------------------------------------------------------


Explainer: TypeAlias = LiveKeysExplainer | SetsExplainer


def explain(plan: AnySequencePlan, kb: KnowledgeBase | None = None) -> SequenceExplanation:
    """The facts about a compiled query; `kb` answers the GRAPH patterns. Raises KbError."""
    if isinstance(plan.runner, Lowered):
        return _lowered(plan, kb)
    sets = isinstance(plan.runner, DeterminisedSets)
    by: Explainer = SetsExplainer(plan) if sets else LiveKeysExplainer(plan, kb)
    return SequenceExplanation(
        form=by.form,
        columns=by.columns(),
        sequence=by.sequence(),
        runner=f"{plan.runner.name}, since {plan.because}",
        window=by.window(),
        clauses=tuple(_clauses(by)),
        correlation=by.correlation(),
        sharing=by.sharing(),
        streams=tuple(by.streams()),
        gpms=tuple(by.gpms()),
        atoms=tuple(by.atoms()),
        states=tuple(by.states()),
        edges=tuple(by.edges()),
    )


def _clauses(by: Explainer) -> Iterator[str]:
    """PARTITION BY, strategy, CONSUME BY, ORDER BY, SAMPLE and LIMIT, and what is done for them."""
    plan, query = by.plan, by.plan.query
    if plan.by:
        yield f"PARTITION BY {by.partition()}: an event is split by its values, all partitions share one run"
    yield from by.filters()
    if query.selection is not None:
        yield f"SELECT {query.selection.strategy.value}: {by.selection()}"
    if query.consumption is not None:
        where = "" if forgotten_by(query) == EVERYTHING else " of its partition"
        yield f"CONSUME BY: after a match all partial matches{where} are discarded"
    if isinstance(query, Query) and query.suppression is not None:
        apart = " ".join(f"?{v.value}" for v in suppression_keys(query, grouped=plan.summary is not None))
        last = f"the last emitted row of each value of {apart}" if apart else "the last emitted row"
        yield f"{render_clause(query.suppression)}: {last} is kept, what it covers is dropped when it is decided"
    if plan.summary is not None:
        yield from by.groups()
    elif plan.ranking is not None or query.sample is not None:
        yield f"{' '.join(by.ranked())}: {by.ranking()}"
    elif query.limit is not None:
        yield f"{render_clause(query.limit)}: {by.limit()}"


def _lowered(plan: JoinedPlan, kb: KnowledgeBase | None) -> SequenceExplanation:
    """That of the sequence which the query becomes, with what its own language says."""
    found = explain(plan.runner.sequence, kb)
    return replace(
        found,
        columns=plan.runner.variables,
        sequence=render_formula(plan.query.formula),
        runner=f"{plan.runner.name}, since {plan.because}",
        becomes=found.sequence,
        correlation=tuple_correlation(plan).text(),
        sharing=WITH_EQUALS,
    )
