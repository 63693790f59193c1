"""Why a SPAseq query matches or does not: its steps are the beginnings of the sequence, `A`, `A; B`, `A; B, C`...

    streams ─▶ history ─▶ a beginning as a query, and with one condition of its last step left out ─▶ languages/reasons

Of a match that is kept the triples are shown that its graph patterns matched: of plain triple patterns at the top of a
pattern; of paths, OPTIONAL and UNION nothing is marked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Listing
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, Final

import numpy as np
from pyoxigraph import Literal, NamedNode, Quad, QuerySolutions, Store, Triple, Variable

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.time import to_text
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.plan.ranking import order_of
from oxiseq.engine.run.sequence import run_of
from oxiseq.engine.sequence.asked import asked_by
from oxiseq.engine.sequence.positions import flatten
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import (
    Atom,
    Bounded,
    BoundKind,
    Call,
    Disjunction,
    Expression,
    Filter,
    Gpm,
    GraphPattern,
    Group,
    Limit,
    MatchFunction,
    Maybe,
    Not,
    Op,
    PatternElement,
    Query,
    Repeat,
    Select,
    Sequence,
    SequenceElement,
    Summary,
    TriplePattern,
    Values,
)
from oxiseq.grammar.parts import changed
from oxiseq.grammar.places import (
    atoms,
    elements,
    negation,
    overview,
    shortest,
    split_gpms,
    steps_of,
    summarises,
    without_bounds,
)
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.render import render_clause, render_group, time_span
from oxiseq.grammar.render_sparql import SparqlWriter
from oxiseq.grammar.scope import (
    GpmParts,
    conjuncts,
    expression_variables,
    prev_variables,
    split_gpm,
    subexpressions,
    visible_variables,
)
from oxiseq.grammar.spaseq.sequence import gap_operators
from oxiseq.grammar.spaseq.texts import render_sequence
from oxiseq.languages.reasons.read import FREE, Bounds, History, graph_of, steps
from oxiseq.languages.reasons.report import SHOWN, Funnel, Near, Provenance, Source, Step, Wording
from oxiseq.languages.reasons.where.origins import as_variable, facts_of
from oxiseq.languages.reasons.why import MOST, FoundRow, FoundRows, Subject, WhyCondition, WhyStep, length, passed
from oxiseq.languages.sequences.clauses import without_clauses
from oxiseq.languages.spaseq.language import spaseq_shape
from oxiseq.matches.shape import Block

# --- conditions --------------------------------------------------------------------------------------


OTHER = "_of_"
"""Between a variable and the GPM that binds its own value of it, where a join is left out."""


@dataclass(frozen=True, slots=True)
class OfStep:
    """What a condition is about: the GPMs of the last element. Of a negation that was left out: `positive` are the step
    with it in its positive form, once for each of its places, `within` how long after the event before it counts (µs);
    `between`: it counts before the step's last event only."""

    names: tuple[str, ...]
    negated: frozenset[str] = frozenset()
    positive: tuple[Query, ...] = ()
    within: int | None = None
    between: bool = False


def conditions(query: Query, at: Beginning) -> Iterator[WhyCondition]:
    """Each condition of the last step of a beginning, left out by itself."""
    items = at.items
    last = tuple(dict.fromkeys(_atoms(items[-1:])))
    of = OfStep(last)
    if negation(items[-1][1]) is not None:
        yield from _negations(query, items, at.gap, last)
        return
    write = SparqlWriter(dict(query.prefixes))
    here = with_items(query, items)
    if query.window is not None and at.gap:
        yield WhyCondition("window", render_clause(query.window), replace(here, window=None), of=of)
    yield from _bounds(query, items, of)
    yield from _orders(query, items, at.gap, of)
    yield from _negations(query, items, at.gap, last)
    yield from _until(here, items, last)
    for gpm in (next(g for g in query.gpms if g.name == name) for name in last):
        for condition in _conditions(gpm):
            loose = _with_gpm(here, _without(gpm, {id(condition)}))
            shown = tuple(sorted(v.value for v in expression_variables(condition) | prev_variables(condition)))
            text = f"{gpm.name}: FILTER({write.one_line(condition)})"
            yield WhyCondition("filter", text, loose, shown, condition, of=of)
        if any(isinstance(e, GraphPattern) for e in gpm.pattern.elements):
            bound = tuple(v.value for v in split_gpm(gpm).pattern_variables)
            yield WhyCondition("knowledge base", f"{gpm.name}: GRAPH", _without_kb(here, gpm, items), bound, of=of)
    yield from _joins(here, items, at.gap, last)


