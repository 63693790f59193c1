"""The checks of SPAseq (semantics.md 2), in order; here those of names and of the clauses beside SEQ.

sequence.py     SEQ: where `!`, `?`, `&` and bounds are allowed
conditions.py   what FILTER, BIND and EXISTS of a GPM may read
answers.py      what a match, or a group of matches, can show
lints.py        legal, and perhaps not what was meant
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from pyoxigraph import Variable

from oxiseq.grammar.algebra import Expression, Partition, Query, Strategy
from oxiseq.grammar.checking.common import check_consumption, check_limit
from oxiseq.grammar.checking.patterns import check_every
from oxiseq.grammar.errors import (
    Finding,
    at_pattern,
    at_variable,
    close_name,
    error,
    lint_finding,
    listing,
    variable_hint,
)
from oxiseq.grammar.places import Overview, behind_where, overview, shown_expressions, summarises
from oxiseq.grammar.scope import certain_variables, pattern_expressions, subexpressions
from oxiseq.grammar.spaseq.answers import check_output, check_ranking, check_summary
from oxiseq.grammar.spaseq.conditions import check_patterns, check_scope
from oxiseq.grammar.spaseq.lints import habits, lint
from oxiseq.grammar.spaseq.sequence import (
    check_gap_bounds,
    check_negated_groups,
    check_sequence,
    check_until,
    trailing_negations,
)
from oxiseq.grammar.spaseq.suppression import check_suppression
from oxiseq.grammar.spaseq.texts import render_sequence

# --- names -------------------------------------------------------------------------------------------


def check_names(seen: Overview) -> Iterator[Finding]:
    """Declared once, used as declared."""
    yield from _streams(seen)
    yield from _gpms(seen)
    window = seen.query.window
    if window is not None and window.size == 0:
        yield error("window", "a window cannot be empty", window.span, "WITHIN takes a length above 0")


def _streams(seen: Overview) -> Iterator[Finding]:
    declared: set[str] = set()
    for stream in seen.query.streams:
        if stream.name in declared:
            yield error("stream", f"the stream {stream.name} is declared twice", stream.span)
        declared.add(stream.name)
    for gpm in seen.query.gpms:
        if gpm.stream in declared:
            continue
        place = at_pattern(rf"(?<=\s){gpm.stream}(?=\s*\{{)", gpm.span, seen.text)
        if not declared:
            hint = f"add FROM STREAM {gpm.stream} <iri of the stream> before WHERE"
            yield error("stream", "the query declares no stream", place, hint)
            return
        known = f"the query declares {listing(sorted(declared))}"
        yield error("stream", f"there is no stream {gpm.stream}", place, close_name(gpm.stream, declared, known))


def _gpms(seen: Overview) -> Iterator[Finding]:
    defined: set[str] = set()
    for gpm in seen.query.gpms:
        if gpm.name in defined:
            span = at_pattern(rf"(?<=\s){gpm.name}(?=\s)", gpm.span, seen.text)
            yield error("gpm", f"the GPM {gpm.name} is defined twice", span, "give the second one another name")
        defined.add(gpm.name)
    used: set[str] = set()
    unused = [n for n in seen.gpms if n not in seen.place_of]
    for place in seen.places:
        if place.name not in defined:
            known = f"define it: DEFINE GPM {place.name} ON ... {{ ... }}"
            hint = close_name(place.name, unused or list(defined), known)
            yield error("gpm", f"there is no GPM {place.name}", place.atom.span, hint)
        if place.name in used:
            where, hint = "SEQ", "SEQ takes each name once: define another GPM with the same body"
            if place.name in seen.until:
                where, hint = (
                    "SEQ and UNTIL",
                    f"give the pattern a second name: DEFINE GPM {place.name}2 AS {place.name}",
                )
            yield error("gpm", f"the GPM {place.name} is used twice in {where}", place.atom.span, hint)
        used.add(place.name)


# --- clauses -----------------------------------------------------------------------------------------


def check_clauses(seen: Overview) -> Iterator[Finding]:
    """The clauses beside SEQ, each by itself and with the sequence."""
    query = seen.query
    if query.selection is not None and query.selection.strategy is Strategy.STRICT:
        hint = "write , between the GPMs: A, B, C"
        yield error("select", "STRICT is a strategy of CEQL, not of SPAseq", query.selection.span, hint)
    if query.partition is not None:
        yield from _partition(query.partition, seen)
    yield from check_consumption(query)
    if query.consumption is not None:
        for element in trailing_negations(query.sequence):
            message = f"CONSUME BY cannot be used with `{render_sequence(element)}` at the end"
            hint = "such a match is found when its window closes, too late to discard other matches"
            yield error("consume", message, query.consumption.span, hint)
    yield from check_limit(query.limit, summarises(seen) or bool(query.summary.order_by))


def _partition(partition: Partition, seen: Overview) -> Iterator[Finding]:
    for number, v in enumerate(partition.by):
        span = at_variable(v, partition.span, seen.text)
        if v in partition.by[:number]:
            yield error("partition", f"PARTITION BY names ?{v.value} twice", partition.span)
            continue
        without = [p.name for p in seen.places if p.name in seen.parts and v not in _of_events(p.name, seen)]
        positive = [p.name for p in seen.places if not p.negated and p.name in without]
        if positive:
            do = "does" if len(positive) == 1 else "do"
            message = f"PARTITION BY ?{v.value}: {listing(positive)} {do} not bind it"
            yield error("partition", message, span, _why_not(v, positive[0], seen))
        if not positive and (negated := [name for name in without if name not in seen.until]):
            message = f"?{v.value} is not bound by the negated {listing(negated)}"
            hint = "the negation sees only events that other GPMs put into a partition"
            yield lint_finding("partition", message, span, hint)
        if stops := [name for name in without if name in seen.until]:
            message = (
                f"?{v.value} is not bound by {listing(stops)} of UNTIL: such events are in no partition by themselves"
            )
            hint = f"so they end no run: bind ?{v.value} in {stops[0]}, or leave PARTITION BY out"
            yield lint_finding("partition", message, span, hint)
        loose = [n for n in _positive(seen) if n not in without and v not in _certain(n, seen)]
        if loose:
            hint = "such an event belongs to no partition"
            yield lint_finding("partition", f"{listing(loose)} may leave ?{v.value} unbound", span, hint)


def _positive(seen: Overview) -> list[str]:
    return [p.name for p in seen.places if not p.negated and p.name in seen.parts]


def _of_events(name: str, seen: Overview) -> frozenset[Variable]:
    """What the GPM's pattern binds on an event: KB patterns do not decide the partition."""
    return frozenset(seen.parts[name].pattern_variables)


