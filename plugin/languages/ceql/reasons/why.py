"""Why a CEQL query matches or does not."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.cea.plan import CeaPlan
from oxiseq.engine.cea.positions import bits
from oxiseq.engine.events.time import to_text
from oxiseq.engine.run.sequence import run_of
from oxiseq.engine.terms.texts import Term, term_text
from oxiseq.grammar.algebra import Limit
from oxiseq.grammar.ceql_algebra import AttributeWindow, CeqlQuery, Totals
from oxiseq.grammar.render_ceql import render_predicate
from oxiseq.languages.ceql.reasons.events import Events, tuples_of
from oxiseq.languages.ceql.reasons.origins import provenances, times_by_name
from oxiseq.languages.ceql.reasons.places import Place, funnels, places
from oxiseq.languages.ceql.reasons.reached import FEW, MOST, Ran, bare, ending_at, ran, reached, recompiled
from oxiseq.languages.ceql.reasons.relax import Relaxation, relaxations
from oxiseq.languages.reasons.bounds import FREE, Bounds
from oxiseq.languages.reasons.read import History
from oxiseq.languages.reasons.report import SHOWN, Near, Stage, Why, Wording
from oxiseq.languages.reasons.spans import length
from oxiseq.languages.reasons.working import worked
from oxiseq.languages.sequences.trials import Trial, reasons_of, without_clauses
from oxiseq.matches.match import Positions

_PLACES = 8
_WORDING = Wording("events of the formula", "automaton", "event", "events", " completed by", "")
"""Most places at which it ends, for which reasons are given."""


def why_ceql(plan: CeaPlan, history: History, provenance: int = SHOWN, bounds: Bounds = FREE) -> Why:
    """For a history that is read with `events.opener`; where aggregates are emitted, for the complex events that they
    run over. Raises LimitError."""
    history, faults = tuples_of(plan, history)
    told = plan.query.totals
    notes = faults.lines if told is None else (*faults.lines, *_of_totals(plan, told, history, bounds))
    plan = plan if told is None else recompiled(replace(plan.query, totals=None), plan)
    events = Events.of(plan, history, bounds)
    completed = reached(plan, events)
    whole = any(len(completed.get(n, ())) for n in bits(plan.runner.positions.last))
    known = places(plan)
    at = [
        known[n]
        for n in (bits(plan.runner.positions.last) if whole else sorted(completed))
        if n in completed and (whole or not len(completed[n]))
    ]
    query = plan.query
    counted = query if query.limit is not None else replace(query, limit=Limit(MOST))
    found = ran(recompiled(counted, plan), events)
    reasons = [
        reason
        for place in at[:_PLACES]
        for reason in reasons_of(_trials(plan, place, events), frozenset(completed[place.letter].tolist()))
    ]
    if whole:
        reasons += reasons_of(_clauses(plan, events), frozenset(key for key, _ in _keys(found)))
    return Why(
        tuple(funnels(events)),
        tuple(_stage(place, completed) for place in known),
        None if whole else " | ".join(place.text for place in at),
        tuple(sorted(reasons, key=lambda reason: -reason.matches)),
        len(found.batch),
        found.cut or (query.limit is None and found.most >= MOST),
        history.late,
        tuple(provenances(found, provenance, events)),
        "ceql",
        notes=notes,
        wording=_WORDING,
    )


def _of_totals(plan: CeaPlan, totals: Totals, history: History, bounds: Bounds) -> Iterator[str]:
    """How many rows there are, and how many HAVING leaves."""
    every = recompiled(replace(plan.query, totals=replace(totals, having=None)), plan)
    rows, left = (
        sum(map(len, worked(run_of(each, history.terms), plan.streams, history, bounds, None)[0]))
        for each in (every, plan)
    )
    having = "" if totals.having is None else f", of which HAVING {render_predicate(totals.having)} leaves {left:,}"
    yield f"complex events end at {rows:,} event{'s' * (rows != 1)}{having}; below, each of them is examined"


def _stage(place: Place, completed: dict[int, NDArray[np.int64]]) -> Stage:
    return Stage(place.text, len(completed.get(place.letter, ())), False)


# --- conditions of a place ------------------------------------------------------------------------


def _trials(plan: CeaPlan, place: Place, events: Events) -> Iterator[Trial[tuple[Ran, int]]]:
    """Each condition of the place: of each event that completes it without, the shortest complex event."""
    for relaxation in relaxations(bare(plan, FEW), place):

        def run(relaxation: Relaxation = relaxation) -> tuple[list[tuple[Hashable, tuple[Ran, int]]], bool]:
            found = ran(ending_at(relaxation.plan, 1 << place.letter), events)
            return [(int(found.batch.end[i]), (found, i)) for i in _shortest(found)], False

        def nearest(new: Sequence[tuple[Ran, int]], relaxation: Relaxation = relaxation) -> list[Near]:
            return [_near(plan, place, relaxation, found.positions(i), events) for found, i in new[:SHOWN]]

        yield Trial(relaxation.kind, relaxation.text, run, nearest)


def _shortest(found: Ran) -> list[int]:
    """For each completing event the shortest of the complex events that were emitted; the shortest first."""
    batch = found.batch
    span = batch.time - np.array([_time(found, i) for i in range(len(batch))], np.int64)
    best: dict[int, int] = {}
    for i, end in enumerate(batch.end.tolist()):
        if end not in best or span[i] < span[best[end]]:
            best[end] = i
    return sorted(best.values(), key=lambda i: (int(span[i]), int(batch.end[i])))


def _time(found: Ran, index: int) -> int:
    """When the first event of D is."""
    batch = found.batch
    low, high = int(batch.ends[index]), int(batch.ends[index + 1])
    return int(batch.event_time[low]) if low < high else int(batch.time[index])


def _near(plan: CeaPlan, place: Place, relaxation: Relaxation, match: Positions, events: Events) -> Near:
    values: dict[str, Term | None] = {}
    words = ""
    if relaxation.kind == "filter":
        values = dict(events.named(relaxation.shown, match.last))
    elif relaxation.kind == "window":
        words = _window_words(plan.query, match, events)
    elif relaxation.kind == "contiguity":
        words = _between(plan, place, match, events)
    elif relaxation.kind == "partition":
        words = _values_of(relaxation.shown, match, events)
    return Near(times_by_name(match, events), values, words)


def _window_words(query: CeqlQuery, match: Positions, events: Events) -> str:
    window = query.window
    assert window is not None, "its window was left out"
    if isinstance(window, AttributeWindow):
        first, last = (events.named((window.attribute,), p)[window.attribute.value] for p in (match.first, match.last))
        name = window.attribute.value
        return f"{name} goes from {_text(first)} to {_text(last)}, at most {window.size.value} apart are allowed"
    if window.events:
        mine = events.partition(match.last)
        number = int(((mine >= match.first) & (mine <= match.last)).sum())
        return f"it ends {number - 1} events after it begins, of {window.size}"
    span = int(events.time[match.last] - events.time[match.first])
    return f"it takes {length(span)} of {length(window.size)}"


def _between(plan: CeaPlan, place: Place, match: Positions, events: Events) -> str:
    """The events between the completing event and the one before."""
    earlier = [p for p in match.all if p < match.last]
    mine = events.partition(match.last)
    gap = mine[(mine > max(earlier, default=match.last)) & (mine < match.last)]
    if not len(gap):
        return ""
    number = "an event comes" if len(gap) == 1 else f"{len(gap)} events come"
    return f"{number} between, at {to_text(int(events.time[gap[0]]))}{' first' if len(gap) > 1 else ''}"


def _values_of(attributes: Sequence[Variable], match: Positions, events: Events) -> str:
    each = [events.named(attributes, p) for p in match.all]
    told = (f"[{a.value}] is {', '.join(dict.fromkeys(_text(values[a.value]) for values in each))}" for a in attributes)
    return "; ".join(told)


def _text(term: Term | None) -> str:
    if term is None:
        return "missing"
    text = term_text(term)
    return text.split("^^")[0].strip('"') if text.startswith('"') else text


# --- clauses of the whole -------------------------------------------------------------------------


def _clauses(plan: CeaPlan, events: Events) -> Iterator[Trial[tuple[Ran, int]]]:
    """Each clause of the whole. The order of all that LIMIT leaves out may be too much to find."""
    for kind, text, variant in without_clauses(plan.query, MOST):
        unordered = replace(variant, order=None) if kind == "limit" else variant

        def run(variant: CeqlQuery = unordered) -> tuple[list[tuple[Hashable, tuple[Ran, int]]], bool]:
            found = ran(recompiled(variant, plan), events)
            return _keys(found), found.most >= MOST

        yield Trial(kind, text, run, lambda new: _near_in_time(new, events))


def _near_in_time(new: Sequence[tuple[Ran, int]], events: Events) -> list[Near]:
    """The shortest ones."""
    ordered = sorted(new, key=lambda each: int(each[0].batch.time[each[1]]) - _time(*each))
    return [Near(times_by_name(found.positions(i), events), {}) for found, i in ordered[:SHOWN]]


def _keys(found: Ran) -> list[tuple[Hashable, tuple[Ran, int]]]:
    """Complex events with what distinguishes them."""
    matches = ((i, found.positions(i)) for i in range(len(found.batch)))
    return [((m.first, m.last, m.all), (found, i)) for i, m in matches]
