"""Conjunctive queries over windows at work in the dataflow, without a language: events in, rows out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Variable

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.conjunctions import apart
from oxiseq.engine.flow.delta import Delta
from oxiseq.engine.flow.flow import Flow
from oxiseq.engine.flow.leaves import Leaves, Moves
from oxiseq.engine.flow.operators.join import JoinAllNode
from oxiseq.engine.flow.relations import Relations
from oxiseq.engine.flow.sparql.leaves import Conjunction
from oxiseq.engine.flow.sparql.leaves import Leaves as Conjunctions
from oxiseq.engine.kernels.flow import conjoining
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.engine.window import Window
from oxiseq.grammar.algebra import Expression, TriplePattern
from oxiseq.grammar.scope import conjuncts

Key = Variable | BlankNode


@dataclass(frozen=True)
class ConjunctiveQuery:
    """Triple patterns, FILTERs, and the number of each pattern's window; empty: there is one."""

    patterns: tuple[TriplePattern, ...]
    filters: tuple[Expression, ...] = ()
    sources: tuple[int, ...] = ()


@dataclass(frozen=True)
class Rows:
    """Rows of one query: numbers of their instants, ascending, and u32[n, keys]."""

    at: NDArray[np.int64]
    values: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.at)


@dataclass(frozen=True)
class Answers:
    """By query what is new, has ended, is there at each instant."""

    time: NDArray[np.int64]
    new: tuple[Rows, ...]
    ended: tuple[Rows, ...]
    all: tuple[Rows, ...]


class WindowRun:
    """Queries on the same windows. only: which rows are needed; tiny: all arrays have to grow at once."""

    def __init__(
        self,
        queries: Sequence[ConjunctiveQuery],
        terms: TermDictionary,
        windows: Window | Sequence[Window],
        only: Sequence[p.Only] = (),
        *,
        tiny: bool = False,
    ) -> None:
        self.windows = (windows,) if isinstance(windows, Window) else tuple(windows)
        relations = Relations(p.Sheet())
        found = [_relation(relations, query) for query in queries]
        self.keys: list[tuple[Key, ...]] = [relation.columns for relation in found]  # type: ignore[misc]
        roots = tuple(relation.node for relation in found)
        whole = relations.sheet.plan(roots[0], roots)
        below = {place: kind for root, kind in zip(whole.also, only, strict=False) for place in _below(whole, root)}
        self.plan, needed = apart(whole, below)
        self.flow = Flow(self.plan, terms)
        self.leaves = Leaves(self.plan, self.flow.nodes, self.windows, needed, terms)
        if tiny:
            for node in self.flow.nodes:
                node.out._allocate(1)
            for rows in self.leaves._rows:
                rows._memory.set(rows._allocated(2))
            memory = self.leaves._memory
            memory.set(memory.arrays._replace(notes=memory.arrays.notes[: len(self.leaves._rows)].copy()))
        self._tick = 0
        self._now = [Counter[tuple[int, ...]]() for _ in queries]
        terms.register(self)

    def push(self, batch: EventBatch) -> Answers:
        return self.push_each([batch])

    def push_each(self, batches: Sequence[EventBatch]) -> Answers:
        time = self.leaves.push(batches, (), self._tick)
        return self._answers(time)

    def move(
        self,
        batches: Sequence[EventBatch],
        instants: Sequence[NDArray[np.int64]],
        clocks: Sequence[NDArray[np.int64]],
        low: NDArray[np.int64],
    ) -> Answers:
        """Of the caller's own instants: by window the events, the instant and the clock of each; by instant the clocks
        up to which events are out."""
        self.leaves.move(Moves(batches, [clock - 1 for clock in clocks], instants, low), (), self._tick)
        return self._answers(np.arange(len(low)))

    def _answers(self, time: NDArray[np.int64]) -> Answers:
        if not len(time):
            none = tuple(Rows(time, np.zeros((0, len(keys)), np.uint32)) for keys in self.keys)
            return Answers(time, none, none, none)
        first, self._tick = self._tick, self._tick + len(time)
        self.flow.step(first)
        deltas = [self._delta(place, first) for place in self.plan.also]
        assert all(set(delta.weight.tolist()) <= {1, -1} for delta in deltas)
        new, ended = (tuple(Rows(d.at[d.weight == w], d.rows[d.weight == w]) for d in deltas) for w in (1, -1))
        return Answers(time, new, ended, tuple(self._every(n, d, len(time)) for n, d in enumerate(deltas)))

    def _delta(self, place: int, first: int) -> Delta:
        delta = self.flow.rows(place)
        return Delta(delta.at - first, delta.weight.copy(), delta.rows.copy())

    def _every(self, number: int, delta: Delta, instants: int) -> Rows:
        now, at, values = self._now[number], list[int](), list[tuple[int, ...]]()
        for k in range(instants):
            mine = delta.at == k
            for weight, row in zip(delta.weight[mine].tolist(), map(tuple, delta.rows[mine].tolist()), strict=True):
                now[row] += weight
            there = sorted(now.elements())
            at += [k] * len(there)
            values += there
        width = len(self.keys[number])
        return Rows(np.array(at, np.int64), np.array(values, np.uint32).reshape(len(at), width))

    def rows(self, query: int = 0) -> NDArray[np.uint32]:
        """The present answer."""
        now = [*self._now[query].elements()]
        return np.array(now, np.uint32).reshape(len(now), len(self.keys[query]))

    @property
    def tried(self) -> int:
        """How many rows joins have tried."""
        joins = (node for node in self.flow.nodes if isinstance(node, JoinAllNode))
        return sum(int(node._memory.arrays.scalars[conjoining.TRIED]) for node in joins)

    def held_ids(self) -> Any:
        yield from self.flow.held_ids()

    def save(self, terms: SavedTerms) -> State:
        now = [self.rows(number) for number in range(len(self._now))]
        for each in now:
            terms.ids(each)
        return {"flow": self.flow.save(terms), "leaves": self.leaves.save(terms), "tick": self._tick, "now": now}

    def restore(self, state: State, terms: KnownTerms) -> None:
        self.flow.restore(state["flow"], terms)
        self.leaves.restore(state["leaves"], terms)
        self._tick = state["tick"]
        self._now = [Counter(map(tuple, terms.ids(each).tolist())) for each in state["now"]]


def _relation(relations: Relations, query: ConjunctiveQuery) -> Any:
    sources = query.sources or (0,) * len(query.patterns)
    patterns = [(t, p.WindowPlace(n)) for t, n in zip(query.patterns, sources, strict=True)]
    filters = [each for whole in query.filters for each in conjuncts(whole)]
    (found,) = Conjunctions(relations).joined(Conjunction([*patterns], filters))
    return found


def _below(plan: p.FlowPlan, root: int) -> list[int]:
    found = [root]
    for place in found:
        found += p.inputs(plan.forms[place])
    return found