def _atoms(items: Items) -> Iterator[str]:
    for _, item in items:
        yield from (atom.name for atom in atoms(item))


def _bounds(query: Query, items: Items, of: OfStep) -> Iterator[WhyCondition]:
    """Each WITHIN, AFTER and LASTING of the step; not those of negations, which would forbid more without them."""
    op, item = items[-1]
    if negation(item) is None:
        for bound in (e for e in elements(item) if isinstance(e, Bounded) and negation(e) is None):

            def without(node: Any, bound: Bounded = bound) -> Any:
                return node.item if node == bound else node

            text = f"{bound.kind.value} {time_span(bound.size)}"
            loose = (*items[:-1], (op, changed(item, without)))
            yield WhyCondition("bound", text, with_items(query, loose), of=of)


def _orders(query: Query, items: Items, gap: int, of: OfStep) -> Iterator[WhyCondition]:
    """Everything of the step by skip till any."""
    if gap and any(op is not Op.ANY for op, _ in items[gap:]):
        loose = (*items[:gap], *((Op.ANY, item) for _, item in items[gap:]))
        op = next(op for op, _ in reversed(items[gap:]) if op is not Op.ANY)
        assert op is not None
        yield WhyCondition("contiguity", f"`{op.value}`", with_items(query, loose), of=of)
    inner = without_bounds(items[-1][1])
    if isinstance(inner, Repeat) and inner.chain is not Op.ANY and (inner.most is None or inner.most > 1):
        left, item = items[-1]
        chained = changed(item, lambda node: replace(inner, chain=Op.ANY) if node == inner else node)
        loose = (*items[:-1], (left, chained))
        yield WhyCondition("contiguity", "between its iterations", with_items(query, loose), of=of)


def _negations(query: Query, items: Items, gap: int, last: tuple[str, ...]) -> Iterator[WhyCondition]:
    for number in range(gap, len(items)):
        op, item = items[number]
        if (negated := negation(item)) is not None:
            rest = (*items[:number], *items[number + 1 :])
            if number == 0 and rest:
                rest = ((None, rest[0][1]), *rest[1:])
            group = len(steps_of(negated.item)) > 1
            text = render_sequence(negated) if group else f"{' '.join(dict.fromkeys(_atoms(((op, item),))))}!"
            seen = tuple((Op.ANY if n else None, _seen(e) if n == number else e) for n, (_, e) in enumerate(items))
            within = shortest(item) if group else None  # else the bound stands in the positive form
            of = OfStep(last, frozenset(_atoms(((op, item),))), (replace(with_items(query, seen), until=None),), within)
            yield WhyCondition("negation", text, with_items(query, rest), of=of)


def _until(here: Query, items: Items, last: tuple[str, ...]) -> Iterator[WhyCondition]:
    """UNTIL in all gaps of the step: between two elements, and between iterations of one."""
    until = here.until
    if until is None or not any(gap_operators(here.sequence)):
        return
    loose = replace(here, until=None)
    steps = tuple((Op.ANY if n else None, item) for n, (_, item) in enumerate(items))
    seen = [(*steps[:n], (Op.ANY, until), *steps[n:]) for n in range(1, len(steps))]
    for n, (op, item) in enumerate(steps):
        inner = changed(item, lambda node: _with_between(node, until) if isinstance(node, Repeat) else node)
        seen += [(*steps[:n], (op, inner), *steps[n + 1 :])] if inner is not item else []
    positive = tuple(with_items(loose, each) for each in seen)
    names = frozenset(atom.name for atom in atoms(until))
    of = OfStep(last, names, positive, between=True)
    yield WhyCondition("negation", f"UNTIL {render_sequence(until)}", loose, of=of)


def _with_between(repeat: Repeat, until: SequenceElement) -> Repeat:
    """With one or no such event behind each iteration."""
    return replace(repeat, item=Sequence(repeat.item, ((Op.ANY, Maybe(until)),)), chain=Op.ANY)


def _seen(item: SequenceElement) -> SequenceElement:
    """What a negated element negates, with its bounds."""
    if isinstance(item, Bounded):
        return replace(item, item=_seen(item.item))
    return item.item if isinstance(item, Not) else item


