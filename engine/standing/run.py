"""A query at work: its operators over leaves that others read too, its answer, and what changes of it.

In the flow: leaves that have been fed → operators → **rows that came and went**.

A query that is registered finds arrangements that are filled already. Its operators are filled in one tick: of a join
both of whose sides are such arrangements one side shows all its rows as coming now, the other none; of a join with one
such side that one shows none. So each pair is made once: Δ(A ⋈ B) = ΔA ⋈ B before + A ⋈ ΔB, with ΔB empty.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from pyoxigraph import Store

from oxiseq.engine.errors import LimitError
from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.delta import I64, Buffer, Delta, Ids
from oxiseq.engine.flow.operators.arrange import ArrangeNode
from oxiseq.engine.flow.operators.build import build
from oxiseq.engine.flow.operators.join import JoinNode
from oxiseq.engine.flow.operators.node import Node
from oxiseq.engine.flow.operators.reach import ReachNode
from oxiseq.engine.flow.operators.sources import Fed
from oxiseq.engine.standing.gates import MOST, Columns, joined_with
from oxiseq.engine.standing.leaves import Found, Key, Leaf, Leaves, everything
from oxiseq.engine.standing.plan import StorePlan
from oxiseq.engine.standing.terms import StoreTerms
from oxiseq.engine.terms.saved import Stateful, unsaved
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """most_triples: quads of one query's patterns, past which it is evaluated on the store instead; most_rows: rows of
    its answer, each as often as it is there, or of one of its operators at once, and pairs that a path connects;
    most_seconds: the longest query to the store, None: no limit."""

    most_triples: int = 5_000_000
    most_rows: int = 5_000_000
    most_seconds: float | None = 300.0


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """n rows that came (weight above 0) or went, each so many times. rows: u32[n, columns]; weight: i64[n]."""

    rows: Ids
    weight: I64

    def __len__(self) -> int:
        return len(self.weight)


class StoreRun(Stateful):
    """The operators of a query. `leaves`: the patterns that it reads."""

    made_of = (unsaved("_working"),)

    def __init__(self, plan: StorePlan, leaves: Leaves, terms: StoreTerms, limits: Limits) -> None:
        self._flow, self._pool, self._limits = plan.flow, leaves, limits
        forms = plan.flow.forms
        self._by_place: dict[int, Leaf] = {
            place: leaves.get(form) for place, form in enumerate(forms) if isinstance(form, p.Quads | p.Graphs)
        }
        self.leaves = tuple(dict.fromkeys(self._by_place.values()))
        self._kept: list[tuple[Leaf, Key]] = []
        self._new: list[tuple[Leaf, Key]] = []
        """Arrangements that are to be filled."""
        self._found: dict[Leaf, Found] = {}
        known = self._shared(forms)
        self.nodes = build(plan.flow, terms.dictionary, known)
        self._shared_places = frozenset(place for place, node in known.items() if isinstance(node, ArrangeNode))
        self._working = [n for place, n in enumerate(self.nodes) if place not in known and not isinstance(n, Fed)]
        for node in self._working:
            node.out.most = limits.most_rows
            if isinstance(node, ReachNode):
                node.most_pairs = limits.most_rows
        self._root = self.nodes[plan.flow.root]
        self.joins_too_much = False
        """Whether `begin` has failed at a join: to ask the store for it might take for ever."""

    def _shared(self, forms: tuple[p.Form, ...]) -> dict[int, Node]:
        """The nodes that serve other queries, too: leaves and their arrangements."""
        known: dict[int, Node] = {place: leaf.node for place, leaf in self._by_place.items()}
        for place, form in enumerate(forms):
            if isinstance(form, p.Arrange) and form.child in self._by_place:
                leaf, key = self._by_place[form.child], (form.key, form.loose)
                self._kept.append((leaf, key))
                known[place] = leaf.keep(key)
        return known

    # --- at the beginning -----------------------------------------------------------------------------

    def pin(self, store: Store) -> None:
        """Begin with what the store holds now, whatever becomes of it until that is read."""
        self._found = {leaf: leaf.found(store) for leaf in self.leaves if not leaf.is_filled}

    def begin(self, tick: int) -> Told:
        """Take in what the store held at `pin`, at this tick and the next one. Its answer. Raises LimitError, after
        which it is to be closed."""
        found, self._found = self._found, {}
        self._new = [(leaf, key) for leaf, key in dict.fromkeys(self._kept) if not leaf.holds(key)]
        seen = self._shown()
        contents = self._contents(found, seen)
        for leaf, key in self._new:
            leaf.fill(key, contents[leaf], tick)
        return self._fill(contents, seen, tick + 1)

    def _shown(self) -> dict[int, tuple[bool, bool]]:
        """Of each join whether its sides show what comes at the first tick."""
        seen: dict[int, tuple[bool, bool]] = {}
        for place, form in enumerate(self._flow.forms):
            if isinstance(form, p.Join):
                left, right = form.left in self._shared_places, form.right in self._shared_places
                if left and right:
                    first = self._smaller(form.left, form.right)
                    seen[place] = first, not first
                else:
                    seen[place] = not left, not right
        return seen

    def _smaller(self, left: int, right: int) -> bool:
        """Whether the left of two arrangements is."""
        one, other = (self.nodes[place] for place in (left, right))
        fresh = {id(leaf.arranged[key]) for leaf, key in self._new}
        if id(one) in fresh or id(other) in fresh:
            return id(one) in fresh  # what is new has to be read anyway
        return one.records <= other.records

    def _contents(self, found: Mapping[Leaf, Found], seen: Mapping[int, tuple[bool, bool]]) -> dict[Leaf, Ids]:
        """What the leaves hold whose rows are needed now. Raises LimitError."""
        wanted = dict.fromkeys(leaf for leaf, _ in self._new)
        for place, form in enumerate(self._flow.forms):
            if isinstance(form, p.Join):
                for side, shows in zip((form.left, form.right), seen[place], strict=True):
                    if shows and side in self._shared_places:
                        wanted[self._by_place[p.inputs(self._flow.forms[side])[0]]] = None
            elif place not in self._shared_places:
                wanted |= dict.fromkeys(self._by_place[c] for c in p.inputs(form) if c in self._by_place)
        if self._flow.root in self._by_place:
            wanted[self._by_place[self._flow.root]] = None
        held = sum(leaf.records for leaf in self.leaves if leaf not in wanted)
        contents: dict[Leaf, Ids] = {}
        for leaf in wanted:
            left = self._limits.most_triples - held
            contents[leaf] = leaf.content(found, left)
            held += len(contents[leaf])
            if held > self._limits.most_triples:
                raise LimitError(held, self._limits.most_triples, "quads of a query's patterns")
        return contents

    def _fill(self, contents: Mapping[Leaf, Ids], seen: Mapping[int, tuple[bool, bool]], tick: int) -> Told:
        nothing: dict[int, Buffer] = {}
        whole: list[tuple[JoinNode, tuple[Buffer, ...]]] = []
        for leaf, rows in contents.items():
            leaf.node.out.put(everything(rows, tick))
        try:
            for place, shows in seen.items():
                join = self.nodes[place]
                assert isinstance(join, JoinNode)
                whole.append((join, join.inputs))
                join.inputs = tuple(
                    each if shown else nothing.setdefault(each.width, Buffer(each.width))
                    for each, shown in zip(join.inputs, shows, strict=True)
                )
            for node in self._working:
                if node.begin(tick) or any(node.inputs):
                    self._step_first(node)
            self._check()
            return _copied(self._root.out.delta)
        finally:
            for join, inputs in whole:
                join.inputs = inputs
            for leaf in contents:
                leaf.clear()
            self.clear()

    def _step_first(self, node: Node) -> None:
        try:
            node.step()
        except LimitError:
            self.joins_too_much = isinstance(node, JoinNode)
            raise

    # --- at a change ----------------------------------------------------------------------------------

    def step(self) -> Told:
        """What the leaves' changes of this tick change. Raises LimitError, after which it is to be closed."""
        for node in self._working:
            for child in node.inputs:
                if child:
                    node.step()
                    break
        self._check()
        return _copied(self._root.out.delta)

    def _check(self) -> None:
        """Operators keep rows of joins, too. Raises LimitError."""
        most = self._limits.most_triples + self._limits.most_rows
        if self.records > most:
            raise LimitError(self.records, most, "rows that the operators of a query keep")

    def clear(self) -> None:
        """The step is over."""
        for node in self._working:
            if node.out:
                node.out.clear()

    # --- what it is joined with -----------------------------------------------------------------------

    @property
    def gates(self) -> dict[Leaf, list[tuple[Columns, int]]]:
        """Of leaves that are read in joins only: by which of their columns, and the other side's arrangement. Where
        that holds a leaf as it is, this one is not gated: each change of it has to turn the other's gate. The largest
        leaves come first."""
        found: dict[Leaf, list[tuple[Columns, int]] | None] = {}
        for place, leaf in self._by_place.items():
            sides = joined_with(self._flow, place)
            before = found.get(leaf, [])
            found[leaf] = None if sides is None or before is None else [*before, *sides]
        gated: dict[Leaf, list[tuple[Columns, int]]] = {}
        turning: set[Leaf] = set()
        for leaf, sides in sorted(found.items(), key=lambda each: -each[0].records):
            if sides and all(self.nodes[other].records <= MOST for _, other in sides) and leaf not in turning:
                others = {
                    self._by_place[child]
                    for _, other in sides
                    for child in p.inputs(self._flow.forms[other])
                    if child in self._by_place
                }
                if leaf not in others and others.isdisjoint(gated):
                    gated[leaf] = sides
                    turning |= others
        return gated

    def side(self, place: int) -> tuple[Delta, Columns]:
        """What an arrangement holds, as coming, and its key."""
        node, form = self.nodes[place], self._flow.forms[place]
        assert isinstance(node, ArrangeNode) and isinstance(form, p.Arrange)
        rows, weight = node.kept
        return Delta(np.zeros(len(rows), np.int64), weight, rows), form.key

    def turned(self, place: int) -> tuple[Delta, Columns]:
        """What has come and gone of it at this step; before `clear`."""
        form = self._flow.forms[place]
        assert isinstance(form, p.Arrange)
        return self.nodes[place].inputs[0].delta, form.key

    def close(self) -> None:
        """Release what others may read."""
        for leaf, key in self._kept:
            leaf.drop(key)
        for leaf in self._by_place.values():
            self._pool.let_go(leaf)
        self._kept.clear()
        self._by_place.clear()

    # --- its memory ------------------------------------------------------------------------------------

    @property
    def quads(self) -> int:
        """Quads of its patterns that are held, for others too."""
        return sum(leaf.records for leaf in self.leaves)

    @property
    def records(self) -> int:
        """Rows that it keeps for itself."""
        return sum(node.records for node in self._working)


def _copied(delta: Delta) -> Told:
    return Told(delta.rows.copy(), delta.weight.copy())
