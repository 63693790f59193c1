"""GPM occurrences → rows of letters, for a batch of complete instants.

In the flow: summary graph → GPM occurrences → **rows** → run. Here mappings meet the KB's answer
(semantics.md 2.2) and, for `&`, each other (2.3); the result is one row per mapping of a letter. The rows of a
letter that needs neither are taken from where the matcher has put them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.errors import MappingsError
from oxiseq.engine.events.time import to_literal
from oxiseq.engine.expressions.column import holding
from oxiseq.engine.expressions.exists import Ask, graph_of
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.kb_in_time import KbInTime
from oxiseq.engine.kernels.memory.pointers import Pointers, address_of, call
from oxiseq.engine.kernels.sequence import letter_rows as lr
from oxiseq.engine.matching.enrich import KbAnswer
from oxiseq.engine.order.clock import Clock, Instants
from oxiseq.engine.output.rows import RowStore
from oxiseq.engine.patterns.joined_exists import ExistsMatcher
from oxiseq.engine.patterns.matcher import Rows, StreamMatcher
from oxiseq.engine.plan.query import GpmPlan, LetterPlan, QueryPlan
from oxiseq.engine.sequence.asked import time_of
from oxiseq.engine.sequence.run import RowBuffer
from oxiseq.engine.sequence.states import PARTITION
from oxiseq.engine.sequence.tables import SequenceTables
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.grammar.records import dataclass

Ids = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Frame:
    """k mappings: `where` i64[k] ascending, the instant of each; `columns`: term ids by variable."""

    where: NDArray[np.int64]
    columns: Mapping[Variable, Ids]

    def __len__(self) -> int:
        return len(self.where)

    def take(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> Frame:
        """Some of the mappings."""
        return Frame(self.where[index], {v: c[index] for v, c in self.columns.items()})

    def table(self, variables: tuple[Variable, ...]) -> Ids:
        """u32[k, len(variables)]; a variable without a column is unbound."""
        out = np.zeros((len(self), len(variables)), np.uint32)
        for i, v in enumerate(variables):
            if v in self.columns:
                out[:, i] = self.columns[v]
        return out


def gpm_frame(
    plan: GpmPlan,
    found: Rows,
    where: NDArray[np.int64],
    answer: KbAnswer | None,
    terms: TermDictionary,
    first: int | None = None,
    times: NDArray[np.int64] | None = None,
    *,
    beyond: dict[int, MappingsError],
) -> Frame:
    """The mappings of one GPM: its occurrences joined with the KB's answer, `where`: instant per event; `first`: the
    number of the first event's graph, where the graphs are queried again; `times`: by instant, for rows with times.
    Instants at which there are too many have none, and are put into `beyond`."""
    rows = slice(found.low, found.high)
    frame = Frame(where[found.event[rows]], {v: found.values[rows, i] for i, v in enumerate(plan.keep)})
    if plan.timed and times is not None:
        distinct, which = np.unique(times[frame.where], return_inverse=True)
        ids = terms.intern_all(to_literal(time) for time in distinct.tolist())
        frame = Frame(frame.where, {**frame.columns, time_of(plan.name): ids[which]})
    if first is not None:
        number = (found.event[rows] + first).astype(np.uint32)
        frame = Frame(frame.where, {**frame.columns, graph_of(plan.name): number})
    if plan.kb is None or answer is None:
        return frame
    shared = frame.table(plan.kb.shared)
    if plan.late:
        return frame.take(answer.partners(shared) > 0)
    most = terms.bounds.made
    if len(frame) * len(answer) > most:
        keep = _within(frame.where, answer.partners(shared), most, f"mappings of {plan.name} with the KB", beyond)
        frame, shared = frame.take(keep), shared[keep]
    row, kb_row = answer.join(shared)
    columns = {v: c[row] for v, c in frame.columns.items()}
    for i, variable in enumerate(answer.variables):
        ids = answer.columns[kb_row, i]
        own = columns.get(variable)
        columns[variable] = ids if own is None else np.where(own == 0, ids, own)
    joined = Frame(frame.where[row], columns)
    return joined.take(holding(plan.parts.kb_filters, joined.columns, len(joined), terms))


def _within(
    where: NDArray[np.int64],
    counts: NDArray[np.int64],
    most: int,
    what: str,
    beyond: dict[int, MappingsError],
    instants: NDArray[np.int64] | None = None,
) -> NDArray[np.bool_]:
    """Of rows at some instants, each of which makes so many: those of instants with `most` at most; the others are put
    into `beyond`, by the number that they have in `instants`."""
    if int(counts.sum()) <= most:
        return np.ones(len(counts), np.bool_)
    made = np.bincount(where, counts)
    for place in np.flatnonzero(made > most).tolist():
        number = place if instants is None else instants.item(place)
        beyond[number] = MappingsError(int(made[place]), most, f"{what} at one instant")
    return made[where] <= most


def letter_frame(
    plan: LetterPlan,
    frames: Mapping[str, Frame],
    terms: TermDictionary,
    ask: Ask | None = None,
    *,
    beyond: dict[int, MappingsError],
    instants: NDArray[np.int64] | None = None,
) -> Frame:
    """The rows of a letter: its GPMs' mappings joined at each instant, then the filters among them. `beyond`: as of
    `gpm_frame`; `instants`: those of the batch that `where` means, if they are others."""
    frame = frames[plan.letter[0]]
    for name in plan.letter[1:]:
        other = frames[name]
        counts = np.searchsorted(other.where, frame.where, "right") - np.searchsorted(other.where, frame.where, "left")
        what = f"pairs of mappings of {' & '.join(plan.letter)}"
        frame = frame.take(_within(frame.where, counts, terms.bounds.made, what, beyond, instants))
        frame = _join(frame, other)
    if plan.filters:
        frame = frame.take(holding(plan.filters, frame.columns, len(frame), terms, ask))
    return frame


def _join(a: Frame, b: Frame) -> Frame:
    """Compatible pairs of the same instant."""
    low = np.searchsorted(b.where, a.where, "left")
    counts = np.searchsorted(b.where, a.where, "right") - low
    left = np.repeat(np.arange(len(a)), counts)
    ends = np.cumsum(counts)
    right = np.arange(len(left)) - np.repeat(ends - counts, counts) + np.repeat(low, counts)
    keep = np.ones(len(left), np.bool_)
    columns: dict[Variable, Ids] = {v: c[left] for v, c in a.columns.items()}
    for variable, ids in b.columns.items():
        theirs = ids[right]
        if variable not in columns:
            columns[variable] = theirs
            continue
        mine = columns[variable]
        keep &= (mine == theirs) | (mine == 0) | (theirs == 0)
        columns[variable] = np.where(mine == 0, theirs, mine)
    return Frame(a.where[left], columns).take(keep)


class Parted(Protocol):
    """Instants, split by PARTITION BY. `instant`: which one of the batch each is part of."""

    @property
    def instant(self) -> NDArray[np.int64]: ...

    def instants_of(self, plan: GpmPlan, where: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
        """By event the instant of partitions in which all mappings of a GPM are, -1: none; None: it takes `frame`.
        `where`: the instant of each event; None: they are the same."""

    def frame(self, plan: GpmPlan, frame: Frame) -> Frame:
        """The mappings of a GPM as they are seen in partitions."""


Source = tuple[int, int, int, int, int, int, int, int]
"""A letter's mappings, as kernels.letter_rows wants them."""


