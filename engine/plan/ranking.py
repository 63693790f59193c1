"""ORDER BY, LIMIT and SAMPLE of a query that has a row per match: what matches are ordered by, and how the best or
some are found without listing the others (semantics.md 2.6b).

In the flow: algebra → **ranking** → (finals of an instant) → the matches that are emitted. The best are found on the
compact set where each key is a sum over a match's rows: what a row adds is known by itself then, and a prefix that is
better stays better whatever follows. A variable of a GPM that is not repeated is such a sum, with one row that adds
something; so are times, COUNT(B), SUM(?v) over iterations, and sums and differences of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final, TypeAlias

from pyoxigraph import Variable

from oxiseq.engine.bounds import BOUNDS
from oxiseq.engine.expressions.amounts import summands
from oxiseq.engine.flow.rewriting import replaced
from oxiseq.engine.matches.paging import Page
from oxiseq.engine.plan.answer import Iterations
from oxiseq.grammar.algebra import Aggregate, Ask, Expression, MatchFunction, Sample, Window
from oxiseq.grammar.levels import summarises
from oxiseq.grammar.places import Overview, always
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.render import render
from oxiseq.grammar.render_sparql import SparqlWriter

MOST_LISTED: Final = BOUNDS.matches
"""Matches of one end that are listed for ORDER BY or SAMPLE; a larger LIMIT is not looked for on the compact set."""


LISTED: Final = "matches of one instant that are listed for ORDER BY, SAMPLE or a page"
"""What there are too many of, past MOST_LISTED."""


@dataclass(frozen=True, slots=True)
class RankOf:
    """The place of a variable's value among the values of it, in the order of terms; unbound is the least. The rows of
    one GPM have it, once in a match at most."""

    gpm: str
    variable: Variable


@dataclass(frozen=True, slots=True)
class TimeOf:
    """When the one row of a GPM happened; of None, the row that begins the match. `sign`: 1, or -1 for the reverse."""

    gpm: str | None
    sign: int = 1


@dataclass(frozen=True, slots=True)
class Amount:
    """A number for each row of a GPM: `factor`, times the variable's value if there is one."""

    gpm: str
    variable: Variable | None
    factor: Fraction


Summand: TypeAlias = RankOf | TimeOf | Amount


@dataclass(frozen=True, slots=True)
class RankKey:
    """For one key the summands that the rows of a match add to it."""

    summands: tuple[Summand, ...]
    descending: bool


@dataclass(frozen=True, slots=True)
class Ranking:
    """Which of the matches of one end, or of one window, are emitted: a sample, in an order, so many behind the first
    `offset`."""

    order_by: tuple[tuple[Expression, bool], ...]
    """(expression over a match, descending) pairs."""
    offset: int
    limit: int | None
    sample: Sample | None
    seed: str
    """The seed of a sample's draws, besides the time of the end."""
    keys: tuple[RankKey, ...]
    """The keys compared on the compact set; none for SAMPLE."""
    listed: str | None
    """Why every match of an instant is listed; None: the emitted ones are found on the compact set."""
    window: Window | None = None
    """Not of one end, but of such a tumbling window, when it closes."""
    page: Page | None = None
    """Only of this end, from one match to another, in the order in which they are found."""

    @property
    def wanted(self) -> int:
        """How many matches of an end are looked for."""
        if self.sample is not None:
            return self.sample.count
        return MOST_LISTED if self.limit is None else self.offset + self.limit


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
        return Ranking((), page.offset, page.size, None, "", (), None, page=page)
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
    if made.wanted > MOST_LISTED:
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
