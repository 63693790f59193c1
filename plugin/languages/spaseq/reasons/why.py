"""Why a SPAseq query matches or does not: what became of events and partial matches."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np
from pyoxigraph import Variable

from oxiseq.engine.events.time import to_text
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.grammar.algebra import BoundKind, Expression, Query
from oxiseq.grammar.levels import summarises
from oxiseq.grammar.places import overview
from oxiseq.languages.reasons.bounds import FREE, Bounds
from oxiseq.languages.reasons.near import distance
from oxiseq.languages.reasons.read import History
from oxiseq.languages.reasons.report import SHOWN, Near, Stage, Why, Wording
from oxiseq.languages.reasons.spans import length
from oxiseq.languages.sequences.trials import Trial, reasons_of, without_clauses
from oxiseq.languages.spaseq.reasons.answering import MOST, Found, answered
from oxiseq.languages.spaseq.reasons.blockers import blockers
from oxiseq.languages.spaseq.reasons.funnel import funnels
from oxiseq.languages.spaseq.reasons.origins import provenances
from oxiseq.languages.spaseq.reasons.relax import Relaxation, relaxations
from oxiseq.languages.spaseq.reasons.stages import Beginning, beginnings, with_items

_WORDING = Wording("graph patterns", "sequence", "match", "matches")


def why_of(query: Query, history: History, kb: KnowledgeBase, provenance: int = SHOWN, bounds: Bounds = FREE) -> Why:
    """Of a history. Raises KbError, LimitError, and what `bounds` raise."""
    stages: list[Stage] = []
    last, answer = None, None
    for last in beginnings(query):
        answer = answered(with_items(query, last.items), history, kb, bounds)
        stages.append(Stage(last.text, len(answer.found), answer.more))
        if not answer.found:
            break
    assert last is not None and answer is not None, "a sequence has an element"
    reasons = list(reasons_of(_trials(query, last, history, kb, bounds), {found.key for found in answer.found}))
    whole = answer
    if answer.found:
        whole = answered(query, history, kb, bounds, as_is=True)
        reasons += reasons_of(_clauses(query, history, kb, bounds), {found.key for found in whole.found})
    return Why(
        tuple(funnels(query, history, kb)),
        tuple(stages),
        None if answer.found else last.text,
        tuple(sorted(reasons, key=lambda reason: -reason.matches)),
        len(whole.found),
        whole.more,
        history.late,
        tuple(provenances(query, whole.found[:provenance], history, kb)),
        query.language,
        wording=_WORDING,
    )


def _trials(query: Query, at: Beginning, history: History, kb: KnowledgeBase, bounds: Bounds) -> Iterator[Trial[Found]]:
    """Each condition of the last step."""
    for relaxation in relaxations(query, at):

        def run(relaxation: Relaxation = relaxation) -> tuple[list[tuple[Hashable, Found]], bool]:
            answer = answered(relaxation.query, history, kb, bounds)
            return [(_as_strict(found, relaxation).key, found) for found in answer.found], answer.more

        def nearest(new: Sequence[Found], relaxation: Relaxation = relaxation) -> list[Near]:
            ordered = _nearest(new, relaxation.condition)
            return [_near(query, relaxation, found, history, kb, bounds) for found in ordered]

        yield Trial(relaxation.kind, relaxation.text, run, nearest)


def _clauses(query: Query, history: History, kb: KnowledgeBase, bounds: Bounds) -> Iterator[Trial[Found]]:
    """Each clause of the whole; where rows are those of groups, LIMIT leaves out groups."""
    for kind, text, variant in without_clauses(query, MOST):
        if kind == "limit" and summarises(overview(query)):
            continue

        def run(variant: Query = variant) -> tuple[list[tuple[Hashable, Found]], bool]:
            answer = answered(variant, history, kb, bounds, as_is=True)
            return [(found.key, found) for found in answer.found], answer.more

        yield Trial(kind, text, run, lambda new: [Near(dict(found.events), {}) for found in _nearest(new, None)])


def _as_strict(found: Found, relaxation: Relaxation) -> Found:
    """As the strict query would have bound it: a join's second variable is no other where the two agree."""
    bindings = dict(found.bindings)
    if relaxation.kind == "join":
        one, other = relaxation.shown
        if bindings.get(one) == bindings.get(other):
            del bindings[other]
    return Found(bindings, found.events)


def _nearest(found: Sequence[Found], condition: Expression | None) -> list[Found]:
    """Those whose values came closest to the condition first, and of equal ones the shortest."""

    def measures(each: Found) -> tuple[float, int, int]:
        times = [t for _, of in each.events for t in of]
        bound = {Variable(name): term for name, term in each.bindings.items() if term is not None}
        far = 0.0 if condition is None else distance(condition, bound)
        return far, max(times) - min(times), max(times)

    return sorted(found, key=measures)[:SHOWN]


def _near(
    query: Query, relaxation: Relaxation, found: Found, history: History, kb: KnowledgeBase, bounds: Bounds
) -> Near:
    values = {name: found.bindings[name] for name in relaxation.shown if name in found.bindings}
    return Near(dict(found.events), values, _words(query, relaxation, found, history, kb, bounds))


def _words(
    query: Query, relaxation: Relaxation, found: Found, history: History, kb: KnowledgeBase, bounds: Bounds
) -> str:
    times = [t for _, of in found.events for t in of]
    if relaxation.kind == "window":
        return _window_words(query, min(times), max(times), history)
    if relaxation.kind == "contiguity":
        here = [t for name in relaxation.names for t in found.times(name)]
        before = max((t for t in times if t < min(here)), default=min(here))
        instants = history.instants
        between = instants[(instants > before) & (instants < max(here)) & ~np.isin(instants, times)]
        if len(between) == 1:
            return f"one instant comes before, {to_text(int(between[0]))}"
        return f"{len(between)} instants come before, the first at {to_text(int(between[0]))}" if len(between) else ""
    if relaxation.kind == "bound":
        return _bound_words(relaxation, found)
    if relaxation.kind == "negation" and relaxation.negated is not None:
        seen = blockers(query, relaxation, found, history, kb, bounds)
        return f"there is one at {', '.join(to_text(t) for t in seen[:SHOWN])}" if seen else ""
    return ""


def _bound_words(relaxation: Relaxation, found: Found) -> str:
    """How long the last element lasts, or how long after the event before its only event comes."""
    here = [t for name in relaxation.names for t in found.times(name)]
    before = [t for _, of in found.events for t in of if t < min(here)]
    if relaxation.text.startswith(BoundKind.LASTING.value):
        return f"it lasts {length(max(here) - min(here))}"
    return f"it comes {length(min(here) - max(before))} after the event before" if before and len(here) == 1 else ""


def _window_words(query: Query, first: int, last: int, history: History) -> str:
    window = query.window
    assert window is not None
    if window.events:
        instants = history.instants
        return f"{int(np.searchsorted(instants, last) - np.searchsorted(instants, first)) + 1} instants"
    span = f"it takes {length(last - first)} of {length(window.size)}"
    return span if window.sliding else f"{span}, and windows begin at fixed times"
