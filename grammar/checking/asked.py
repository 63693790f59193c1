"""What a GPM's FILTER may ask of the partial match: times, and aggregates over the iterations so far of a repeated GPM
(semantics.md 2.5b)."""

from __future__ import annotations

from collections.abc import Iterator

from oxiseq.grammar.algebra import Aggregate, Expression, MatchFunction, Prev, Span
from oxiseq.grammar.checking.patterns import nested_aggregates
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.finding_tools import close_name, error, listing
from oxiseq.grammar.levels import repeated_gpms
from oxiseq.grammar.places import Overview, Place
from oxiseq.grammar.scope import expression_variables, holds_exists, match_parts, subexpressions


def check_asked(condition: Expression, place: Place, seen: Overview) -> Iterator[Finding]:
    """A condition of the GPM at `place`, which is in SEQ."""
    for part in match_parts(condition):
        match part:
            case Aggregate():
                yield from _aggregate(part, place, seen)
            case MatchFunction(name, str(gpm)):
                yield from _function(name, gpm, part.span, place, seen)


def _function(name: str, gpm: str, span: Span, place: Place, seen: Overview) -> Iterator[Finding]:
    """TIMEOF(A) or COUNT(A)."""
    places = {p.name: p for p in seen.places}
    text = f"{name}({gpm})"
    if gpm not in places:
        hint = close_name(gpm, list(places), f"{name} takes the name of a GPM in SEQ")
        yield error("gpm", f"{text}: {gpm} is not in SEQ", span, hint)
    elif name == "TIMEOF" and gpm == place.name:
        hint = "write EVENTTIME() for the time of the present event"
        yield error("gpm", f"{text} cannot be used in a FILTER of {gpm} itself", span, hint)
    elif name == "TIMEOF" and gpm not in place.earlier and gpm not in place.beside:
        yield _not_before(text, gpm, place, span)
    elif name == "COUNT":
        yield from _iterated(text, gpm, place, span, seen)


def _aggregate(aggregate: Aggregate, place: Place, seen: Overview) -> Iterator[Finding]:
    text = aggregate.name
    if aggregate.arg is None:
        hint = "write COUNT(B) for the iterations of a repeated GPM"
        yield error("aggregate", "COUNT(*) runs over matches, and a FILTER sees a part of one", aggregate.span, hint)
        return
    if aggregate.distinct:
        hint = "leave DISTINCT out, or put the condition into a FILTER behind SEQ"
        yield error("aggregate", f"{text}(DISTINCT ...) cannot be used in a GPM's FILTER", aggregate.span, hint)
    yield from nested_aggregates(aggregate)
    if holds_exists(aggregate.arg) or any(isinstance(e, Prev) for e in subexpressions(aggregate.arg)):
        hint = "an aggregate takes variables of one GPM, and expressions over them"
        yield error("aggregate", f"{text} cannot take PREV or EXISTS", aggregate.span, hint)
    over, used = repeated_gpms(seen, aggregate), expression_variables(aggregate.arg)
    repeated = [p.name for p in seen.places if p.repeats and not p.negated]
    if not over:
        hint = f"it can run over {listing(repeated)}" if repeated else "no GPM of this query is repeated"
        yield error("aggregate", f"{text} needs a variable of a repeated GPM", aggregate.span, hint)
    elif len(over) > 1 or not used <= seen.variables(over[0]):
        hint = f"in a FILTER an aggregate takes variables of one GPM: {listing(over)}"
        yield error("aggregate", f"{text} mixes variables of several GPMs", aggregate.span, hint)
    else:
        yield from _iterated(text, over[0], place, aggregate.span, seen)


def _iterated(text: str, gpm: str, place: Place, span: Span, seen: Overview) -> Iterator[Finding]:
    """Something about the iterations so far of a GPM."""
    of = next(p for p in seen.places if p.name == gpm)
    if not of.repeats or of.negated:
        hint = f"write {gpm}+ in SEQ" if not of.negated else "a negated GPM has no event in a match"
        yield error("aggregate", f"{text} needs iterations, {gpm} is not repeated", span, hint)
    elif gpm not in place.earlier and gpm != place.name:
        yield _not_before(text, gpm, place, span)
    elif len(of.repeats) > 1 and set(of.repeats) & set(place.repeats):
        message = f"{text} cannot be used inside a repeat in which {gpm} is itself repeated"
        hint = "it could mean the inner iterations or all of them: ask it behind the outer repeat"
        yield error("aggregate", message, span, hint)


def _not_before(text: str, gpm: str, place: Place, span: Span) -> Finding:
    hint = f"move the condition to {gpm}, or to a FILTER behind SEQ"
    return error("scope", f"{text} in a FILTER of {place.name}: {gpm} does not come before it", span, hint)
