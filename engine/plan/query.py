"""Compiling a query: algebra → plan. A plan is immutable; `engine.run.QueryRun` holds all that changes.

For each GPM the plan says what its rows must pass on: what the sequence compares, what joins the KB and the
partners of `&`, and what the answer shows. KB variables that nothing compares are left to the end, when a
match is written out (late enrichment).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeAlias

from pyoxigraph import Variable

from oxiseq.engine.expressions.blank_nodes import with_shared_blank_nodes
from oxiseq.engine.extras import needed
from oxiseq.engine.kernels.matches.records import NO_LIMIT
from oxiseq.engine.kernels.sequence.records import LISTS_REACHED, REACHES
from oxiseq.engine.matches.paging import Page
from oxiseq.engine.matches.plan import Clauses, SequencePlan, forgotten_by
from oxiseq.engine.matches.ranking import Ranking
from oxiseq.engine.matching.enrich import KbPattern
from oxiseq.engine.matching.tables import NativeGpm
from oxiseq.engine.patterns.plan import GpmRequest, KernelGpm, StreamPlan, compile_stream
from oxiseq.engine.plan.answer import Answer, answer_of
from oxiseq.engine.plan.counting import carried, each_because, listed_because
from oxiseq.engine.plan.folding import Folding, folding_of
from oxiseq.engine.plan.ranking import ranking_of, variables_of
from oxiseq.engine.plan.summary import SummaryPlan, summary_of, written_answer
from oxiseq.engine.plan.thresholds import beginning
from oxiseq.engine.sequence.asked import Asked, asked_by, gpm_of_time
from oxiseq.engine.sequence.positions import START, Automaton, Letter, build_automaton
from oxiseq.engine.sequence.states import PARTITION, StateBuilder, ValueKind, own_filters
from oxiseq.engine.sequence.tables import SequenceTables, build_tables
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Exists, Expression, Filter, Group, Op, Query
from oxiseq.grammar.places import Overview, names_of, overview, summarises
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import GpmParts, certain_variables, exists_in, expression_variables, holds_exists

if TYPE_CHECKING:
    from oxiseq.engine.plan import composing as compositions
else:
    compositions = needed("oxiseq.engine.plan.composing")


@dataclass(frozen=True, slots=True)
class GpmPlan:
    """How one GPM becomes rows.

    `keep`: the variables that its event pattern passes on. `kb`: its KB pattern; if `late`, rows are only checked
    against the KB's answer, and matches are `enriched` from it, if it has something to add; else each row is joined
    with it at once.
    """

    name: str
    stream: int
    parts: GpmParts
    keep: tuple[Variable, ...]
    kb: KbPattern | None
    late: bool
    order: int
    """Its place among the requests of its stream."""
    timed: bool
    """Whether its rows carry their time, since a stateful filter reads it."""

    @property
    def asks_again(self) -> bool:
        """Whether a stateful filter queries its event's graph again, with the joined mapping."""
        return any(holds_exists(condition) for condition in self.parts.stateful)

    @property
    def enriched(self) -> bool:
        """Whether matches have to be joined with the KB's answer: not if it only lets rows be, since each of its rows
        is one mapping of variables that the event has bound."""
        if self.kb is None or not self.late:
            return False
        bound = set(self.kb.variables) <= certain_variables(self.parts.pattern)
        return not (bound and self.kb.shared_certain)


@dataclass(frozen=True, slots=True)
class LetterPlan:
    """How a letter's rows are made: its GPMs joined at one instant, then the filters among them."""

    letter: Letter
    filters: tuple[Expression, ...]
    columns: tuple[Variable, ...]
    """The variables that the sequence compares, in the kernel's order."""
    positive: bool
    """Whether a match can hold such a row (not only a negation)."""