def _joins(here: Query, items: Items, gap: int, last: tuple[str, ...]) -> Iterator[WhyCondition]:
    """For each variable that the last element shares with those before: a value of its own."""
    before = {v for g in here.gpms if g.name in set(_atoms(items[:gap])) for v in split_gpm(g).variables}
    mine = dict.fromkeys(v for g in here.gpms if g.name in last for v in split_gpm(g).variables)
    for variable in mine:
        if variable in before:
            other = Variable(f"{variable.value}{OTHER}{last[0]}")

            def own(node: Any, variable: Variable = variable, other: Variable = other) -> Any:
                return other if node == variable and isinstance(node, Variable) else node

            gpms = tuple(changed(g, own) if g.name in last else g for g in here.gpms)
            pair = variable.value, other.value
            loose = replace(here, gpms=gpms)
            yield WhyCondition("join", f"the same ?{variable.value}", loose, pair, same=pair, of=OfStep(last))


# --- parts of a GPM -------------------------------------------------------------------------------


def _conditions(gpm: Gpm) -> list[Expression]:
    """The conjuncts of its FILTERs."""
    return [c for e in gpm.pattern.elements if isinstance(e, Filter) for c in conjuncts(e.condition)]


def _without(gpm: Gpm, dropped: set[int]) -> Gpm:
    """Without the conditions of these identities."""
    elements: list[PatternElement] = []
    for element in gpm.pattern.elements:
        if not isinstance(element, Filter):
            elements.append(element)
            continue
        kept = tuple(c for c in conjuncts(element.condition) if id(c) not in dropped)
        if kept:
            elements.append(Filter(kept[0] if len(kept) == 1 else Call("&&", kept)))
    return replace(gpm, pattern=Group(tuple(elements)))


def _without_kb(query: Query, gpm: Gpm, items: Items) -> Query:
    """Without the GRAPH patterns of a GPM, and without the conditions that read what only they bind, of whatever GPM
    and behind the sequence."""
    own = Group(tuple(e for e in gpm.pattern.elements if not isinstance(e, GraphPattern)))
    facts = set(visible_variables(gpm.pattern)) - set(visible_variables(own))
    names = {atom.name for _, item in items for atom in atoms(item, positive=True)} - {gpm.name}
    gone = facts - {v for g in query.gpms if g.name in names for v in visible_variables(g.pattern)}

    def loose(each: Gpm, unbound: set[Variable]) -> Gpm:
        return _without(each, {id(c) for c in _conditions(each) if _reads(c, unbound)})

    bare = replace(gpm, pattern=own)
    gpms = tuple(loose(bare, facts) if g.name == gpm.name else loose(g, gone) for g in query.gpms)
    return replace(query, gpms=gpms, filters=tuple(f for f in query.filters if not _reads(f.condition, gone)))


def _reads(condition: Expression, variables: set[Variable]) -> bool:
    return not variables.isdisjoint(expression_variables(condition) | prev_variables(condition))


def _with_gpm(query: Query, gpm: Gpm) -> Query:
    return replace(query, gpms=tuple(gpm if g.name == gpm.name else g for g in query.gpms))


# --- matched -----------------------------------------------------------------------------------------


_NAME: Final = "urn:oxiseq:triple:"
_MOST: Final = 100
"""Most ways to match one event that are examined."""


def matched_triples(gpm: Gpm, graph: Listing[Triple], bound: Mapping[str, Term | None]) -> tuple[int, ...]:
    """The numbers, in rising order, of the triples of `graph` that the pattern matched with these values."""
    patterns = [changed(e, as_variable("blank")) for e in gpm.pattern.elements if isinstance(e, TriplePattern)]
    if not patterns or not graph:
        return ()
    store = Store()
    store.extend(
        Quad(triple.subject, triple.predicate, triple.object, NamedNode(f"{_NAME}{number}"))
        for number, triple in enumerate(graph)
    )
    names = [Variable(f"oxiseq_triple_{number}") for number in range(len(patterns))]
    where = [GraphPattern(name, Group((pattern,))) for name, pattern in zip(names, patterns, strict=True)]
    given = {Variable(v): t for v, t in bound.items() if isinstance(t, NamedNode | Literal)}
    values = [Values(tuple(given), (tuple(given.values()),))] if given else []
    chosen = " ".join(map(str, names))
    rows = store.query(f"SELECT {chosen} WHERE {render_group(Group((*values, *where)))} LIMIT {_MOST}")
    assert isinstance(rows, QuerySolutions)
    return tuple(sorted({_number(row[name]) for row in rows for name in names}))


