"""Relations: operators whose columns have names, and what SPARQL's algebra makes of them (operators.md, 4.1).

In the flow: a language's algebra → **relations** → plan. A, B: relations; P = A ⋈ B with the columns of both sides;
S(A, K) = the rows of A that are among K, unbound being a value:

    LeftJoin(A, B, F)  σF(P) + A − S(A, the left parts of σF(P))
    Minus(A, B)        A − S(A, the left parts of those of P in which both sides bind a variable that they share)
    Exists(A, B)       S(A, the left parts of P)

Where F is empty and both sides surely bind what they share, the keys of B serve in place of left parts of P.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import ClassVar, TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from oxiseq.engine.expressions.functions import is_pure
from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.rewriting import placed
from oxiseq.engine.flow.times import NEVER
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Call, Expression, TimeOp
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import conjuncts, holds_exists


@dataclass(frozen=True, slots=True, eq=False)
class Hidden:
    """A column that no expression can name: a blank node of a pattern, a mark."""

    number: int


@dataclass(frozen=True, slots=True, eq=False)
class Half(Hidden):
    """One of the four columns of an interval, the first of all: the halves of its start and of its end."""


@dataclass(frozen=True, slots=True)
class Context:
    """A column that says to which of several cases a row belongs: compared wherever rows are, unbound being a value
    like others, and no variable of the pattern (operators.md, 7.2). Every relation has it among `certain`."""

    number: int


Column: TypeAlias = Variable | BlankNode | Hidden | Context


@dataclass(frozen=True, slots=True)
class Relation:
    """An operator and its columns' names. certain: those that every row binds. In time: timed: whether all rows have a
    time; longest: what none of them outlasts; streamed: whether any come of a stream; mixed: whether it depends on the
    knowledge base which rows with a time there are."""

    node: int
    columns: tuple[Column, ...]
    certain: frozenset[Column]
    timed: bool = False
    longest: int = NEVER
    streamed: bool = False
    mixed: bool = False

    def place(self, column: Column) -> int:
        """The place of a column. Raises ValueError for one that it lacks."""
        return self.columns.index(column)

    def places(self, columns: Iterable[Column]) -> tuple[int, ...]:
        """The places of columns."""
        return tuple(map(self.columns.index, columns))

    @property
    def context(self) -> tuple[Context, ...]:
        """The columns that say to which case a row belongs."""
        return tuple(c for c in self.columns if isinstance(c, Context))

    @property
    def variables(self) -> frozenset[Variable]:
        """The columns that expressions can name."""
        return frozenset(c for c in self.columns if isinstance(c, Variable))


Passing: TypeAlias = Callable[[Relation], Relation]
"""What leaves some of the joined rows out, and keeps all their columns."""


@dataclass(frozen=True, slots=True)
class Agreeing:
    """The places of the columns on which two relations agree: surely, and (`loose`) where both have a value."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    loose: tuple[int, ...]
    loose_right: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Pairs:
    """A ⋈ B: a node with all columns of A, then all of B, and the relation that they make."""

    node: int
    relation: Relation


