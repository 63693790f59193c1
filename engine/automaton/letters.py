"""The letters of many queries, each numbered once: graph patterns that are equal but for the names of their variables.

In the flow: plans of queries → **common letters** → one match kernel, one run. A row brings what any query compares or
shows; each query knows by what columns it has its variables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.kernels.sequence import letter_rows as lr
from oxiseq.engine.matching.conditions import Condition
from oxiseq.engine.matching.tables import NativeGpm
from oxiseq.engine.patterns.plan import KernelGpm, StreamPlan
from oxiseq.engine.plan.query import GpmPlan, QueryPlan
from oxiseq.engine.sequence.positions import Letter
from oxiseq.grammar.records import dataclass

_Key: TypeAlias = tuple[Any, ...]


@dataclass(slots=True)
class CommonLetter:
    """A letter of some queries. `columns`: the numbers that the variables of its rows have in its pattern."""

    stream: int
    request: int
    """Its number among those of its stream."""
    name: str
    """That of the first query's GPM, for errors."""
    gpm: KernelGpm
    native: NativeGpm
    columns: list[int] = field(default_factory=list)
    names: list[Variable] = field(default_factory=list)


class MemberLetters:
    """The letters of one query among the common ones (`Lettering` of its tables)."""

    def __init__(self, numbers: Mapping[Letter, int], columns: Mapping[Letter, Mapping[Variable, int]]) -> None:
        self.numbers, self._columns = numbers, columns

    def number(self, letter: Letter) -> int:
        return self.numbers[letter]

    def columns_of(self, letter: Letter) -> Mapping[Variable, int]:
        return self._columns[letter]

    def own_numbers(self, count: int) -> NDArray[np.int32]:
        """By common letter the query's own number of it, -1 where it has none."""
        own = np.full(count, -1, np.int32)
        own[[*self.numbers.values()]] = np.arange(len(self.numbers))
        return own

    def places(self, variables: Sequence[Variable]) -> NDArray[np.int32]:
        """i32[own letter, variable]: the column of the common rows, UNBOUND if they have none."""
        return np.array(
            [[self._columns[letter].get(variable, lr.UNBOUND) for variable in variables] for letter in self.numbers],
            np.int32,
        ).reshape(len(self.numbers), len(variables))