class RowWriter:
    """Writes the rows of letters into the buffer of a run and into its row store. `compared`, `stored`: LetterColumns;
    `settings`: see kernels/sequence/letter_rows.py."""

    def __init__(self, compared: NDArray[np.int32], stored: NDArray[np.int32], tables: SequenceTables) -> None:
        self.settings = np.zeros(lr.SETTINGS, np.int64)
        self._columns = Pointers(lr.LetterColumns(compared, stored, self.settings))
        self.buffer = RowBuffer(tables)

    def write(
        self, sources: list[Source], times: NDArray[np.int64], rows: RowStore, columns: Sequence[NDArray[np.int64]] = ()
    ) -> None:
        """Fill the buffer and the row store; `settings` up to EPOCH but for FIRST_ROW and STORE_AT are the caller's.
        `times`: by instant of the batch; `columns`: those from CLOCKS_AT on, by instant, of partitions if there are
        some."""
        settings, buffer = self.settings, self.buffer
        if columns:
            columns = [np.ascontiguousarray(column) for column in columns]
            for place, column in enumerate(columns, lr.CLOCKS_AT):
                settings[place] = address_of(column)
        count, most = len(columns[0] if columns else times), 0
        for source in sources:
            most += source[lr.HIGH] - source[lr.LOW]
        buffer.reserve(max(most, count) if settings[lr.EVERY] else most)
        first = settings[lr.FIRST_ROW] = rows.end
        settings[lr.STORE_AT] = rows.reserve(most)
        times = np.ascontiguousarray(times)
        buffer.instants = call(
            lr.write_rows,
            self._columns,
            buffer.pointers,
            rows.pointers,
            np.array(sources, np.int64).reshape(-1, lr.NEXT + 1),
            address_of(times),
            len(times),
            count,
        )
        rows.end = first + buffer.arrays.first.item(buffer.instants)  # some may be in no partition


