"""Patterns at work: facts of complete instants in, solutions out.

In the flow: facts and knowledge → **plans at work** → rules' facts (rules.py), answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.flow.delta import I64, Buffer, Delta, Ids
from oxiseq.engine.flow.epsparql.anew import Leaf
from oxiseq.engine.flow.epsparql.knowledge import Knowledge, patterns_of, triples_asked
from oxiseq.engine.flow.epsparql.lowering import Answered, Lowered
from oxiseq.engine.flow.epsparql.relations import NOW, PAST, SEEN, Timeless
from oxiseq.engine.flow.epsparql.using import Uses
from oxiseq.engine.flow.flow import Flow
from oxiseq.engine.flow.operators.arrange import ArrangeNode
from oxiseq.engine.flow.operators.join import LookNode, LookupNode
from oxiseq.engine.flow.operators.node import Chosen
from oxiseq.engine.flow.plan import Given
from oxiseq.engine.flow.times import halves_of, times_at
from oxiseq.engine.kernels.flow.buffers import OVER
from oxiseq.engine.kernels.flow.moments import INTERVAL, NO_END, NO_START
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import SavedTerms, State

_AGAIN: Final = 1 << 16
"""Facts that are processed again at a time."""
_END: Final = 2
"""Column of the time at which an interval ends."""
_TIMELESS: Final = halves_of(np.array([NO_START, NO_END])).reshape(1, INTERVAL)


class Standing:
    """Some patterns at work. asking: those whose triples are queried from the knowledge base."""

    def __init__(self, lowered: Lowered, asking: Sequence[Lowered], terms: TermDictionary) -> None:
        self._lowered, self._terms = lowered, terms
        self._asking = asking
        sources = {form.name: place for place, form in enumerate(lowered.plan.forms) if isinstance(form, Given)}
        self._now, self._past, self._seen = (sources.get(name) for name in (NOW, PAST, SEEN))
        timeless = [(sources[name], content) for name, content in lowered.timeless if name in sources]
        self._timeless = sorted(timeless, key=lambda each: not each[1].table)
        """Sources of rows without a time: tables first."""
        self._numbers: Ids | None = None
        """Of the queries whose rows are kept, once some are gone."""
        self.flow = Flow(lowered.plan, terms)
        self.flow.bound(terms.bounds.made, terms.bounds.reads)
        self._looking = [node for node in self.flow.nodes if isinstance(node, LookNode)]

    def read(self, facts: Buffer) -> None:
        """Have the facts that a buffer holds before each step, which takes them out."""
        if self._now is not None:
            self.flow.connect(self._now, facts)

    def feed(self, facts: Delta) -> None:
        """Facts of complete instants, or of a round of one, for the next step."""
        if self._now is not None:
            self.flow.feed(self._now, facts)

    def step(self, since: int, tick: int, *, again: bool = False) -> None:
        """Take in what there is. since: when the first of the instants was; tick: its first; again: it is a further
        round of an instant."""
        self.flow.clock[:] = since, NO_END if again else since
        self.flow.step(tick)

    def finish(self, facts: Delta, since: int) -> None:
        """All facts of an instant, when it is over, for what is looked for in the past."""
        if self._past is not None and len(facts):
            self.flow.feed(self._past, facts)
            self.step(since, int(facts.at[0]), again=True)

    def root(self, number: int = 0) -> Buffer:
        """The last step's rows of one of the patterns."""
        return self.flow.nodes[self._lowered.roots[number]].out

    def learn(self, knowledge: Knowledge, tick: int) -> int:
        """Releases rows without a time, and returns the knowledge base's present content; what it counts for is
        rebuilt. The tick from which on it continues."""
        past = self._kept_facts()
        self.keep(is_timed if past is None else _none)
        patterns = dict.fromkeys(each for lowered in self._asking for each in patterns_of(lowered.plan))
        asked = [knowledge[triples_asked(each)] for each in patterns]
        self.flow.clock[:] = NO_START, NO_END
        for place, content in self._timeless:
            rows = self._rows(content, knowledge)
            if content.table:  # it is there before anything looks for it
                chosen = rows if self._numbers is None else rows[np.isin(rows[:, 0], self._numbers)]
                self.flow.feed(place, _timeless(chosen, tick))
                self.flow.step(tick)
                self._read_tables()
                tick += 1
            else:
                self.flow.feed(place, _timeless(rows, tick))
        known = [rows for rows in asked if len(rows)]
        if known:
            facts = _timeless(known[0] if len(known) == 1 else np.unique(np.concatenate(known), axis=0), tick)
            for source in (self._now, self._past):
                if source is not None:
                    self.flow.feed(source, facts)
        self.flow.step(tick)
        for node in self._looking:
            node.learn()
        return tick + 1 if past is None else self._again(past, tick + 1)

    def _kept_facts(self) -> _Past | None:
        """The facts from which the kept rows were made. None: they are not to be rebuilt."""
        leaves = self._lowered.leaves
        if not leaves:
            return None
        none = np.zeros((0, INTERVAL + 3), np.uint32)
        free = np.concatenate([none, *(self._facts(leaf) for leaf in leaves if not leaf.seen)])
        every = np.concatenate([free, *(self._facts(leaf) for leaf in leaves if leaf.seen)])
        facts, first = np.unique(every, axis=0, return_index=True)
        told = [(each.source, self._timed_rows(each.place)) for each in self._lowered.memories]
        told += [(place, facts[first < len(free)]) for place in (self._now, self._past) if place is not None]
        if self._seen is not None:
            told.append((self._seen, facts[first >= len(free)]))
        return _Past.of(told)

    def _timed_rows(self, place: int) -> Ids:
        rows = self._kept(place).kept[0]
        return rows[is_timed(rows)]

    def _facts(self, leaf: Leaf) -> Ids:
        """Those of a pattern that have a time."""
        rows = self._timed_rows(leaf.place)
        parts = [rows[:, :INTERVAL]]
        for part in leaf.fact:
            assert not isinstance(part, Variable)
            known = rows[:, part] if isinstance(part, int) else np.full(len(rows), self._terms.constant(part))
            parts.append(known.astype(np.uint32).reshape(-1, 1))
        return np.concatenate(parts, axis=1)

    def _kept(self, place: int) -> ArrangeNode:
        node = self.flow.nodes[place]
        assert isinstance(node, ArrangeNode)
        return node

    def addresses(self, places: Iterable[int]) -> list[int]:
        """Of arrangements, for kernels."""
        return [node.address for node in map(self._kept, places)]

    def _again(self, past: _Past, tick: int) -> int:
        """Processes instants that are over and emits nothing. Returns the tick behind them."""
        for instants, told in past.pieces():
            for place, rows in told:
                at = tick + 2 * np.searchsorted(instants, times_at(rows, _END)) + (place == self._past)
                self.flow.feed(place, Delta(at, np.ones(len(rows), np.int64), rows))
            self.flow.clock[:] = NO_END, NO_END
            self.flow.step(tick)
            tick += 2 * len(instants)
        return tick

    def _rows(self, content: Timeless, knowledge: Knowledge) -> Ids:
        if content.asked:
            return knowledge[content.asked]
        ids = [[0 if t is None else self._terms.constant(t) for t in row] for row in content.rows]
        return np.array(ids, np.uint32).reshape(len(content.rows), content.width)

    # --- its saved state --------------------------------------------------------------------------------

    def forget(self, passed: int, *, now: bool = False) -> None:
        """Instants before `passed` are over: releases rows that no other needs, if there may be many, or `now`."""
        self.flow.clock[OVER] = passed
        for node in self.flow.nodes:
            node.forget(now=now)

    def keep(self, chosen: Chosen) -> None:
        """Of all rows those that are chosen."""
        for node in self.flow.nodes:
            node.keep(chosen)

    # --- of several queries ---------------------------------------------------------------------------

    def keep_of(self, numbers: Ids) -> None:
        """Of the rows that are some query's those of these numbers."""
        self._numbers = numbers
        for place, chosen in self._of(numbers).items():
            self.flow.nodes[place].keep(chosen)
        self._read_tables()

    def _read_tables(self) -> None:
        for node in self.flow.nodes:
            if isinstance(node, LookupNode):
                node.read()

    def save(self, terms: SavedTerms, numbers: Ids | None) -> State:
        """Its saved state. numbers: of the rows that belong to a query only those of these."""
        return self.flow.save(terms, {} if numbers is None else self._of(numbers))

    @property
    def numbered(self) -> dict[int, int]:
        """The operators that keep rows of several queries, and the column that says whose they are."""
        return dict(self._lowered.numbered)

    def _of(self, numbers: Ids) -> dict[int, Chosen]:
        return {place: partial(_numbered, column, numbers) for place, column in self._lowered.numbered}