class Membership(NamedTuple):
    """A GPM whose pattern, its FILTERs aside, puts events into partitions: `request` of `stream`, and where its rows
    have the values of PARTITION BY."""

    stream: int
    request: int
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LiveKeys:
    """What live keys need of a plan: graph patterns, the automaton and its tables, and what is made of matches."""

    name: ClassVar[str] = "live keys"
    gpms: dict[str, GpmPlan]
    requests: tuple[StreamPlan | None, ...]
    """Per stream the graph patterns to match."""
    automaton: Automaton
    sequence: SequenceTables
    stored: tuple[Variable, ...]
    """Variables that a match needs of its rows when it is written out."""
    answer: Answer
    limit: int | None
    """LIMIT, where the kernel cannot see to it alone."""
    members: tuple[Membership, ...]
    """What decides the partitions of an event, for PARTITION BY."""
    deferred: bool
    """Matches of one end are not found at once, and a strategy, LIMIT or a summary needs all of them."""
    sieved: bool
    """FILTERs behind SEQ say which matches a strategy or CONSUME BY goes by."""
    written: Answer
    """The values written for each match: the answer, if each is a row."""
    listed: str | None
    """Why the matches of a summary are listed or folded; None: they are counted as they are found."""
    folding: Folding | None = None
    """How groups are made of the sets of matches that end at one instant, where that needs no listing."""
    composing: compositions.Composing | None = None
    """How groups are made of composed windows, which count and keep no prefix."""
    compile_otherwise: Callable[[], QueryPlan] | None = None

    @property
    def otherwise(self) -> QueryPlan | None:
        """The same query without composing, compiled when it is first wanted: how it counts among many, and what
        earlier versions have saved."""
        return None if self.compile_otherwise is None else self.compile_otherwise()

    def plain_gpm(self, letter: LetterPlan) -> GpmPlan | None:
        """The GPM whose rows are the letter's as they are, if there is one."""
        gpm = self.gpms[letter.letter[0]]
        made = gpm.kb is not None or letter.filters or gpm.asks_again or gpm.timed
        return gpm if len(letter.letter) == 1 and not made else None

    def members_in_kernel(self) -> Iterator[tuple[int, str, KernelGpm, NativeGpm, tuple[int, ...]]]:
        """Of each of `members`, all of which the match kernel finds: the stream, its name, what the kernel matches, and
        the kernel's columns of the values that decide the partition."""
        for stream, request, columns in self.members:
            requests = self.requests[stream]
            found = None if requests is None else requests.in_kernel(request)
            assert requests is not None and found is not None
            kernel, native = found
            known = tuple(native.columns[column] for column in columns)
            yield stream, requests.requests[request].name, kernel, native, known

    @property
    def asked_again(self) -> tuple[Exists, ...]:
        """The EXISTS of stateful filters."""
        conditions = (condition for gpm in self.gpms.values() for condition in gpm.parts.stateful)
        return tuple(dict.fromkeys(e for condition in conditions for e in exists_in(condition)))


QueryPlan: TypeAlias = SequencePlan[Query, LetterPlan, Ranking, SummaryPlan, LiveKeys]
"""That of a SPAseq query."""


def compile_query(
    query: Query,
    terms: TermDictionary,
    *,
    listing: bool = False,
    wanted: frozenset[Variable] = frozenset(),
    page: Page | None = None,
    composing: bool = True,
) -> QueryPlan:
    """Compile a checked query; constants are interned in `terms`. `listing`: groups are made of listed matches, also
    where these could be counted, and the best, or a sample, are chosen among listed matches. `wanted`: rows keep these
    variables for other answers, too. `page`: only these of its matches. `composing`: groups are made of composed
    windows where they can be."""
    seen = overview(with_shared_blank_nodes(query))
    plan = _compile(seen, terms, None, wanted, page=page)
    if listing:
        return plan
    if plan.ranking is not None:
        because = _ranked_by_listing(plan, ranking_of(seen, plan.runner.answer.iterations, page))
        if because is None:
            return _compile(seen, terms, None, wanted, picking=True, page=page)
        return replace(plan, ranking=replace(plan.ranking, listed=because))
    if plan.summary is None:
        return plan
    found = _composing(plan, plan.summary, seen) if composing and query.suppression is None else None
    counted = partial(_counted, plan, plan.summary, seen, terms, wanted)
    if found is None:
        return counted()
    return replace(plan, runner=replace(plan.runner, composing=found, listed=None, compile_otherwise=cache(counted)))


def _composing(plan: QueryPlan, summary: SummaryPlan, seen: Overview) -> compositions.Composing | None:
    """How groups are made of composed windows, if they can be."""
    runner = plan.runner
    enriched = (name for name, gpm in runner.gpms.items() if gpm.enriched)
    if each_because(seen, runner.automaton.ambiguous, enriched, runner.sequence.graph) is not None:
        return None
    return compositions.composing_of(summary, seen, runner.answer.iterations, runner.sequence, runner.stored)


