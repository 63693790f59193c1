"""Rebuilds kept rows after a change of the past, that is, of the knowledge base.

In the flow: a plan in the making → **which facts it must keep, for how long** → plan. All facts that what is kept
was made of are processed again (standing.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from pyoxigraph import Variable

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.times import NEVER
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.records import dataclass

FactPart: TypeAlias = int | Term | Variable
"""A column, or a constant."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """An arrangement of a pattern's triples. fact: the columns of subject, predicate and object; seen: whether used
    ones are among them."""

    place: int
    fact: tuple[FactPart, ...]
    seen: bool


@dataclass(frozen=True, slots=True)
class Memory:
    """What has happened, each with its interval of the first time. place: its arrangement; source: what it is passed on
    again by."""

    place: int
    source: int


def needs(sheet: p.Sheet) -> dict[int, int]:
    """By operator for how long its rows are needed to rebuild those that others keep: NEVER: for ever; operators that
    are not needed are left out. What memories emit again needs no facts."""
    found: dict[int, int] = {}

    def need(place: int, limit: int) -> None:
        limit, form = min(limit, NEVER), sheet.form(place)
        if _is_remembered(form) or found.get(place, -1) >= limit:
            return
        found[place] = limit
        for child in p.inputs(form):
            need(child, limit)
        if isinstance(form, p.Look) and (form.what != "PAIRS" or form.counts):
            need(form.kept, limit + kept_for(sheet.form(form.kept)))  # by a row of that time, the rows kept then

    for place in range(len(sheet)):
        form = sheet.form(place)
        if isinstance(form, p.Arrange | p.Closure) and not _is_remembered(form) and (limit := kept_for(form)):
            need(place, limit)
    return found


def _is_remembered(form: p.Form) -> bool:
    return isinstance(form, p.Arrange) and bool(form.memory)


def kept_for(form: p.Form) -> int:
    """For how long an operator keeps rows."""
    if isinstance(form, p.Closure):
        return NEVER if form.limit is None else form.limit
    assert isinstance(form, p.Arrange)
    return NEVER if form.lifetime is None else form.lifetime.limit


def limit_of(limit: int) -> int | None:
    """As operators take it: None: for ever."""
    return None if limit >= NEVER else limit


def lifetime_of(limit: int | None) -> p.Lifetime | None:
    """Of rows that are kept for so long."""
    return None if limit is None else p.Lifetime(0, limit)


def leaves(sheet: p.Sheet) -> list[Leaf]:
    """The triples of each pattern, arranged in some way, for as long as anything is kept that is made of them."""
    needed = needs(sheet)
    every = (form for form in map(sheet.form, range(len(sheet))) if isinstance(form, p.Triples))
    found = (_leaf(sheet, form, needed) for form in dict.fromkeys(replace(form, timed=False) for form in every))
    return [leaf for leaf in found if leaf is not None]


def _leaf(sheet: p.Sheet, form: p.Triples, needed: Mapping[int, int]) -> Leaf | None:
    nodes = sheet.add(form), sheet.add(replace(form, timed=True))
    need = max(needed.get(node, -1) for node in nodes)
    if need < 0:
        return None
    known = (place for place, each in sheet.arrangements() if each.child in nodes and kept_for(each) >= need)
    place = next(known, None)
    if place is None:
        place = sheet.add(p.Arrange(nodes[1], (), (), lifetime_of(limit_of(need)), coming=True))
    return Leaf(place, form.parts, isinstance(sheet.form(form.child), p.Union))


def memories(plan: p.FlowPlan) -> tuple[Memory, ...]:
    """Those of a plan."""
    sources = {form.name: place for place, form in enumerate(plan.forms) if isinstance(form, p.Given)}
    arranged = ((place, form.memory) for place, form in enumerate(plan.forms) if isinstance(form, p.Arrange))
    return tuple(Memory(place, sources[name]) for place, name in arranged if name in sources)