class Relations:
    """The operations on relations. Their operators are in one sheet. by_pairs: matches are found by pairs, even
    where the right side's keys would do: of a store those may be many, and the left side's rows few."""

    in_time: ClassVar = False
    """Whether rows happen at some time."""

    def __init__(self, sheet: p.Sheet, *, by_pairs: bool = False) -> None:
        self.sheet = sheet
        self._by_pairs = by_pairs
        self._numbers = 0

    def hidden(self) -> Hidden:
        """A column that nothing else is."""
        self._numbers += 1
        return Hidden(self._numbers)

    def context(self) -> Context:
        """A column for cases that no other relation knows."""
        self._numbers += 1
        return Context(self._numbers)

    # --- around what is compiled --------------------------------------------------------------------

    def within(self, conditions: Iterable[Expression]) -> AbstractContextManager[object]:
        """While a group is compiled of which these conditions hold."""
        return nullcontext()

    def apart(self, *, tested: bool, op: TimeOp | None = None, late: bool = False) -> AbstractContextManager[object]:
        """While a pattern is compiled whose rows may have to be missing; `tested`: that is all that counts; `late`: it
        may look for what is missing itself; op: as in `left_join`."""
        return nullcontext()

    # --- where rows come from -----------------------------------------------------------------------

    def source(self, form: p.Source, columns: Sequence[Column], certain: Iterable[Column]) -> Relation:
        """The rows of an operator without inputs, under these names."""
        return Relation(self.sheet.add(form), tuple(columns), frozenset(certain))

    def unit(self) -> Relation:
        """One row without columns: the empty group pattern."""
        return Relation(self.sheet.add(p.Constant(((),), 0)), (), frozenset())

    def values(self, columns: Sequence[Variable], rows: Sequence[Sequence[Term | None]]) -> Relation:
        """VALUES."""
        made = tuple(tuple(row) for row in rows)
        certain = frozenset(c for i, c in enumerate(columns) if all(row[i] is not None for row in made))
        return Relation(self.sheet.add(p.Constant(made, len(columns))), tuple(columns), certain)

    # --- row by row ---------------------------------------------------------------------------------

    def filter(self, a: Relation, conditions: Iterable[Expression]) -> Relation:
        """The rows for which all conditions hold. They hold no EXISTS."""
        every = tuple(self._placed(each, a) for whole in conditions for each in conjuncts(whole))
        return replace(a, node=self.sheet.filtered(a.node, every))

    def extend(self, a: Relation, expression: Expression, name: Column) -> Relation:
        """With the value of an expression as a column more. It holds no EXISTS."""
        if isinstance(expression, Variable) and expression in a.columns:
            return self.copied(a, [(expression, name)])
        node = self.sheet.add(p.Extend(a.node, self._placed(expression, a)))
        certain = a.certain
        if isinstance(expression, NamedNode | Literal):
            certain |= {name}
        return replace(a, node=node, columns=(*a.columns, name), certain=certain)

    def _placed(self, expression: Expression, a: Relation) -> Expression:
        """With columns' places for variables."""
        return placed(expression, {c: p.column(i) for i, c in enumerate(a.columns) if isinstance(c, Variable)})

    def project(self, a: Relation, columns: Sequence[Column]) -> Relation:
        """Some columns, in another order; those that there are not are unbound."""
        if tuple(columns) == a.columns:
            return a
        places = tuple((a.place(c),) if c in a.columns else () for c in columns)
        return Relation(self.sheet.pick(a.node, places), tuple(columns), a.certain & frozenset(columns))

    def without_columns(self, a: Relation, dropped: Iterable[Column]) -> Relation:
        """All columns but some."""
        gone = frozenset(dropped)
        return self.project(a, [c for c in a.columns if c not in gone])

    def copied(self, a: Relation, copies: Iterable[tuple[Column, Column]]) -> Relation:
        """With copies of columns behind the others: (column, its copy's name)."""
        pairs = list(copies)
        places = (*range(len(a.columns)), *a.places(old for old, _ in pairs))
        certain = a.certain | {new for old, new in pairs if old in a.certain or isinstance(new, Context)}
        node = self.sheet.pick(a.node, tuple((i,) for i in places))
        return replace(a, node=node, columns=(*a.columns, *(new for _, new in pairs)), certain=certain)

    def renamed(self, a: Relation, columns: Sequence[Column]) -> Relation:
        """The same columns under other names, which are all different."""
        known = dict(zip(a.columns, columns, strict=True))
        return replace(a, columns=tuple(columns), certain=frozenset(known[c] for c in a.certain))

    def union(self, parts: Sequence[Relation]) -> Relation:
        """The rows of all."""
        if len(parts) == 1:
            return parts[0]
        columns = tuple(dict.fromkeys(c for part in parts for c in part.columns))
        certain = frozenset[Column].intersection(*(part.certain for part in parts))
        nodes = tuple(self.project(part, columns).node for part in parts)
        return Relation(self.sheet.add(p.Union(nodes)), columns, certain)

    # --- pairs --------------------------------------------------------------------------------------

    def join(self, a: Relation, b: Relation) -> Relation:
        """The joins of compatible rows."""
        for one, other in ((a, b), (b, a)):
            if not other.columns and other == self.unit():
                return one
        return self._pairs(a, b).relation

    def agreeing(self, a: Relation, b: Relation) -> Agreeing:
        """On what they agree."""
        shared = self.shared(a, b)
        sure = [c for c in shared if c in a.certain and c in b.certain]
        loose = [c for c in shared if c not in sure]
        return Agreeing(a.places(sure), b.places(sure), a.places(loose), b.places(loose))

    @staticmethod
    def shared(a: Relation, b: Relation) -> list[Column]:
        """The columns that both have, but for those of their intervals."""
        return [c for c in a.columns if c in b.columns and not isinstance(c, Half)]

    def _pairs(self, a: Relation, b: Relation) -> _Pairs:
        by = self.agreeing(a, b)
        left = self.sheet.add(p.Arrange(a.node, by.left, by.loose))
        right = self.sheet.add(p.Arrange(b.node, by.right, by.loose_right))
        return self._made(self.sheet.add(p.Join(left, right)), a, b)

    def _made(self, node: int, a: Relation, b: Relation) -> _Pairs:
        """Pairs: a node's rows with the columns of both sides."""
        width = len(a.columns)
        more = [c for c in b.columns if c not in a.columns]
        places = [
            (i,) if c in a.certain or c not in b.columns else (i, width + b.place(c)) for i, c in enumerate(a.columns)
        ]
        places += [(width + b.place(c),) for c in more]
        columns = (*a.columns, *more)
        return _Pairs(node, Relation(self.sheet.pick(node, tuple(places)), columns, a.certain | b.certain))

    def _passing(self, pairs: _Pairs, a: Relation, b: Relation, conditions: Sequence[Expression]) -> _Pairs:
        """The pairs that satisfy conditions on the joined row."""
        if not conditions:
            return pairs
        # the conditions see the joined row, and the pair has to stay: what either side may bind is added to it
        width, joined = len(a.columns), pairs.relation
        either = [c for c in a.columns if c in b.columns and c not in a.certain]
        node, known = pairs.node, dict[Variable, Variable]()
        if either:
            both = [(i,) for i in range(width + len(b.columns))]
            node = self.sheet.pick(node, (*both, *((a.place(c), width + b.place(c)) for c in either)))
        for c in joined.columns:
            if isinstance(c, Variable):
                known[c] = p.column(
                    width + len(b.columns) + either.index(c)
                    if c in either
                    else a.place(c)
                    if c in a.columns
                    else width + b.place(c)
                )
        every = tuple(placed(each, known) for whole in conditions for each in conjuncts(whole))
        return self._made(self.sheet.filtered(node, every), a, b)

    def left_join(
        self,
        a: Relation,
        b: Relation,
        conditions: Sequence[Expression] = (),
        passing: Passing | None = None,
        op: TimeOp | None = None,
    ) -> Relation:
        """OPTIONAL, or an operator in time: conditions are on the joined rows; `passing`: those of which they hold."""
        if passing is not None and any(holds_exists(c) or not is_pure(c) for c in conditions):
            return self._left_join_where(a, b, passing)
        pairs = self._passing(self._pairs(a, b), a, b, conditions)
        by_key = not conditions and not self._by_pairs and self._plain(a, b)
        met = self._met_by_key(a, b) if by_key else self._met(a, pairs.node)
        return self._with_others(pairs.relation, a, met)

    def _left_join_where(self, a: Relation, b: Relation, passing: Passing) -> Relation:
        """OPTIONAL with conditions of any kind."""
        # a column that the right side may fill is kept as the left has it, too: so the left row stays known
        loose = [c for c in a.columns if c in b.columns and c not in a.certain]
        kept: dict[Column, Column] = {c: self.hidden() for c in loose}
        met = passing(self._pairs(self.copied(a, kept.items()), b).relation)
        left = self.project(met, [kept.get(c, c) for c in a.columns])
        joined = self.project(met, [*a.columns, *(c for c in b.columns if c not in a.columns)])
        return self._with_others(joined, a, self._among(a, tuple(range(len(a.columns))), self.distinct(left).node))

    def _with_others(self, joined: Relation, a: Relation, met: Relation) -> Relation:
        """Joined rows, and those of A that were not met."""
        alone = self.project(self.without(a, met), joined.columns)
        return Relation(self.sheet.add(p.Union((joined.node, alone.node))), joined.columns, a.certain)

    def attached(self, a: Relation, b: Relation, key: Sequence[Column], *, everywhere: bool) -> Relation:
        """Joined where their keys are the same, unbound being a value like others; the key is all that they share.
        `everywhere`: B has every key of A; else missing values are unbound, as by OPTIONAL."""
        left, right = (replace(each, certain=each.certain | frozenset(key)) for each in (a, b))
        if everywhere:
            return replace(self.join(left, right), certain=a.certain | (b.certain - frozenset(key)))
        return replace(self.left_join(left, right), certain=a.certain)

    def minus(self, a: Relation, b: Relation, counted: Iterable[Column] | None = None) -> Relation:
        """The rows of A that are compatible with no row of B with which they share a bound variable; `counted`: the
        variables of which one must be shared, if not any."""
        known = frozenset(a.columns if counted is None else counted)
        shared = [c for c in a.columns if c in b.columns and c in known and not isinstance(c, Context)]
        if not shared:
            return a
        if self._plain(a, b) and not self._by_pairs:
            return self.without(a, self._met_by_key(a, b))
        pairs = self._pairs(a, b)
        if any(c in a.certain and c in b.certain for c in shared):
            return self.without(a, self._met(a, pairs.node))
        return self.without(a, self._met(a, self.meeting(pairs.node, a, b, shared)))

    def meeting(self, pairs: int, a: Relation, b: Relation, shared: Sequence[Column]) -> int:
        """The pairs of which both bind one of some columns."""
        width = len(a.columns)
        both = [tuple(Call("BOUND", (p.column(i),)) for i in (a.place(c), width + b.place(c))) for c in shared]
        meet = tuple(Call("&&", each) for each in both)
        return self.sheet.add(p.Filter(pairs, (meet[0] if len(meet) == 1 else Call("||", meet),)))

    def semijoin(self, a: Relation, b: Relation, conditions: Sequence[Expression] = ()) -> Relation:
        """The rows of A for which a compatible row of B is there: EXISTS. Conditions are on the joined rows."""
        if not conditions and not self._by_pairs and self._plain(a, b):
            return self._met_by_key(a, b)
        pairs = self._passing(self._pairs(a, b), a, b, conditions)
        return self._met(a, pairs.node)

    def split(
        self, a: Relation, b: Relation, conditions: Sequence[Expression], passing: Passing
    ) -> tuple[Relation, Relation]:
        """The rows of A for which a compatible row of B is there, and the others."""
        met = self.semijoin(a, b, conditions)
        return met, self.without(a, met)

    def antijoin(self, a: Relation, b: Relation, conditions: Sequence[Expression] = ()) -> Relation:
        """The others: NOT EXISTS."""
        return self.without(a, self.semijoin(a, b, conditions))

    @staticmethod
    def _plain(a: Relation, b: Relation) -> bool:
        """Whether both surely bind all that they share."""
        return all(c in a.certain and c in b.certain for c in a.columns if c in b.columns)

    def _met_by_key(self, a: Relation, b: Relation) -> Relation:
        shared = [c for c in a.columns if c in b.columns]
        keys = self.distinct(self.project(b, shared))
        return self._among(a, a.places(shared), keys.node)

    def _met(self, a: Relation, pairs: int) -> Relation:
        """The rows of A that are the left part of a pair."""
        width = len(a.columns)
        parts = self.sheet.add(p.Distinct(self.sheet.pick(pairs, tuple((i,) for i in range(width)))))
        return self._among(a, tuple(range(width)), parts)

    def _among(self, a: Relation, places: tuple[int, ...], keys: int) -> Relation:
        """S: the rows of A whose columns at `places` are a row of `keys`."""
        left = self.sheet.add(p.Arrange(a.node, places))
        right = self.sheet.add(p.Arrange(keys, tuple(range(len(places)))))
        joined = self.sheet.add(p.Join(left, right))
        kept = self.sheet.pick(joined, tuple((i,) for i in range(len(a.columns))))
        return Relation(kept, a.columns, a.certain)

    def without(self, a: Relation, met: Relation) -> Relation:
        """A less some of its rows."""
        both = self.sheet.add(p.Union((a.node, self.sheet.add(p.Negate(met.node)))))
        return Relation(self.sheet.add(p.Consolidate(both)), a.columns, a.certain)

    # --- rows counted, ranks, paths -----------------------------------------------------------------

    def distinct(self, a: Relation) -> Relation:
        """Each row once."""
        if self.sheet.is_set(a.node):
            return a
        return Relation(self.sheet.add(p.Distinct(a.node)), a.columns, a.certain)

    def group(self, a: Relation, key: Sequence[Column], sums: Sequence[tuple[Column, p.Sum]]) -> Relation:
        """A row for each group; `sums`: names and aggregates, their places those of A."""
        node = self.sheet.add(p.Group(a.node, a.places(key), tuple(s for _, s in sums)))
        counts = frozenset(name for name, s in sums if s.name == "COUNT")
        return Relation(node, (*key, *(name for name, _ in sums)), (a.certain & frozenset(key)) | counts)

    def best(
        self,
        a: Relation,
        key: Sequence[Column],
        order: Sequence[tuple[Column, bool]],
        start: int = 0,
        stop: int | None = None,
        *,
        ties: bool = False,
    ) -> Relation:
        """By key the rows of the ranks [start, stop); order: columns, and whether descending."""
        ranks = tuple(p.Rank(a.place(c), down) for c, down in order)
        return Relation(self.sheet.add(p.Best(a.node, a.places(key), ranks, start, stop, ties)), a.columns, a.certain)

    def reach(self, a: Relation) -> Relation:
        """Of edges (context, from, to) the pairs that one step or more connect."""
        return Relation(self.sheet.add(p.Reach(a.node)), a.columns, a.certain)
