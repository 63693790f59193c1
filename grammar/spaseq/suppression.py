"""SUPPRESS and SUPPRESSED(): what is refused, and what is hardly meant (semantics.md 2.6c)."""

from __future__ import annotations

from collections.abc import Iterator

from oxiseq.grammar.algebra import SUPPRESSED, MatchFunction, Suppression
from oxiseq.grammar.errors import Finding, at_variable, error, lint_finding, variable_hint
from oxiseq.grammar.places import Overview, always, keys_of, shown_expressions, summarises, suppression_keys
from oxiseq.grammar.scope import certain_variables, subexpressions
from oxiseq.grammar.spaseq.sequence import trailing_negations


def check_suppression(seen: Overview) -> Iterator[Finding]:
    """The clause, and the function that tells what it has dropped."""
    told = [e for shown in shown_expressions(seen) for e in subexpressions(shown) if e == SUPPRESSED]
    suppression = seen.query.suppression
    if suppression is None:
        for each in told:
            assert isinstance(each, MatchFunction)
            hint = "add SUPPRESS 10 MINUTES before WHERE, or leave it out"
            yield error("suppress", "SUPPRESSED() needs SUPPRESS: nothing is dropped", each.span, hint)
        return
    yield from _refused(suppression, seen)
    yield from _keys(suppression, seen)
    if told and suppression_keys(seen.query, grouped=summarises(seen)):
        message = "a number is kept for each value of the key that rows have been dropped of, however many there are"
        yield lint_finding("suppress", message, suppression.span, "leave SUPPRESSED() out where keys go on for ever")


def _refused(suppression: Suppression, seen: Overview) -> Iterator[Finding]:
    query, span = seen.query, suppression.span
    if suppression.interval < 1:
        yield error("suppress", "SUPPRESS 0 drops nothing", span, "write a time above 0, or leave it out")
    if query.sample is not None:
        hint = "leave one of them out"
        yield error("suppress", "SAMPLE draws matches, and SUPPRESS takes the first ones", span, hint)
    if query.limit is not None and query.limit.offset:
        message = "OFFSET leaves out the first rows, and SUPPRESS takes them"
        yield error("suppress", message, span, "leave OFFSET out")
    if not summarises(seen) and query.summary.report is not None:
        message = "REPORT ON WINDOW CLOSE tells the best matches of a window, and SUPPRESS the first ones"
        yield error("suppress", message, span, "leave one of them out")
    by, window = () if query.partition is None else query.partition.by, query.window
    apart = set(by) <= set(suppression_keys(query, grouped=False))
    if not apart and window is not None and window.events and any(trailing_negations(query.sequence)):
        message = "partitions close their windows of EVENTS one after the other, and SUPPRESS compares matches of all"
        hint = f"write BY with {' '.join(f'?{v.value}' for v in by)}, or WITHIN with a span of time"
        yield error("suppress", message, span, hint)
    if summarises(seen):
        for shown in shown_expressions(seen):
            if shown != SUPPRESSED:
                for each in subexpressions(shown):
                    if isinstance(each, MatchFunction) and each == SUPPRESSED:
                        message = "in a query with groups SUPPRESSED() is a column by itself"
                        yield error("suppress", message, each.span, "write (SUPPRESSED() AS ?n)")


def _keys(suppression: Suppression, seen: Overview) -> Iterator[Finding]:
    query, span = seen.query, suppression.span
    groups = keys_of(query.summary).names
    if suppression.by is None and query.partition is None and not query.summary.group_by:
        message = "SUPPRESS without BY, PARTITION BY and GROUP BY has one key: one alert for all"
        yield lint_finding("suppress", message, span, "write SUPPRESS ... BY ?k for one of each value of ?k")
    names = always(query.sequence)
    certain = {v for name in names if name in seen.gpms for v in certain_variables(seen.gpms[name].pattern)}
    for number, v in enumerate(suppression.by or ()):
        place = at_variable(v, span, seen.text)
        if v in (suppression.by or ())[:number]:
            yield error("suppress", f"SUPPRESS has ?{v.value} twice in BY", place)
        elif summarises(seen):
            if v not in groups:
                yield error("suppress", f"SUPPRESS BY ?{v.value}: GROUP BY has no such key", place, f"add ?{v.value}")
        elif v not in seen.bound:
            hint = variable_hint(v, seen.bound)
            yield error("suppress", f"SUPPRESS BY: no GPM of SEQ binds ?{v.value}", place, hint)
        elif v not in certain:
            message = f"?{v.value} may be unbound, and all rows without it have one key"
            yield lint_finding("suppress", message, place, "take a variable that every match binds")
