"""Relations whose rows have an interval: what SPARQL's algebra, and EP-SPARQL's, make of them (operators.md, 4.3).

In the flow: algebra → **relations** → plan (lowering.py). A row comes at the instant at which it ends, or, if it has no
time, when the knowledge base changes; it never goes. So what pairs with it, and what it must not find, is there when it
comes: all lookups are of one side (plan.Look), but for joins without an order, in which either side may be the last.

Solutions are a set: what distinguishes those that show the same are hidden columns, which a projection keeps.

Where answers use up triples (CONSUME), rows that may be without their optional partner wait for it: they are numbered,
and partners are kept by number for operators that choose among solutions (using.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Final, Literal

from pyoxigraph import Literal as Number
from pyoxigraph import NamedNode, Variable

from oxiseq.engine.expressions.functions import is_pure
from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.epsparql.anew import lifetime_of, limit_of, needs
from oxiseq.engine.flow.epsparql.times import NUMBER as AS_NUMBER
from oxiseq.engine.flow.epsparql.times import bound_of, has_time, length_of, prepared
from oxiseq.engine.flow.relations import Agreeing, Column, Half, Hidden, Passing, Relation, Relations
from oxiseq.engine.flow.rewriting import placed, replaced
from oxiseq.engine.flow.sparql.leaves import keys_of
from oxiseq.engine.flow.times import NEVER
from oxiseq.engine.kernels.flow.moments import INTERVAL
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Expression, MatchFunction, TimeOp, TriplePattern
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import conjuncts, subexpressions

TIMES: Final[tuple[Column, ...]] = tuple(map(Half, range(INTERVAL)))


@dataclass(frozen=True, slots=True, eq=False)
class Low(Hidden):
    """The lower half of a triple's number; the upper half, its instant, is the hidden column before it."""


@dataclass(frozen=True, slots=True, eq=False)
class Guard(Hidden):
    """Half of the number under which the partners of a row are kept that it may be without: it counts once none of them
    does (kernels/flow/choosing.py)."""

    low: bool = False


@dataclass(frozen=True, slots=True)
class Timeless:
    """Rows without a time: those of VALUES, one empty row, the constants of queries (`table`), or (`asked`: its SELECT)
    of a GRAPH pattern."""

    width: int
    rows: tuple[tuple[Term | None, ...], ...] = ()
    asked: str = ""
    table: bool = False


_BEHIND: Final = INTERVAL + 2
"""Columns before those that say what partners are made of."""


@dataclass(frozen=True, slots=True)
class Kept:
    """An arrangement of rows that are made of triples: `uses`: the columns that name the triples; `guards`: those that
    they have, with their numbers."""

    place: int
    uses: tuple[int, ...]
    guards: tuple[tuple[int, int], ...] = ()


def uses_of(a: Relation) -> tuple[int, ...]:
    """The places of the upper halves of the numbers of the triples that rows are made of."""
    return tuple(i - 1 for i, c in enumerate(a.columns) if isinstance(c, Low))


class Guards:
    """Those of a plan."""

    def __init__(self, sheet: p.Sheet) -> None:
        self._sheet = sheet
        self._found: list[tuple[int, Kept]] = []
        """By number the rows that have it, and their partners."""

    def on(self, main: Relation) -> tuple[Relation, tuple[Guard, ...]]:
        """Rows with a guard each; `keep` comes next."""
        number = len(self._found)
        guard = Guard(number), Guard(number, low=True)
        node = self._sheet.add(p.Once(main.node, "EVERY"))
        return replace(main, node=node, columns=(*main.columns, *guard)), guard

    def keep(
        self, guard: tuple[Guard, ...], main: Relation, pairs: Relation, whole: tuple[int, ...], other: Relation
    ) -> None:
        """Keep partners, with what they are made of, behind a guard. pairs: with rows of `main`, whose interval is
        at `whole`; other: the partners."""
        uses = [half for place in uses_of(pairs) for half in (place, place + 1)]
        inner = [c for c in other.columns if isinstance(c, Guard)]
        columns = (*whole, *pairs.places(guard), *uses, *pairs.places(inner))
        rows, last = self._sheet.pick(pairs.node, tuple((i,) for i in columns)), _BEHIND + len(uses)
        own = tuple((last + i, c.number) for i, c in enumerate(inner) if not c.low)
        self._found.append((main.node, Kept(rows, tuple(range(_BEHIND, last, 2)), own)))

    def kept(self) -> list[Kept]:
        """By number what is kept, for as long as rows may have the guard (anew.needs). The last ones first, since
        their partners may have earlier ones."""
        found, key = [], (INTERVAL, INTERVAL + 1)
        for main, each in reversed(self._found):
            limit = limit_of(needs(self._sheet).get(main, 0))
            place = self._sheet.add(p.Arrange(each.place, key, (), lifetime_of(limit), coming=True))
            found.append(replace(each, place=place))
        return found[::-1]


