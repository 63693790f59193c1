"""EP-SPARQL's operators → a plan of delta operators (operators.md, 4.3).

In the flow: algebra → **lowering** → plan. A row's first columns are its interval. It comes at the instant at which
it ends, or, if it has no time, when the knowledge base changes; it never goes. So what pairs with it, and what it must
not find, is there when it comes: all lookups are of one side (plan.Look), but for joins without an order, in which
either side may be the last. Where the past has changed, all that is kept is rebuilt (anew.py).

What a recursive rule looks for in the past is looked for when the instant is over (`late`): such operators have a
source of their own, which is fed then.
"""

from __future__ import annotations

import typing
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from pyoxigraph import Literal, NamedNode, Variable

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.epsparql.algebra import (
    Answered,
    ClosurePlan,
    ExistsTest,
    ExtendPlan,
    FilterPlan,
    JoinPlan,
    MinusPlan,
    OptionalPlan,
    Plan,
    ProjectPlan,
    TablePlan,
    TestPlan,
    TimelessPlan,
    TriplePlan,
    UnionPlan,
    is_timeless,
)
from oxiseq.engine.flow.epsparql.anew import Leaf, Memory, limit_of, needs
from oxiseq.engine.flow.epsparql.guards import Guards, Kept
from oxiseq.engine.flow.epsparql.relations import INTERVAL, Guard, Low, Rel, SolutionColumn, lifetime
from oxiseq.engine.flow.epsparql.rows import NEVER, ROW, Column, Hidden
from oxiseq.engine.flow.epsparql.times import NUMBER as AS_NUMBER
from oxiseq.engine.flow.epsparql.times import has_time, length_of, prepared
from oxiseq.engine.flow.rewriting import placed, replaced
from oxiseq.grammar.algebra import Call, Expression, MatchFunction, TimeOp
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import subexpressions

