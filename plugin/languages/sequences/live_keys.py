"""What live keys do for a query: its graph patterns, and states and edges with the values that its runs carry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyoxigraph import Variable

from oxiseq.engine.expressions.program import is_native
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.matches.ranking import Ranking
from oxiseq.engine.matching.bgp import basic_patterns
from oxiseq.engine.matching.conditions import Condition
from oxiseq.engine.patterns.plan import StreamPlan
from oxiseq.engine.plan.correlation import correlation
from oxiseq.engine.plan.counting import carried
from oxiseq.engine.plan.own_run import why_own_run
from oxiseq.engine.plan.query import GpmPlan, QueryPlan
from oxiseq.engine.plan.ranking import MOST_LISTED
from oxiseq.engine.plan.summary import SummaryPlan
from oxiseq.engine.plan.thresholds import Threshold, ladder_of
from oxiseq.engine.sequence.asked import gpm_of_time
from oxiseq.engine.sequence.positions import START, Letter
from oxiseq.engine.sequence.states import (
    LAST_EVENT,
    PARTITION,
    Check,
    Edge,
    GuardCheck,
    Move,
    Value,
    ValueKind,
    own_filters,
)
from oxiseq.engine.sharing.alike import why_alone
from oxiseq.grammar.algebra import (
    Bind,
    Call,
    Every,
    Exists,
    Expression,
    Filter,
    FunctionCall,
    GraphPattern,
    Group,
    Minus,
    OnChange,
    OnClose,
    Op,
    OptionalPattern,
    PathPattern,
    PatternElement,
    SubSelect,
    Union,
    Values,
    Window,
)
from oxiseq.grammar.render import time_span
from oxiseq.grammar.render_sparql import SparqlWriter
from oxiseq.grammar.scope import GpmParts, holds_exists, subexpressions
from oxiseq.grammar.spaseq.texts import render_seq
from oxiseq.languages.sequences.facts import (
    BEFORE_ENUMERATION,
    ENDS_ENUMERATION,
    AtomFacts,
    EdgeFacts,
    FilterFacts,
    GpmFacts,
    KbFacts,
    StateFacts,
    StreamFacts,
    WaitFacts,
)

_OPERATORS: Mapping[Op, str] = {
    Op.STRICT: "at the next instant",
    Op.NEXT: "at the next one",
    Op.ANY: "at any later one",
}
_INDEX_WORDS = {
    "key": "hash of the key",
    "list": "list, conditions tried one by one",
    "heap": "ordered index",
    "stamp": "stamp on the key, nothing is searched",
    "chain": "runs of the instant before",
    "start": "begins a run",
}


_REPORTS: Mapping[type, str] = {
    OnChange: "after each instant at which matches end, if the row is new",
    OnClose: "when the window closes",
    Every: "at regular moments",
}


def _sharing(plan: QueryPlan) -> str:
    why = why_alone(plan)
    looks = "the matching of single events, with queries that read the same streams"
    if why_own_run(plan) is None:
        looks += "; its edges are in one automaton with those of others, so that an event costs what it touches"
        if (kind := ladder_of(plan)) is not None:
            differ = [] if kind.threshold is None else [f"in the number in {_condition(plan, kind.threshold)}"]
            differ += ["in the length of their windows"] if plan.runner.sequence.counted else []
            looks += f", and stand once for queries that differ {' or '.join(differ)}"
        return looks
    if why is not None:
        return f"{looks}; it finds matches on its own: {why}"
    alike = "queries that differ only in what they return of them, and began at the same event"
    return f"{looks}; its matches, with {alike}"


def _condition(plan: QueryPlan, of: Threshold) -> str:
    return SparqlWriter(dict(plan.query.prefixes)).one_line(of.condition)


class LiveKeysExplainer:
    """`kb` answers the GRAPH patterns."""

    def __init__(self, plan: QueryPlan, kb: KnowledgeBase | None) -> None:
        self.plan, self.kb = plan, kb
        self.form = type(plan.query.form).__name__.upper()
        self.write = SparqlWriter(dict(plan.query.prefixes))
        self.parts = {name: gpm.parts for name, gpm in plan.runner.gpms.items()}

    def columns(self) -> tuple[str, ...]:
        """What it selects."""
        return tuple(f"?{c.variable.value}" for c in self.plan.runner.answer.columns)

    def sequence(self) -> str:
        """What is looked for, in a line."""
        return render_seq(self.plan.query)

    def window(self) -> str:
        """WITHIN, or `none`."""
        return window_text(self.plan.query.window)

    def correlation(self) -> str:
        """How events could be dealt out to several runs."""
        return correlation(self.plan).text()

    def sharing(self) -> str:
        """What it shares with other queries."""
        return _sharing(self.plan)

    # --- clauses ------------------------------------------------------------------------------------

    def partition(self) -> str:
        """What PARTITION BY names."""
        return " ".join(_names(self.plan.by))

    def filters(self) -> Iterator[str]:
        """Conditions on whole matches, and what else partitions need."""
        plan = self.plan
        for member in plan.runner.members:
            request = plan.runner.requests[member.stream]
            assert request is not None, "a membership is a request"
            name = request.requests[member.request].name
            if name not in plan.runner.gpms or plan.runner.gpms[name].order != member.request:
                yield f"events are put into partitions by the pattern of {name} without its filters"
        if plan.query.filters:
            conditions = ", ".join(self.write.one_line(each.condition) for each in plan.query.filters)
            when = ", before the clauses below choose or forget" if plan.runner.sieved else ""
            yield f"FILTER {conditions}: evaluated on each match that is found{when}"

    def selection(self) -> str:
        """When a strategy chooses."""
        return "chosen when all of one end are known" if self.plan.runner.deferred else BEFORE_ENUMERATION

    def limit(self) -> str:
        """How LIMIT is kept."""
        return ENDS_ENUMERATION if self.plan.runner.limit is None else "cuts what was enumerated"

    def ranked(self) -> Iterator[str]:
        """ORDER BY, SAMPLE, LIMIT."""
        ranking = self._ranking
        if ranking.order_by:
            keys = (f"{'DESC ' if down else ''}{self.write.expression(e)}" for e, down in ranking.order_by)
            yield f"ORDER BY {', '.join(keys)}"
        if ranking.sample is not None:
            yield f"SAMPLE {ranking.sample.count}"
        if ranking.limit is not None:
            yield f"LIMIT {ranking.limit}" + (f" OFFSET {ranking.offset}" if ranking.offset else "")

    @property
    def _ranking(self) -> Ranking:
        assert self.plan.ranking is not None, "ORDER BY or SAMPLE"
        return self.plan.ranking

    def ranking(self) -> str:
        """How those are found."""
        ranking = self._ranking
        how = "found among the matches of an instant without listing the others"
        if ranking.listed is not None:
            how = f"lists every match of an instant, {MOST_LISTED} at most: {ranking.listed}"
        if ranking.window is not None:
            kept = f"a sample of {ranking.sample.count}" if ranking.sample is not None else "the best so far"
            if ranking.sample is None and ranking.limit is None:
                kept = f"all matches, {MOST_LISTED} at most,"
            how += f"; {kept} of each window kept until it closes, when they are reported"
        return how

    def groups(self) -> Iterator[str]:
        """How matches become rows of groups."""
        summary = self.plan.summary
        assert summary is not None, "matches are rows of groups"
        keys = ", ".join(self.write.expression(e) for e in summary.written[: len(summary.keys)])
        yield f"GROUP BY {keys}" if keys else "one group of all matches"
        listed, folding = self.plan.runner.listed, self.plan.runner.folding
        if self.plan.runner.composing is not None:
            yield "matches are counted by composed windows, none is listed"
        elif folding is not None and folding.weighed:
            yield f"matches are counted and summed as they are found, by weights of nodes: {listed}"
        elif folding is not None:
            yield f"matches are counted by visiting the live nodes of an instant, none is listed: {listed}"
        elif listed is not None:
            yield f"lists every match: {listed}"
        else:
            yield self.counting(summary)
        if summary.instantly:
            yield "reported once, when the group's instant is complete"
        else:
            yield f"reported {_REPORTS[type(summary.report)]}"

    def counting(self, summary: SummaryPlan) -> str:
        """How matches are counted."""
        apart = sorted(carried(summary), key=str)
        by = [f"?{v.value}" for v in apart]
        if summary.window is not None and summary.window.sliding:
            by.append("the time at which they start")
        return "matches are counted as they are found" + (f", apart by {', '.join(by)}" if by else "")

    # --- graph patterns ---------------------------------------------------------------------------

    def streams(self) -> Iterator[StreamFacts]:
        """Those of the query."""
        for stream in self.plan.query.streams:
            request = self.plan.runner.requests[self.plan.streams.index(stream.iri.value)]
            yield StreamFacts(stream.name, stream.iri.value, 0 if request is None else request.slots)

    def gpms(self) -> Iterator[GpmFacts]:
        """Letters that are graph patterns."""
        yield from (self.gpm(gpm.name) for gpm in self.plan.query.gpms if gpm.name in self.plan.runner.gpms)

    def atoms(self) -> Iterator[AtomFacts]:
        """Letters that are typed predicates."""
        yield from ()

    def gpm(self, name: str) -> GpmFacts:
        gpm = self.plan.runner.gpms[name]
        stream = self.plan.runner.requests[gpm.stream]
        assert stream is not None, "a GPM's stream has requests"
        answered, conditions, patterns = _way(stream, gpm.order)
        return GpmFacts(
            name=name,
            stream=gpm.parts.gpm.stream,
            negated=not any(letter.positive and name in letter.letter for letter in self.plan.letters),
            answered=answered,
            reason=more_than_basic(gpm.parts) if answered == "operators" else "",
            patterns=patterns,
            filters=tuple(FilterFacts(self.write.expression(c.expression), _decided(c)) for c in conditions),
            keeps=_names(gpm.keep),
            kb=self.kb_facts(gpm),
        )

    def kb_facts(self, gpm: GpmPlan) -> KbFacts | None:
        if gpm.kb is None:
            return None
        rows = None if self.kb is None else len(gpm.kb.answer(self.kb))
        filters = tuple(self.write.expression(e) for e in gpm.parts.kb_filters)
        how = "late enrichment" if gpm.enriched else "semi-join" if gpm.late else "join"
        return KbFacts(how, _names(gpm.parts.kb_variables), _names(gpm.kb.shared), filters, rows)

    # --- automaton --------------------------------------------------------------------------------

    def states(self) -> Iterator[StateFacts]:
        """The places where a match may stand."""
        automaton = self.plan.runner.automaton
        counted = {edge.source for edge in self.plan.runner.sequence.graph.edges if edge.counts is not None}
        for number, state in enumerate(self.plan.runner.sequence.graph.states):
            letters = automaton.positions[state.position].letters
            bound = sorted({value_text(v) for v in state.values})
            final = state.final or number in counted
            yield StateFacts(number, " | ".join(letter_text(x) for x in letters), final, tuple(bound))

    def edges(self) -> Iterator[EdgeFacts]:
        """The waits between them."""
        tables = self.plan.runner.sequence
        low, after = 0, tuple[str, ...]()
        limit: int | None = None
        for edge, key, words in zip(tables.graph.edges, tables.keys, tables.indexes, strict=True):
            if edge.counts is not None:
                continue
            before, limit = limit, edge.most if edge.longest is None else edge.longest
            if not edge.follows:
                low, after = edge.least, ()
            elif limit != before and before is not None:  # else it is the next step of a negated group
                low, after = before + 1, ()
            at_start = edge.source == START
            index = iter(words)
            arms = tuple(
                WaitFacts(
                    letter_text(arm.letter),
                    arm.target,
                    _INDEX_WORDS[next(index)],
                    self.conditions(arm.letter, arm.check),
                )
                for arm in edge.arms
            )
            guards = tuple(
                self.guard(g, "looked up at the start" if at_start else _INDEX_WORDS[next(index)]) for g in edge.guards
            )
            steps = tuple(self.guard(move, _INDEX_WORDS[next(index)]) for move in edge.moves)
            op = "window" if edge.waits else edge.op.value
            yield EdgeFacts(
                edge.source,
                op,
                _OPERATORS[edge.op],
                arms,
                guards,
                tuple(value_text(v) for v in key),
                age_text(low, limit),
                _then(edge),
                tuple(f"lasts {time_span(size)} at most" for v, size in edge.lasting if v != LAST_EVENT),
                after,
                steps,
            )
            after += (" | ".join(step.letter for step in steps),) if steps else ()

    def guard(self, guard: GuardCheck | Move, index: str) -> WaitFacts:
        return WaitFacts(letter_text(guard.letter), None, index, self.conditions(guard.letter, guard.check))

    def conditions(self, letter: Letter, check: Check) -> tuple[str, ...]:
        """What a row of the letter and a run must agree on; first what its GPMs decide together."""
        same = ["same partition" if v == PARTITION else f"same ?{v.value}" for v, _ in check.equal]
        same += [f"same ?{v.value} unless unbound" for v, _ in check.compatible]
        filters = (*own_filters(letter, self.parts), *(f.original for f in check.filters))
        return (*same, *(self.condition(f) for f in filters))

    def condition(self, condition: Expression) -> str:
        """A stateful filter; those with EXISTS are slow."""
        text = self.write.one_line(condition)
        return f"{text} (evaluated on the store, pair by pair)" if holds_exists(condition) else text


def letter_text(letter: Letter) -> str:
    """`A`, `A & B`."""
    return " & ".join(letter)


def value_text(value: Value) -> str:
    """Something that a run carries, in words."""
    if value.variable == PARTITION:
        return "the partition"
    timed = None if value.variable is None else gpm_of_time(value.variable)
    name = "" if value.variable is None else f"?{value.variable.value}" if timed is None else f"TIMEOF({timed})"
    match value.kind:
        case ValueKind.BOUND:
            return name if value.level == 0 else f"{name} of the iteration"
        case ValueKind.PREVIOUS:
            return f"PREV({name})"
        case ValueKind.FOLD:
            return "an aggregate over iterations"
        case ValueKind.START:
            return "start of the match"
        case ValueKind.NEGATED:
            return "last time of the leading negation"
        case ValueKind.SPAN:
            return "beginning of what LASTING bounds"
        case ValueKind.LAST:
            return "time of its last event"


def _then(edge: Edge) -> str:
    """What becomes of a run that is older than an age segment holds."""
    if edge.longest is None:
        return ""
    if edge.then is not None:
        return "it continues to wait"
    return "it is a match" if edge.waits else "it is dropped"


def age_text(low: int, limit: int | None) -> str:
    """The ages (µs) of an age segment in words: `from 5 SECONDS on, up to 10 SECONDS`."""
    begins = f"from {time_span(low)} on" if low % 1_000 == 0 else f"more than {time_span(low - 1)}"
    ends = ""
    if limit is not None:
        whole = (limit + 1) % 1_000 == 0 and limit % 1_000 != 0  # AFTER takes a microsecond off
        ends = f"less than {time_span(limit + 1)}" if whole else f"up to {time_span(limit)}"
    return ", ".join(x for x in (begins if low else "", ends) if x)


def window_text(window: Window | None) -> str:
    """`60 MINUTES tumbling`, or `none`."""
    if window is None:
        return "none"
    kind = "sliding" if window.sliding else "tumbling"
    if window.events:
        return f"{window.size} EVENTS {kind}"
    return f"{time_span(window.size)} {kind}"


def _names(variables: tuple[Variable, ...]) -> tuple[str, ...]:
    return tuple(f"?{v.value}" for v in variables)


def _way(plan: StreamPlan, request: int) -> tuple[str, tuple[Condition, ...], int]:
    """How a request is answered, its conditions, and how many triple patterns are matched in columns."""
    for kernel in plan.kernel:
        if kernel.request == request:
            found = basic_patterns(plan.requests[request].parts.pattern)
            return "columns", kernel.conditions, len(found or ())
    for number, conditions in plan.everywhere:
        if number == request:
            return "always", conditions, 0
    gpm = next(gpm for gpm in plan.operators if gpm.request == request)
    return "operators", gpm.conditions, sum(len(leaf.patterns) for leaf in gpm.leaves)


def _decided(condition: Condition) -> str:
    if condition.wants_memo:
        return "once per term"
    if not is_native(condition.expression):
        return "by the store's functions, row by row"
    return "in the kernel"


# --- what is more than a basic graph pattern -------------------------------------------------------

_ELEMENTS: Mapping[type, str] = {
    Bind: "BIND",
    GraphPattern: "GRAPH",
    Minus: "MINUS",
    OptionalPattern: "OPTIONAL",
    PathPattern: "a property path",
    SubSelect: "a sub-SELECT",
    Union: "UNION",
    Values: "VALUES",
}


def more_than_basic(parts: GpmParts) -> str:
    """What in a pattern is more than a BGP: `it has OPTIONAL, a property path`."""
    found = list(dict.fromkeys(_beyond(parts.pattern)))
    if parts.in_place:
        found = ["a GRAPH that cannot be split off", *(x for x in found if x != "GRAPH")]
    return "it has " + (", ".join(found) or "a group that holds blank nodes")


def _beyond(group: Group) -> Iterator[str]:
    for element in group.elements:
        yield from _beyond_bgp(element)


def _beyond_bgp(element: PatternElement) -> Iterator[str]:
    match element:
        case Group():
            yield from _beyond(element)
        case Filter(condition):
            yield from _beyond_filter(condition)
        case _ if type(element) in _ELEMENTS:
            yield _ELEMENTS[type(element)]


def _beyond_filter(condition: Expression) -> Iterator[str]:
    parts = [e for e in subexpressions(condition) if isinstance(e, Exists | Call | FunctionCall)]
    exists = [e for e in parts if isinstance(e, Exists)]
    yield from ("NOT EXISTS" if e.negated else "EXISTS" for e in exists)
    if not exists:
        yield "a FILTER of an inner group"
