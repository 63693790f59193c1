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
from oxiseq.engine.flow.nodes.fed import Windowed
from oxiseq.engine.flow.plan import Only, Patterns, Place
from oxiseq.engine.kernels.flow import windowing as k
from oxiseq.engine.kernels.matching.match import fill_objects
from oxiseq.engine.kernels.memory.growing import flat
from oxiseq.engine.kernels.memory.pointers import I32, I64
from oxiseq.engine.matching.conditions import Condition, condition
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import TermOrVariable, TriplePattern

_PAIRS: Final = ((0, 1, k.SUBJECT_PREDICATE), (0, 2, k.SUBJECT_OBJECT), (1, 2, k.PREDICATE_OBJECT))
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
        return parts_of(self.form.patterns[0])


def parts_of(pattern: TriplePattern) -> tuple[TermOrVariable, TermOrVariable, TermOrVariable]:
    """Subject, predicate, object."""
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
    ends = _starts_of(programs)
    routes = _Routes(len(sources))
    filter0 = _starts_of(filters)
    records = []
    for number, view in enumerate(views):
        constants = [0 if isinstance(t, Variable) else terms.constant(t) for t in view.parts]
        source = sources[view.form.places[0]]
        routes.add(number, source, constants)
        variables = dict.fromkeys(t for t in view.parts if isinstance(t, Variable))
        places = [view.parts.index(v) for v in variables]
        equal = sum(
            bit for a, b, bit in _PAIRS if view.parts[a] == view.parts[b] and isinstance(view.parts[a], Variable)
        )
        within = filter0[number], filter0[number + 1]
        columns = (*places, 0, 0, 0)[:3]
        rows, out = view.rows.rows.address, view.out.address
        records.append((*constants, equal, *within, source, _WANTED[view.only], len(places), *columns, rows, out))
    return CompiledViews(
        k.Views(
            predicate=routes.predicate(),
            view0=_starts_of(routes.lists),
            view_at=flat(routes.lists, np.int32),
            with_object=np.array(routes.with_object, np.uint8),
            objects=routes.objects(),
            object0=_starts_of(list(routes.by_object.values())),
            object_at=flat(routes.by_object.values(), np.int32),
            views=np.array(records, k.VIEW),
            filters=np.array([(c, at, ends[c], ends[c + 1]) for mine in filters for c, at in mine], k.FILTER),
            code=flat(programs, np.int32),
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


def _starts_of(lists: Sequence[Sequence[object]]) -> I32:
    starts = np.zeros(len(lists) + 1, np.int32)
    np.cumsum([len(each) for each in lists], out=starts[1:])
    return starts


class _Routes:
    """From a triple's source, predicate and object to the patterns that may accept it."""

    def __init__(self, sources: int) -> None:
        self._sources = sources
        self._numbers: dict[tuple[int, int], int] = {}
        self.lists: list[list[int]] = [[] for _ in range(1 + sources)]
        self.by_object: dict[int, list[int]] = {}
        self.with_object = [0] * len(self.lists)

    def add(self, number: int, source: int, constants: Sequence[int]) -> None:
        """A pattern."""
        _, predicate, object_ = constants
        if predicate == 0:
            self.lists[1 + source].append(number)
            return
        c = self._numbers.setdefault((source, predicate), len(self.lists))
        if c == len(self.lists):
            self.lists.append([])
            self.with_object.append(0)
        if object_ == 0:
            self.lists[c].append(number)
        else:
            self.with_object[c] = 1
            self.by_object.setdefault(c << 32 | object_, []).append(number)

    def predicate(self) -> I32:
        """The lists' numbers by source and predicate."""
        found = np.zeros((self._sources, max((p for _, p in self._numbers), default=0) + 1), np.int32)
        for key, c in self._numbers.items():
            found[key] = c
        return found

    def objects(self) -> I64:
        """The hash table from (predicate's number, object) to a list."""
        table = np.full((1 << (2 * len(self.by_object) + 1).bit_length(), 2), -1, np.int64)
        fill_objects(table, np.array(list(self.by_object), np.int64))
        return table
