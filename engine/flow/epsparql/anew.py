"""Rebuilds kept rows after a change of the past, that is, of the knowledge base.

In the flow: a plan in the making → **which facts it must keep, for how long** → plan. All facts that what is kept
was made of are processed again (standing.py).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeAlias

from pyoxigraph import Literal, NamedNode

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.epsparql.rows import NEVER
from oxiseq.grammar.records import dataclass

FactPart: TypeAlias = int | NamedNode | Literal
"""A column, or a constant."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """An arrangement of a pattern's triples. fact: the columns of subject, predicate and object; seen: whether used
    ones are among them."""

    place: int
    fact: tuple[FactPart, FactPart, FactPart]
    seen: bool


@dataclass(frozen=True, slots=True)
class Memory:
    """What has happened, each with its interval of the first time. place: its arrangement; source: what it is passed on
    again by."""

    place: int
    source: int


def needs(sheet: p.Sheet, asked: Collection[int], remembered: Collection[int]) -> dict[int, int]:
    """By operator for how long its rows are needed to rebuild those that others keep: NEVER: for ever; operators that
    are not needed are left out. asked: pairs that count however long they last; remembered: what memories emit
    again."""
    found: dict[int, int] = {}

    def need(place: int, limit: int) -> None:
        limit = min(limit, NEVER)
        if place in remembered or found.get(place, -1) >= limit:
            return
        found[place] = limit
        form = sheet.form(place)
        for child in p.inputs(form):
            need(child, limit)
        if isinstance(form, p.Look) and (form.what != "PAIRS" or place in asked):
            need(form.kept, limit + kept_for(sheet.form(form.kept)))  # by a row of that time, the rows kept then

    for place in range(len(sheet)):
        form = sheet.form(place)
        if place not in remembered and isinstance(form, p.Arrange | p.Closure) and (limit := kept_for(form)):
            need(place, limit)
    return found


def kept_for(form: p.Form) -> int:
    """For how long an operator keeps rows."""
    if isinstance(form, p.Closure):
        return NEVER if form.limit is None else form.limit
    assert isinstance(form, p.Arrange)
    return NEVER if form.lifetime is None else form.lifetime.limit


def limit_of(limit: int) -> int | None:
    """As operators take it: None: for ever."""
    return None if limit >= NEVER else limit
