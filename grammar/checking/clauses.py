"""PARTITION BY, selection strategies, CONSUME BY and LIMIT of SPAseq (semantics.md 2.1 and 3)."""

from __future__ import annotations

from collections.abc import Iterator

from pyoxigraph import Variable

from oxiseq.grammar.algebra import Partition, Strategy
from oxiseq.grammar.checking.common import check_consumption, check_limit
from oxiseq.grammar.checking.sequence import trailing_negations
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.finding_tools import at_variable, error, lint_finding, listing, variable_hint
from oxiseq.grammar.levels import summarises
from oxiseq.grammar.places import Overview
from oxiseq.grammar.render import render_sequence
from oxiseq.grammar.scope import certain_variables


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
        elif without:
            message = f"?{v.value} is not bound by the negated {listing(without)}"
            hint = "the negation sees only events that other GPMs put into a partition"
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
