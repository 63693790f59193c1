"""Aggregates over matches (semantics.md 2.6b), from a list of all matches: each report is computed from scratch."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pyoxigraph import BlankNode, Variable

from oxiseq.grammar.algebra import (
    Aggregate,
    Call,
    Every,
    Expression,
    FunctionCall,
    MatchFunction,
    OnChange,
    OnClose,
    Prev,
    Query,
    Select,
    Term,
)
from reference.aggregates import aggregate_of, date_time, integer, of_matches
from reference.expand import names_in, repeated_names
from reference.output import Row, instantiate, match_values
from reference.patterns import Parts
from reference.scopes import shown
from reference.sequences import Match
from reference.streams import Moment
from reference.suppression import Emissions, Places, key_of, key_variables
from reference.times import Clock
from reference.values import ExpressionError, evaluate, holds, less

Leaf = Prev | Aggregate | MatchFunction
Shown = tuple[tuple[Variable, Term], ...]


@dataclass(frozen=True)
class GroupRow:
    """A row of a report: what it shows, what ORDER BY compares, its keys' values, and what it shows beside so many rows
    that SUPPRESS has dropped (`shown`: beside none)."""

    shown: Shown
    order: tuple[Term | None, ...]
    keys: Mapping[Variable, Term]
    beside: Callable[[int], Shown]


@dataclass(frozen=True)
class Extent:
    """What a report looks at: its time, when it is made, the matches, and those of them that are no news. `whole`: a
    group without matches may have a row."""

    time: int
    at: Moment
    matches: tuple[Match, ...]
    known: tuple[Match, ...] | None = None
    whole: bool = False


def is_summary(query: Query) -> bool:
    """Whether a query answers with rows of groups."""
    summary = query.summary
    shown = [] if not hasattr(query.form, "columns") else [c.expression for c in query.form.columns or ()]
    return bool(summary.group_by or summary.having or any(True for e in shown for _ in over_matches(query, e, None)))


def over_matches(query: Query, e: Expression | None, parts: Mapping[str, Parts] | None) -> Iterator[Aggregate]:
    """The aggregates over matches, outermost. Without `parts` what every GPM binds is read from the query."""
    match e:
        case Aggregate(name, arg):
            if name not in ("FIRST", "LAST") and not (_loose(arg) & _of_iterations(query, parts)):
                yield e
        case Call(_, args) | FunctionCall(_, args):
            for arg in args:
                yield from over_matches(query, arg, parts)


def _loose(e: Expression | None) -> set[Variable]:
    """Variables that stand outside every aggregate."""
    match e:
        case Variable():
            return {e}
        case Call(_, args) | FunctionCall(_, args):
            return set().union(*map(_loose, args))
    return set()


def _of_iterations(query: Query, parts: Mapping[str, Parts] | None) -> set[Variable]:
    """Variables of repeated GPMs that no unrepeated positive GPM binds."""
    binds = {g.name: set(shown(g.pattern)) if parts is None else set(parts[g.name].variables) for g in query.gpms}
    repeated = repeated_names(query.sequence)
    inside = set().union(*(binds[n] for n in repeated))
    return inside - set().union(*(binds[n] for n in names_in(query.sequence) if n not in repeated))


def summarise(
    query: Query,
    parts: Mapping[str, Parts],
    matches: Sequence[Match],
    sequences: Sequence[Match],
    clock: Clock,
) -> list[Row]:
    """The rows of all reports, in the order of semantics.md 2.6a. `sequences`: all that pass the FILTERs, refuted ones
    and those that a strategy drops, too."""
    rows: list[Row] = []
    suppression = query.suppression
    variables = () if suppression is None else key_variables(query, suppression, True)
    emissions = Emissions(0 if suppression is None else suppression.interval)
    reports = [extent for extent in extents(query, matches, sequences, clock) if extent.at < clock.until]
    for extent in sorted(reports, key=lambda extent: (extent.at, extent.time)):
        found = list(_rows(query, parts, extent.matches, extent.whole, extent.at))
        if extent.known is not None:
            before = Counter(row.shown for row in _rows(query, parts, extent.known, False, extent.at))
            fresh = []
            for row in found:
                if before[row.shown]:
                    before[row.shown] -= 1
                else:
                    fresh.append(row)
            found = fresh
        for place in range(len(query.summary.order_by) - 1, -1, -1):
            found = _sorted(found, place, query.summary.order_by[place][1])
        places, distinct = Places(query.limit), isinstance(query.form, Select) and query.form.distinct
        told: dict[Shown, bool] = {}
        for row in found:
            key = key_of(variables, row.keys)
            if suppression is not None and emissions.covers(key, extent.at):
                continue
            shown = row.shown if suppression is None else row.beside(emissions.dropped[key])
            again = distinct and shown in told
            if not again:
                told[shown] = places.has_room(None)
            if told[shown]:
                emissions.emit(key, extent.at)
            if again or not told[shown]:
                continue
            if isinstance(query.form, Select):
                rows.append(Row(None, extent.time, extent.at, dict(shown), {}))
            else:
                rows.append(Row(None, extent.time, extent.at, {}, {}, instantiate(query.form, dict(shown))))
    return rows


def extents(query: Query, matches: Sequence[Match], sequences: Sequence[Match], clock: Clock) -> Iterator[Extent]:
    """What each report looks at, in order of time."""
    window, summary, times = query.window, query.summary, clock.times
    number = {time: i for i, time in enumerate(times)}

    def count(time: int) -> int:
        return number[time] if window is not None and window.events else time

    origin = 0 if window is not None and window.events else clock.begin

    def frame(time: int) -> int:
        assert window is not None
        return (count(time) - origin) // window.size

    def until(time: int, of: Sequence[Match]) -> tuple[Match, ...]:
        """The extent at `time`."""
        found = [m for m in of if m.end <= time]
        if window is None:
            return tuple(found)
        if window.sliding:
            return tuple(m for m in found if count(m.start) >= count(time) - window.size)
        return tuple(m for m in found if frame(m.end) == frame(time))

    def made(time: int, of: Sequence[Match]) -> Moment:
        """When a report is made: as soon as all is decided that it may hold."""
        return max([time, *(s.at for s in of)])

    ends = sorted({m.end for m in matches})
    if any(_mentions_end(k[0] if isinstance(k, tuple) else k) for k in summary.group_by):
        for end in ends:
            at = made(end, [s for s in sequences if s.end == end])
            yield Extent(end, at, tuple(m for m in matches if m.end == end))
        return
    tumbles = window is not None and not window.sliding
    report = summary.report or (OnClose() if tumbles else OnChange())
    match report:
        case OnChange():
            for end in ends:
                found = until(end, matches)
                yield Extent(end, made(end, until(end, sequences)), found, tuple(m for m in found if m.end < end))
        case OnClose():
            assert window is not None
            for at in sorted({frame(t) for t in times}):
                last = max(t for t in times if frame(t) == at)
                time = last if window.events else origin + (at + 1) * window.size - 1
                yield Extent(time, clock.closing(last), tuple(m for m in matches if frame(m.end) == at), whole=True)
        case Every(period) if times:
            for tick in _ticks(clock, period):
                yield Extent(tick, made(tick, until(tick, sequences)), until(tick, matches), whole=True)


def _ticks(clock: Clock, period: int) -> Iterator[int]:
    """t0 + k·d from the first instant on: before the watermark of open streams, else until all that the streams have
    reached has been reported, with the last window in which something happened."""
    tumbles = clock.window is not None and not clock.window.sliding
    final = max(clock.ends, clock.begin + 1, clock.closing(clock.times[-1]) if tumbles else -math.inf)
    tick = clock.begin + period
    while tick < (final + period if clock.until == math.inf else clock.until):
        if tick >= clock.times[0]:
            yield tick
        tick += period


def _mentions_end(e: Expression) -> bool:
    match e:
        case MatchFunction(name):
            return name == "ENDTIME"
        case Call(_, args) | FunctionCall(_, args):
            return any(map(_mentions_end, args))
    return False


# --- rows of one report ---------------------------------------------------------------------------


def _rows(
    query: Query, parts: Mapping[str, Parts], matches: Sequence[Match], whole: bool, at: Moment
) -> Iterator[GroupRow]:
    """Rows in the order of their keys' texts. `at`: when they are told."""
    keys = [k[0] if isinstance(k, tuple) else k for k in query.summary.group_by]
    names = [k[1] if isinstance(k, tuple) else k if isinstance(k, Variable) else None for k in query.summary.group_by]
    groups: dict[tuple[Term | None, ...], list[Match]] = {}
    for match in matches:
        groups.setdefault(tuple(_of_match(query, parts, match, key) for key in keys), []).append(match)
    if whole and not keys:
        groups.setdefault((), [])
    for values, members in sorted(groups.items(), key=lambda pair: [str(v or "") for v in pair[0]]):
        bound = {n: v for n, v in zip(names, values, strict=True) if n is not None and v is not None}
        row = partial(_row, query, parts, members, keys, values, bound, at)
        if (first := row(0)) is not None:
            yield GroupRow(*first, bound, lambda dropped, row=row: row(dropped)[0])