def values_in_all(gpm: Gpm, others: Listing[Gpm], bound: Mapping[str, Term | None]) -> dict[str, Term | None]:
    """The values that hold in every iteration of a repeated pattern: not those that it alone binds."""
    shared = {v.value for other in others for v in visible_variables(other.pattern)}
    own = {v.value for v in visible_variables(gpm.pattern)} - shared
    return {name: term for name, term in bound.items() if name not in own}


def _number(name: object) -> int:
    assert isinstance(name, NamedNode)
    return int(name.value.removeprefix(_NAME))


# --- stages ------------------------------------------------------------------------------------------


Items = tuple[tuple[Op | None, SequenceElement], ...]


@dataclass(frozen=True, slots=True)
class Beginning:
    """The sequence up to one of its elements (`gap`: from the element before on, with the events between);
    `text` as in the query."""

    items: Items
    gap: int
    text: str


def beginnings(query: Query) -> Iterator[Beginning]:
    """One per element that is not negated, and the whole if negations are at the end."""
    node = query.sequence
    items = tuple(flatten(node)) if isinstance(node, Sequence) else ((None, node),)
    gap = 0
    for number, (_, item) in enumerate(items):
        if negation(item) is None:
            part = items[: number + 1]
            yield Beginning(part, gap, _text(query, part))
            gap = number + 1
    if gap < len(items):
        yield Beginning(items, gap, _text(query, items))


def with_items(query: Query, items: Items) -> Query:
    """The query with another sequence."""
    (_, first), *rest = items
    names = {atom.name for _, item in items for atom in atoms(item, positive=True)}
    bound = {v for gpm in query.gpms if gpm.name in names for v in visible_variables(gpm.pattern)}
    filters = tuple(each for each in query.filters if _reads_of(each.condition, names, bound))
    sequence = Sequence(first, tuple((op or Op.ANY, item) for op, item in rest))
    return replace(query, sequence=sequence, filters=filters, until=_until_of(query, names))


def _until_of(query: Query, names: set[str]) -> SequenceElement | None:
    """The alternatives of UNTIL without those that ask for iterations of other GPMs: before there are any they end no
    run."""
    if query.until is None:
        return None
    seen = overview(query)
    asked = asked_by(seen)
    alternatives = query.until.items if isinstance(query.until, Disjunction) else (query.until,)
    conditions = {each: [c for atom in atoms(each) for c in seen.parts[atom.name].stateful] for each in alternatives}
    kept = [each for each in alternatives if all(f.gpm in names for c in conditions[each] for f in asked.folds_in(c))]
    return Disjunction(tuple(kept)) if len(kept) > 1 else next(iter(kept), None)


def _reads_of(condition: Expression, names: set[str], bound: set[Variable]) -> bool:
    """Whether a FILTER behind SEQ reads these GPMs only."""
    asked = {e.gpm for e in subexpressions(condition) if isinstance(e, MatchFunction) and e.gpm is not None}
    return asked <= names and expression_variables(condition) <= bound


def _text(query: Query, items: Items) -> str:
    return render_sequence(with_items(query, items).sequence)


# --- subject -----------------------------------------------------------------------------------------


