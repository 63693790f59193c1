"""The letters of many queries, each numbered once: those that are equal but for names are one.

In the flow: plans of queries → **common letters** → one match kernel, one run. A row brings what any query compares or
shows; each query knows by what columns it has its variables. Rows are those of the match kernel, or are made (made.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.automaton.ladders import Ladder, Rung
from oxiseq.engine.automaton.made import MadeGpm, MadeLetter, NamedLetter
from oxiseq.engine.kernels.sequence import letter_rows as lr
from oxiseq.engine.matching.conditions import Condition
from oxiseq.engine.matching.enrich import KbAnswer
from oxiseq.engine.matching.tables import NativeGpm
from oxiseq.engine.patterns.joined_exists import graphs_of
from oxiseq.engine.patterns.kb_graphs import KbGraphs
from oxiseq.engine.patterns.plan import KernelGpm, StreamPlan
from oxiseq.engine.plan.query import GpmPlan, LetterPlan, QueryPlan
from oxiseq.engine.plan.thresholds import Threshold
from oxiseq.engine.run.letters import part_of
from oxiseq.engine.run.partitions import is_plain
from oxiseq.engine.sequence.positions import Letter
from oxiseq.engine.sequence.states import PARTITION
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Exists
from oxiseq.grammar.records import dataclass

_Key: TypeAlias = tuple[Any, ...]


@dataclass(slots=True, eq=False)
class PlainLetter:
    """A letter of some queries whose rows are the kernel's. `first`: its number among what the matcher of its stream
    looks for; name: that of the first query's GPM, for errors; `columns`: the numbers that the variables of its rows
    have in its pattern."""

    stream: int
    first: int
    name: str
    gpm: KernelGpm
    native: NativeGpm
    letters: list[int]
    """Itself; nothing, if it only puts events into partitions."""
    known: tuple[int, ...] = ()
    """Of the variables of PARTITION BY, in their order, those that its rows have, by the numbers of the pattern; -1:
    they have not."""
    parted: bool = True
    """Whether its rows are where their event is."""
    columns: list[int] = field(default_factory=list)
    names: list[Variable] = field(default_factory=list)

    @property
    def numbers(self) -> range:
        """As of `MadeGpm`."""
        return range(self.first, self.first + 1)


CommonLetter: TypeAlias = PlainLetter | MadeLetter
Sought: TypeAlias = PlainLetter | MadeGpm
"""What a stream's matcher looks for."""


class _OfKernel(NamedTuple):
    """A plain letter of one query."""

    key: _Key
    gpm: GpmPlan
    kernel: KernelGpm
    native: NativeGpm
    known: tuple[int, ...]
    parted: bool