def _row(
    query: Query,
    parts: Mapping[str, Parts],
    members: list[Match],
    keys: list[Expression],
    values: tuple[Term | None, ...],
    keyed: Mapping[Variable, Term],
    at: Moment,
    suppressed: int,
) -> tuple[Shown, tuple[Term | None, ...]] | None:
    bound = dict(keyed)
    of_key = {k: v for k, v in zip(keys, values, strict=True) if not isinstance(k, Variable)}

    def put(e: Expression) -> Expression:
        """With what keys stand for; one that is unbound becomes a variable that is."""
        if e in of_key:
            return of_key[e] if of_key[e] is not None else Variable("__unbound")
        match e:
            case Call(name, args):
                return Call(name, tuple(map(put, args)))
            case FunctionCall(function, args, distinct):
                return FunctionCall(function, tuple(map(put, args)), distinct)
        return e

    def answer(asked: Leaf) -> Term:
        if isinstance(asked, MatchFunction) and asked.name == "DETECTTIME":
            return date_time(int(at))
        if isinstance(asked, MatchFunction) and asked.name == "SUPPRESSED":
            return integer(suppressed)
        assert isinstance(asked, Aggregate)
        if asked.arg is None:
            return aggregate_of(Aggregate("COUNT", None), [Variable("x")] * len(members))
        found = [_of_match(query, parts, m, asked.arg) for m in members]
        if asked.name in ("MIN", "MAX", "SAMPLE", "GROUP_CONCAT"):  # matches that end at once have no order
            found.sort(key=lambda term: (isinstance(term, BlankNode), str(term)))
        return of_matches(asked, found)

    if not all(holds(put(condition), bound, answer) for condition in query.summary.having):
        return None
    shown: dict[Variable, Term] = {}
    for column in query.form.columns:
        expression = column.expression if column.expression is not None else column.variable
        try:
            shown[column.variable] = bound[column.variable] = evaluate(put(expression), bound, answer)
        except ExpressionError:
            continue
    order = tuple(_or_none(put(e), bound, answer) for e, _ in query.summary.order_by)
    if not isinstance(query.form, Select):
        shown = bound
    return tuple(sorted(shown.items(), key=lambda pair: pair[0].value)), order


def _or_none(e: Expression, bound: Mapping[Variable, Term], answer: Callable[[Leaf], Term]) -> Term | None:
    try:
        return evaluate(e, bound, answer)
    except ExpressionError:
        return None


def _of_match(query: Query, parts: Mapping[str, Parts], match: Match, e: Expression) -> Term | None:
    return _or_none(e, dict(match.mu), match_values(query, parts, match))


def _sorted(rows: list[GroupRow], place: int, descending: bool) -> list[GroupRow]:
    """By one key, stably; for terms of one kind, which is what tests order by. Unbound is least."""
    done: list[GroupRow] = []
    for row in rows:
        at = len(done)
        while at and _before(row.order[place], done[at - 1].order[place], descending):
            at -= 1
        done.insert(at, row)
    return done


def _before(a: Term | None, b: Term | None, descending: bool) -> bool:
    if descending:
        a, b = b, a
    if a is None or b is None:
        return a is None and b is not None
    try:
        return less(a, b)
    except ExpressionError:
        return False