class SequenceSubject(Subject):
    """Matches of graph patterns in order."""

    wording = Wording("graph patterns", "sequence", "match", "matches")

    def __init__(self, query: Query, history: History, kb: KnowledgeBase, bounds: Bounds = FREE) -> None:
        self.query, self.history, self.kb, self.bounds = query, history, kb, bounds
        self.language, self.late = query.language, history.late

    def beginnings(self) -> Listing[WhyStep]:
        each = list(beginnings(self.query))
        return [
            WhyStep(
                at.text,
                with_items(self.query, at.items),
                partial(conditions, self.query, at),
                (number - 1,) if number else (),
                at is each[-1],
            )
            for number, at in enumerate(each)
        ]

    def begun(self, variant: Query) -> FoundRows:
        return self._answers(variant)

    def whole(self, variant: Query | None = None) -> FoundRows:
        return self._answers(variant or self.query, as_is=True)

    def _answers(self, query: Query, *, as_is: bool = False) -> FoundRows:
        """Every match with all variables, up to `MOST` of one completing event; without the query's strategy, CONSUME
        BY and LIMIT unless `as_is`."""
        bare = _bare(query, MOST)
        if as_is:
            seen = overview(query)
            limit: Limit | None = Limit(MOST)
            summary = Summary()
            if not summarises(seen):
                limit = None if query.sample is not None else query.limit or limit
                summary = Summary(order_by=order_of(seen), report=query.summary.report)
            bare = replace(query, form=Select(None, False, query.selection), limit=limit, summary=summary)
        found: list[FoundRow] = []
        ends: Counter[int] = Counter()
        for block, times in self._blocks(bare):
            ends.update(times)
            for i in range(len(times)):
                if len(found) == self.bounds.matches:
                    return FoundRows(tuple(found), True)
                events = tuple(sorted((gpm, tuple(t for _, t in each)) for gpm, each in block.events(i).items()))
                own = [time for _, of in events for time in of]
                found.append(FoundRow(events, _values(block, i), (max(own) - min(own), max(own)), events))
        return FoundRows(tuple(found), any(count >= MOST for count in ends.values()))

    def _blocks(self, query: Query) -> Iterator[tuple[Block, list[int]]]:
        """Its matches as they are found, and when each ends."""
        plan = compile_query(query, self.history.terms)
        run = run_of(plan, self.history.terms, self.kb, self.history.start)
        shape = spaseq_shape(plan, self.history.terms)
        for part in chain.from_iterable(steps(run, plan.streams, self.history, self.bounds)):
            yield shape.block([part]), part.time.tolist()

    def clauses(self) -> Iterator[WhyCondition]:
        grouped = summarises(overview(self.query))  # then LIMIT leaves out groups
        return (each for each in without_clauses(self.query, MOST) if each.kind != "limit" or not grouped)

    def provenances(self, whole: FoundRows, most: int) -> Iterator[Provenance]:
        iris = {s.name: s.iri.value for s in self.query.streams}
        streams = {g.name: iris[g.stream] for g in self.query.gpms}
        patterns = {g.name: g.pattern for g in self.query.gpms}
        for each in whole.all[:most]:
            sources = tuple(
                Source(gpm, streams[gpm], time, graph_of(self.history, streams[gpm], time))
                for gpm, times in each.found
                for time in times
            )
            facts = (q for gpm, _ in each.found for q in facts_of(patterns[gpm], each.values, self.kb, default=False))
            yield Provenance(max(s.time for s in sources), each.values, sources, tuple(dict.fromkeys(facts)))

    # --- each graph pattern by itself -----------------------------------------------------------------

    def patterns(self) -> Iterator[Funnel]:
        streams = {s.name: s.iri.value for s in self.query.streams}
        for name, parts in split_gpms(self.query).items():
            batch = self.history.batches[streams[parts.gpm.stream]]
            steps = tuple(self._parts(parts, batch.time.tolist())) if len(batch) else ()
            yield Funnel(name, parts.gpm.stream, len(batch), steps)

    def _parts(self, parts: GpmParts, times: list[int]) -> Iterator[Step]:
        """A triple for each pattern, the pattern, each FILTER, the knowledge base. FILTERs that need what precedes the
        graph pattern are examined in the sequence."""
        before: dict[int, tuple[Block, int]] | list[int] = times
        elements = parts.pattern.elements
        plain = [e for e in elements if isinstance(e, TriplePattern)]
        for each in plain:
            there = self._alone(parts, (each,))
            before = [time for time in before if time in there]
        if plain:
            each_of = f"each of {len(plain)} patterns" if len(plain) > 1 else "its pattern"
            yield Step("constants", f"a triple for {each_of}", len(before))
        write = SparqlWriter(dict(self.query.prefixes))
        rungs: list[tuple[str, str, Expression | None, tuple[str, ...], tuple[PatternElement, ...]]] = [
            ("pattern", "the graph pattern", None, (), ())
        ]
        rungs += [("filter", write.expression(c), c, _named(c), (Filter(c),)) for c in parts.filters]
        if parts.kb is not None:
            shared = tuple(v.value for v in parts.kb_variables if v in parts.pattern_variables)
            on = f" on {' '.join(f'?{name}' for name in shared)}" if shared else ""
            rungs.append(("kb", f"the knowledge base{on}", None, shared, parts.kb.elements))
            rungs += [("kb filter", write.expression(c), c, _named(c), (Filter(c),)) for c in parts.kb_filters]
        for kind, text, test, shown, more in rungs:
            elements = (*elements, *more)
            now = self._alone(parts, elements)
            found = before if isinstance(before, dict) else {}
            yield passed(kind, text, before, now, partial(_mappings, found), test, shown)
            before = now

    def _alone(self, parts: GpmParts, elements: tuple[PatternElement, ...]) -> dict[int, tuple[Block, int]]:
        """The times of the events that a pattern matches, and one of its mappings there."""
        gpm = replace(parts.gpm, pattern=Group(elements))
        query = replace(_bare(self.query, 1), gpms=(gpm,), filters=(), until=None, window=None, partition=None)
        found: dict[int, tuple[Block, int]] = {}
        for block, times in self._blocks(with_items(query, ((None, Atom(gpm.name)),))):
            found |= {time: (block, i) for i, time in enumerate(times)}
        return found

    # --- near misses ----------------------------------------------------------------------------------

    def near(self, condition: WhyCondition, answer: FoundRow) -> Near:
        events = dict(answer.found)
        values = condition.read(answer) if condition.shown else {}
        return Near(events, values, self._against(condition, answer))

    def _against(self, condition: WhyCondition, answer: FoundRow) -> str:
        """What is against it, in words."""
        times = sorted(time for _, of in answer.found for time in of)
        if condition.kind == "window":
            return self._span(times[0], times[-1])
        if not isinstance(condition.of, OfStep):
            return ""
        here = sorted(time for gpm, of in answer.found if gpm in condition.of.names for time in of)
        if condition.kind == "contiguity":
            before = max((time for time in times if time < here[0]), default=here[0])
            between = self._instants(before, here[-1], times)
            return _instants_text(between) if between else ""
        if condition.kind == "bound":
            if condition.text.startswith(BoundKind.LASTING.value):
                return f"lasts {length(here[-1] - here[0])}"
            earlier = [time for time in times if time < here[0]]
            return f"{length(here[0] - earlier[-1])} after the event before" if earlier and len(here) == 1 else ""
        if condition.kind == "negation":
            seen = self._seen(condition.of, dict(answer.found))
            return f"there is one at {', '.join(map(to_text, seen[:SHOWN]))}" if seen else ""
        return ""

    def _seen(self, of: OfStep, own: Mapping[str, tuple[int, ...]]) -> list[int]:
        """When (µs) a negated element is seen where these events must not have it; none if that cannot be run."""
        if of.negated & set(own):
            return []
        try:
            answers = [each for positive in of.positive for each in self.begun(positive).all]
        except OxiseqError:
            return []
        found: set[int] = set()
        last = max(time for times in own.values() for time in times)
        for each in answers:
            if own == {gpm: times for gpm, times in each.found if gpm not in of.negated}:
                here = {time for gpm, times in each.found if gpm in of.negated for time in times}
                if of.between and not (here := {time for time in here if time < last}):
                    continue
                began = max((t for times in own.values() for t in times if t < min(here)), default=None)
                if of.within is None or began is None or max(here) <= began + of.within:
                    found |= here
        return sorted(found)

    def _instants(self, after: int, until: int, but: Listing[int]) -> list[int]:
        instants = self.history.instants
        between: list[int] = instants[(instants > after) & (instants < until) & ~np.isin(instants, but)].tolist()
        return between

    def _span(self, first: int, last: int) -> str:
        window = self.query.window
        assert window is not None, "it was left out"
        if window.events:
            instants = self.history.instants
            number = int(np.searchsorted(instants, last) - np.searchsorted(instants, first)) + 1
            return f"spans {number} instants, limit {window.size}"
        span = f"spans {length(last - first)}, limit {length(window.size)}"
        return span if window.sliding else f"{span}, and windows begin at fixed times"


def _bare(query: Query, most: int) -> Query:
    """All that it finds, up to so many matches of an end."""
    bare = replace(query, form=Select(None), limit=Limit(most), consumption=None, summary=Summary())
    return replace(bare, sample=None, suppression=None)


def _mappings(found: Mapping[int, tuple[Block, int]], times: Listing[int]) -> list[Mapping[str, Term | None]]:
    """What a pattern binds in the events of these times."""
    return [_values(*found[time]) for time in times]


def _values(block: Block, index: int) -> dict[str, Term | None]:
    """All variables of a match."""
    return dict.fromkeys(block.shape.index) | block.row(index)


def _instants_text(between: list[int]) -> str:
    if len(between) == 1:
        return f"one instant comes before, {to_text(between[0])}"
    return f"{len(between)} instants come before, the first at {to_text(between[0])}"


def _named(condition: Expression) -> tuple[str, ...]:
    return tuple(sorted(v.value for v in expression_variables(condition)))