class CommonLetters:
    """The letters of the queries over some streams."""

    def __init__(self, streams: int) -> None:
        self.all: list[CommonLetter] = []
        self._numbers: dict[_Key, int] = {}
        self._of_stream: list[list[int]] = [[] for _ in range(streams)]
        self._memo: list[dict[Condition, int]] = [{} for _ in range(streams)]
        self._after: dict[int, set[int]] = {}
        """Which letters' rows come later in an instant, in some query."""
        self.version: int = 0
        """Rises with each new letter and column."""

    def add(self, plan: QueryPlan) -> MemberLetters | None:
        """Those of one more query; None where it has them in another order than others, since the order of an instant's
        rows decides that of its matches."""
        seen = Counter[_Key]()
        found: list[tuple[Letter, _Key, GpmPlan, KernelGpm, NativeGpm]] = []
        for letter in plan.letters:
            gpm = plan.runner.gpms[letter.letter[0]]
            requests = plan.runner.requests[gpm.stream]
            assert requests is not None
            at = next(i for i, each in enumerate(requests.kernel) if each.request == gpm.order)
            kernel, native = requests.kernel[at], requests.native[at]
            key = _key(gpm.stream, kernel, native)
            seen[key] += 1  # one event may be two letters of one query that are equal: these are two for all
            found.append((letter.letter, (*key, seen[key]), gpm, kernel, native))
        if not self._in_order([self._numbers[key] for _, key, *_ in found if key in self._numbers]):
            return None
        numbers, columns = dict[Letter, int](), dict[Letter, dict[Variable, int]]()
        for name, key, gpm, kernel, native in found:
            number = self._number(key, gpm.stream, gpm.name, kernel, native)
            numbers[name], columns[name] = number, self._columns(number, kernel, native)
        for earlier, later in pairwise(numbers.values()):
            self._after.setdefault(earlier, set()).add(later)
        return MemberLetters(numbers, columns)

    def _in_order(self, numbers: Sequence[int]) -> bool:
        """Whether no query has a later one of these letters before an earlier one."""
        for place, number in enumerate(numbers):
            earlier, seen, todo = set(numbers[:place]), set[int](), [number]
            while todo:
                each = todo.pop()
                if each in earlier:
                    return False
                if each not in seen:
                    seen.add(each)
                    todo += self._after.get(each, ())
        return True

    def places(self) -> list[int]:
        """By letter its place in an instant: in every query's order."""
        before = Counter(later for each in self._after.values() for later in each)
        ready = [number for number in range(len(self.all)) if not before[number]]
        places = [0] * len(self.all)
        for place in range(len(self.all)):
            number = heappop(ready)
            places[number] = place
            for later in self._after.get(number, ()):
                before[later] -= 1
                if not before[later]:
                    heappush(ready, later)
        return places

    def _number(self, key: _Key, stream: int, name: str, kernel: KernelGpm, native: NativeGpm) -> int:
        number = self._numbers.setdefault(key, len(self.all))
        if number == len(self.all):
            of_stream = self._of_stream[stream]
            self.all.append(CommonLetter(stream, len(of_stream), name, kernel, native))
            of_stream.append(number)
            self.version += 1
        return number

    def _columns(self, number: int, kernel: KernelGpm, native: NativeGpm) -> dict[Variable, int]:
        letter, places = self.all[number], dict[Variable, int]()
        for variable, column in zip(kernel.columns, native.columns, strict=True):
            if column not in letter.columns:
                letter.columns.append(column)
                # conditions that Python decides name the variables of the first query
                letter.names.append(variable if kernel is letter.gpm else Variable(f"__column_{column}"))
                self.version += 1
            places[variable] = letter.columns.index(column)
        return places

    def plans(self) -> list[StreamPlan | None]:
        """Per stream what the match kernel looks for: its letters, as leaves."""
        return [self._plan(stream) if numbers else None for stream, numbers in enumerate(self._of_stream)]

    def _plan(self, stream: int) -> StreamPlan:
        memo, kernel, native = self._memo[stream], list[KernelGpm](), list[NativeGpm]()
        letters = [self.all[number] for number in self._of_stream[stream]]
        for letter in letters:
            pairs = [*zip(letter.gpm.conditions, letter.gpm.memo, strict=True)]
            tables = tuple(-1 if table < 0 else memo.setdefault(each, len(memo)) for each, table in pairs)
            filters = tuple(
                each if table < 0 else each.with_memo(table)
                for each, table in zip(letter.native.filters, tables, strict=True)
            )
            columns = tuple(letter.names)
            kernel.append(KernelGpm(letter.request, columns, letter.gpm.conditions, tables, letter.gpm.distinct))
            native.append(NativeGpm(letter.native.instance, filters, tuple(letter.columns)))
        leaves = tuple((letter.name, len(letter.columns)) for letter in letters)
        return StreamPlan((), tuple(kernel), (), (), tuple(memo), tuple(native), leaves)

    def wanted(self, members: Iterable[MemberLetters]) -> list[NDArray[np.bool_]]:
        """Per stream which of its letters one of these queries has."""
        has = np.zeros(len(self.all), np.bool_)
        for each in members:
            has[[*each.numbers.values()]] = True
        return [has[numbers] for numbers in self._of_stream]

    def number(self, stream: int, request: int) -> int:
        """Of the letter that this request of a stream is."""
        return self._of_stream[stream][request]

    @property
    def width(self) -> int:
        """Most columns of a letter."""
        return max((len(letter.columns) for letter in self.all), default=0)

    def row_columns(self, width: int) -> NDArray[np.int32]:
        """i32[letter, width]: rows are as the match kernel writes them."""
        columns = np.full((len(self.all), max(width, 1)), lr.UNBOUND, np.int32)
        for number, letter in enumerate(self.all):
            columns[number, : len(letter.columns)] = np.arange(len(letter.columns))
        return columns


_NO_TABLE: Final = 0


def _key(stream: int, kernel: KernelGpm, native: NativeGpm) -> _Key:
    """The same for letters with the same rows, their columns aside."""
    filters = tuple(
        each if table < 0 else each.with_memo(_NO_TABLE)
        for each, table in zip(native.filters, kernel.memo, strict=True)
    )
    if not all(each.pure for each in kernel.conditions):
        return (object(),)  # each draws for itself
    named = any(each.late for each in native.filters)  # Python decides by the names of variables
    names = (kernel.conditions, tuple(zip(kernel.columns, native.columns, strict=True))) if named else ()
    return stream, native.instance, filters, kernel.distinct, names