class _Past(NamedTuple):
    """What came at instants that are over. told: by source its rows, in order of their ends."""

    told: tuple[tuple[int, Ids], ...]

    @classmethod
    def of(cls, told: Iterable[tuple[int, Ids]]) -> _Past:
        """In order."""
        return cls(tuple((place, rows[np.argsort(times_at(rows, _END), kind="stable")]) for place, rows in told))

    def pieces(self) -> Iterator[tuple[I64, list[tuple[int, Ids]]]]:
        """Whole instants, so many that they are worth a step, and their events."""
        ends = [times_at(rows, _END) for _, rows in self.told]
        every = np.sort(np.concatenate(ends))
        low = 0
        while low < len(every):
            last = every[min(low + _AGAIN, len(every)) - 1]
            high = int(np.searchsorted(every, last, "right"))
            yield (
                np.unique(every[low:high]),
                [
                    (place, rows[np.searchsorted(end, every[low]) : np.searchsorted(end, last, "right")])
                    for (place, rows), end in zip(self.told, ends, strict=True)
                ],
            )
            low = high


def is_timed(rows: Ids) -> NDArray[np.bool_]:
    """Which rows have a time."""
    timed: NDArray[np.bool_] = times_at(rows, 0) != NO_START
    return timed


def _numbered(column: int, numbers: Ids, rows: Ids) -> NDArray[np.bool_]:
    chosen: NDArray[np.bool_] = np.isin(rows[:, column], numbers)
    return chosen