class LetterRows:
    """Makes the rows of a query's letters."""

    def __init__(self, plan: QueryPlan, terms: TermDictionary, exists: ExistsMatcher | None = None) -> None:
        self._terms = terms
        self._exists = exists
        self._gpms = plan.runner.gpms
        self._letters = plan.letters
        self._plain = [plan.runner.plain_gpm(letter) for letter in plan.letters]
        compared = [letter.columns for letter in plan.letters]
        stored = plan.runner.stored
        self._variables = [
            tuple(v for v in dict.fromkeys((*columns, *stored)) if v != PARTITION) if gpm is None else gpm.keep
            for columns, gpm in zip(compared, self._plain, strict=True)
        ]
        self._kept: list[object] = []
        self._writer = RowWriter(
            _places(compared, self._variables),
            _places([stored if letter.positive else () for letter in plan.letters], self._variables),
            plan.runner.sequence,
        )
        self.settings, self.buffer, self.write = self._writer.settings, self._writer.buffer, self._writer.write
        self._beyond: dict[int, MappingsError] = {}

    def take_beyond(self) -> dict[int, MappingsError]:
        """Instants of the batch, by number, at which a letter has no rows, since they would be too many."""
        beyond, self._beyond = self._beyond, {}
        return beyond

    def sources(
        self,
        found: Sequence[Sequence[Rows]],
        where: Sequence[NDArray[np.int64]],
        times: NDArray[np.int64],
        answers: Mapping[str, KbAnswer],
        split: Parted | None = None,
    ) -> list[Source]:
        """The letters that have rows. `found`: per stream the rows of each request; `where`: instants by event,
        with their `times`; `split`: what PARTITION BY makes of them."""
        self._kept.clear()
        frames: dict[str, Frame] = {}
        sources: list[Source] = []
        for number, gpm in enumerate(self._plain):
            instants = None if gpm is None or len(found) == 1 else where[gpm.stream]
            parted = None if gpm is None or split is None else split.instants_of(gpm, instants)
            if gpm is not None and (split is None or parted is not None):
                rows = found[gpm.stream][gpm.order]
                if rows.low < rows.high:
                    instants = instants if parted is None else parted
                    self._kept.append(instants)
                    at = 0 if instants is None else address_of(instants)
                    sources.append((number, *rows.addresses, rows.values.shape[1], at, rows.low, rows.high, 0))
                continue
            letter = self._letters[number]
            if not all(self._occurs(name, found) for name in letter.letter):
                continue
            for name in letter.letter:
                if name not in frames:
                    plan = self._gpms[name]
                    first = None
                    if self._exists is not None and plan.asks_again:
                        first = self._exists.first[plan.stream]
                    given = found[plan.stream][plan.order], where[plan.stream], answers.get(name), self._terms
                    frames[name] = gpm_frame(plan, *given, first, times, beyond=self._beyond)
                    if split is not None:
                        frames[name] = split.frame(plan, frames[name])
            ask = None if self._exists is None else self._exists.ask
            numbers = None if split is None else split.instant
            frame = letter_frame(letter, frames, self._terms, ask, beyond=self._beyond, instants=numbers)
            if len(frame):
                sources.append(self._of_frame(number, frame))
        return sources

    def _occurs(self, name: str, found: Sequence[Sequence[Rows]]) -> bool:
        """Whether a GPM has occurrences."""
        rows = found[self._gpms[name].stream][self._gpms[name].order]
        return rows.low < rows.high

    def _of_frame(self, number: int, frame: Frame) -> Source:
        at, table = np.ascontiguousarray(frame.where), frame.table(self._variables[number])
        self._kept += [at, table]
        return number, address_of(at), address_of(table), table.shape[1], 0, 0, len(frame), 0