class MemberLetters:
    """The letters of one query among the common ones (`Lettering` of its tables)."""

    def __init__(
        self,
        numbers: Mapping[Letter, int],
        columns: Mapping[Letter, Mapping[Variable, int]],
        asked: Mapping[str, tuple[MadeGpm, ...]],
        parts: Sequence[tuple[str, str]],
        texts: Sequence[tuple[str, str]],
        tests: Sequence[Exists],
    ) -> None:
        self.numbers, self._columns = numbers, columns
        self.asked = asked
        """By GPM of the query that has a KB pattern what it is here: in letters with others it may be several."""
        self.parts = parts
        """Of what it reads of the KB the query's names, each with a name of here."""
        self.texts = texts
        """Of KB patterns the names of here, each with the query's question."""
        self.tests = tests
        """The EXISTS with values of earlier events, of the query and of its letters here."""

    def names_of(self, gpm: str) -> tuple[str, ...]:
        """Of the KB's answers for a GPM of the query."""
        return tuple(dict.fromkeys(each.asks for each in self.asked.get(gpm, ()) if each.asks is not None))

    def common(self, answers: Mapping[str, KbAnswer]) -> dict[str, KbAnswer]:
        """A query's answers under these names."""
        return {
            each.asks: answers[gpm].named(each.plan.kb.variables)
            for gpm, several in self.asked.items()
            for each in several
            if gpm in answers and each.asks is not None and each.plan.kb is not None
        }

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
    """The letters of the queries over some streams. `partitioned`: their rows are those of instants of partitions, and
    have, before all else, the number of theirs."""

    def __init__(self, streams: int, terms: TermDictionary, *, partitioned: bool = False) -> None:
        self.all: list[CommonLetter] = []
        self.members: list[PlainLetter] = []
        """What puts events into partitions, in the order of every query."""
        self._first = int(partitioned)
        """Of the columns of its rows."""
        self._terms = terms
        self._numbers: dict[_Key, int] = {}
        self._gpms: dict[object, MadeGpm] = {}
        self.sought: list[list[Sought]] = [[] for _ in range(streams)]
        """By stream and number."""
        self._memo: list[dict[Condition, int]] = [{} for _ in range(streams)]
        self._after: dict[int, set[int]] = {}
        """Which letters' rows come later in an instant, in some query."""
        self.version: int = 0
        """Rises with each new letter and column."""

    def add(self, plan: QueryPlan, rung: Rung | None = None) -> MemberLetters | None:
        """Those of one more query; None where it has them in another order than others, since the order of an instant's
        rows decides that of its matches. rung: on a ladder, whose first letter is its own."""
        begins = None if rung is None or rung.threshold is None else rung.threshold.letter
        seen = Counter[_Key]()
        found: list[tuple[Letter, _Key, _OfKernel | NamedLetter]] = []
        for letter in plan.letters:
            own = _of_kernel(letter, plan, partitioned=bool(self._first)) or NamedLetter(letter, plan)
            if letter.letter == begins and rung is not None and isinstance(own, _OfKernel):
                rung.sought = own.kernel, own.native
                own = own._replace(key=(rung.ladder,))
            seen[own.key] += 1  # one event may be two letters of one query that are equal: these are two for all
            found.append((letter.letter, (*own.key, seen[own.key]), own))
        if not self._in_order([self._numbers[key] for _, key, _ in found if key in self._numbers]):
            return None
        numbers, columns = dict[Letter, int](), dict[Letter, dict[Variable, int]]()
        asked: dict[str, tuple[MadeGpm, ...]] = {}
        parts: list[tuple[str, str]] = []
        texts: list[tuple[str, str]] = []
        tests = [*plan.runner.asked_again]
        for name, key, own in found:
            number = self._numbers.setdefault(key, len(self.all))
            if number == len(self.all):
                self.all.append(self._plain(own) if isinstance(own, _OfKernel) else self._made(own))
                self.version += 1
            numbers[name], common = number, self.all[number]
            if isinstance(own, _OfKernel):
                assert isinstance(common, PlainLetter)
                columns[name] = self._columns(common, own)
                if name == begins and rung is not None and rung.threshold is not None:
                    rung.letter, rung.column = number, self._compared(common, rung, rung.threshold)
                continue
            assert isinstance(common, MadeLetter)
            columns[name] = self._brought(common, own)
            tests += common.tests
            for gpm, place in own.gpms.items():
                here, kb = common.gpms[place], plan.runner.gpms[gpm].kb
                if here.asks is not None and kb is not None:
                    asked[gpm] = (*asked.get(gpm, ()), here)
                    texts.append((here.asks, kb.text))
                    parts.append((part_of(gpm), here.asks))
                elif here.in_place is not None:
                    parts.append((_in_place(plan.runner.gpms[gpm], plan), here.in_place))
        if self._first and not self.members:
            self._add_members(plan)
        for earlier, later in pairwise(numbers.values()):
            self._after.setdefault(earlier, set()).add(later)
        if named := graphs_of(tests):
            parts += [(text, text) for text in KbGraphs(None, named, self._terms).texts]
        return MemberLetters(numbers, columns, asked, parts, texts, tests)

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

    def _add_members(self, plan: QueryPlan) -> None:
        for stream, name, kernel, native, known in plan.runner.members_in_kernel():
            sought = self.sought[stream]
            member = PlainLetter(stream, len(sought), name, kernel, native, [], known)
            member.columns += dict.fromkeys(known)
            member.names += [kernel.columns[native.columns.index(column)] for column in member.columns]
            sought.append(member)
            self.members.append(member)

    def _plain(self, own: _OfKernel) -> PlainLetter:
        sought, number = self.sought[own.gpm.stream], len(self.all)
        name = own.gpm.name
        letter = PlainLetter(own.gpm.stream, len(sought), name, own.kernel, own.native, [number], own.known, own.parted)
        sought.append(letter)
        return letter

    def _made(self, own: NamedLetter) -> MadeLetter:
        gpms: dict[str, MadeGpm] = {}
        for name, form in own.forms.items():
            gpm = self._gpms.get(form)
            if gpm is None:
                sought = self.sought[form.stream]
                gpm = self._gpms[form] = MadeGpm.of(form, len(sought), self._terms)
                sought += [gpm] * len(gpm.numbers)
            gpm.letters.append(len(self.all))
            gpms[name] = gpm
        return MadeLetter(own.plan, gpms)

    def _columns(self, letter: PlainLetter, own: _OfKernel) -> dict[Variable, int]:
        places = dict[Variable, int]()
        for variable, column in zip(own.kernel.columns, own.native.columns, strict=True):
            if column not in letter.columns:
                letter.columns.append(column)
                # conditions that Python decides name the variables of the first query
                named = own.kernel is letter.gpm or isinstance(own.key[0], Ladder)  # there they are the same for all
                letter.names.append(variable if named else Variable(f"__column_{column}"))
                self.version += 1
            places[variable] = self._first + letter.columns.index(column)
        if self._first:
            places[PARTITION] = 0
        return places

    def _compared(self, letter: PlainLetter, rung: Rung, threshold: Threshold) -> int:
        """The column of what a threshold compares."""
        kernel, native = rung.sought
        pairs = zip(kernel.conditions, native.filters, strict=True)
        [column] = next(each.variables for own, each in pairs if own.expression == threshold.condition)
        if column not in letter.columns:
            letter.columns.append(column)
            letter.names.append(threshold.variable)
            self.version += 1
        return letter.columns.index(column)

    def look_for(self, rung: Rung) -> None:
        """The rows of a ladder's first letter are those of this query."""
        letter = self.all[rung.letter]
        assert isinstance(letter, PlainLetter)
        if (letter.gpm, letter.native) != rung.sought:
            letter.gpm, letter.native = rung.sought
            self.version += 1

    def _brought(self, letter: MadeLetter, own: NamedLetter) -> dict[Variable, int]:
        for name in own.brought.values():
            if name not in letter.names:
                letter.names.append(name)
                self.version += 1
        return {variable: letter.names.index(name) for variable, name in own.brought.items()}

    def plans(self) -> list[StreamPlan | None]:
        """Per stream what the match kernel looks for, as leaves."""
        return [self._plan(stream) if sought else None for stream, sought in enumerate(self.sought)]

    def _plan(self, stream: int) -> StreamPlan:
        memo, kernel, native = self._memo[stream], list[KernelGpm](), list[NativeGpm]()
        leaves: list[tuple[str, int]] = []

        def add(
            request: int, gpm: KernelGpm, names: Sequence[Variable], compiled: NativeGpm, columns: Sequence[int]
        ) -> None:
            pairs = [*zip(gpm.conditions, gpm.memo, strict=True)]
            tables = tuple(-1 if table < 0 else memo.setdefault(each, len(memo)) for each, table in pairs)
            filters = tuple(
                each if table < 0 else each.with_memo(table)
                for each, table in zip(compiled.filters, tables, strict=True)
            )
            kernel.append(KernelGpm(request, tuple(names), gpm.conditions, tables, gpm.distinct))
            native.append(NativeGpm(compiled.instance, filters, tuple(columns)))

        for number, each in enumerate(self.sought[stream]):
            if number != each.first:
                continue
            if isinstance(each, PlainLetter):
                add(number, each.gpm, each.names, each.native, each.columns)
                leaves.append((each.name, len(each.columns)))
                continue
            for gpm, compiled in zip(each.requests.kernel, each.requests.native, strict=True):
                add(number + gpm.request, gpm, gpm.columns, compiled, compiled.columns)
            leaves += [(each.plan.name, len(each.plan.keep)), *each.requests.leaves]
        return StreamPlan((), tuple(kernel), (), (), tuple(memo), tuple(native), tuple(leaves))

    def asks_again(self, number: int) -> bool:
        """Whether a letter's rows say of which event they are."""
        letter = self.all[number]
        return isinstance(letter, MadeLetter) and any(gpm.asks_again for gpm in letter.gpms.values())

    def wanted(self, members: Iterable[MemberLetters]) -> NDArray[np.bool_]:
        """Which letters one of these queries has."""
        has = np.zeros(len(self.all), np.bool_)
        for each in members:
            has[[*each.numbers.values()]] = True
        return has

    @property
    def names(self) -> tuple[tuple[Variable, ...], ...]:
        """Of the columns of the rows of each."""
        return tuple((PARTITION,) * self._first + tuple(letter.names) for letter in self.all)

    @property
    def width(self) -> int:
        """Most columns of a letter."""
        return self._first + max((len(letter.names) for letter in self.all), default=0)

    def row_columns(self, width: int) -> NDArray[np.int32]:
        """i32[letter, width]: rows are as the match kernel writes them, or as they are made. A letter may have more
        columns, for queries of a ladder, which compare none of them."""
        columns = np.full((len(self.all), max(width, 1)), lr.UNBOUND, np.int32)
        columns[:, : self._first] = lr.THE_PARTITION
        for number, letter in enumerate(self.all):
            mine = columns[number, self._first : self._first + len(letter.names)]
            mine[:] = np.arange(len(mine))
        return columns

    def stored_columns(self) -> NDArray[np.int32]:
        """The same, without what means something in one batch only."""
        columns = self.row_columns(self.width)
        for number, letter in enumerate(self.all):
            if isinstance(letter, MadeLetter):
                columns[number, : len(letter.names)][~np.array(letter.stored, np.bool_)] = lr.UNBOUND
        return columns


