"""The flat arrays that the windows' kernels read (windows.md, section 3).

In the flow: plan → **tables** → kernels/windows. Immutable once made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from oxiseq.engine.kernels.matching.match import fill_objects
from oxiseq.engine.kernels.memory.growing import flat
from oxiseq.engine.kernels.memory.pointers import I32, I64, Array
from oxiseq.engine.kernels.windows import records as k
from oxiseq.engine.windows.plan import OBJECT, PREDICATE, SUBJECT, CompiledQuery, PatternPlan, View, WindowPlan

_INDEX: Final = {SUBJECT: k.INDEX_SUBJECT, PREDICATE: k.INDEX_PREDICATE, OBJECT: k.INDEX_OBJECT}


def build_tables(plan: WindowPlan) -> k.Tables:
    """Tables of a plan."""
    routes = _Routes(plan)
    code = _Code()
    programs = [code.add(program.tolist()) for program in plan.programs]
    filters = [[(c, position, *programs[c]) for position, c in _filters(view)] for view in plan.views]
    starts = _starts(plan)
    filter0, start0 = _starts_of(filters), _starts_of(starts)
    index = _indexes(plan)
    queries = _Queries(code)
    for query in plan.queries:
        queries.add(query)
    return k.Tables(
        predicate=routes.predicate,
        view0=_starts_of(routes.lists),
        view_at=flat(routes.lists, np.int32),
        with_object=np.array(routes.with_object, np.uint8),
        objects=routes.objects(),
        object0=_starts_of(list(routes.by_object.values())),
        object_at=flat(routes.by_object.values(), np.int32),
        views=np.array(
            [
                (*view.constants, view.equal, index[i], *filter0[i : i + 2], *start0[i : i + 2], view.source)
                for i, view in enumerate(plan.views)
            ],
            k.VIEW,
        ),
        filters=_records([f for each in filters for f in each], k.FILTER),
        starts=_records([s for each in starts for s in each], k.START),
        queries=_records(queries.queries, k.QUERY),
        patterns=_records([(p.view, *p.variables) for q in plan.queries for p in q.patterns], k.PATTERN),
        contains=np.array(queries.contains, np.int64),
        joint=_records(queries.joint, k.JOINT),
        code=np.array(code.code, np.int32),
    )


def _records(rows: Sequence[tuple[int, ...]], dtype: np.dtype[np.void]) -> Array:
    return np.array([tuple(row) for row in rows], dtype)


def _starts_of(lists: Sequence[Sequence[object]]) -> I32:
    starts = np.zeros(len(lists) + 1, np.int32)
    np.cumsum([len(each) for each in lists], out=starts[1:])
    return starts


def _filters(view: View) -> list[tuple[int, int]]:
    """(position, condition) of a view's filters, each condition once."""
    found: dict[int, int] = {}
    for position in (SUBJECT, PREDICATE, OBJECT):
        for condition in view.conditions[position]:
            found.setdefault(condition, position)
    return [(position, condition) for condition, position in found.items()]


def _starts(plan: WindowPlan) -> list[list[tuple[int, int]]]:
    """By view the (query, pattern) pairs of its entries."""
    starts: list[list[tuple[int, int]]] = [[] for _ in plan.views]
    for number, query in enumerate(plan.queries):
        if not query.never:
            for j, pattern in enumerate(query.patterns):
                starts[pattern.view].append((number, j))
    return starts


def _indexes(plan: WindowPlan) -> list[int]:
    """By view the positions whose terms are looked up: their variable is in another pattern too."""
    index = [0] * len(plan.views)
    for query in plan.queries:
        for j, pattern in enumerate(query.patterns):
            others = {v for i, other in enumerate(query.patterns) if i != j for v in other.variables}
            for position, variable in enumerate(pattern.variables):
                if variable >= 0 and variable in others:
                    index[pattern.view] |= _INDEX[position]
    return index


class _Code:
    """Programs, one after the other."""

    def __init__(self) -> None:
        self.code: list[int] = []

    def add(self, program: Sequence[int]) -> tuple[int, int]:
        """Where it begins and ends."""
        start = len(self.code)
        self.code += program
        return start, len(self.code)


class _Queries:
    def __init__(self, code: _Code) -> None:
        self.code = code
        self.queries: list[tuple[int, ...]] = []
        self.contains: list[int] = []
        self.joint: list[tuple[int, int, int]] = []
        self.patterns = 0

    def add(self, query: CompiledQuery) -> None:
        width, with0, joint0 = len(query.keys), len(self.contains), len(self.joint)
        self.contains += [_mask(j for j, p in enumerate(query.patterns) if _has(p, v)) for v in range(width)]
        for each in query.joint:
            self.joint.append((_mask(v for v in each.places if v >= 0), *self.code.add(each.code)))
        last = self.patterns + len(query.patterns)
        self.queries.append((self.patterns, last, with0, joint0, len(self.joint), width))
        self.patterns = last


def _has(pattern: PatternPlan, variable: int) -> bool:
    return variable in pattern.variables


def _mask(numbers: Iterable[int]) -> int:
    return sum(1 << n for n in set(numbers))


class _Routes:
    """From a triple's source, predicate and object to the views that may take it."""

    def __init__(self, plan: WindowPlan) -> None:
        numbers: dict[tuple[int, int], int] = {}
        self.lists: list[list[int]] = [[] for _ in range(1 + plan.sources)]
        self.by_object: dict[int, list[int]] = {}
        self.with_object = [0] * len(self.lists)
        for number, view in enumerate(plan.views):
            _, predicate, object_ = view.constants
            if predicate == 0:
                self.lists[1 + view.source].append(number)
                continue
            key = view.source, predicate
            if key not in numbers:
                numbers[key] = len(self.lists)
                self.lists.append([])
                self.with_object.append(0)
            c = numbers[key]
            if object_ == 0:
                self.lists[c].append(number)
            else:
                self.with_object[c] = 1
                self.by_object.setdefault(c << 32 | object_, []).append(number)
        self.predicate = np.zeros((plan.sources, max((p for _, p in numbers), default=0) + 1), np.int32)
        for key, c in numbers.items():
            self.predicate[key] = c

    def objects(self) -> I64:
        """The hash table from (predicate's number, object) to a list."""
        table = np.full((1 << (2 * len(self.by_object) + 1).bit_length(), 2), -1, np.int64)
        fill_objects(table, np.array(list(self.by_object), np.int64))
        return table