def _places(wanted: Sequence[tuple[Variable, ...]], given: Sequence[tuple[Variable, ...]]) -> NDArray[np.int32]:
    """[letter, column]: the place of a wanted variable among those given; UNBOUND if it is not there."""
    places = np.full((len(wanted), max([len(columns) for columns in wanted] + [1])), lr.UNBOUND, np.int32)
    columns_of: dict[tuple[Variable, ...], dict[Variable, list[int]]] = {}  # letters that want much want the same
    for number, (columns, variables) in enumerate(zip(wanted, given, strict=True)):
        known = columns_of.get(columns)
        if known is None:
            known = columns_of[columns] = {}
            for column, variable in enumerate(columns):
                known.setdefault(variable, []).append(column)
        for place, variable in enumerate(variables):
            for column in known.get(variable, ()):
                places[number, column] = place
        for column in known.get(PARTITION, ()):
            places[number, column] = lr.THE_PARTITION
    return places


# --- the knowledge base's answers at each instant (semantics.md 2.2) ----------------------------------

_NO_ANSWERS: Final[dict[str, KbAnswer]] = {}


def part_of(gpm: str) -> str:
    """The name of the answers of its KB pattern among what a query reads of the KB."""
    return f"GPM {gpm}"


class KbAnswers:
    """The answers of a query's KB patterns, by GPM; and its matchers, some of which read the KB in place."""

    def __init__(self, plan: QueryPlan, terms: TermDictionary, kb: KnowledgeBase) -> None:
        self._kb = KbInTime(kb)
        self.matchers = [
            StreamMatcher(request, terms, self._kb) if request is not None else None for request in plan.runner.requests
        ]
        """Of each stream."""
        asked_again = plan.runner.asked_again
        self.exists = ExistsMatcher(asked_again, terms, self._kb) if asked_again else None
        """For the EXISTS of stateful filters."""
        patterns = {name: gpm.kb for name, gpm in plan.runner.gpms.items() if gpm.kb is not None}
        self._variables = {name: pattern.variables for name, pattern in patterns.items()}
        self._patterns = {name: self._kb.materialised(part_of(name), pattern) for name, pattern in patterns.items()}
        self.reads_kb: Final = bool(self._kb.texts)

    @property
    def texts(self) -> tuple[str, ...]:
        """The queries to the KB, as SPARQL."""
        return self._kb.texts

    @property
    def kept(self) -> bool:
        """Whether instants may come for which the answers of an earlier moment hold."""
        return self._kb.waits

    def keep(self, clock: Clock) -> bool:
        """The KB is about to change; whether something is kept that was not."""
        return self._kb.keep(clock.unfinished)

    def known(self) -> dict[str, KbAnswer]:
        """The answers of the present KB, as far as it has asked."""
        version = self._kb.present.version
        return {name: each.made[version] for name, each in self._patterns.items() if version in each.made}

    def follow(self, kb: KbInTime, names: Iterable[tuple[str, str]]) -> None:
        """See `KbInTime.follow`: the answers have the names of this query's variables here."""
        self._kb.follow(kb, names)
        for name, own in self._patterns.items():
            variables = self._variables[name]
            own.made = {version: answer.named(variables) for version, answer in own.made.items()}

    def at(self, instants: Instants, low: int) -> tuple[dict[str, KbAnswer], int]:
        """The answers that hold for the instants from `low` on, and the first instant for which they do not."""
        clocks = instants.clocks
        count = len(clocks)
        if not self.reads_kb:
            return _NO_ANSWERS, count
        if low >= count:
            self._kb.at(instants.passed)
            return _NO_ANSWERS, count
        until = self._kb.at(int(clocks[low]))
        answers = {name: pattern.now for name, pattern in self._patterns.items()}
        return answers, int(np.searchsorted(clocks, until, "right"))

    def save(self, terms: SavedTerms) -> list[State]:
        """The versions for instants that are not complete."""
        return self._kb.save(terms)

    def restore(self, kept: Sequence[State], terms: KnownTerms) -> None:
        """What `save` gave."""
        self._kb.restore(kept, terms)
