"""A plan whose constants are in a table: it answers many queries at once (operators.md, 7.2).

In the flow: an open plan, of which some slots are columns of a table → **operators on a sheet**. The table has a
row for each query: its number, a term, and its constants. What depends on the table has the number as its first column,
which is part of every key; what does not is the same for all queries and runs once.

An **open plan** is a query's plan without its constants: two queries are alike if their open plans are equal. In an
open plan the variable `slot(3)` stands for the fourth constant. Of triple patterns those constants are taken out that
leave a leaf no dearer: the subjects and objects of a leaf of one pattern, and the objects of a star, whose patterns
have one variable as their subject. Two stars with a variable in common are a leaf each, joined behind the table. A
longer join would grow without its constants beyond what all queries together find.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from oxiseq.engine.expressions.functions import is_pure
from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.plan import MOST_VARIABLES, Extend, Filter, FlowPlan, Form, Patterns
from oxiseq.engine.flow.rewriting import placed, replaced, rewritten
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Call, Expression, TermOrVariable, TriplePattern
from oxiseq.grammar.scope import conjuncts, expression_variables

Constant: TypeAlias = NamedNode | Literal
Filling: TypeAlias = Constant | Variable
"""The content of a slot."""


@lru_cache(maxsize=256)
def slot(number: int) -> Variable:
    """The placeholder of a constant in an open plan."""
    return Variable(f"oxiseq_constant_{number}")


class Opened(NamedTuple):
    """An open plan: `forms` and the root say which queries are alike. constants: the contents of its slots."""

    forms: tuple[Form, ...]
    root: int
    constants: tuple[Constant, ...]


def opened(plan: FlowPlan) -> Opened:
    """A plan without its constants."""
    constants: list[Constant] = []

    def taken(term: Constant) -> Variable:
        constants.append(term)
        return slot(len(constants) - 1)

    forms = tuple(_opened(form, taken) for form in plan.forms)
    return Opened(forms, plan.root, tuple(constants))


def closed(forms: Sequence[Form], known: Mapping[Variable, Filling]) -> tuple[Form, ...]:
    """With terms, or other variables, for all slots."""
    return tuple(_closed(form, known) for form in forms)


def _opened(form: Form, taken: Callable[[Constant], Variable]) -> Form:
    match form:
        case Patterns(patterns, filters):
            conditions = tuple(opened_expression(e, taken) for e in filters)
            return replace(form, patterns=opened_patterns(patterns, taken), filters=conditions)
        case Filter(_, conditions):
            return replace(form, conditions=tuple(opened_expression(e, taken) for e in conditions))
        case Extend(_, expression) if is_pure(expression):
            return replace(form, expression=opened_expression(expression, taken))
        case p.Triples(equal=equal):
            return replace(form, equal=tuple((i, t if i == p.PREDICATE else taken(_constant(t))) for i, t in equal))
        case _:
            return form


def _constant(term: object) -> Constant:
    assert isinstance(term, NamedNode | Literal)
    return term


def opened_patterns(
    patterns: tuple[TriplePattern, ...], taken: Callable[[Constant], Variable]
) -> tuple[TriplePattern, ...]:
    """Triple patterns with other variables for their constants, as far as that costs little."""
    groups = [[patterns[i] for i in numbers] for numbers in stars(patterns)]
    if not (len(groups) == 1 or (len(groups) == 2 and _linear(groups))) or not all(map(_is_star, groups)):
        return patterns
    single = [each for group in groups if len(group) == 1 for each in group]
    return tuple(
        TriplePattern(
            taken(each.subject) if each in single and isinstance(each.subject, NamedNode) else each.subject,
            each.predicate,
            _object(each, taken),
        )
        for each in patterns
    )


def stars(patterns: Sequence[TriplePattern]) -> tuple[tuple[int, ...], ...]:
    """The numbers of patterns with the same subject."""
    found: dict[TermOrVariable, list[int]] = {}
    for number, each in enumerate(patterns):
        found.setdefault(each.subject, []).append(number)
    return tuple(map(tuple, found.values()))


def _is_star(patterns: Sequence[TriplePattern]) -> bool:
    return len(patterns) == 1 or (
        isinstance(patterns[0].subject, Variable | BlankNode) and 3 * len(patterns) <= MOST_VARIABLES
    )


def _linear(groups: Sequence[Sequence[TriplePattern]]) -> bool:
    """Whether two groups have a variable in common, and each finds no more than there are subjects, as far as these
    have one value each."""
    one, other = ({t for each in group for t in (each.subject, each.object)} for group in groups)
    common = any(isinstance(term, Variable | BlankNode) for term in one & other)
    return common and all(
        len({each.predicate for each in group if isinstance(each.predicate, NamedNode)}) == len(group)
        for group in groups
    )


def _object(pattern: TriplePattern, taken: Callable[[Constant], Variable]) -> TermOrVariable:
    return taken(pattern.object) if isinstance(pattern.object, NamedNode | Literal) else pattern.object


def opened_expression(expression: Expression, taken: Callable[[Constant], Variable]) -> Expression:
    """An expression with other variables for its constants."""
    return rewritten(expression, lambda e: taken(e) if isinstance(e, NamedNode | Literal) else None)


# --- with terms again --------------------------------------------------------------------------------


def _closed(form: Form, known: Mapping[Variable, Filling]) -> Form:
    terms = dict[Expression, Expression](known.items())
    match form:
        case Patterns(patterns, filters):
            closed_ = tuple(TriplePattern(_of(t.subject, known), t.predicate, _of(t.object, known)) for t in patterns)
            return replace(form, patterns=closed_, filters=tuple(replaced(e, terms) for e in filters))
        case Filter(_, conditions):
            return replace(form, conditions=tuple(replaced(e, terms) for e in conditions))
        case Extend(_, expression):
            return replace(form, expression=replaced(expression, terms))
        case p.Triples(equal=equal):
            filled_in = ((i, known.get(t, t) if isinstance(t, Variable) else t) for i, t in equal)
            return replace(form, equal=tuple(filled_in))
        case _:
            return form


def _of(term: TermOrVariable, known: Mapping[Variable, Filling]) -> TermOrVariable:
    return known.get(term, term) if isinstance(term, Variable) else term


_OfOne: TypeAlias = (
    p.Negate
    | p.Consolidate
    | p.Distinct
    | p.Reach
    | p.Once
    | p.Lasting
    | p.Sometime
    | p.TimeTerm
    | p.Triples
    | p.Cover
    | p.Closure
    | p.Group
    | p.Best
)


class NotLiftedError(Exception):
    """A plan has an operator that a table of constants cannot precede."""


class Lifting(NamedTuple):
    """numbered: operators that keep rows of queries, and the column of the number that says whose a row is."""

    root: int
    numbered: dict[int, int]


class _Lifted(NamedTuple):
    """An operator. by_row: one of its columns, the first behind an interval, is a number of the table."""

    node: int
    by_row: bool


def parameter(number: int) -> Variable:
    """The placeholder of a column of the table in an open plan."""
    return Variable(f"oxiseq_parameter_{number}")


def lifted(
    sheet: p.Sheet,
    forms: Sequence[p.Form],
    widths: Sequence[int],
    root: int,
    table: p.Given,
    rows: Sequence[Sequence[Term]],
    at: int = 0,
) -> Lifting:
    """The place of the root of a plan in which parameters stand for the columns of a table: of the whole query's rows,
    each with the number of the table's row. rows: of its constants; at: the column of numbers, behind an interval.
    Raises NotLiftedError."""
    lifting = _Lifting(sheet, forms, widths, table, rows, at)
    return Lifting(lifting.root(root), lifting.numbered)


def _part(form: p.Patterns, numbers: Sequence[int]) -> p.Patterns:
    """Some of the patterns of a conjunction, without its filters."""
    return p.Patterns(tuple(form.patterns[i] for i in numbers), (), tuple(form.places[i] for i in numbers))


class _Lifting:
    def __init__(
        self,
        sheet: p.Sheet,
        forms: Sequence[p.Form],
        widths: Sequence[int],
        table: p.Given,
        rows: Sequence[Sequence[Term]],
        at: int,
    ) -> None:
        self._sheet, self._forms, self._widths, self._at = sheet, forms, widths, at
        self._table = sheet.add(table)
        self._parameters = [parameter(i) for i in range(table.width - 1 - at)]
        self._iris = [all(isinstance(row[i], NamedNode) for row in rows) for i in range(len(self._parameters))]
        self._done: dict[int, _Lifted] = {}
        self.numbered: dict[int, int] = {}
        """See `Lifting`."""

    def root(self, place: int) -> int:
        """The root; all operators come before those that read them."""
        for number, form in enumerate(self._forms):
            if not isinstance(form, p.Arrange):  # joins make their own
                self._done[number] = self._lifted(form)
        for form in self._forms:
            if isinstance(form, p.Arrange) and form.memory:
                self._arranged(form, self._done[form.child], False)
        found = self._of_each(self._done[place])
        if not p.is_settled(self._sheet.form(found)) and p.is_settled(self._forms[place]):
            return self._sheet.add(p.Consolidate(found))
        return found

    def _lifted(self, form: p.Form) -> _Lifted:
        match form:
            case p.Patterns():
                return self._patterns(form)
            case p.Constant() | p.Given():
                return _Lifted(self._sheet.add(form), False)
            case p.Filter(child, conditions):
                return self._filter(self._done[child], self._widths[child], conditions)
            case p.Extend(child, expression, None):
                return self._extend(self._done[child], self._widths[child], expression)
            case p.Pick(child, columns):
                return self._pick(self._done[child], columns)
            case (
                p.Negate(child)
                | p.Consolidate(child)
                | p.Distinct(child)
                | p.Reach(child)
                | p.Once(child)
                | p.Lasting(child)
                | p.Sometime(child)
                | p.TimeTerm(child)
            ):
                return self._same(form, self._done[child])
            case p.Triples(child):
                return self._triples(form, self._done[child])
            case p.Look():
                return self._look(form)
            case p.Cover(child):
                return self._cover(form, self._done[child])
            case p.Closure(child):
                if self._done[child].by_row:
                    raise NotLiftedError("a path that repeats contains a constant")
                return self._same(form, self._done[child])
            case p.Union():
                return self._union(form)
            case p.Join(left, right):
                return self._join(left, right)
            case p.Follow():
                return self._follow(form)
            case p.Group(child):
                return self._group(form, self._done[child])
            case p.Best(child):
                return self._best(form, self._done[child])
            case _:
                raise NotLiftedError(type(form).__name__)

    def _looked_up(self, node: int, key: Sequence[tuple[int, int]], bound: p.Bound | None = None) -> int:
        """Rows with the rows of the table: pairs of a row's column and the table's that are the same."""
        table = self._sheet.add(p.Arrange(self._table, tuple(there for _, there in key)))
        self.numbered[table] = self._at
        if bound is not None and not key:
            return self._sheet.add(p.Lookup(node, table, bound))
        return self._sheet.add(p.Look(node, table, tuple(here for here, _ in key)))

    def _of_each(self, child: _Lifted) -> int:
        """The rows of an operator for each row of the table."""
        if child.by_row:
            return child.node
        width = self._sheet.width(child.node)
        return self._behind(self._looked_up(child.node, ()), width + self._at, range(width))

    def _behind(self, node: int, number: int, columns: Sequence[int]) -> int:
        """A number, behind an interval, and other columns."""
        at = self._at
        return self._sheet.pick(node, tuple((i,) for i in (*columns[:at], number, *columns[at:])))

    def _moved(self, side: _Lifted, places: Iterable[int]) -> tuple[int, ...]:
        """Where columns are."""
        return tuple(i + (side.by_row and i >= self._at) for i in places)

    # --- leaves ---------------------------------------------------------------------------------------

    def _patterns(self, form: p.Patterns) -> _Lifted:
        groups = stars(form.patterns)
        if len(groups) != 2 or not any(name in form.keys for name in self._parameters):
            return self._conjunction(form)
        return self._two_stars(form, [_part(form, numbers) for numbers in groups])

    def _two_stars(self, form: p.Patterns, parts: Sequence[p.Patterns]) -> _Lifted:
        """A conjunction whose constants are in the table: star by star."""
        names = [[key for key in part.keys if key not in self._parameters] for part in parts]
        filters: list[list[Expression]] = [[], [], []]
        for each in form.filters:
            read = expression_variables(each).difference(self._parameters)
            filters[next((i for i, mine in enumerate(names) if read <= {*mine}), 2)].append(each)
        if any(map(self._reads, filters[2])):
            raise NotLiftedError("a condition on both stars and a constant")
        whole = (replace(part, filters=tuple(f)) for part, f in zip(parts, filters, strict=False))
        sides = [self._conjunction(each) for each in whole]
        shared = [name for name in names[0] if name in names[1]]
        keys = (tuple(mine.index(name) for name in shared) for mine in names)
        pair = self._pair(sides, [p.Arrange(0, key) for key in keys])
        places = {name: 1 + i for i, name in enumerate((*names[0], *names[1]))}
        columns = {name: p.column(i) for name, i in places.items()}
        node = self._filtered(pair.node, filters[2], columns)
        found = self._behind(node, 0, [places[key] for key in form.keys if key not in self._parameters])
        return _Lifted(self._sheet.add(p.Consolidate(found)), True)  # leaves omit rows that come and go

    def _conjunction(self, form: p.Patterns) -> _Lifted:
        numbers = {name: i for i, name in enumerate(form.keys)}
        mine = [f for f in form.filters if self._reads(f)]
        free = tuple(f for f in form.filters if f not in mine)
        names = {name: p.column(i) for name, i in numbers.items()}
        (renamed,) = closed((replace(form, filters=()),), names)
        assert isinstance(renamed, p.Patterns)
        node = self._sheet.add(replace(renamed, filters=tuple(placed(f, names) for f in free)))
        key = [(numbers[name], 1 + i) for i, name in enumerate(self._parameters) if name in numbers]
        if not key and not mine:
            return _Lifted(node, False)
        width = len(numbers)
        found = self._looked_up(node, key, self._bound(mine, names))
        columns = {**names, **self._constants(width)}
        found = self._filtered(found, mine, columns)
        kept = [i for name, i in numbers.items() if name not in self._parameters]
        return _Lifted(self._behind(found, width, kept), True)

    def _triples(self, form: p.Triples, child: _Lifted) -> _Lifted:
        known: dict[object, int] = {name: i for i, name in enumerate(self._parameters)}
        mine = [(i, known[t]) for i, t in form.equal if t in known]
        if not mine:
            return self._same(form, child)
        free = tuple(each for each in form.equal if each[1] not in known)
        opened = replace(form, child=child.node, columns=(*form.columns, *(i for i, _ in mine)), equal=free)
        node, kept = self._sheet.add(opened), self._at + len(form.columns)
        width = kept + len(mine)
        found = self._looked_up(node, [(kept + n, self._at + 1 + i) for n, (_, i) in enumerate(mine)])
        return _Lifted(self._behind(found, width + self._at, range(kept)), True)

    def _bound(self, conditions: Sequence[Expression], columns: Mapping[Variable, Variable]) -> p.Bound | None:
        """A conjunct that compares a column with a parameter. columns: the places of variables."""
        here = {name: place for place in range(len(columns)) for name, c in columns.items() if c == p.column(place)}
        there = {name: self._at + 1 + i for i, name in enumerate(self._parameters)}
        for each in (each for whole in conditions for each in conjuncts(whole)):
            if isinstance(each, Call) and each.name in p.SIGNS and len(each.args) == 2:
                for (a, b), sign in zip((each.args, each.args[::-1]), p.SIGNS[each.name], strict=True):
                    if isinstance(a, Variable) and isinstance(b, Variable) and a in here and b in there:
                        return p.Bound(here[a], there[b], sign)
        return None

    def _equal(self, conditions: Sequence[Expression], columns: Mapping[Variable, Variable]) -> list[tuple[int, int]]:
        """The columns of rows that a condition wants to be a parameter's term, and of the table: only the same term is
        equal to an IRI."""
        here: dict[object, int] = {
            name: place for place in range(len(columns)) for name, c in columns.items() if c == p.column(place)
        }
        there: dict[object, int] = {name: i for i, name in enumerate(self._parameters)}
        found = list[tuple[int, int]]()
        for each in (each for whole in conditions for each in conjuncts(whole)):
            if isinstance(each, Call) and each.name in ("SAMETERM", "="):
                for a, b in (each.args, each.args[::-1]):
                    known = isinstance(a, Variable) and isinstance(b, Variable) and a in here and b in there
                    if known and (each.name == "SAMETERM" or self._iris[there[b]]):
                        found.append((here[a], self._at + 1 + there[b]))
        return found

    def _reads(self, expression: Expression) -> bool:
        return not expression_variables(expression).isdisjoint(self._parameters)

    def _constants(self, first: int) -> dict[Variable, Variable]:
        """The places of the table's constants in a row; the table's row begins at `first`."""
        return {name: p.column(first + self._at + 1 + i) for i, name in enumerate(self._parameters)}

    def _filtered(self, node: int, conditions: Sequence[Expression], columns: Mapping[Variable, Variable]) -> int:
        if not conditions:
            return node
        return self._sheet.filtered(node, tuple(placed(each, columns) for each in conditions))

    # --- row by row -----------------------------------------------------------------------------------

    def _with_constants(
        self, child: _Lifted, width: int, expressions: Sequence[Expression], conditions: Sequence[Expression] = ()
    ) -> tuple[int, dict[Variable, Variable], bool, int]:
        """For expressions over `width` columns: rows, the places of these and of the constants, whether by number; and
        where the number is. Of rows that fail one of the conditions some may be missing."""
        columns = dict(zip(map(p.column, range(width)), map(p.column, self._moved(child, range(width))), strict=True))
        if not any(self._reads(each) for each in expressions):
            return child.node, columns, child.by_row, self._at
        key = [(self._at, self._at)] if child.by_row else self._equal(conditions, columns)
        found, first = self._looked_up(child.node, key, self._bound(conditions, columns)), width + child.by_row
        return found, {**columns, **self._constants(first)}, True, first + self._at

    def _filter(self, child: _Lifted, width: int, conditions: Sequence[Expression]) -> _Lifted:
        node, columns, by_row, number = self._with_constants(child, width, conditions, conditions)
        found = self._filtered(node, conditions, columns)
        return self._cut(found, child, width, by_row, number)

    def _extend(self, child: _Lifted, width: int, expression: Expression) -> _Lifted:
        node, columns, by_row, number = self._with_constants(child, width, [expression])
        found = self._sheet.add(p.Extend(node, placed(expression, columns)))
        return self._cut(found, child, width, by_row, number, self._sheet.width(node))

    def _cut(self, node: int, child: _Lifted, width: int, by_row: bool, number: int, *more: int) -> _Lifted:
        """Its number, if it has one, its columns, and some more."""
        columns = (*self._moved(child, range(width)), *more)
        if by_row:
            return _Lifted(self._behind(node, number, columns), True)
        return _Lifted(self._sheet.pick(node, tuple((i,) for i in columns)), False)

    def _pick(self, child: _Lifted, columns: tuple[tuple[int, ...], ...]) -> _Lifted:
        if not child.by_row:
            return _Lifted(self._sheet.pick(child.node, columns), False)
        moved, at = tuple(self._moved(child, each) for each in columns), self._at
        return _Lifted(self._sheet.pick(child.node, (*moved[:at], (at,), *moved[at:])), True)

    def _cover(self, form: p.Cover, child: _Lifted) -> _Lifted:
        if not child.by_row:
            return self._same(form, child)
        first, second = self._moved(child, (form.first, form.second))
        columns = ((self._at,), *(self._moved(child, each) for each in form.columns))
        return _Lifted(self._sheet.add(p.Cover(child.node, first, second, columns, form.limit)), True)

    def _same(self, form: _OfOne, child: _Lifted) -> _Lifted:
        node = self._sheet.add(replace(form, child=child.node))
        if child.by_row and isinstance(form, p.Distinct):
            self.numbered[node] = self._at
        return _Lifted(node, child.by_row)

    def _union(self, form: p.Union) -> _Lifted:
        every = [self._done[child] for child in form.children]
        by_row = any(each.by_row for each in every)
        nodes = tuple(self._of_each(each) if by_row else each.node for each in every)
        return _Lifted(self._sheet.add(replace(form, children=nodes)), by_row)

    # --- pairs, groups, ranks -------------------------------------------------------------------------

    def _join(self, left: int, right: int) -> _Lifted:
        arranged = [form for form in (self._forms[left], self._forms[right]) if isinstance(form, p.Arrange)]
        return self._pair([self._done[form.child] for form in arranged], arranged)

    def _pair(self, sides: Sequence[_Lifted], forms: Sequence[p.Arrange]) -> _Lifted:
        """The pairs of two sides that agree."""
        both = all(side.by_row for side in sides)
        nodes = (self._arranged(form, side, both) for form, side in zip(forms, sides, strict=True))
        return self._numbered(self._sheet.add(p.Join(*nodes)), sides)

    def _arranged(self, form: p.Arrange, side: _Lifted, both: bool) -> int:
        """Rows kept to be found; `both`: by their number, too."""
        by, loose = self._key(side, both, form.key), self._moved(side, form.loose)
        node = self._sheet.add(replace(form, child=side.node, key=by, loose=loose))
        if side.by_row:
            self.numbered[node] = self._at
        return node

    def _key(self, side: _Lifted, both: bool, key: tuple[int, ...]) -> tuple[int, ...]:
        return ((self._at,) if both else ()) + self._moved(side, key)

    def _look(self, form: p.Look) -> _Lifted:
        arranged = self._forms[form.kept]
        assert isinstance(arranged, p.Arrange)
        child, kept = self._done[form.child], self._done[arranged.child]
        if kept.by_row and form.what != "PAIRS":
            child = _Lifted(self._of_each(child), True)
        both = child.by_row and kept.by_row
        key, loose = self._key(child, both, form.key), self._moved(child, form.loose)
        place = self._arranged(arranged, kept, both)
        node = self._sheet.add(replace(form, child=child.node, kept=place, key=key, loose=loose))
        return self._numbered(node, (child, kept)) if form.what == "PAIRS" else _Lifted(node, child.by_row)

    def _numbered(self, node: int, sides: Sequence[_Lifted]) -> _Lifted:
        """All columns of two sides, with one number, if there is one, before them."""
        number = self._sheet.width(sides[0].node) + self._at
        others = [i for i in range(self._sheet.width(node)) if i != number]
        if all(side.by_row for side in sides):
            return _Lifted(self._sheet.pick(node, tuple((i,) for i in others)), True)
        return _Lifted(self._behind(node, number, others), True) if sides[1].by_row else _Lifted(node, sides[0].by_row)

    def _follow(self, form: p.Follow) -> _Lifted:
        """Pairs in order of time, of one number. Of the left rows some are chosen by each right one, of its number."""
        left, right = self._done[form.left.child], self._done[form.right.child]
        if left.by_row and not right.by_row and form.choice != "ALL":
            right = _Lifted(self._of_each(right), True)
        both = left.by_row and right.by_row
        sides = (self._timed(form.left, left, both), self._timed(form.right, right, both))
        return self._numbered(self._sheet.add(p.Follow(*sides, form.choice, form.meeting)), (left, right))

    def _timed(self, form: p.Timed, side: _Lifted, both: bool) -> p.Timed:
        """One side of pairs in order of time. both: the rows of both have numbers, which are the same."""
        (time,) = self._moved(side, [form.time])
        return p.Timed(side.node, time, self._key(side, both, form.key), self._moved(side, form.loose))

    def _group(self, form: p.Group, child: _Lifted) -> _Lifted:
        if not child.by_row:
            return self._same(form, child)
        sums = tuple(s if s.place is None else replace(s, place=1 + s.place) for s in form.sums)
        found = self._sheet.add(p.Group(child.node, (0, *(1 + i for i in form.key)), sums))
        return _Lifted(found if form.key else self._of_nothing(form, found), True)

    def _of_nothing(self, form: p.Group, found: int) -> int:
        """Without keys there is a group for each row of the table, of no rows where there are none."""
        nothing = self._sheet.add(p.Constant((), self._widths[form.child]))
        every = self._of_each(_Lifted(self._sheet.add(p.Group(nothing, (), form.sums)), False))
        numbers = self._sheet.pick(found, ((0,),))
        sides = (self._sheet.add(p.Arrange(node, (0,))) for node in (every, numbers))
        pair = self._sheet.add(p.Join(*sides))
        known = self._sheet.pick(pair, tuple((i,) for i in range(self._sheet.width(every))))
        missing = self._sheet.add(p.Union((every, self._sheet.add(p.Negate(known)))))
        return self._sheet.add(p.Consolidate(self._sheet.add(p.Union((found, missing)))))

    def _best(self, form: p.Best, child: _Lifted) -> _Lifted:
        if not child.by_row:
            return self._same(form, child)
        places = self._moved(child, (rank.place for rank in form.order))
        order = tuple(replace(rank, place=place) for rank, place in zip(form.order, places, strict=True))
        key = self._key(child, True, form.key)
        return _Lifted(self._sheet.add(replace(form, child=child.node, key=key, order=order)), True)