def _certain(name: str, seen: Overview) -> frozenset[Variable]:
    return certain_variables(seen.parts[name].pattern)


def _why_not(v: Variable, name: str, seen: Overview) -> str:
    if v in seen.variables(name):
        return f"{name} binds it in GRAPH only, and the knowledge base does not decide an event's partition"
    common = frozenset.intersection(*(_of_events(n, seen) for n in _positive(seen)))
    if not common:
        return "every GPM that is not negated must bind it; these share no variable"
    return variable_hint(v, common)


# --- spaseq ------------------------------------------------------------------------------------------


CHECKS: Final[tuple[Callable[[Overview], Iterator[Finding]], ...]] = (
    check_names,
    check_sequence,
    check_negated_groups,
    check_gap_bounds,
    check_until,
    check_clauses,
    check_patterns,
    check_scope,
    check_output,
    check_summary,
    check_ranking,
    check_suppression,
    lint,
    habits,
)
_OF_ALL_GPMS: Final = (check_output, check_summary, check_ranking, check_suppression)
"""About variables that whatever GPM may bind."""


def check_spaseq(query: Query, text: str) -> Iterator[Finding]:
    """All of them over one overview of the query."""
    seen = overview(query, text)
    undefined = {place.name for place in seen.places} - seen.gpms.keys()  # what those would bind is not known
    for run in CHECKS:
        if not undefined or run not in _OF_ALL_GPMS:
            yield from run(seen)
    yield from check_every([(gpm.pattern, gpm.name) for gpm in query.gpms], _expressions(seen), text)


def _expressions(seen: Overview) -> list[Expression]:
    filters = (each.condition for each in seen.query.filters)
    inside = (e for gpm in seen.query.gpms for e in pattern_expressions(gpm.pattern))
    asked = (*shown_expressions(seen), *filters, *behind_where(seen.query.summary))
    return [*inside, *(part for e in asked for part in subexpressions(e))]