_NO_TABLE: Final = 0


def _in_place(gpm: GpmPlan, plan: QueryPlan) -> str:
    """The name of what operators read of the KB for a GPM of a query alone."""
    requests = plan.runner.requests[gpm.stream]
    assert requests is not None
    return next(each.part for each in requests.operators if each.request == gpm.order)


def compares(plan: QueryPlan, threshold: Threshold) -> bool:
    """Whether the match kernel alone finds the rows that pass a threshold."""
    [letter] = (each for each in plan.letters if each.letter == threshold.letter)
    own = _of_kernel(letter, plan, partitioned=False)
    return own is not None and any(each.expression == threshold.condition for each in own.kernel.conditions)


def _of_kernel(letter: LetterPlan, plan: QueryPlan, *, partitioned: bool) -> _OfKernel | None:
    """A letter whose rows are the match kernel's; None: they are made."""
    gpm = plan.runner.plain_gpm(letter)
    if gpm is None:
        return None
    requests = plan.runner.requests[gpm.stream]
    assert requests is not None
    found = requests.in_kernel(gpm.order)
    if found is None:
        return None
    kernel, native = found
    columns = dict(zip(kernel.columns, native.columns, strict=True)) if partitioned else {}
    known = tuple(columns.get(variable, -1) for variable in plan.by) if partitioned else ()
    parted = not partitioned or is_plain(gpm, plan.by)
    return _OfKernel((*_key(gpm.stream, kernel, native), known, parted), gpm, kernel, native, known, parted)


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
