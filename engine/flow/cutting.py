"""A plan cut in two: operators that run tick by tick, and those that take their rows for many ticks at once.

In the flow: plan whose `also` say which items are used up → **the operators that these need, all others**, to which
the rows of the first are given.
"""

from __future__ import annotations

from typing import NamedTuple

from oxiseq.engine.flow.plan import FlowPlan, Given, Sheet, inputs, renamed


class Cut(NamedTuple):
    """Two plans. first: its `also` are the whole plan's. kept: by name the operators of the first whose rows are given
    to the rest under that name."""

    first: FlowPlan
    rest: FlowPlan
    kept: dict[str, int]


def cut(plan: FlowPlan) -> Cut:
    """Cut a plan that has `also`."""
    forms = plan.forms
    inside = set(plan.also)
    for place in range(len(forms) - 1, -1, -1):
        if place in inside:
            inside.update(inputs(forms[place]))
    read = {c for place, form in enumerate(forms) if place not in inside for c in inputs(form)} & inside
    first, rest = Sheet(), Sheet()
    here, there = dict[int, int](), dict[int, int]()
    kept = dict[str, int]()
    for place, form in enumerate(forms):
        if place in inside:
            here[place] = first.add(renamed(form, here))
        else:
            there[place] = rest.add(renamed(form, there))
        if place in read:
            name = f"found {len(kept)}"
            kept[name] = here[place]
            there[place] = rest.add(Given(name, plan.widths[place], plan.raw[place]))
    also = tuple(here[place] for place in plan.also)
    return Cut(first.plan(also[0], also), rest.plan(there[plan.root]), kept)
