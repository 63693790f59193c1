"""Which events a query over windows must get at once (`Run.concern`).

It emits nothing while its windows hold no triple that a pattern matches, if its answer is empty then; that begins
again a window's length, and a tick, after the last such event.
"""

from __future__ import annotations

from typing import Final

from oxiseq.engine.flow import plan as p
from oxiseq.engine.rsp.plan import RspPlan
from oxiseq.engine.run.concern import Concern, Key, keys_of
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.rsp_algebra import RangeWindow

_NOTHING: Final[frozenset[int]] = frozenset()
_BARREN: Final = (p.Filter, p.Extend, p.Pick, p.Negate, p.Arrange, p.Distinct, p.Consolidate, p.Best)
"""Operators without rows as long as their input has none; those not named here may have some."""


def concern_of(plan: RspPlan, terms: TermDictionary) -> Concern | None:
    """For a query's plan; None: any event, or time alone, may let it emit something."""
    linger = _linger(plan)
    forms = plan.flow.plan.forms
    if linger is None or plan.events or any(isinstance(form, p.Given) for form in forms):
        return None
    if not _barren(plan.flow.plan, plan.flow.plan.root):
        return None
    keys: dict[str, frozenset[Key]] = {}
    for form in forms:
        if not isinstance(form, p.Patterns):
            continue
        for pattern, place in zip(form.patterns, form.places, strict=True):
            if isinstance(place, p.WindowPlace):
                mine = keys_of([(pattern.predicate, pattern.object)], terms)
                if mine is None:
                    return None
                stream = plan.streams[plan.contents[place.content].stream]
                keys[stream] = keys.get(stream, _NOTHING) | mine
    return Concern(keys, linger, _NOTHING)


def _linger(plan: RspPlan) -> int | None:
    """How long an event may be in a window, and a tick be behind that; None: there is no such bound."""
    operators = [operator for content in plan.contents for operator in content.window.operators]
    ranges = [o for o in operators if isinstance(o, RangeWindow) and not o.events]
    if len(ranges) < len(operators) or plan.rhythm.given is not None:
        return None
    inside = max((o.size + 2 * o.slide for o in ranges), default=0)
    return inside + 2 * max(plan.rhythm.periods, default=0)


def _barren(plan: p.FlowPlan, place: int) -> bool:
    """Whether an operator has no rows as long as windows hold none of what patterns ask for."""
    form = plan.forms[place]
    match form:
        case p.Patterns():
            return any(isinstance(each, p.WindowPlace) for each in form.places)
        case p.Join(left, right):
            return _barren(plan, left) or _barren(plan, right)
        case p.Union(children):
            return all(_barren(plan, child) for child in children)
        case p.Group():
            return bool(form.key) and _barren(plan, form.child)
    return isinstance(form, _BARREN) and _barren(plan, form.child)