NOW, PAST, SEEN = "triples", "triples of instants that are over", "triples that are used up"
"""Sources: (interval, subject, predicate, object), and two columns that say which triple it was."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """A plan, and what feeds it: facts, which it takes once each. now, past, seen: the places of its sources, None: it
    has none; timeless: those of rows without a time, and which; roots: the answers of each pattern; columns: those of
    its solutions; kept: what is made of triples that may be used up: first, by number, what is kept behind guards.

    numbered: operators that keep rows of queries that share the plan, and the column of the number that says
    whose a row is (alike.py).

    If what is kept may have to be rebuilt: leaves: where all facts are found that it was made of; memories: what has
    happened besides."""

    plan: p.FlowPlan
    now: int | None
    past: int | None
    seen: int | None
    timeless: tuple[tuple[int, TimelessPlan], ...]
    roots: tuple[int, ...]
    columns: tuple[tuple[SolutionColumn, ...], ...]
    kept: tuple[Kept, ...]
    numbered: tuple[tuple[int, int], ...]
    leaves: tuple[Leaf, ...]
    memories: tuple[Memory, ...]


def lowered(patterns: Sequence[Answered], distinct: bool = False, recursive: bool = False) -> Lowered:
    """Several patterns, whose answers are the roots: each solution once, with its interval. Where triples are used up,
    with all columns, to be chosen of and `shown` after that; else with those that are shown. recursive: an instant has
    several ticks."""
    made, lowering = _lowered(patterns, distinct, _Lowering(_tells(patterns), recursive))
    if lowering.forgets:
        made, _ = _lowered(patterns, distinct, _Lowering(_tells(patterns), recursive, remembering=True))
    return made


def _tells(patterns: Sequence[Answered]) -> bool:
    """Whether solutions carry which triples they are made of."""
    return any(each.uses is not None for each in patterns)


def _lowered(patterns: Sequence[Answered], distinct: bool, lowering: _Lowering) -> tuple[Lowered, _Lowering]:
    roots = [lowering.once(lowering.of(each.plan)) for each in patterns]
    pairs = zip(roots, patterns, strict=True)
    shown = [r.node if each.uses is not None else lowering.shown(r, each, distinct) for r, each in pairs]
    return lowering.finished(shown, [rel.columns for rel in roots]), lowering


def lowered_choice(answered: Answered, distinct: bool, columns: Sequence[SolutionColumn]) -> Lowered:
    """What is shown of solutions that have been chosen: these columns come in, each row as often as it was chosen."""
    lowering = _Lowering(False)
    given = p.Given(NOW, INTERVAL + len(columns), tuple(range(INTERVAL)))
    rel = Rel(lowering.source(given), tuple(columns), frozenset(), True)
    return lowering.finished([lowering.shown(lowering.once(rel), answered, distinct)], [rel.columns])


class _Lowering:
    """remembering: past occurrences may have to be emitted again."""

    def __init__(self, telling: bool, recursive: bool = False, remembering: bool = False) -> None:
        self.sheet = p.Sheet()
        self._remembering = remembering
        self._telling, self._recursive = telling, recursive
        self._sources: dict[str, int] = {}
        self._timeless: list[tuple[int, TimelessPlan]] = []
        self._kept: dict[int, Kept] = {}
        """What is made of triples, but for what is kept behind guards."""
        self._leaves: dict[int, tuple[TriplePlan, Rel]] = {}
        self._anew = False
        """Whether what is kept may have to be rebuilt."""
        self._asked: set[int] = set()
        """Pairs of which it counts that they are there, however long they last."""
        self._guards = Guards(self.sheet)
        self._memories: list[Memory] = []
        self._looks_back = False
        """Whether it looks for what has happened at any time."""
        self._remembered: set[int] = set()
        self._late = False
        self._hidden = 0
        self._tables: dict[TimelessPlan, Rel] = {}
        self._numbered: dict[int, int] = {}
        """By operator that keeps rows of several queries where it says whose they are."""

    @property
    def forgets(self) -> bool:
        """Whether what is to be rebuilt has to know what has happened, longer than it knows facts."""
        return self._anew and self._looks_back and not self._remembering

    def finished(self, roots: Sequence[int], columns: Sequence[tuple[SolutionColumn, ...]]) -> Lowered:
        """The plan."""
        guards = self._guards.kept(self._asked, self._remembered)
        leaves = self.made_anew() if self._anew else []
        used = (*guards, *self._kept.values())
        sources = [self._sources.get(name) for name in (NOW, PAST, SEEN)]
        looked = [place for place in sources if place is not None]
        looked += [place for place, _ in self._timeless]
        looked += [leaf.place for leaf in leaves] + [each.place for each in used]
        looked += [place for each in self._memories for place in (each.place, each.source)]
        looked += self._numbered
        also = (*roots[1:], *looked)
        plan = self.sheet.plan(roots[0], also)
        names = dict(zip(also, plan.also, strict=True)) | {roots[0]: plan.root}
        now, past, seen = (None if place is None else names[place] for place in sources)
        timeless = tuple((names[place], each) for place, each in self._timeless)
        places = tuple(names[root] for root in roots)
        kept = tuple(replace(each, place=names[each.place]) for each in used)
        numbered = tuple((names[place], column) for place, column in self._numbered.items())
        anew = tuple(replace(leaf, place=names[leaf.place]) for leaf in leaves)
        memories = tuple(Memory(names[each.place], names[each.source]) for each in self._memories)
        return Lowered(
            plan,
            now,
            past,
            seen,
            timeless,
            places,
            tuple(columns),
            kept,
            numbered,
            anew,
            memories,
        )

    # --- what is kept, rebuilt ----------------------------------------------------------------------

    def keep_for(self, rel: Rel, limit: int | None) -> None:
        """Rows are kept for so long: may they have to be rebuilt?"""
        self._anew |= rel.mixed and limit != 0

    def made_anew(self) -> list[Leaf]:
        """Facts for as long as anything is kept that is made of them."""
        needed = needs(self.sheet, self._asked, self._remembered)
        leaves = [self.leaf(*each, needed) for each in self._leaves.values()]
        return [leaf for leaf in leaves if leaf is not None]

    def leaf(self, plan: TriplePlan, rel: Rel, needed: Mapping[int, int]) -> Leaf | None:
        """The triples of a pattern, arranged in some way, for as long as they are needed."""
        form = self.sheet.form(rel.node)
        assert isinstance(form, p.Triples)
        timed = self.sheet.add(replace(form, timed=True))
        need = max(needed.get(node, -1) for node in (rel.node, timed))
        if need < 0:
            return None
        known = (
            place
            for place, each in self.sheet.arrangements()
            if (each.lifetime is None or each.lifetime.limit >= need) and each.child in (rel.node, timed)
        )
        place = next(known, None)
        if place is None:
            place = self.arranged(replace(rel, node=timed), (), (), limit_of(need))
        parts = (t if isinstance(t, NamedNode | Literal) else rel.places([t])[0] for t in plan.places)
        subject, predicate, target = parts
        return Leaf(place, (subject, predicate, target), self._telling and plan.use is None)

    # --- answers --------------------------------------------------------------------------------------

    def shown(self, rel: Rel, answered: Answered, distinct: bool) -> int:
        """The columns that are shown of solutions; distinct: equal rows of one interval are one."""
        names: list[Column] = []
        for column, expression in answered.columns:
            if expression is not None:
                rel = self.extended(rel, expression, column)
            names.append(column)
        places = [rel.places([c]) if c in rel.columns else () for c in names]
        node = self.sheet.pick(rel.node, (*((i,) for i in range(INTERVAL)), *places))
        return self.sheet.add(p.Once(node)) if distinct else node

    # --- operators ------------------------------------------------------------------------------------

    def of(self, plan: Plan) -> Rel:
        """An operator's rows."""
        match plan:
            case TriplePlan():
                return self.triples(plan)
            case TimelessPlan():
                return self.without_time(plan)
            case TablePlan():
                return self.with_table(plan)
            case JoinPlan():
                return self.join(plan)
            case OptionalPlan():
                return self.optional(plan)
            case MinusPlan():
                return self.minus(plan)
            case TestPlan(main, test):
                return self.tested(self.of(main), test)
            case UnionPlan():
                return self.union(plan)
            case FilterPlan(child, conditions):
                return self.filtered(self.of(child), conditions)
            case ExtendPlan(child, expression, columns):
                return self.extended(self.of(child), expression, columns[-1])
            case ProjectPlan():
                return self.project(plan)
            case ClosurePlan(step, ends, limit):
                steps = self.once(self.of(step))
                node = self.sheet.add(p.Closure(steps.node, limit_of(limit)))
                paths = Rel(node, ends, frozenset(ends), steps.timed, mixed=steps.mixed or not steps.timed)
                self.keep_for(paths, limit_of(limit))
                return paths

    def triples(self, plan: TriplePlan) -> Rel:
        source = self._source(PAST if self._late else NOW)
        if self._telling and plan.use is None:
            source = self.sheet.add(p.Union((source, self._source(SEEN))))
        fixed = [(INTERVAL + i, t) for i, t in enumerate(plan.places) if isinstance(t, NamedNode | Literal)]
        places = plan.places
        same = [
            (INTERVAL + places.index(t), INTERVAL + i)
            for i, t in enumerate(places)
            if not isinstance(t, NamedNode | Literal) and places.index(t) != i
        ]
        shown = [c for c in plan.columns if c != plan.use]
        columns: list[SolutionColumn] = [*shown]
        at = [INTERVAL + places.index(c) for c in shown]
        if plan.use is not None:
            columns += [plan.use, Low(plan.use)]
            at += [INTERVAL + 3, INTERVAL + 4]
        form = p.Triples(source, tuple(at), tuple(fixed), tuple(same), plan.but, limit_of(plan.limit))
        rel = Rel(self.sheet.add(form), tuple(columns), plan.certain)
        self._leaves[rel.node] = plan, rel
        return rel

    def _source(self, name: str) -> int:
        given = self._sources.get(name)
        if given is None:
            given = self.source(p.Given(name, INTERVAL + 3, tuple(range(INTERVAL))))
        return self.sheet.add(p.Once(given, "TIMED" if self._telling else ""))

    def source(self, form: p.Given) -> int:
        """What comes from outside."""
        place = self._sources[form.name] = self.sheet.add(form)
        return place

    def without_time(self, plan: TimelessPlan) -> Rel:
        name, raw = f"rows without a time {len(self._timeless)}", tuple(range(INTERVAL))
        place = self.sheet.add(p.Given(name, INTERVAL + len(plan.columns), raw, once=True))
        self._timeless.append((place, plan))
        return Rel(place, plan.columns, plan.certain)

    def with_table(self, plan: TablePlan) -> Rel:
        rel = self.of(plan.child)
        if plan.table not in self._tables:
            self._tables[plan.table] = self.without_time(plan.table)
        table = self._tables[plan.table]
        pairs = [*((c, c) for c in table.columns if c in rel.columns), *plan.equal]
        key = table.places(there for _, there in pairs)
        kept = self.keeping(replace(table, node=self.sheet.add(p.Arrange(table.node, key, coming=True))))
        bound = None
        if plan.bound is not None and not pairs:
            here, there, sign = plan.bound
            bound = p.Bound(rel.places([here])[0], table.places([there])[0], sign)
        node = self.sheet.add(p.Lookup(rel.node, kept, rel.places(here for here, _ in pairs), bound))
        width, more = INTERVAL + len(rel.columns), tuple(c for c in table.columns if c not in rel.columns)
        picked = (*range(width), *(width + place for place in table.places(more)))
        node = self.sheet.pick(node, tuple((i,) for i in picked))
        return replace(rel, node=node, columns=(*rel.columns, *more), certain=rel.certain | table.certain)

    def keeping(self, rel: Rel) -> int:
        """An operator that keeps rows: whose they are is noted."""
        if ROW in rel.columns:
            (self._numbered[rel.node],) = rel.places([ROW])
        return rel.node

    def union(self, plan: UnionPlan) -> Rel:
        number = plan.columns[-1]
        marked = []
        for n, branch in enumerate(plan.branches):
            rel = self.of(branch)
            node = self.sheet.add(p.Extend(rel.node, Literal(n)))
            marked.append(replace(rel, node=node, columns=(*rel.columns, number)))
        columns = tuple(dict.fromkeys(c for rel in marked for c in rel.columns))
        node = self.sheet.add(p.Union(tuple(self.picked(rel, columns) for rel in marked)))
        timed, mixed = all(rel.timed for rel in marked), any(rel.mixed for rel in marked)
        return Rel(node, columns, plan.certain, timed, mixed=mixed)

    def picked(self, rel: Rel, columns: Iterable[SolutionColumn], but: Collection[SolutionColumn] = ()) -> int:
        """Other columns behind the interval; those that it has not, and those of `but`, are unbound."""
        places = (rel.places([c]) if c in rel.columns and c not in but else () for c in columns)
        return self.sheet.pick(rel.node, (*((i,) for i in range(INTERVAL)), *places))

    def project(self, plan: ProjectPlan) -> Rel:
        rel = self.of(plan.child)
        if plan.same:
            same = Call("SAMETERM", tuple(p.column(place) for place in rel.places(rel.columns[:2])))
            rel = replace(rel, node=self.sheet.add(p.Filter(rel.node, (same,))))
        columns: list[SolutionColumn] = []
        wanted: list[SolutionColumn] = []
        for place, name in zip(plan.places, plan.columns, strict=True):
            column = plan.child.columns[place]
            columns.append(column)
            wanted.append(name)
            if isinstance(column, Hidden) and isinstance(name, Hidden) and Low(column) in rel.columns:
                columns.append(Low(column))
                wanted.append(Low(name))
        guards = [c for c in rel.columns if isinstance(c, Guard)]
        columns, wanted = [*columns, *guards], [*wanted, *guards]
        made = Rel(self.picked(rel, columns), tuple(wanted), plan.certain, rel.timed, mixed=rel.mixed)
        return self.once(made) if plan.distinct else made

    # --- pairs ----------------------------------------------------------------------------------------

    def join(self, plan: JoinPlan) -> Rel:
        limit = limit_of(plan.limit)
        left, right = self.of_past(plan.left) if plan.late else self.of(plan.left), self.of(plan.right)
        sides = _Sides(left, right)
        if plan.op is TimeOp.SEQ:
            left, right = self.timed(left), self.timed(right)
            kept = self.arranged(left, sides.key_left, sides.loose_left, limit)
            form = p.Look(right.node, kept, sides.key_right, sides.loose_right, "BEFORE", "PAIRS", limit)
            return self.covered(self.sheet.add(form), right, left, limit)
        if plan.op is TimeOp.EQUALS:
            left = self.timed(left)
            times = tuple(range(INTERVAL))
            one = self.arranged(left, (*times, *sides.key_left), sides.loose_left, 0)
            other = self.arranged(right, (*times, *sides.key_right), sides.loose_right, 0)
            pairs = self.sheet.add(p.Join(one, other))
            return self.covered(pairs, left, replace(right, timed=True), None)  # as those of the left are
        if is_timeless(plan.right):
            kept = self.arranged(right, sides.key_right, sides.loose_right, None)
            form = p.Look(left.node, kept, sides.key_left, sides.loose_left, "ANY", "PAIRS", limit)
            return self.covered(self.sheet.add(form), left, right, limit)
        if is_timeless(plan.left):
            kept = self.arranged(left, sides.key_left, sides.loose_left, None)
            form = p.Look(right.node, kept, sides.key_right, sides.loose_right, "ANY", "PAIRS", limit)
            return self.covered(self.sheet.add(form), right, left, limit)
        one = self.arranged(left, sides.key_left, sides.loose_left, limit)
        other = self.arranged(right, sides.key_right, sides.loose_right, limit)
        if limit is None:
            return self.covered(self.sheet.add(p.Join(one, other)), left, right, limit)
        # a join of all that is kept would make pairs that last too long
        find = p.Look(left.node, other, sides.key_left, sides.loose_left, "ANY", "PAIRS", limit)
        later = p.Look(right.node, one, sides.key_right, sides.loose_right, "ANY", "PAIRS", limit, earlier=True)
        covered = self.covering(self.sheet.add(find), left, right, limit)
        turned = self.covering(self.sheet.add(later), right, left, limit)
        both = p.Union((covered.node, self.picked(turned, covered.columns)))
        return self.once(replace(covered, node=self.sheet.add(both)))

    def of_past(self, plan: Plan) -> Rel:
        """An operator that runs when the instant is over."""
        before, self._late = self._late, True
        try:
            return self.of(plan)
        finally:
            self._late = before

    def timed(self, rel: Rel) -> Rel:
        """The rows that have a time."""
        if rel.timed:
            return rel
        form = self.sheet.form(rel.node)
        dropping = replace(form, timed=True) if isinstance(form, p.Triples) else p.Lasting(rel.node, 0, 2, 0, NEVER)
        return replace(rel, node=self.sheet.add(dropping), timed=True)

    def arranged(self, rel: Rel, key: tuple[int, ...], loose: tuple[int, ...], limit: int | None) -> int:
        """Rows kept to be found. limit: for how long; 0: an instant."""
        self.keep_for(rel, limit)
        place = self.sheet.add(p.Arrange(rel.node, key, loose, lifetime(limit), coming=True))
        if rel.uses:
            self._kept[place] = Kept(place, rel.uses)
        return self.keeping(replace(rel, node=place))

    def covered(self, pairs: int, first: Rel, second: Rel, limit: int | None) -> Rel:
        """Pairs, the columns of the first before those of the second, as rows with the interval of both, each once."""
        return self.once(self.covering(pairs, first, second, limit))

    def covering(self, pairs: int, first: Rel, second: Rel, limit: int | None) -> Rel:
        """The same, as often as they come."""
        node = self.sheet.add(p.Cover(pairs, 0, INTERVAL + len(first.columns), _joined(first, second), limit))
        columns = (*first.columns, *(c for c in second.columns if c not in first.columns))
        timed, longest = first.timed or second.timed, NEVER if limit is None else limit
        return Rel(node, columns, first.certain | second.certain, timed, longest, _is_mixed(first, second))

    def once(self, rel: Rel) -> Rel:
        """Each row once. Rows of one instant come in it, so no other has to be remembered."""
        if self.sheet.is_set(rel.node):
            return rel
        form = p.Distinct(rel.node, p.Lifetime(0)) if self._recursive else p.Once(rel.node)
        return replace(rel, node=self.sheet.add(form))

    # --- what may be missing --------------------------------------------------------------------------

    def optional(self, plan: OptionalPlan) -> Rel:
        main = self.of(plan.main)
        other = self.of_past(plan.other) if plan.late else self.of(plan.other)
        if plan.op is not None:
            main, other = self.timed(main), self.timed(other)
        guard: tuple[Guard, ...] = ()
        if other.uses:
            main, guard = self._guards.on(main)
        limit = limit_of(plan.limit)
        sides = _Sides(main, other)
        key_main, key_other = sides.key_left, sides.key_right
        if plan.op is TimeOp.EQUALSOPTIONAL:
            times = tuple(range(INTERVAL))
            key_main, key_other = (*times, *key_main), (*times, *key_other)
        kept = self.arranged(other, key_other, sides.loose_right, 0 if plan.op is TimeOp.EQUALSOPTIONAL else limit)
        order: typing.Literal["BEFORE", "BY"] = "BEFORE" if plan.op is TimeOp.OPTIONALSEQ else "BY"
        look = p.Look(main.node, kept, key_main, sides.loose_left, order, "PAIRS", limit)
        mixed = _is_mixed(main, other)
        joined = (*main.columns, *(c for c in other.columns if c not in main.columns))
        paired = self.sheet.add(look)
        if plan.conditions or plan.tests:
            met = self.passing(paired, main, other, limit, plan.conditions, plan.tests)
            pairs, whole = met.rel, met.own
            together, mixed = self.picked(pairs, joined, guard), mixed or pairs.mixed
            alone = main.node if guard else self.look_among(main, self.parts_of(met), "WITHOUT")
        else:
            whole = tuple(range(INTERVAL))
            alone = main.node if guard else self.sheet.add(replace(look, what="WITHOUT"))
            pairs = Rel(paired, (*main.columns, *(self.hide() for _ in whole), *other.columns), main.certain)
            limit = limit_of(min(plan.limit, plan.longest))
            places = _joined(main, other, guard)
            found = self.sheet.add(replace(look, limit=limit))
            together = self.sheet.add(p.Cover(found, 0, INTERVAL + len(main.columns), places, limit))
        if guard:
            self._asked.add(paired)
            self._guards.keep(guard, main, pairs, whole[:INTERVAL], other)
        both = p.Union((together, self.picked(replace(main, node=alone), joined)))
        return self.once(Rel(self.sheet.add(both), joined, main.certain, main.timed, mixed=mixed))

    def passing(
        self,
        pairs: int,
        main: Rel,
        other: Rel,
        limit: int | None,
        conditions: Sequence[Expression],
        tests: Sequence[ExistsTest],
    ) -> _Met:
        """The pairs that satisfy all conditions on the joined rows, and the rows of `main` that are part of them,
        which come along as they were."""
        self._asked.add(pairs)
        width = INTERVAL + len(main.columns)
        places = (*_joined(main, other), *((i,) for i in range(width)))
        own = tuple(self.hide() for _ in range(width))
        columns = (*main.columns, *(c for c in other.columns if c not in main.columns), *own)
        node = self.sheet.add(p.Cover(pairs, 0, width, places, limit))
        paired = Rel(node, columns, main.certain | other.certain, mixed=_is_mixed(main, other))
        rel = self.filtered(paired, conditions)
        for test in tests:
            rel = self.tested(rel, test)
        return _Met(rel, rel.places(own))

    def parts_of(self, met: _Met) -> int:
        """The left rows that others are made of."""
        return self.sheet.pick(met.rel.node, tuple((i,) for i in met.own))

    def hide(self) -> Hidden:
        """A column that nothing else is."""
        self._hidden -= 1
        return Hidden(self._hidden)

    def look_among(self, main: Rel, parts: int, what: typing.Literal["WITH", "WITHOUT"]) -> int:
        """The rows of `main` that are among others, or are not."""
        every = tuple(range(INTERVAL + len(main.columns)))
        kept = self.sheet.add(p.Arrange(parts, every, (), p.Lifetime(0), coming=True))
        return self.sheet.add(p.Look(main.node, kept, every, (), "ANY", what))

    def tested(self, main: Rel, test: ExistsTest) -> Rel:
        """EXISTS, NOT EXISTS."""
        other = self.of(test.other)
        if not test.conditions and not test.tests:
            return self.found(main, other, test.wanted)
        sides = _Sides(main, other)
        limit = limit_of(test.limit)
        kept = self.arranged(other, sides.key_right, sides.loose_right, limit)
        look = p.Look(main.node, kept, sides.key_left, sides.loose_left, "BY", "PAIRS", limit)
        met = self.passing(self.sheet.add(look), main, other, limit, test.conditions, test.tests)
        node = self.look_among(main, self.parts_of(met), "WITH" if test.wanted else "WITHOUT")
        return replace(main, node=node, mixed=met.rel.mixed)

    def minus(self, plan: MinusPlan) -> Rel:
        main, other = self.of(plan.main), self.of(plan.other)
        shared = [c for c in main.columns if c in other.columns]
        if not shared:
            return main
        if any(c in main.certain and c in other.certain for c in shared):
            return self.found(main, other, False)
        # a bound variable has to be shared
        look, once = self.looking(main, other)
        width = INTERVAL + len(main.columns)
        places = zip(main.places(shared), once.places(shared), strict=True)
        both = [Call("&&", (_bound(i), _bound(width + j))) for i, j in places]
        meet = both[0] if len(both) == 1 else Call("||", tuple(both))
        pairs = self.sheet.add(p.Filter(self.sheet.add(look), (meet,)))
        parts = self.sheet.pick(pairs, tuple((i,) for i in range(width)))
        return replace(main, node=self.look_among(main, parts, "WITHOUT"), mixed=_is_mixed(main, other))

    def found(self, main: Rel, other: Rel, wanted: bool) -> Rel:
        """The rows of `main` that agree with something that has ended by then, or with nothing."""
        look, _ = self.looking(main, other)
        node = self.sheet.add(replace(look, what="WITH" if wanted else "WITHOUT"))
        return replace(main, node=node, mixed=_is_mixed(main, other))

    def looking(self, main: Rel, other: Rel) -> tuple[p.Look, Rel]:
        """How a partner is looked for that has ended by then, and among what: each combination of the columns that are
        compared is kept once, with that it has happened at all."""
        shared = tuple(c for c in other.columns if c in main.columns)
        picked = self.picked(other, shared)
        if not other.mixed:
            self._looks_back = True
            if self._remembering:
                picked = self.remembered(picked, shared)
        node = self.sheet.add(p.Distinct(self.sheet.add(p.Sometime(picked))))
        certain = other.certain & frozenset(c for c in shared if not isinstance(c, Low))
        once = Rel(node, shared, certain, mixed=other.mixed)
        self.keeping(once)
        sides = _Sides(main, once)
        kept = self.arranged(once, sides.key_right, sides.loose_right, None)
        self._remembered |= set() if other.mixed else {kept}
        return p.Look(main.node, kept, sides.key_left, sides.loose_left, "BY"), once

    def remembered(self, rows: int, columns: tuple[SolutionColumn, ...]) -> int:
        """Rows, and the past ones that are emitted again."""
        width, raw = self.sheet.width(rows), tuple(range(INTERVAL))
        told = p.Given(f"what has happened {len(self._memories)}", width, raw)
        source = self.sheet.add(told)
        every = self.sheet.add(p.Union((rows, source)))
        timed = self.sheet.add(p.Lasting(every, 0, 2, 0, NEVER))
        known = self.sheet.add(p.Distinct(self.sheet.add(p.Sometime(timed))))
        key = tuple(range(INTERVAL, width))
        kept = self.sheet.add(p.Arrange(known, key, (), coming=True))
        first = self.sheet.add(p.Look(timed, kept, key, (), "ANY", "WITHOUT", earlier=True))
        place = self.sheet.add(p.Arrange(first, (), (), coming=True))
        self._memories.append(Memory(place, source))
        for node in (known, kept, place):
            self.keeping(Rel(node, columns, frozenset()))
        self._remembered |= {kept, place}
        return every

    # --- expressions ----------------------------------------------------------------------------------

    def filtered(self, rel: Rel, conditions: Sequence[Expression]) -> Rel:
        """The rows that satisfy all."""
        plain = [c for c in conditions if length_of(c) is None and not has_time(c)]
        if plain:
            rel = replace(rel, node=self.sheet.add(p.Filter(rel.node, tuple(self.placed(c, rel) for c in plain))))
        for condition in conditions:
            length = length_of(condition)
            if length is not None:
                known = rel.timed and length.op in ("<", "<=") and rel.longest <= length.limit
                rel = rel if known else self.lasting(rel, *length.whole)
            elif has_time(condition):
                rel = self.asked(rel, condition)
        return rel

    def lasting(self, rel: Rel, op: str, size: int) -> Rel:
        """The rows that last so long."""
        ranges = {
            "<": [(0, size - 1)],
            "<=": [(0, size)],
            ">": [(size + 1, NEVER)],
            ">=": [(size, NEVER)],
            "=": [(size, size)],
            "!=": [(0, size - 1), (size + 1, NEVER)],
        }[op]
        nodes = tuple(self.sheet.add(p.Lasting(rel.node, 0, 2, max(least, 0), most)) for least, most in ranges)
        return replace(rel, node=nodes[0] if len(nodes) == 1 else self.sheet.add(p.Union(nodes)), timed=True)

    def asked(self, rel: Rel, condition: Expression) -> Rel:
        """The rows for which a condition on a time holds."""
        node, expression = self.with_times(rel, condition)
        width = INTERVAL + len(rel.columns)
        kept = self.sheet.add(p.Filter(node, (expression,)))
        return replace(rel, node=self.sheet.pick(kept, tuple((i,) for i in range(width))))

    def extended(self, rel: Rel, expression: Expression, name: Column) -> Rel:
        """With a computed column more."""
        node, made = self.with_times(rel, expression)
        lifetime = None if p.is_pure(made) else p.Lifetime(0)
        node = self.sheet.add(p.Extend(node, made, lifetime))
        width = INTERVAL + len(rel.columns)
        node = self.sheet.pick(node, (*((i,) for i in range(width)), (self.sheet.width(node) - 1,)))
        return replace(rel, node=node, columns=(*rel.columns, name))

    def with_times(self, rel: Rel, expression: Expression) -> tuple[int, Expression]:
        """An operator with the times that an expression reads behind its columns, and the expression on them."""
        whole = prepared(expression) if has_time(expression) else expression
        node, known = rel.node, dict[Expression, Expression]()
        for e in subexpressions(whole):
            if isinstance(e, MatchFunction) and e not in known:
                node = self.sheet.add(p.TimeTerm(node, e.name, e.gpm == AS_NUMBER))
                known[e] = p.column(self.sheet.width(node) - 1)
        columns = {c: p.column(i) for i, c in enumerate(rel.columns, INTERVAL) if isinstance(c, Variable)}
        columns |= {c: c for c in known.values() if isinstance(c, Variable)}
        return node, placed(replaced(whole, known), columns)

    def placed(self, expression: Expression, rel: Rel) -> Expression:
        """With the plan's columns for variables."""
        return placed(
            expression, {c: p.column(i) for i, c in enumerate(rel.columns, INTERVAL) if isinstance(c, Variable)}
        )


