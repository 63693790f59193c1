"""Per event of the formula: how many events are of its type, and how many of them pass each condition."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.cea.plan import CeaPlan
from oxiseq.engine.expressions.exact import holds
from oxiseq.grammar.algebra import Expression
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.render_ceql import render_predicate
from oxiseq.grammar.scope import conjuncts, expression_variables
from oxiseq.languages.ceql.reasons.events import Events
from oxiseq.languages.reasons.near import distance
from oxiseq.languages.reasons.report import SHOWN, Funnel, Miss, Step


@dataclass(frozen=True, slots=True)
class Place:
    """A letter of the automaton: `text` names it, no other has that name; `conditions` are all evaluated on one
    event."""

    letter: int
    text: str
    type: str
    conditions: tuple[Expression, ...]


def places(plan: CeaPlan) -> tuple[Place, ...]:
    """One per letter, in the formula's order."""
    vocab = plan.query.vocab or ""
    found: list[Place] = []
    seen: set[str] = set()
    for n, letter in enumerate(plan.runner.positions.letters):
        names = sorted(letter.names - {letter.type})
        text = f"{letter.type} AS {', '.join(names)}" if names else letter.type
        if text in seen:
            text = f"{text} (place {n + 1})"
        seen.add(text)
        conditions = tuple(dict.fromkeys(c for p in letter.predicates for c in conjuncts(p)))
        found.append(Place(n, text, vocab + letter.type, conditions))
    return tuple(found)


def funnels(events: Events) -> Iterator[Funnel]:
    """One per place."""
    streams = ", ".join(s.name for s in events.plan.query.streams)
    for place in places(events.plan):
        yield Funnel(place.text, streams, len(events), tuple(_steps(place, events)))


def _steps(place: Place, events: Events) -> Iterator[Step]:
    left = events.type_is(place.type)
    yield Step("type", f"the type {place.text.partition(' ')[0]}", int(left.sum()))
    for condition in place.conditions:
        passed, misses = _tried(condition, left, events)
        yield Step("filter", render_predicate(condition), int(passed.sum()), misses)
        left = passed


def _tried(
    condition: Expression, left: NDArray[np.bool_], events: Events
) -> tuple[NDArray[np.bool_], tuple[Miss, ...]]:
    """Those of the events left that pass, and the nearest that do not; each combination of values is tried once."""
    attributes = attributes_of(condition)
    rows = np.flatnonzero(left)
    passed = np.zeros(len(events), np.bool_)
    if not len(rows):
        return passed, ()
    distinct, inverse = np.unique(events.values(attributes)[rows], axis=0, return_inverse=True)
    mappings = [events.mapping(attributes, row) for row in distinct]
    true = np.array([holds(condition, mapping) for mapping in mappings], np.bool_)
    place = inverse.reshape(-1)
    passed[rows] = true[place]
    far = np.array([distance(condition, mapping) for mapping in mappings])
    missed = np.flatnonzero(~true[place])
    nearest = missed[np.argsort(far[place[missed]], kind="stable")][:SHOWN]
    misses = tuple(
        Miss(int(events.time[rows[i]]), {a.value: mappings[place[i]].get(a) for a in attributes}) for i in nearest
    )
    return passed, misses


def attributes_of(condition: Expression) -> tuple[Variable, ...]:
    """Those that a condition reads."""
    return tuple(sorted(expression_variables(condition), key=lambda v: v.value))
