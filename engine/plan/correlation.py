"""The variables that correlate a query's matches: how its events can be dealt to several runs that each see a part.

In the flow: plan → **correlation** → (a cluster's router). Each event goes to the runs that own a value which the
event shows for the key; together the runs find exactly the matches that one run over all events finds, each at least
once, and a match is taken from the run that owns its key. This module is about SPAseq; keyed_windows.py and
keyed_tuples.py are about the other languages.

The key is PARTITION BY's, or one variable ?k for which this holds:

1. A GPM of SEQ binds ?k in its event pattern for sure, or does not know it. Events that a GPM of the second kind
   matches go to all runs, so each sees the same events of it as a single run.
2. What begins a match binds ?k, and every row and negation that binds ?k later is compared with it by equality. So
   all of a match is within one value, and what another value's events do to its partial matches is nothing.
3. No clause compares matches of several values: LIMIT, a strategy, CONSUME BY, and DISTINCT over rows without ?k do.

`,` and windows of n EVENTS count the instants of all events: their times go to all runs as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyoxigraph import Variable

from oxiseq.engine.patterns.plan import GpmRequest
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.sequence.positions import START, Letter
from oxiseq.engine.sequence.states import Check
from oxiseq.grammar.algebra import Ask, Construct, Filter, Group, Op, Projection, Query, Select, Span
from oxiseq.grammar.places import names_of, split_gpms, suppression_keys
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import GpmParts, certain_variables


@dataclass(frozen=True, slots=True)
class Route:
    """Events of `stream` that `request` matches belong to the runs of the key's values, its columns; without columns
    they belong to all runs."""

    stream: int
    request: GpmRequest


@dataclass(frozen=True, slots=True)
class Correlation:
    """`by`: the key's variables; empty: one run has to see everything, `reason` says why.

    `routes`: what decides an event's runs. `instants`: every run gets the times of all events. `needs_start`: the
    query's tumbling windows begin with the first event, which only a run that sees all knows: it must be given.
    `one_each`: an event has one value of the key, so no run sees events of values that it does not own. `span`: what
    of the text is the reason.
    """

    by: tuple[Variable, ...]
    routes: tuple[Route, ...] = ()
    instants: bool = False
    needs_start: bool = False
    reason: str = ""
    one_each: bool = False
    span: Span | None = None

    @property
    def everywhere(self) -> tuple[str, ...]:
        """The GPMs whose events go to all runs."""
        return tuple(route.request.name for route in self.routes if not route.request.keep)

    def text(self) -> str:
        """For people, a line."""
        if not self.by:
            return f"one run has to see all events: {self.reason}"
        said = "partitioned by " + " ".join(f"?{v.value}" for v in self.by)
        if self.everywhere:
            said += f"; events of {', '.join(self.everywhere)} go to every partition"
        if self.instants:
            said += "; every partition reads the times of all events"
        return said


def correlation(plan: QueryPlan) -> Correlation:
    """How the query's events can be dealt out."""
    obstacle = _obstacle(plan)
    if obstacle:
        return Correlation((), reason=obstacle)
    parts = dict(split_gpms(plan.query))
    names = names_of(plan.query)
    window = plan.window
    counts = window is not None and window.events
    if plan.query.partition is not None:
        by = plan.query.partition.by
        routes = tuple(_memberships(plan, parts, names, by))
        return Correlation(by, routes, False, window is not None and not window.sliding and not counts)
    positive = {name for letter in plan.letters if letter.positive for name in letter.letter}
    keys = [v for v in _candidates(parts, names, positive) if _joins(plan, parts, v)]
    if not keys:
        return Correlation((), reason="no variable joins the first event of a match with all later ones")
    kept = [v for v in keys if not _forgets_key(plan, v)]
    if not kept:
        return Correlation((), reason=f"DISTINCT compares rows that do not show ?{keys[0].value}")
    key = max(kept, key=lambda v: sum(v in certain_variables(parts[name].pattern) for name in names))
    strict = any(edge.op is Op.STRICT and edge.source != START for edge in plan.runner.sequence.graph.edges)
    return Correlation(
        (key,),
        tuple(_routes(plan, parts, names, key)),
        strict or counts,
        window is not None and not window.sliding and not counts,
    )