def _counted(
    plan: QueryPlan,
    summary: SummaryPlan,
    seen: Overview,
    terms: TermDictionary,
    wanted: frozenset[Variable],
) -> QueryPlan:
    """The plan of a query with groups whose matches are counted, folded, or listed, as far as that is needed."""
    enriched = (name for name, gpm in plan.runner.gpms.items() if gpm.enriched)
    because = listed_because(summary, seen, plan.runner.automaton.ambiguous, enriched, plan.runner.sequence.graph)
    if because is None:
        apart, begins = carried(summary), None if plan.window is None else beginning(plan)
        if begins is not None:  # by its value matches are dealt out to the queries of a ladder
            apart |= {begins.variable}
        return _compile(seen, terms, apart, wanted)
    folding = _folded(plan, summary, seen)
    if folding is None:
        return replace(plan, runner=replace(plan.runner, listed=because))
    plan = _compile(seen, terms, None, wanted, folding=True, weighed=folding.weighed)
    return replace(plan, runner=replace(plan.runner, listed=because, folding=folding))


def _folded(plan: QueryPlan, summary: SummaryPlan, seen: Overview) -> Folding | None:
    """How groups are made of sets of matches, if these are all that is needed."""
    if plan.runner.automaton.ambiguous or plan.query.filters or plan.runner.deferred:
        return None
    if any(gpm.enriched for gpm in plan.runner.gpms.values()):
        return None
    folding = folding_of(summary, seen, plan.runner.answer.iterations)
    return folding if folding is not None and folding.variables <= set(plan.runner.stored) else None


def _ranked_by_listing(plan: QueryPlan, ranking: Ranking | None) -> str | None:
    """Why ORDER BY or SAMPLE need every match of an instant listed; None: they need not."""
    assert ranking is not None
    if ranking.listed is not None:
        return ranking.listed
    if plan.runner.automaton.ambiguous:
        return "one match may be found in two ways"
    if plan.query.filters:
        return "a FILTER behind SEQ drops some of them"
    if plan.runner.deferred:
        return "a trailing negation decides some when their window closes"
    for variable in variables_of(ranking.keys):
        if variable not in plan.runner.stored:
            return f"?{variable.value} comes from the knowledge base when a match is written"
    if ranking.sample is not None or ranking.page is not None:
        for name, gpm in plan.runner.gpms.items():
            if gpm.enriched and any(name in letter.letter for letter in plan.letters if letter.positive):
                return f"the knowledge base may give one of {name} several mappings"
    return None