@dataclass(frozen=True, slots=True)
class _Met:
    """Joined rows. own: the columns of the left rows that they are made of."""

    rel: Rel
    own: tuple[int, ...]


class _Sides:
    """On which columns two relations agree: surely, and where both have a value."""

    def __init__(self, left: Rel, right: Rel) -> None:
        shared = [c for c in left.columns if c in right.columns]
        sure = [c for c in shared if c in left.certain and c in right.certain]
        loose = [c for c in shared if c not in sure]
        self.key_left, self.key_right = left.places(sure), right.places(sure)
        self.loose_left, self.loose_right = left.places(loose), right.places(loose)


def _joined(first: Rel, second: Rel, but: Collection[SolutionColumn] = ()) -> tuple[tuple[int, ...], ...]:
    """Where the columns of joined rows come from, those of the first before those of the second; those of `but` from
    nowhere."""
    width = INTERVAL + len(first.columns)
    places: list[tuple[int, ...]] = []
    for i, c in enumerate(first.columns, INTERVAL):
        shared = c in second.columns and c not in first.certain
        places.append((i, width + second.places([c])[0]) if shared else () if c in but else (i,))
    return (*places, *((width + second.places([c])[0],) for c in second.columns if c not in first.columns))


def _is_mixed(first: Rel, second: Rel) -> bool:
    """Whether the knowledge base counts for what is made of two."""
    return first.mixed or second.mixed or not (first.timed and second.timed)


def _bound(place: int) -> Expression:
    return Call("BOUND", (p.column(place),))
