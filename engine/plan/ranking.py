"""ORDER BY, LIMIT and SAMPLE of a SPAseq query that has a row per match, as a ranking (matches/ranking.py).

In the flow: algebra → **ranking** → (finals of an instant) → the matches that are emitted. A variable of a GPM that is
not repeated is a sum over a match's rows, with one row that adds something; so are times, COUNT(B), SUM(?v) over
iterations, and sums and differences of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pyoxigraph import Variable

from oxiseq.engine.bounds import BOUNDS
from oxiseq.engine.expressions.amounts import summands
from oxiseq.engine.flow.rewriting import replaced
from oxiseq.engine.matches.paging import Page
from oxiseq.engine.matches.ranking import Amount, Ranking, RankKey, RankOf, Summand, TimeOf
from oxiseq.engine.plan.answer import Iterations
from oxiseq.grammar.algebra import Aggregate, Ask, Expression, MatchFunction
from oxiseq.grammar.places import Overview, always, summarises
from oxiseq.grammar.render import render
from oxiseq.grammar.render_sparql import SparqlWriter

MOST_LISTED: Final = BOUNDS.matches
"""Matches of one end that are listed for ORDER BY or SAMPLE; a larger LIMIT is not looked for on the compact set."""


LISTED: Final = "matches of one instant that are listed for ORDER BY, SAMPLE or a page"
"""What there are too many of, past MOST_LISTED."""


class _NotCarriedError(Exception):
    """A key is no sum over the rows of a match; says why."""


def order_of(seen: Overview) -> tuple[tuple[Expression, bool], ...]:
    """ORDER BY's keys over what a match binds: without the names that SELECT gives."""
    form, known = seen.query.form, dict[Expression, Expression]()
    if not isinstance(form, Ask):
        for column in form.columns or ():
            if column.expression is not None:
                known[column.variable] = replaced(column.expression, known)
    return tuple((replaced(e, known), descending) for e, descending in seen.query.summary.order_by)


def ranking_of(seen: Overview, iterations: Mapping[Aggregate, Iterations], page: Page | None = None) -> Ranking | None:
    """The ranking of a checked query; None if it has none. `listed` says whether the clauses by themselves allow it to
    be found on the compact set. `page`: that is wanted instead."""
    query = seen.query
    if page is not None:
        return Ranking.of_page(page)
    if summarises(seen) or not (query.summary.order_by or query.sample):
        return None
    order_by, limit = order_of(seen), query.limit
    made = Ranking(
        order_by,
        0 if limit is None else limit.offset,
        None if limit is None else limit.count,
        query.sample,
        "",
        (),
        None,
        query.window if query.summary.report is not None else None,
    )
    if query.sample is not None:
        return replace(made, seed=f"{query.sample.seed} {render(query)}")
    if limit is None:
        return replace(made, listed="there is no LIMIT")
    if query.suppression is not None:
        return replace(made, limit=None, listed="SUPPRESS drops some of the first ones")
    if made.last is not None and made.last > MOST_LISTED:
        return replace(made, listed=f"LIMIT and OFFSET are more than {MOST_LISTED}")
    try:
        keys = tuple(RankKey(tuple(_key(e, seen, iterations)), descending) for e, descending in order_by)
    except _NotCarriedError as why:
        return replace(made, listed=str(why))
    return replace(made, keys=keys)


def _key(e: Expression, seen: Overview, iterations: Mapping[Aggregate, Iterations]) -> Iterator[Summand]:
    match e:
        case Variable():
            yield RankOf(_owner(e, seen, always_there=False), e)
        case MatchFunction("ENDTIME"):
            return  # the same for all matches of one end
        case MatchFunction("STARTTIME"):
            yield TimeOf(None)
        case MatchFunction("TIMEOF", gpm) if gpm is not None:
            if _repeats(gpm, seen):
                raise _NotCarriedError(f"TIMEOF({gpm}) is that of the last iteration")
            yield TimeOf(gpm)
        case MatchFunction("DURATION"):
            yield TimeOf(None, -1)  # since the end is one
        case _:
            yield from _amounts(e, seen, iterations)


def _amounts(e: Expression, seen: Overview, iterations: Mapping[Aggregate, Iterations]) -> Iterator[Amount]:
    """A sum of numbers, taken apart."""
    for part, factor in summands(e):
        match part:
            case Variable():
                yield Amount(_owner(part, seen, always_there=True), part, factor)
            case MatchFunction("COUNT", gpm) if gpm is not None:
                yield Amount(gpm, None, factor)
            case Aggregate("SUM", Variable() as variable, False) if part in iterations:
                over = iterations[part]
                if variable not in over.variables:
                    raise _not_a_sum(part, seen)
                yield Amount(over.gpm, variable, factor)
            case _:
                raise _not_a_sum(part, seen)


def _not_a_sum(e: Expression, seen: Overview) -> _NotCarriedError:
    text = SparqlWriter(dict(seen.query.prefixes)).one_line(e)
    return _NotCarriedError(f"{text} is no sum over the events of a match")


def _repeats(gpm: str, seen: Overview) -> bool:
    return any(p.repeats for p in seen.places if p.name == gpm)


def owner_of(variable: Variable, seen: Overview, *, always_there: bool) -> str | None:
    """A GPM that occurs in a match once at most and whose row has the variable's value, if the match has one; None if
    there is none. `always_there`: it is in every match, with a value."""
    try:
        return _owner(variable, seen, always_there=always_there)
    except _NotCarriedError:
        return None


def _owner(variable: Variable, seen: Overview, *, always_there: bool) -> str:
    """A GPM that occurs in a match once at most and whose row has the variable's value, if the match has one."""
    binders = seen.binders(variable)
    single = [name for name in binders if not _repeats(name, seen)]
    if not single:
        raise _NotCarriedError(f"?{variable.value} is that of the last iteration")
    there = always(seen.query.sequence)
    for name in single:
        if name in there and variable in seen.parts[name].certain:
            return name
    if len(binders) == 1 and not always_there:
        return single[0]
    raise _NotCarriedError(f"some matches may lack ?{variable.value}")


def variables_of(keys: Sequence[RankKey]) -> Iterator[Variable]:
    """Those whose values rows must have."""
    for key in keys:
        for each in key.summands:
            if not isinstance(each, TimeOf) and each.variable is not None:
                yield each.variable