NOW, PAST, SEEN = "triples", "triples of instants that are over", "triples that are used up"
"""Sources: (interval, subject, predicate, object), and two columns that say which triple it was."""
_RAW: Final = tuple(range(INTERVAL))
_HAPPENED: Final = "what has happened"


@dataclass(frozen=True, slots=True)
class SeqChoice:
    """A SEQ that chooses among its operands. `first`, `second`: the triples that they are made of. `own`: the columns
    that distinguish second operands; `shared`: those of them that the first operand binds too."""

    first: tuple[Column, ...]
    second: tuple[Column, ...]
    own: tuple[Column, ...]
    shared: tuple[Column, ...]


class IntervalRelations(Relations):
    """consumes: solutions carry which triples they are made of; recursive: an instant has several ticks; remembering:
    past occurrences may have to be emitted again."""

    in_time: ClassVar = True

    def __init__(self, consumes: bool, recursive: bool, remembering: bool) -> None:
        super().__init__(p.Sheet())
        self._consumes, self._recursive, self._remembering = consumes, recursive, remembering
        self._tells = self._chooses = consumes
        """Whether rows say which triples they are made of; whether a SEQ chooses."""
        self._late = False
        """Whether what is compiled is evaluated when the instant is over."""
        self._limit = NEVER
        """The longest hull of a row that can still be of use."""
        self.timeless: dict[str, Timeless] = {}
        """By the names of their sources rows without a time."""
        self.uses: list[Column] = []
        self.copies: list[Column] = []
        self.choices: list[SeqChoice] = []
        self.guards = Guards(self.sheet)
        self.kept: dict[int, Kept] = {}
        """What is made of triples, but for what is kept behind guards."""
        self.memories: list[int] = []
        """The arrangements of what has happened."""
        self.anew = False
        """Whether what is kept may have to be rebuilt."""
        self.looks_back = False
        """Whether it looks for what has happened at any time."""

    # --- around what is compiled ----------------------------------------------------------------------

    @contextmanager
    def _with(self, **state: Any) -> Iterator[None]:
        before = {name: getattr(self, name) for name in state}
        vars(self).update(state)
        try:
            yield
        finally:
            vars(self).update(before)

    def within(self, conditions: Iterable[Expression]) -> AbstractContextManager[object]:
        return self._with(_limit=min(self._limit, bound_of(conditions)))

    def apart(self, *, tested: bool, op: TimeOp | None = None, late: bool = False) -> AbstractContextManager[object]:
        """It chooses nothing, and is not limited by what stands outside, unless it has the same interval."""
        limit, late = self._limit if op is TimeOp.EQUALSOPTIONAL else NEVER, self._late or late
        return self._with(_limit=limit, _chooses=False, _tells=self._tells and not tested, _late=late)

    @property
    def recursive(self) -> bool:
        """Whether an instant has several ticks."""
        return self._recursive

    def past(self, late: bool) -> AbstractContextManager[object]:
        """While a pattern is compiled that, if it is `late`, is evaluated when the instant is over, as rules may still
        derive what must be missing there; nothing that ends now is before anything that ends now."""
        return self._with(_late=self._late or late)

    # --- where rows come from -------------------------------------------------------------------------

    def triples(self, pattern: TriplePattern) -> Relation:
        """The triples that a pattern accepts, of the stream and of the knowledge base."""
        source = self._source(PAST if self._late else NOW)
        if self._consumes and not self._tells:
            source = self.sheet.add(p.Union((source, self._source(SEEN))))
        parts = (pattern.subject, pattern.predicate, pattern.object)
        keys = tuple(dict.fromkeys(keys_of(pattern)))
        places = tuple(INTERVAL + parts.index(key) for key in keys)
        equal = tuple((i, t) for i, t in enumerate(parts, INTERVAL) if isinstance(t, NamedNode | Number))
        first = [INTERVAL + parts.index(t) for t in parts]
        same = tuple((j, i) for i, j in enumerate(first, INTERVAL) if i != j and parts[i - INTERVAL] in keys)
        columns: tuple[Column, ...] = (*TIMES, *keys)
        if self._tells:
            self.uses.append(use := self.hidden())
            columns, places = (*columns, use, Low(use.number)), (*places, INTERVAL + 3, INTERVAL + 4)
        node = self.sheet.add(p.Triples(source, places, equal, same, limit_of(self._limit)))
        return Relation(node, columns, frozenset(keys), streamed=True)

    def _source(self, name: str) -> int:
        given = self.sheet.add(p.Given(name, INTERVAL + 3, _RAW))
        return self.sheet.add(p.Once(given, "TIMED" if self._consumes else ""))

    def without_time(self, columns: Sequence[Column], certain: Iterable[Column], content: Timeless) -> Relation:
        """Rows that come of no stream."""
        known = (name for name, each in self.timeless.items() if each == content)
        name = next(known, f"rows without a time {len(self.timeless)}")
        self.timeless[name] = content
        node = self.sheet.add(p.Given(name, INTERVAL + content.width, _RAW, once=True))
        return Relation(node, (*TIMES, *columns), frozenset(certain))

    def unit(self) -> Relation:
        return self.without_time((), (), Timeless(0, ((),)))

    def values(self, columns: Sequence[Variable], rows: Sequence[Sequence[Term | None]]) -> Relation:
        sure = [c for i, c in enumerate(columns) if all(row[i] is not None for row in rows)]
        numbered = tuple((*row, Number(n)) for n, row in enumerate(rows))
        return self.without_time((*columns, self.hidden()), sure, Timeless(len(columns) + 1, numbered))

    # --- row by row -----------------------------------------------------------------------------------

    def filter(self, a: Relation, conditions: Iterable[Expression]) -> Relation:
        every = [each for whole in conditions for each in conjuncts(whole)]
        plain = [c for c in every if not has_time(c)]
        if plain:
            a = replace(a, node=self.sheet.add(p.Filter(a.node, tuple(self._placed(c, a) for c in plain))))
        for condition in every:
            if (length := length_of(condition)) is not None:
                known = a.timed and length.op in ("<", "<=") and a.longest <= length.limit
                a = a if known else self._lasting(a, *length.whole)
            elif has_time(condition):
                node, expression = self._with_times(a, condition)
                kept = self.sheet.add(p.Filter(node, (expression,)))
                a = replace(a, node=self._first(kept, len(a.columns)))
        return a

    def _lasting(self, a: Relation, op: str, size: int) -> Relation:
        """The rows that last so long."""
        ranges = {
            "<": [(0, size - 1)],
            "<=": [(0, size)],
            ">": [(size + 1, NEVER)],
            ">=": [(size, NEVER)],
            "=": [(size, size)],
            "!=": [(0, size - 1), (size + 1, NEVER)],
        }[op]
        nodes = tuple(self.sheet.add(p.Lasting(a.node, 0, 2, max(least, 0), most)) for least, most in ranges)
        return replace(a, node=nodes[0] if len(nodes) == 1 else self.sheet.add(p.Union(nodes)), timed=True)

    def extend(self, a: Relation, expression: Expression, name: Column) -> Relation:
        if isinstance(expression, Variable) and expression in a.columns:
            return self.copied(a, [(expression, name)])
        node, made = self._with_times(a, expression)
        node = self.sheet.add(p.Extend(node, made, None if is_pure(made) else p.Lifetime(0)))
        width = len(a.columns)
        node = self.sheet.pick(node, (*((i,) for i in range(width)), (self.sheet.width(node) - 1,)))
        return replace(a, node=node, columns=(*a.columns, name))

    def _with_times(self, a: Relation, expression: Expression) -> tuple[int, Expression]:
        """An operator with the times that an expression reads behind its columns, and the expression on them."""
        whole = prepared(expression) if has_time(expression) else expression
        node, known = a.node, dict[Expression, Expression]()
        for e in subexpressions(whole):
            if isinstance(e, MatchFunction) and e not in known:
                node = self.sheet.add(p.TimeTerm(node, e.name, e.gpm == AS_NUMBER))
                known[e] = p.column(self.sheet.width(node) - 1)
        columns = {c: p.column(i) for i, c in enumerate(a.columns) if isinstance(c, Variable)}
        columns |= {c: c for c in known.values() if isinstance(c, Variable)}
        return node, placed(replaced(whole, known), columns)

    def _first(self, node: int, width: int) -> int:
        """An operator without the columns behind so many."""
        return self.sheet.pick(node, tuple((i,) for i in range(width)))

    def project(self, a: Relation, columns: Sequence[Column]) -> Relation:
        """Some columns, and all others, which nothing can name any more."""
        wanted = [*TIMES, *(c for c in columns if c not in TIMES)]
        rest = [c for c in a.columns if c not in wanted]
        names = [*wanted, *(c if isinstance(c, Hidden) else self.hidden() for c in rest)]
        node = self._picked(a, [*wanted, *rest])
        return replace(a, node=node, columns=tuple(names), certain=a.certain & frozenset(columns))

    def _picked(self, a: Relation, columns: Iterable[Column], but: Collection[Column] = ()) -> int:
        """Other columns; those that it has not, and those of `but`, are unbound."""
        places = ((a.place(c),) if c in a.columns and c not in but else () for c in columns)
        return self.sheet.pick(a.node, tuple(places))

    def renamed(self, a: Relation, columns: Sequence[Column]) -> Relation:
        """Other names for those that have one."""
        named = [c for c in a.columns if not isinstance(c, Hidden)]
        known: dict[Column, Column] = dict(zip(named, columns, strict=True))
        made = tuple(known.get(c, c) for c in a.columns)
        return replace(a, columns=made, certain=frozenset(known.get(c, c) for c in a.certain))

    def union(self, parts: Sequence[Relation]) -> Relation:
        """The rows of all, each with the number of its part."""
        if len(parts) == 1:
            return parts[0]
        columns = tuple(dict.fromkeys(c for part in parts for c in part.columns))
        node = self.sheet.add(p.Union(tuple(self._picked(part, columns) for part in parts), marked=True))
        return Relation(
            node,
            (*columns, self.hidden()),
            frozenset[Column].intersection(*(part.certain for part in parts)),
            all(part.timed for part in parts),
            streamed=any(part.streamed for part in parts),
            mixed=any(part.mixed for part in parts),
        )

    # --- rows counted, paths --------------------------------------------------------------------------

    def once(self, a: Relation) -> Relation:
        """Each row once. Rows of one instant come in it, so no other has to be remembered."""
        if self.sheet.is_set(a.node):
            return a
        form = p.Distinct(a.node, p.Lifetime(0)) if self._recursive else p.Once(a.node)
        return replace(a, node=self.sheet.add(form))

    def distinct(self, a: Relation) -> Relation:
        """What its rows show, once."""
        shown = (*TIMES, *(c for c in a.columns if not isinstance(c, Hidden)))
        return self.once(replace(a, node=self._picked(a, shown), columns=shown))

    def reach(self, a: Relation) -> Relation:
        limit = limit_of(self._limit)
        paths = replace(a, node=self.sheet.add(p.Closure(a.node, limit)), mixed=a.mixed or not a.timed)
        self._keep_for(paths, limit)
        return paths

    def timed(self, a: Relation) -> Relation:
        """The rows that have a time."""
        if a.timed:
            return a
        form = self.sheet.form(a.node)
        dropping = replace(form, timed=True) if isinstance(form, p.Triples) else p.Lasting(a.node, 0, 2, 0, NEVER)
        return replace(a, node=self.sheet.add(dropping), timed=True)

    # --- pairs ----------------------------------------------------------------------------------------

    def join(self, a: Relation, b: Relation, op: TimeOp | None = None) -> Relation:
        """Pairs that agree: with the hull of both (`op` None), one before the other (SEQ), at the same time
        (EQUALS)."""
        limit = limit_of(self._limit)
        if op is None and self.unit() in (a, b):
            return b if a == self.unit() else a
        if op is TimeOp.SEQ:
            return self._found(self.timed(b), self.timed(a), "BEFORE", limit)
        if op is TimeOp.EQUALS:
            a = self.timed(a)
            by = self._equal(self.agreeing(a, b))
            one, other = self._arranged(a, by.left, by.loose, 0), self._arranged(b, by.right, by.loose_right, 0)
            pairs = self.sheet.add(p.Join(one, other))
            return self._covered(pairs, a, replace(b, timed=True), None)  # as those of the left are
        if not b.streamed:
            return self._found(a, b, "ANY", limit, None)
        if not a.streamed:
            return self._found(b, a, "ANY", limit, None)
        by = self.agreeing(a, b)
        one, other = self._arranged(a, by.left, by.loose, limit), self._arranged(b, by.right, by.loose_right, limit)
        if limit is None:
            return self._covered(self.sheet.add(p.Join(one, other)), a, b, limit)
        # a join of all that is kept would make pairs that last too long
        find = p.Look(a.node, other, by.left, by.loose, "ANY", "PAIRS", limit)
        later = p.Look(b.node, one, by.right, by.loose_right, "ANY", "PAIRS", limit, earlier=True)
        covered = self._covering(self.sheet.add(find), a, b, limit)
        turned = self._covering(self.sheet.add(later), b, a, limit)
        both = p.Union((covered.node, self._picked(turned, covered.columns)))
        return self.once(replace(covered, node=self.sheet.add(both)))

    def _found(
        self, a: Relation, b: Relation, order: Literal["ANY", "BEFORE"], limit: int | None, kept: int | None = -1
    ) -> Relation:
        """Rows of A with those of B, which are kept for so long (-1: for the limit), that they find."""
        by = self.agreeing(a, b)
        place = self._arranged(b, by.right, by.loose_right, limit if kept == -1 else kept)
        look = p.Look(a.node, place, by.left, by.loose, order, "PAIRS", limit)
        return self._covered(self.sheet.add(look), a, b, limit)

    @staticmethod
    def _equal(by: Agreeing) -> Agreeing:
        """In their intervals, too."""
        return replace(by, left=(*_RAW, *by.left), right=(*_RAW, *by.right))

    def _arranged(
        self, a: Relation, key: tuple[int, ...], loose: tuple[int, ...], limit: int | None, memory: str = ""
    ) -> int:
        """Rows kept to be found. limit: for how long; 0: an instant."""
        self._keep_for(a, limit)
        place = self.sheet.add(p.Arrange(a.node, key, loose, lifetime_of(limit), True, memory))
        if uses := uses_of(a):
            self.kept[place] = Kept(place, uses)
        return place

    def _keep_for(self, a: Relation, limit: int | None) -> None:
        """Rows are kept for so long: may they have to be rebuilt?"""
        self.anew |= a.mixed and limit != 0

    def _covered(self, pairs: int, a: Relation, b: Relation, limit: int | None) -> Relation:
        """Pairs, the columns of A before those of B, as rows with the interval of both, each once."""
        return self.once(self._covering(pairs, a, b, limit))

    def _covering(self, pairs: int, a: Relation, b: Relation, limit: int | None) -> Relation:
        """The same, as often as they come."""
        node = self.sheet.add(p.Cover(pairs, 0, len(a.columns), _joined(a, b), limit))
        longest = NEVER if limit is None else limit
        made = replace(_of_both(a, b), node=node, columns=_all(a, b), certain=a.certain | b.certain)
        return replace(made, timed=a.timed or b.timed, longest=longest)

    # --- what may be missing --------------------------------------------------------------------------

    def left_join(
        self,
        a: Relation,
        b: Relation,
        conditions: Sequence[Expression] = (),
        passing: Passing | None = None,
        op: TimeOp | None = None,
    ) -> Relation:
        """Rows of A with their partners, or alone. `op` None for OPTIONAL, whose partners end by then; else
        OPTIONALSEQ, whose partners end before, or EQUALSOPTIONAL."""
        longest = self._limit
        if op is not None:
            a, b = self.timed(a), self.timed(b)
        guard: tuple[Guard, ...] = ()
        if uses_of(b):
            a, guard = self.guards.on(a)
        limit, by = limit_of(bound_of(conditions)), self.agreeing(a, b)
        if op is TimeOp.EQUALSOPTIONAL:
            by = self._equal(by)
        kept = self._arranged(b, by.right, by.loose_right, 0 if op is TimeOp.EQUALSOPTIONAL else limit)
        order: Literal["BEFORE", "BY"] = "BEFORE" if op is TimeOp.OPTIONALSEQ else "BY"
        look = p.Look(a.node, kept, by.left, by.loose, order, "PAIRS", limit, counts=bool(guard or conditions))
        joined, mixed = _all(a, b), _is_mixed(a, b)
        if conditions:
            assert passing is not None
            pairs, whole = self._met_in_time(look, a, b, passing)
            together, mixed = self._picked(pairs, joined, guard), mixed or pairs.mixed
            alone = a.node if guard else self._of_pairs(pairs, whole, a, "WITHOUT")
        else:
            paired, whole = self.sheet.add(look), tuple(range(len(a.columns)))
            alone = a.node if guard else self.sheet.add(replace(look, what="WITHOUT"))
            pairs = Relation(paired, (*a.columns, *(self.hidden() for _ in TIMES), *b.columns[INTERVAL:]), a.certain)
            limit = limit_of(longest)
            found = self.sheet.add(replace(look, limit=limit))
            together = self.sheet.add(p.Cover(found, 0, len(a.columns), _joined(a, b, guard), limit))
        if guard:
            self.guards.keep(guard, a, pairs, whole[:INTERVAL], b)
        both = p.Union((together, self._picked(replace(a, node=alone), joined)))
        made = replace(a, node=self.sheet.add(both), columns=joined, longest=NEVER, mixed=mixed)
        return self.once(replace(made, streamed=a.streamed or b.streamed))

    def _met_in_time(
        self, look: p.Look, a: Relation, b: Relation, passing: Passing
    ) -> tuple[Relation, tuple[int, ...]]:
        """The pairs that satisfy all conditions on the joined rows; the places of the rows of A that they are made of,
        which come along as they were."""
        width = len(a.columns)
        places = (*_joined(a, b), *((i,) for i in range(width)))
        own = tuple(self.hidden() for _ in range(width))
        node = self.sheet.add(p.Cover(self.sheet.add(replace(look, counts=True)), 0, width, places, look.limit))
        paired = Relation(node, (*_all(a, b), *own), a.certain | b.certain, streamed=True, mixed=_is_mixed(a, b))
        met = passing(paired)
        return met, met.places(own)

    def _of_pairs(self, pairs: Relation, own: tuple[int, ...], a: Relation, what: Literal["WITH", "WITHOUT"]) -> int:
        """The rows of A that are among those that pairs are made of, or are not."""
        return self._among_rows(self.sheet.pick(pairs.node, tuple((i,) for i in own)), a, what)

    def _among_rows(self, parts: int, a: Relation, what: Literal["WITH", "WITHOUT"]) -> int:
        every = tuple(range(len(a.columns)))
        kept = self.sheet.add(p.Arrange(parts, every, (), p.Lifetime(0), coming=True))
        return self.sheet.add(p.Look(a.node, kept, every, (), "ANY", what))

    def split(
        self, a: Relation, b: Relation, conditions: Sequence[Expression], passing: Passing
    ) -> tuple[Relation, Relation]:
        """The rows of A that agree with something that has ended by then, and satisfies conditions together with it;
        and the others."""
        sides: tuple[Literal["WITH"], Literal["WITHOUT"]] = ("WITH", "WITHOUT")
        if not conditions:
            look, _ = self._looking(a, b)
            one, other = (replace(_of_both(a, b), node=self.sheet.add(replace(look, what=what))) for what in sides)
            return one, other
        limit, by = limit_of(bound_of(conditions)), self.agreeing(a, b)
        kept = self._arranged(b, by.right, by.loose_right, limit)
        met, own = self._met_in_time(p.Look(a.node, kept, by.left, by.loose, "BY", "PAIRS", limit), a, b, passing)
        found = replace(a, streamed=a.streamed or b.streamed, mixed=met.mixed)
        one, other = (replace(found, node=self._of_pairs(met, own, a, what)) for what in sides)
        return one, other

    def minus(self, a: Relation, b: Relation, counted: Iterable[Column] | None = None) -> Relation:
        shared = self.shared(a, b)
        if not shared:
            return a
        look, once = self._looking(a, b)
        if any(c in a.certain and c in b.certain for c in shared):
            return _of_both(replace(a, node=self.sheet.add(replace(look, what="WITHOUT"))), b)
        # a bound variable has to be shared
        pairs = self.meeting(self.sheet.add(look), a, once, shared)
        return _of_both(replace(a, node=self._among_rows(self._first(pairs, len(a.columns)), a, "WITHOUT")), b)

    def _looking(self, a: Relation, b: Relation) -> tuple[p.Look, Relation]:
        """How a partner is looked for that has ended by then, and among what: each combination of the columns that are
        compared is kept once, with that it has happened at all."""
        shared = self.shared(a, b)
        picked = self._picked(b, (*TIMES, *shared))
        if not b.mixed:
            self.looks_back = True
            if self._remembering:
                picked = self._remembered(picked)
        node = self.sheet.add(p.Distinct(self.sheet.add(p.Sometime(picked))))
        once = Relation(node, (*TIMES, *shared), b.certain & frozenset(shared), streamed=True, mixed=b.mixed)
        by = self.agreeing(a, once)
        kept = self._arranged(once, by.right, by.loose_right, None, "" if b.mixed else _HAPPENED)
        return p.Look(a.node, kept, by.left, by.loose, "BY"), once

    def _remembered(self, rows: int) -> int:
        """Rows, and the past ones that are emitted again."""
        width = self.sheet.width(rows)
        told = p.Given(f"{_HAPPENED} {len(self.memories)}", width, _RAW)
        every = self.sheet.add(p.Union((rows, self.sheet.add(told))))
        timed = self.sheet.add(p.Lasting(every, 0, 2, 0, NEVER))
        known = self.sheet.add(p.Distinct(self.sheet.add(p.Sometime(timed))))
        key = tuple(range(INTERVAL, width))
        kept = self.sheet.add(p.Arrange(known, key, (), coming=True, memory=_HAPPENED))
        first = self.sheet.add(p.Look(timed, kept, key, (), "ANY", "WITHOUT", earlier=True))
        self.memories.append(self.sheet.add(p.Arrange(first, (), (), coming=True, memory=told.name)))
        return every

    # --- which triples are used up --------------------------------------------------------------------

    def sequence(self, left: Callable[[], Relation], right: Callable[[], Relation]) -> Relation:
        """SEQ, which chooses where answers use triples up. A variable that the right operand may leave unbound gets a
        copy: joined with the left one the variable itself may have the value of that one."""
        start, a = len(self.uses), left()
        middle, b = len(self.uses), right()
        if self._tells and self._chooses:
            shared = [c for c in b.columns if c in a.columns and isinstance(c, Variable)]
            copy: dict[Column, Column] = {c: self.hidden() for c in shared if c not in b.certain}
            self.copies += copy.values()
            own = tuple(copy.get(c, c) for c in b.columns if not isinstance(c, Low | Guard) and c not in TIMES)
            parts = tuple(self.uses[start:middle]), tuple(self.uses[middle:])
            self.choices.append(SeqChoice(*parts, own, tuple(copy.get(c, c) for c in shared)))
            b = self.copied(b, copy.items()) if copy else b
        return self.join(a, b, TimeOp.SEQ)


def _all(a: Relation, b: Relation) -> tuple[Column, ...]:
    """The columns of joined rows."""
    return (*a.columns, *(c for c in b.columns if c not in a.columns))


def _joined(a: Relation, b: Relation, but: Collection[Column] = ()) -> tuple[tuple[int, ...], ...]:
    """Where the columns of joined rows behind their interval come from; those of `but` from nowhere."""
    width, places = len(a.columns), list[tuple[int, ...]]()
    for i, c in enumerate(a.columns):
        shared = c in b.columns and c not in a.certain
        places.append((i, width + b.place(c)) if shared else () if c in but else (i,))
    places += [(width + b.place(c),) for c in b.columns if c not in a.columns]
    return tuple(places[INTERVAL:])


def _of_both(a: Relation, b: Relation) -> Relation:
    """Rows of A that depend on B."""
    return replace(a, streamed=a.streamed or b.streamed, mixed=_is_mixed(a, b))


def _is_mixed(a: Relation, b: Relation) -> bool:
    """Whether the knowledge base counts for what is made of two."""
    return a.mixed or b.mixed or not (a.timed and b.timed)