def _compile(
    seen: Overview,
    terms: TermDictionary,
    told_apart: frozenset[Variable] | None,
    also: frozenset[Variable],
    *,
    picking: bool = False,
    folding: bool = False,
    weighed: bool = False,
    page: Page | None = None,
) -> QueryPlan:
    """`told_apart`: matches are counted, apart by the values of these variables. `picking`: those that ORDER BY or
    SAMPLE choose are found on the compact set. `folding`: so are totals, and one match of an instant is emitted, or
    none if nodes are `weighed`."""
    query = seen.query
    parts = dict(seen.parts)
    automaton = build_automaton(query.sequence, query.until)
    sliding = query.window is not None and query.window.sliding
    by = query.partition.by if query.partition is not None else ()
    asked = asked_by(seen)
    summarised = summarises(seen)
    answer = answer_of(seen, _positive(seen, automaton))
    answer = replace(answer, wanted=answer.wanted | also)
    if query.suppression is not None and not summarised:  # all its values say which match comes first
        answer = replace(answer, wanted=answer.wanted | seen.bound)
    ranking = ranking_of(seen, answer.iterations, page)
    agreed = frozenset(by)
    if not summarised and ranking is None and _only_compares(query, automaton, parts):
        by = ()
    elif by:
        agreed = frozenset({PARTITION})
    builder = StateBuilder(automaton, parts, sliding, by, agreed, asked, told_apart)
    graph = builder.build()
    if ranking is not None and not picking:
        ranking = replace(ranking, keys=(), listed="the caller asks for a list")
    chosen = query.selection is not None or query.limit is not None or summarised or ranking is not None
    deferred = chosen and any(edge.waits for edge in graph.edges)
    clauses = _clauses(query, automaton, summarised, ranking, partitioned=bool(by))
    if folding:
        clauses = replace(clauses, limit=1, picks=not weighed, notes=weighed)
    if deferred:
        clauses = Clauses(partitioned=clauses.partitioned, reach=LISTS_REACHED if query.filters else REACHES)
    summary = summary_of(seen, answer)
    if told_apart is not None and summary is not None:
        clauses = replace(clauses, together=summary.by_window)
    sequence = build_tables(graph, builder.scopes, query.window, terms, clauses)
    positive = {letter for position in automaton.positions for letter in position.letters}
    names = {name for letter in positive for name in letter}
    filters = {letter: _named(own_filters(letter, parts), letter, asked) for letter in sequence.letters}
    compared = _compared(sequence, parts, by, filters)
    streams = tuple(dict.fromkeys(s.iri.value for s in query.streams))
    index = {s.name: streams.index(s.iri.value) for s in query.streams}
    gpms: dict[str, GpmPlan] = {}
    requests: list[list[GpmRequest]] = [[] for _ in streams]
    for name in dict.fromkeys(n for letter in sequence.letters for n in letter):
        stream = index[parts[name].gpm.stream]
        plan = _gpm_plan(
            parts[name],
            stream,
            len(requests[stream]),
            compared[name],
            answer.wanted,
            name in names,
            terms,
            name in asked.timed,
        )
        requests[stream].append(GpmRequest(name, parts[name], plan.keep))
        gpms[name] = plan
    in_partitions = tuple(_members(query, by, parts, index, gpms, requests))
    letters = tuple(
        LetterPlan(letter, filters[letter], columns, letter in positive)
        for letter, columns in zip(sequence.letters, sequence.columns, strict=True)
    )
    limit = None
    if not summarised and ranking is None and query.suppression is None:
        limit = _limit(query, automaton, letters, gpms, deferred)
    by_own_number = query.window is not None and query.window.events and any(edge.waits for edge in graph.edges)
    told_by_partition = deferred or limit is not None or ranking is not None or by_own_number
    runner = LiveKeys(
        gpms,
        tuple(compile_stream(r, terms) if r else None for r in requests),
        automaton,
        sequence,
        _stored(gpms.values(), answer, bool(by) and told_by_partition),
        answer,
        limit,
        in_partitions,
        deferred,
        _sieved(query) or (deferred and bool(query.filters)),
        answer if summary is None else written_answer(summary, answer),
        None if told_apart is not None or summary is None else "the caller asks for a list",
    )
    return SequencePlan(query, streams, letters, clauses, ranking, summary, runner, _because(sequence))


def _because(sequence: SequenceTables) -> str:
    """Why live keys run it."""
    carried = (value.variable for key in sequence.keys for value in key if value.kind is ValueKind.BOUND)
    variable = next((each for each in carried if each is not None and each != PARTITION), None)
    if variable is not None:
        timed = gpm_of_time(variable)
        name = f"?{variable.value}" if timed is None else f"TIMEOF({timed})"
        return f"{name} is needed when later events come"
    return "a graph pattern may match one event in several ways"


def _only_compares(query: Query, automaton: Automaton, parts: Mapping[str, GpmParts]) -> bool:
    """Whether PARTITION BY only means that all graph patterns of a match, and those that negate it, agree on its
    variables: nothing counts the instants of a partition, nothing chooses among its matches."""
    by = () if query.partition is None else query.partition.by
    if query.selection is not None or query.limit is not None or query.consumption is not None:
        return False
    if query.window is not None and query.window.events:
        return False
    if any(way.op is Op.STRICT and way.source != START for way in automaton.transitions):
        return False
    return not by or all(set(by) <= certain_variables(gpm.pattern) for gpm in parts.values())


def _members(
    query: Query,
    by: tuple[Variable, ...],
    parts: Mapping[str, GpmParts],
    streams: Mapping[str, int],
    gpms: Mapping[str, GpmPlan],
    requests: list[list[GpmRequest]],
) -> Iterator[Membership]:
    """What decides partitions; patterns that no row needs as they are, without their FILTERs, are requested besides."""
    for name in names_of(query) if by else ():
        gpm = parts[name]
        if not set(by) <= set(gpm.pattern_variables):
            continue
        stream = streams[gpm.gpm.stream]
        bare = Group(tuple(e for e in gpm.pattern.elements if not isinstance(e, Filter)), span=gpm.pattern.span)
        if name in gpms and not gpm.filters and bare == gpm.pattern:
            yield Membership(stream, gpms[name].order, tuple(gpms[name].keep.index(v) for v in by))
            continue
        yield Membership(stream, len(requests[stream]), tuple(range(len(by))))
        requests[stream].append(GpmRequest(name, replace(gpm, pattern=bare, filters=()), by))


