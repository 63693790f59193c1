"""EP-SPARQL's patterns → operators.

In the flow: algebra → **plan**. As SPARQL's algebra translates a group, element by element, with these changes:
adjacent triple patterns are joined in an order in which each shares a column with those before; conditions
go down to where all that they read is bound; bounds on getDURATION() go down as limits: a part of a solution is no
longer than the solution. Rows that may have to be *missing* (an optional partner, MINUS) are not limited by what stands
outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from oxiseq.engine.flow.epsparql.algebra import (
    Answered,
    ClosurePlan,
    ExistsTest,
    ExtendPlan,
    FilterPlan,
    JoinPlan,
    MinusPlan,
    OptionalPlan,
    Place,
    Plan,
    ProjectPlan,
    SeqChoice,
    TestPlan,
    TimelessPlan,
    TriplePlan,
    UnionPlan,
    UsePlan,
    looks,
)
from oxiseq.engine.flow.epsparql.rows import NEVER, Column, Hidden
from oxiseq.engine.flow.epsparql.times import has_time, length_of
from oxiseq.engine.flow.plan import is_pure
from oxiseq.grammar.algebra import (
    Ask,
    Bind,
    Call,
    Construct,
    Exists,
    Expression,
    Filter,
    FunctionCall,
    GraphPattern,
    Group,
    Minus,
    OptionalPattern,
    Path,
    PathAlternative,
    PathInverse,
    PathNegated,
    PathPattern,
    PathRepeat,
    PathSequence,
    PatternElement,
    Select,
    SubSelect,
    TermOrVariable,
    TimedPattern,
    TimeOp,
    TriplePattern,
    Union,
    Values,
)
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.render import render_group
from oxiseq.grammar.render_sparql import base_clause
from oxiseq.grammar.rsp_algebra import Consume
from oxiseq.grammar.scope import certain_variables, conjuncts, expression_variables, subexpressions, visible_variables

_UNIT = TimelessPlan((), frozenset(), ((),))


def compile_pattern(query: EpQuery, recursive: bool = False) -> Answered:
    """The operators of a checked query, or rule, and what it shows. `recursive`: a rule of a recursive stratum."""
    consumes = query.consume not in (None, Consume.UNRESTRICTED)
    compiler = Compiler(consumes, recursive)
    plan = compiler.group(query.where, NEVER)
    uses = UsePlan(
        tuple(compiler.uses), tuple(compiler.copies), tuple(compiler.choices), query.consume is Consume.RECENT
    )
    return replace(_shown(query, plan), uses=uses if consumes else None)


def _shown(query: EpQuery, plan: Plan) -> Answered:
    shown = [c for c in plan.columns if isinstance(c, Variable)]
    match query.form:
        case Ask():
            return Answered(plan)
        case Select(columns):
            visible = visible_variables(query.where)
            if columns is None:
                return Answered(plan, tuple((v, None) for v in visible))
            return Answered(plan, tuple((c.variable, c.expression) for c in columns))
        case Construct(template, _, columns):
            computed = {c.variable for c in columns}
            used = dict.fromkeys(
                t
                for triple in template
                for t in (triple.subject, triple.predicate, triple.object)
                if isinstance(t, Variable) and t not in computed
            )
            known = tuple((v, None) for v in used if v in shown)
            return Answered(plan, (*known, *((c.variable, c.expression) for c in columns)))


class Compiler:
    """Compiles one query; hidden columns are numbered in it. `consumes`: solutions carry which triples they are made
    of; `recursive`: it is a rule that what it derives comes back to at the same instant."""

    def __init__(self, consumes: bool = False, recursive: bool = False) -> None:
        self._hidden = 0
        self._recursive = recursive
        self._blanks: dict[BlankNode, Hidden] = {}
        self._telling = consumes
        self._sure = consumes
        self.uses: list[Hidden] = []
        self.copies: list[Hidden] = []
        self.choices: list[SeqChoice] = []

    def hide(self) -> Hidden:
        """A new hidden column."""
        self._hidden += 1
        return Hidden(self._hidden)

    # --- groups -----------------------------------------------------------------------------------------

    def group(self, group: Group, limit: int) -> Plan:
        """A group with its filters."""
        conditions = [c for e in group.elements if isinstance(e, Filter) for c in conjuncts(e.condition)]
        return self.filtered(self.body(group, min(limit, bound_of(conditions))), conditions)

    def body(self, group: Group, limit: int) -> Plan:
        """A group without its filters."""
        plan: Plan = _UNIT
        elements = [e for e in group.elements if not isinstance(e, Filter)]
        at = 0
        while at < len(elements):
            triples: list[TriplePattern | PathPattern] = []
            while at < len(elements) and isinstance(element := elements[at], TriplePattern | PathPattern):
                triples.append(element)
                at += 1
            if triples:
                plan = self.basic(plan, [self.triple(t, limit) for t in triples], limit)
            if at < len(elements):
                plan = self.after(plan, elements[at], limit)
                at += 1
        return plan

    def basic(self, plan: Plan, parts: Sequence[Plan], limit: int) -> Plan:
        """Adjacent triple patterns, each next to one that it shares a column with."""
        left = list(parts)
        while left:
            bound = frozenset(plan.columns)
            part = next((p for p in left if bound & frozenset(p.columns)), left[0])
            left.remove(part)
            plan = join(None, plan, part, limit)
        return plan

    def after(self, plan: Plan, element: PatternElement, limit: int) -> Plan:
        """`plan` with one more element of its group."""
        match element:
            case OptionalPattern(inner):
                return optional(None, plan, self.optional_part(inner, NEVER), limit)
            case Minus(inner):
                with self._silent():
                    return MinusPlan(plan, self.group(inner, NEVER))
            case Bind(expression, variable):
                return ExtendPlan(plan, expression, (*plan.columns, variable))
            case _:
                return join(None, plan, self.operand(element, limit), limit)

    def operand(self, element: PatternElement, limit: int) -> Plan:
        """A single pattern."""
        match element:
            case Group():
                return self.group(element, limit)
            case Union(branches):
                return self.union([self.group(b, limit) for b in branches])
            case TimedPattern():
                return self.in_time(element, limit)
            case Values(variables, rows):
                return self.values(variables, rows)
            case GraphPattern():
                return self.knowledge(element)
            case SubSelect():
                return self.sub_select(element, limit)
            case _:
                return self.body(Group((element,)), limit)

    def taken_apart(self, pattern: PatternElement, limit: int) -> _Apart:
        """An optional part, or one that EXISTS asks for, and its filters, evaluated on the pair."""
        if not isinstance(pattern, Group):
            return _Apart(self.operand(pattern, limit))
        conditions = [c for e in pattern.elements if isinstance(e, Filter) for c in conjuncts(e.condition)]
        bound = bound_of(conditions)
        plain = tuple(c for c in conditions if _exists(c) is None)
        tests = tuple(self.test(c) for c in conditions if _exists(c) is not None)
        return _Apart(self.body(pattern, min(limit, bound)), plain, tests, bound)

    def optional_part(self, pattern: PatternElement, limit: int) -> _Apart:
        """`taken_apart`, of a part that may be missing: it chooses nothing."""
        before, self._sure = self._sure, False
        try:
            return self.taken_apart(pattern, limit)
        finally:
            self._sure = before

    @contextmanager
    def _silent(self) -> Iterator[None]:
        """Patterns that are only tested: no solution is made of their triples."""
        before, self._telling = self._telling, False
        try:
            yield
        finally:
            self._telling = before

    def test(self, condition: Expression) -> ExistsTest:
        """EXISTS, NOT EXISTS, or either negated."""
        exists = _exists(condition)
        assert exists is not None
        with self._silent():
            apart = self.taken_apart(exists.pattern, NEVER)
        wanted = exists.negated is not isinstance(condition, Exists)
        return ExistsTest(apart.plan, wanted, apart.conditions, apart.tests, apart.bound)

    def in_time(self, element: TimedPattern, limit: int) -> Plan:
        op, first, second = element.op, element.left, element.right
        if op is TimeOp.OPTIONALSEQ:
            part = self.optional_part(first, NEVER)
            return optional(op, self.operand(second, limit), part, limit, self._recursive and looks(part.plan))
        if op is TimeOp.EQUALSOPTIONAL:
            main = self.operand(first, limit)
            return optional(op, main, self.optional_part(second, limit), limit)
        start, left, middle = len(self.uses), self.operand(first, limit), len(self.uses)
        right = self.operand(second, limit)
        if op is TimeOp.SEQ and self._telling and self._sure:
            right = self.choosing(left, right, tuple(self.uses[start:middle]), tuple(self.uses[middle:]))
        late = op is TimeOp.SEQ and self._recursive and looks(left)
        return join(op, left, right, limit, late)

    def choosing(self, left: Plan, right: Plan, first: tuple[Hidden, ...], second: tuple[Hidden, ...]) -> Plan:
        """The right operand of a SEQ that chooses. A variable that it may leave unbound gets a copy: joined with the
        left operand the variable itself may have the value of that one."""
        shared = [c for c in right.columns if c in left.columns and isinstance(c, Variable)]
        loose = [c for c in shared if c not in right.certain]
        copy = {c: self.hide() for c in loose}
        self.copies += copy.values()
        own = tuple(copy.get(c, c) if isinstance(c, Variable) else c for c in right.columns)
        self.choices.append(SeqChoice(first, second, own, tuple(copy.get(c, c) for c in shared)))
        if not loose:
            return right
        places = (*range(len(right.columns)), *map(right.columns.index, loose))
        return ProjectPlan(right, places, (*right.columns, *copy.values()), right.certain)

    # --- leaves -----------------------------------------------------------------------------------------

    def place(self, term: TermOrVariable) -> Place:
        if not isinstance(term, BlankNode):
            return term
        return self._blanks.setdefault(term, self.hide())

    def triple(self, pattern: TriplePattern | PathPattern, limit: int) -> Plan:
        subject, target = self.place(pattern.subject), self.place(pattern.object)
        if isinstance(pattern, TriplePattern):
            return self.leaf((subject, self.place(pattern.predicate), target), limit)
        return self.path(subject, pattern.path, target, limit)

    def leaf(self, places: tuple[Place, Place, Place], limit: int, but: tuple[NamedNode, ...] = ()) -> TriplePlan:
        """A triple pattern."""
        columns = tuple(dict.fromkeys(p for p in places if isinstance(p, Variable | Hidden)))
        if not self._telling:
            return TriplePlan(places, columns, limit, but)
        self.uses.append(self.hide())
        return TriplePlan(places, (*columns, self.uses[-1]), limit, but, self.uses[-1])

    def values(self, variables: Sequence[Variable], rows: Sequence[tuple[NamedNode | Literal | None, ...]]) -> Plan:
        sure = (v for i, v in enumerate(variables) if all(row[i] is not None for row in rows))
        number = self.hide()
        numbered = tuple((*row, Literal(n)) for n, row in enumerate(rows))
        return TimelessPlan((*variables, number), frozenset([*sure, number]), numbered)

    def knowledge(self, element: GraphPattern) -> Plan:
        group = Group((element,))
        names = visible_variables(group)
        shown = " ".join(f"?{v.value}" for v in names) or "(1 AS ?oxiseq_one)"
        text = f"{base_clause(group)}SELECT DISTINCT {shown} WHERE {render_group(group)}"
        return TimelessPlan(names, frozenset[Column](certain_variables(group)), asked=text)

    def union(self, branches: Sequence[Plan]) -> Plan:
        columns = tuple(dict.fromkeys(c for b in branches for c in b.columns))
        number = self.hide()
        certain = frozenset.intersection(*(b.certain for b in branches)) | {number}
        return UnionPlan(tuple(branches), (*columns, number), certain)

    def sub_select(self, query: SubSelect, limit: int) -> Plan:
        plan = self.group(query.where, limit)
        if query.values is not None:
            plan = join(None, plan, self.values(query.values.variables, query.values.rows), limit)
        shown: list[Column] = list(visible_variables(query.where))
        if query.values is not None:
            shown += [v for v in query.values.variables if v not in shown]
        if query.projection is not None:
            shown = []
            for each in query.projection:
                if isinstance(each, Variable):
                    shown.append(each)
                else:
                    plan = ExtendPlan(plan, each[0], (*plan.columns, each[1]))
                    shown.append(each[1])
        kept = [c for c in plan.columns if c in shown or not query.distinct]
        names = tuple(c if c in shown else self.hide() for c in kept)
        places = tuple(plan.columns.index(c) for c in kept)
        certain = frozenset(n for n, c in zip(names, kept, strict=True) if c in plan.certain)
        return ProjectPlan(plan, places, names, certain, query.distinct)

    # --- property paths ---------------------------------------------------------------------------------

    def path(self, subject: Place, path: Path, target: Place, limit: int) -> Plan:
        """A property path between two places."""
        match path:
            case NamedNode():
                return self.leaf((subject, path, target), limit)
            case PathInverse(inner):
                return self.path(target, inner, subject, limit)
            case PathAlternative(paths):
                return self.union([self.path(subject, p, target, limit) for p in paths])
            case PathSequence(paths):
                places = [subject, *(self.hide() for _ in paths[1:]), target]
                parts = [self.path(places[i], p, places[i + 1], limit) for i, p in enumerate(paths)]
                return self.basic(_UNIT, parts, limit)
            case PathNegated(paths):
                return self.negated(subject, paths, target, limit)
            case PathRepeat(inner, mark):
                return self.repeated(subject, inner, mark, target, limit)

    def negated(self, subject: Place, paths: Sequence[NamedNode | PathInverse], target: Place, limit: int) -> Plan:
        forward = tuple(p for p in paths if isinstance(p, NamedNode))
        inverse = tuple(p.path for p in paths if isinstance(p, PathInverse) and isinstance(p.path, NamedNode))
        branches: list[Plan] = []
        if forward or not inverse:
            branches.append(self.leaf((subject, self.hide(), target), limit, forward))
        if inverse:
            branches.append(self.leaf((target, self.hide(), subject), limit, inverse))
        return self.union(branches)

    def repeated(self, subject: Place, inner: Path, mark: str, target: Place, limit: int) -> Plan:
        """Steps between two hidden columns, each hull once, then where the path must begin and end."""
        a, b = self.hide(), self.hide()
        once = distinct(self.path(a, inner, b, limit), (a, b))
        plan: Plan = once if mark == "?" else ClosurePlan(once, (a, b), limit)
        if mark != "+":
            plan = distinct(self.union([plan, *self.no_step(a, b, subject, target, limit)]), (a, b))
        return self.between(plan, subject, target)

    def no_step(self, a: Column, b: Column, subject: Place, target: Place, limit: int) -> list[Plan]:
        """A path of no step: at an occurrence of its node in the stream, or at the constant given."""
        found: list[Plan] = []
        for place in (0, 2):
            places = (self.hide(), self.hide(), self.hide())
            occurs = self.leaf(places, limit)
            found.append(ProjectPlan(occurs, (place, place), (a, b), frozenset([a, b])))
        constants = [t for t in (subject, target) if isinstance(t, NamedNode | Literal)]
        if constants:
            found.append(TimelessPlan((a, b), frozenset([a, b]), tuple((t, t) for t in constants)))
        return found

    def between(self, plan: Plan, subject: Place, target: Place) -> Plan:
        """Rows of two columns as bindings of two places, which may be constants or the same."""
        for at, place in enumerate((subject, target)):
            if isinstance(place, NamedNode | Literal):
                asked = TimelessPlan((plan.columns[at],), frozenset([plan.columns[at]]), ((place,),))
                plan = join(None, plan, asked, NEVER)
        names: list[Column] = []
        places: list[int] = []
        for at, place in enumerate((subject, target)):
            if not isinstance(place, NamedNode | Literal):
                names.append(place if place not in names else self.hide())
                places.append(at)
        same = subject == target and not isinstance(subject, NamedNode | Literal)
        if same:
            names, places = names[:1], places[:1]
        return ProjectPlan(plan, tuple(places), tuple(names), frozenset(names), same=same)

    # --- conditions -------------------------------------------------------------------------------------

    def filtered(self, plan: Plan, conditions: Iterable[Expression]) -> Plan:
        """Rows that satisfy all; EXISTS last, as it keeps more."""
        last = []
        for condition in conditions:
            if _exists(condition) is not None:
                last.append(condition)
            else:
                plan = push(plan, condition)
        for condition in last:
            plan = TestPlan(plan, self.test(condition))
        return plan


@dataclass(frozen=True, slots=True)
class _Apart:
    """A pattern without its filters, these, and their bound on the length of the pair."""

    plan: Plan
    conditions: tuple[Expression, ...] = ()
    tests: tuple[ExistsTest, ...] = ()
    bound: int = NEVER


def _exists(condition: Expression) -> Exists | None:
    """The EXISTS of a condition that is one, perhaps behind a `!`."""
    if isinstance(condition, Call) and condition.name == "!":
        condition = condition.args[0]
    return condition if isinstance(condition, Exists) else None


def join(op: TimeOp | None, left: Plan, right: Plan, limit: int, late: bool = False) -> Plan:
    """Two parts of a solution."""
    if op is None and left is _UNIT:
        return right
    if op is None and right is _UNIT:
        return left
    return JoinPlan(op, left, right, _merged(left, right), left.certain | right.certain, limit, late)


def optional(op: TimeOp | None, main: Plan, apart: _Apart, longest: int, late: bool = False) -> Plan:
    """A part that may be missing."""
    return OptionalPlan(
        op,
        main,
        apart.plan,
        apart.conditions,
        apart.tests,
        _merged(main, apart.plan),
        main.certain,
        apart.bound,
        late,
        longest,
    )


def distinct(plan: Plan, columns: tuple[Column, ...]) -> Plan:
    """Some columns, each row once."""
    places = tuple(plan.columns.index(c) for c in columns)
    return ProjectPlan(plan, places, columns, frozenset(columns), distinct=True)


def _merged(left: Plan, right: Plan) -> tuple[Column, ...]:
    return tuple(dict.fromkeys((*left.columns, *right.columns)))


def bound_of(conditions: Iterable[Expression]) -> int:
    """The longest hull that some conditions allow."""
    found = [length.limit for c in conditions if (length := length_of(c)) is not None]
    return min(found, default=NEVER)


def push(plan: Plan, condition: Expression) -> Plan:
    """A condition as far down as all that it reads is surely bound there."""
    used = expression_variables(condition)
    if has_time(condition) or _impure(condition) or not used:
        return _kept(plan, condition)
    match plan:
        case JoinPlan(_, left, _) if used <= left.certain:
            return replace(plan, left=push(left, condition))
        case JoinPlan(_, _, right) if used <= right.certain:
            return replace(plan, right=push(right, condition))
        case OptionalPlan(_, main) | MinusPlan(main) | TestPlan(main) if used <= main.certain:
            return replace(plan, main=push(main, condition))
        case UnionPlan(branches) if all(used <= b.certain for b in branches):
            return replace(plan, branches=tuple(push(b, condition) for b in branches))
        case ExtendPlan(child) if used <= child.certain:
            return replace(plan, child=push(child, condition))
        case FilterPlan(child, conditions):
            pushed = push(child, condition)
            if isinstance(pushed, FilterPlan) and pushed.main is child:
                return FilterPlan(child, (*conditions, condition))
            return FilterPlan(pushed, conditions)
    return _kept(plan, condition)


def _kept(plan: Plan, condition: Expression) -> Plan:
    if isinstance(plan, FilterPlan):
        return FilterPlan(plan.main, (*plan.conditions, condition))
    return FilterPlan(plan, (condition,))


def _impure(condition: Expression) -> bool:
    return not is_pure(condition) or any(isinstance(e, FunctionCall) for e in subexpressions(condition))