def with_key(query: Query, by: tuple[Variable, ...]) -> Query:
    """The query with the key's variables among its columns, added ones last."""
    form = query.form
    more = tuple(Projection(v) for v in by)
    if not by or (isinstance(form, Select) and form.columns is None):
        return query
    if isinstance(form, Ask):
        return replace(query, form=Select(more))
    if isinstance(form, Construct):
        return replace(query, form=replace(form, columns=form.columns + more))
    known = {c.variable for c in form.columns or () if c.expression is None}
    missing = tuple(p for p in more if p.variable not in known)
    return replace(query, form=replace(form, columns=(form.columns or ()) + missing))


def _obstacle(plan: QueryPlan) -> str:
    """A clause that compares matches of several values."""
    query = plan.query
    if plan.summary is not None:
        return "groups run over the matches of all values"
    if query.suppression is not None:
        apart = suppression_keys(query, grouped=False)
        if query.partition is None or not set(query.partition.by) <= set(apart):
            return "SUPPRESS compares the matches of all values"
    if query.partition is None:
        if query.consumption is not None:
            return "CONSUME BY forgets the partial matches of all values"
        if query.limit is not None:
            return "LIMIT counts the matches of all values"
        if plan.ranking is not None:
            return "ORDER BY and SAMPLE choose among the matches of all values"
        if query.selection is not None:
            return f"{query.selection.strategy.name} chooses among the matches of all values"
        return ""
    if plan.ranking is not None and plan.ranking.window is not None:
        return "REPORT ON WINDOW CLOSE chooses among a window's matches in all partitions"
    if query.consumption is not None and query.consumption.whole_query:
        return "CONSUME BY ANY forgets the partial matches of all partitions"
    if any(_forgets_key(plan, v) for v in query.partition.by):
        return "DISTINCT compares rows of several partitions"
    return ""


def _forgets_key(plan: QueryPlan, key: Variable) -> bool:
    """Whether equal rows of several values would be one row."""
    shown = {column.variable for column in plan.runner.answer.columns if column.expression is None}
    return plan.runner.answer.distinct and key not in shown


def _memberships(
    plan: QueryPlan, parts: dict[str, GpmParts], names: Sequence[str], by: tuple[Variable, ...]
) -> Iterator[Route]:
    """The GPMs that put events into partitions: their patterns, FILTERs aside (semantics.md 2.1)."""
    for name in names:
        gpm = parts[name]
        if set(by) <= set(gpm.pattern_variables):
            bare = Group(tuple(e for e in gpm.pattern.elements if not isinstance(e, Filter)), span=gpm.pattern.span)
            yield Route(_stream(plan, gpm), GpmRequest(name, replace(gpm, pattern=bare, filters=()), by))


def _routes(plan: QueryPlan, parts: dict[str, GpmParts], names: Sequence[str], key: Variable) -> Iterator[Route]:
    for name in names:
        keep = (key,) if key in parts[name].variables else ()
        yield Route(_stream(plan, parts[name]), GpmRequest(name, parts[name], keep))


def _stream(plan: QueryPlan, gpm: GpmParts) -> int:
    return next(plan.streams.index(s.iri.value) for s in plan.query.streams if s.name == gpm.gpm.stream)


def _candidates(parts: dict[str, GpmParts], names: Sequence[str], positive: set[str]) -> list[Variable]:
    """Variables that each GPM binds in its event pattern for sure, or does not know, and that two positive GPMs have,
    or the only one."""
    found = dict.fromkeys(v for name in names for v in parts[name].pattern_variables)
    return [
        v
        for v in found
        if all(v in certain_variables(parts[n].pattern) or v not in parts[n].variables for n in names)
        and sum(v in parts[n].variables for n in positive) >= min(2, len(positive))
    ]


def _joins(plan: QueryPlan, parts: dict[str, GpmParts], key: Variable) -> bool:
    """Whether every match, with all that its negations look at, is within one value of `key`."""

    def binds(letter: Letter) -> bool:
        return any(key in parts[name].variables for name in letter)

    def compared(letter: Letter, check: Check) -> bool:
        return not binds(letter) or any(v == key and of.variable == key for v, of in check.equal)

    for edge in plan.runner.sequence.graph.edges:
        if edge.source == START:  # a leading negation is joined with the first row (semantics.md 2.5)
            if not all(binds(arm.letter) for arm in edge.arms):
                return False
        elif not all(compared(letter, check) for letter, check in edge.compared):
            return False
    return True