def _positive(seen: Overview, automaton: Automaton) -> list[GpmParts]:
    """The GPMs that a match binds, in the text's order."""
    names = {name for position in automaton.positions for letter in position.letters for name in letter}
    return [seen.parts[g.name] for g in seen.query.gpms if g.name in names]


def _clauses(
    query: Query, automaton: Automaton, summarised: bool, ranking: Ranking | None, *, partitioned: bool
) -> Clauses:
    """The kernel's options. It may find a match of an ambiguous sequence twice, so it does not count those; LIMIT of
    an answer over matches counts groups, and one with ORDER BY is no matter of what is found first."""
    counted = query.limit is not None and not automaton.ambiguous and not summarised and not query.filters
    counted = counted and query.suppression is None
    limit = query.limit.count if query.limit is not None and counted else NO_LIMIT
    if ranking is not None:
        limit = NO_LIMIT
    return Clauses(
        limit,
        query.selection.strategy if query.selection is not None else None,
        forgotten_by(query),
        partitioned,
        (ranking is not None and (ranking.listed is None or ranking.page is not None)) or _sieved(query),
    )


def _sieved(query: Query) -> bool:
    return bool(query.filters) and (query.selection is not None or query.consumption is not None)


def _limit(
    query: Query, automaton: Automaton, letters: Iterable[LetterPlan], gpms: Mapping[str, GpmPlan], deferred: bool
) -> int | None:
    """LIMIT for the answers: what the kernel emits may be too much, since it does not know about repetitions, nor
    about what late enrichment makes of one match."""
    enriched = any(gpms[name].enriched and letter.positive for letter in letters for name in letter.letter)
    later = automaton.ambiguous or enriched or deferred or bool(query.filters)
    return query.limit.count if query.limit is not None and later else None


def _named(conditions: Iterable[Expression], letter: Letter, asked: Asked) -> tuple[Expression, ...]:
    """The conditions of a letter's GPMs on each other, on the letter's columns."""
    return tuple(asked.named(condition, letter[0]) for condition in conditions)


def _compared(
    sequence: SequenceTables,
    parts: dict[str, GpmParts],
    by: tuple[Variable, ...],
    together: Mapping[Letter, tuple[Expression, ...]],
) -> dict[str, set[Variable]]:
    """Per GPM the variables that the sequence, its `&` partners or a filter among them compare, and `by`."""
    compared: dict[str, set[Variable]] = {name: set(by) & set(gpm.variables) for name, gpm in parts.items()}
    for letter, columns in zip(sequence.letters, sequence.columns, strict=True):
        wanted = set(columns)
        for condition in together[letter]:
            wanted |= expression_variables(condition)
        for name in letter:
            own = set(parts[name].variables)
            others = {v for other in letter if other != name for v in parts[other].variables}
            compared[name] |= own & (wanted | others)
    return compared


def _gpm_plan(
    parts: GpmParts,
    stream: int,
    order: int,
    compared: set[Variable],
    wanted: frozenset[Variable],
    positive: bool,
    terms: TermDictionary,
    timed: bool,
) -> GpmPlan:
    own = parts.pattern_variables
    needed, wanted = set(compared), wanted if positive else frozenset()
    for condition in parts.kb_filters:
        needed |= expression_variables(condition)
    kb, late = None, False
    if parts.kb is not None:
        shared = tuple(v for v in parts.kb_variables if v in own)
        needed |= set(shared)
        kb = KbPattern(parts.kb, shared, terms)
        from_kb = set(parts.kb_variables) - certain_variables(parts.pattern)
        late = not parts.kb_filters and not (compared & from_kb)
    keep = tuple([v for v in own if v in needed or v in wanted])
    return GpmPlan(parts.gpm.name, stream, parts, keep, kb, late, order, timed)


def _stored(gpms: Iterable[GpmPlan], answer: Answer, partition: bool) -> tuple[Variable, ...]:
    stored: dict[Variable, None] = {PARTITION: None} if partition else {}
    for gpm in gpms:
        kept = gpm.keep if gpm.kb is None or gpm.late else (*gpm.keep, *gpm.parts.kb_variables)
        joined = gpm.kb.shared if gpm.kb is not None and gpm.enriched else ()
        for variable in kept:
            if variable in answer.wanted or variable in joined:
                stored[variable] = None
    return tuple(stored)