def _none(rows: Ids) -> NDArray[np.bool_]:
    return np.zeros(len(rows), np.bool_)


def _timeless(values: Ids, tick: int) -> Delta:
    count = len(values)
    rows = np.concatenate([np.repeat(_TIMELESS, count, axis=0), values], axis=1)
    return Delta(np.full(count, tick), np.ones(count, np.int64), rows)


# --- the query -----------------------------------------------------------------------------------------


class Query:
    """The query's pattern at work: its plan, perhaps with those of others. Where answers use up triples, its solutions
    are chosen before they are shown."""

    def __init__(
        self, lowered: Lowered, answered: Answered, terms: TermDictionary, asking: Sequence[Lowered] | None = None
    ) -> None:
        self.standing = Standing(lowered, [lowered] if asking is None else asking, terms)
        self._uses = None
        if answered.uses is not None:
            self._seen = answered.uses.seen
            self._uses = Uses(answered.uses, lowered.kept, self.standing.addresses([k.place for k in lowered.kept]))
            self._shown = Standing(answered.uses.shown, [], terms)
            self._none = Buffer(self._shown.root().width)

    @property
    def parts(self) -> list[Standing]:
        """All plans at work."""
        return [self.standing] if self._uses is None else [self.standing, self._shown]

    def step(self, since: int, tick: int) -> Buffer:
        """Take in the facts of some instants: the rows that are shown of them, until the next step."""
        self.standing.step(since, tick)
        if self._uses is None:
            return self.standing.root()
        told = self._uses.told(self.standing.root())
        if not len(told):
            return self._none
        self._shown.feed(Delta(told.at, told.weight, np.ascontiguousarray(told.rows[:, self._seen])))
        self._shown.step(since, tick)
        return self._shown.root()

    def tidy(self, *, now: bool = False) -> None:
        """Releases rows made of used triples, if there are many, or `now`."""
        uses = self._uses
        if uses is not None and len(uses) and (now or uses.many(self.standing.flow)):
            uses.drop()
