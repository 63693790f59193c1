"""Triple patterns compiled: which triples each of them accepts (windows.md, section 3).

In the flow: sources of single patterns → **flat arrays** → kernels/flow/windowing.py. What the stack machine leaves
undecided about a condition on one variable Python decides, by a table of outcomes (matching/conditions.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from pyoxigraph import Variable

from oxiseq.engine.expressions.program import compile_program
from oxiseq.engine.flow.delta import Buffer
from oxiseq.engine.flow.operators.sources import Windowed
from oxiseq.engine.flow.plan import Only, Patterns, Place
from oxiseq.engine.kernels.flow import windowing as k
from oxiseq.engine.matching.bgp import slot_of
from oxiseq.engine.matching.conditions import Condition, condition
from oxiseq.engine.matching.tables import Routes, csr
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import TermOrVariable

_WANTED: Final[Mapping[Only, int]] = {"COME": k.COMES, "GO": k.GOES, "": k.COMES | k.GOES}
Filter: TypeAlias = tuple[int, int]
"""Number of a condition, and the position that it is about."""


class PatternView(NamedTuple):
    """A source: its pattern, where its rows go, and which changes are needed."""

    form: Patterns
    rows: Windowed
    out: Buffer
    only: Only

    @property
    def parts(self) -> tuple[TermOrVariable, TermOrVariable, TermOrVariable]:
        """Subject, predicate, object."""
        (pattern,) = self.form.patterns
        return pattern.subject, pattern.predicate, pattern.object


class CompiledViews(NamedTuple):
    """All sources of a plan. depth: of the stack machine; by_memo: position, number of a condition, predicate (0: any)
    where all terms of a batch are asked about at once."""

    tables: k.Views
    conditions: tuple[Condition, ...]
    depth: int
    by_memo: tuple[tuple[int, int, int], ...]


def compile_views(views: Sequence[PatternView], sources: Mapping[Place, int], terms: TermDictionary) -> CompiledViews:
    """sources: numbers of windows and graphs."""
    conditions: dict[Condition, int] = {}
    filters = [_filters(view, conditions) for view in views]
    programs = [compile_program(c.expression, {c.variables[0]: 0}, terms).code.tolist() for c in conditions]
    ends, code = csr(programs)
    filter0, _ = csr([[c for c, _ in mine] for mine in filters])
    routes = Routes(len(sources))
    records = []
    for number, view in enumerate(views):
        slot, source = slot_of(view.parts, terms), sources[view.form.places[0]]
        routes.add(number, slot.predicate, slot.object, source)
        variables = dict.fromkeys(t for t in view.parts if isinstance(t, Variable))
        places = [view.parts.index(v) for v in variables]
        constants, within = (slot.subject, slot.predicate, slot.object, slot.equal), filter0[number : number + 2]
        columns = (*places, 0, 0, 0)[:3]
        rows, out = view.rows.rows.address, view.out.address
        records.append((*constants, *within, source, _WANTED[view.only], len(places), *columns, rows, out))
    view0, view_at = csr(routes.lists)
    object0, object_at = csr([*routes.by_object.values()])
    return CompiledViews(
        k.Views(
            predicate=routes.predicate,
            view0=view0,
            view_at=view_at,
            with_object=routes.with_object,
            objects=routes.objects,
            object0=object0,
            object_at=object_at,
            views=np.array(records, k.VIEW),
            filters=np.array([(c, at, ends[c], ends[c + 1]) for mine in filters for c, at in mine], k.FILTER),
            code=code,
        ),
        tuple(conditions),
        max((code[1] for code in programs), default=1),
        tuple(
            (at, c, records[number][1])
            for number, mine in enumerate(filters)
            for c, at in mine
            if [*conditions][c].wants_memo
        ),
    )


def _filters(view: PatternView, conditions: dict[Condition, int]) -> list[Filter]:
    """A pattern's filters, on one variable each."""
    made = map(condition, dict.fromkeys(view.form.filters))
    return [(conditions.setdefault(each, len(conditions)), view.parts.index(each.variables[0])) for each in made]
