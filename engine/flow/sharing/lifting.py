"""A plan whose constants are in a table: it answers many queries at once (operators.md, 7.2).

In the flow: an open plan, of which some slots are columns of a table → **operators on a sheet**. The table has a
row for each query: its number, a term, and its constants. What depends on the table has the number as its first column,
which is part of every key; what does not is the same for all queries and runs once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from pyoxigraph import Variable

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.rewriting import placed
from oxiseq.engine.flow.sharing.opening import closed, stars
from oxiseq.grammar.algebra import Call, Expression
from oxiseq.grammar.scope import conjuncts, expression_variables


class NotLiftedError(Exception):
    """A plan has an operator that a table of constants cannot precede."""


class _Lifted(NamedTuple):
    """An operator. by_row: its first column is a number of the table."""

    node: int
    by_row: bool


def parameter(number: int) -> Variable:
    """The placeholder of a column of the table in an open plan."""
    return Variable(f"oxiseq_parameter_{number}")


def lifted(sheet: p.Sheet, forms: Sequence[p.Form], widths: Sequence[int], root: int, table: p.Given) -> int:
    """The place of the root of a plan in which parameters stand for the columns of a table: of the whole query's rows,
    each behind the number of the table's row. Raises NotLiftedError."""
    return _Lifting(sheet, forms, widths, table).root(root)


def _part(form: p.Patterns, numbers: Sequence[int]) -> p.Patterns:
    """Some of the patterns of a conjunction, without its filters."""
    return p.Patterns(tuple(form.patterns[i] for i in numbers), (), tuple(form.places[i] for i in numbers))


def _shifted(form: p.Timed, side: _Lifted, both: bool) -> p.Timed:
    """One side of pairs in order of time. both: the rows of both have numbers, which are the same."""
    shift = int(side.by_row)
    key = ((0,) if both else ()) + tuple(shift + i for i in form.key)
    return p.Timed(side.node, shift + form.time, key, tuple(shift + i for i in form.loose))


class _Lifting:
    def __init__(self, sheet: p.Sheet, forms: Sequence[p.Form], widths: Sequence[int], table: p.Given) -> None:
        self._sheet, self._forms, self._widths = sheet, forms, widths
        self._table = sheet.add(table)
        self._parameters = [parameter(i) for i in range(table.width - 1)]
        self._done: dict[int, _Lifted] = {}

    def root(self, place: int) -> int:
        """The root; all operators come before those that read them."""
        for number, form in enumerate(self._forms):
            if not isinstance(form, p.Arrange):  # joins make their own
                self._done[number] = self._lifted(number, form)
        found = self._done[place]
        if not found.by_row:
            raise NotLiftedError("an answer that is the same for all")
        if not p.is_settled(self._sheet.form(found.node)) and p.is_settled(self._forms[place]):
            return self._sheet.add(p.Consolidate(found.node))
        return found.node

    def _lifted(self, place: int, form: p.Form) -> _Lifted:
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
            case p.Negate(child) | p.Consolidate(child) | p.Distinct(child, None) | p.Reach(child):
                return self._same(form, self._done[child])
            case p.Union(children):
                return self._union(children)
            case p.Join(left, right):
                return self._join(left, right)
            case p.Follow():
                return self._follow(form)
            case p.Extreme(child):
                return self._extreme(form, self._done[child])
            case p.Group(child):
                return self._group(form, self._done[child])
            case p.Best(child):
                return self._best(form, self._done[child])
            case _:
                raise NotLiftedError(type(form).__name__)

    def _looked_up(self, node: int, key: Sequence[tuple[int, int]], bound: p.Bound | None = None) -> int:
        """Rows with the rows of the table: pairs of a row's column and the table's that are the same."""
        table = self._sheet.add(p.Arrange(self._table, tuple(there for _, there in key)))
        return self._sheet.add(p.Lookup(node, table, tuple(here for here, _ in key), None if key else bound))

    def _of_each(self, child: _Lifted) -> int:
        """The rows of an operator for each row of the table."""
        if child.by_row:
            return child.node
        width = self._sheet.width(child.node)
        found = self._looked_up(child.node, ())
        return self._sheet.pick(found, ((width,), *((i,) for i in range(width))))

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
        pair = self._pair(sides, [tuple(mine.index(name) for name in shared) for mine in names], [(), ()])
        places = {name: 1 + i for i, name in enumerate((*names[0], *names[1]))}
        columns = {name: p.column(i) for name, i in places.items()}
        node = self._filtered(pair.node, filters[2], columns)
        kept = (places[key] for key in form.keys if key not in self._parameters)
        found = self._sheet.pick(node, ((0,), *((i,) for i in kept)))
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
        kept = (i for name, i in numbers.items() if name not in self._parameters)
        return _Lifted(self._sheet.pick(found, ((width,), *((i,) for i in kept))), True)

    def _bound(self, conditions: Sequence[Expression], columns: Mapping[Variable, Variable]) -> p.Bound | None:
        """A conjunct that compares a column with a parameter. columns: the places of variables."""
        here = {name: place for place in range(len(columns)) for name, c in columns.items() if c == p.column(place)}
        there = {name: 1 + i for i, name in enumerate(self._parameters)}
        for each in (each for whole in conditions for each in conjuncts(whole)):
            if isinstance(each, Call) and each.name in p.SIGNS and len(each.args) == 2:
                for (a, b), sign in zip((each.args, each.args[::-1]), p.SIGNS[each.name], strict=True):
                    if isinstance(a, Variable) and isinstance(b, Variable) and a in here and b in there:
                        return p.Bound(here[a], there[b], sign)
        return None

    def _equal(self, conditions: Sequence[Expression], columns: Mapping[Variable, Variable]) -> list[tuple[int, int]]:
        """The columns of rows that a condition wants to be a parameter's term, and of the table."""
        here = {name: place for place in range(len(columns)) for name, c in columns.items() if c == p.column(place)}
        there = {name: 1 + i for i, name in enumerate(self._parameters)}
        found = list[tuple[int, int]]()
        for each in (each for whole in conditions for each in conjuncts(whole)):
            if isinstance(each, Call) and each.name == "SAMETERM":
                a, b = each.args
                if isinstance(a, Variable) and isinstance(b, Variable) and a in here and b in there:
                    found.append((here[a], there[b]))
        return found

    def _reads(self, expression: Expression) -> bool:
        return not expression_variables(expression).isdisjoint(self._parameters)

    def _constants(self, first: int) -> dict[Variable, Variable]:
        """The places of the table's constants in a row; the table's row begins at `first`."""
        return {name: p.column(first + 1 + i) for i, name in enumerate(self._parameters)}

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
        shift = int(child.by_row)
        columns = {p.column(i): p.column(shift + i) for i in range(width)}
        if not any(self._reads(each) for each in expressions):
            return child.node, columns, child.by_row, 0
        key = [(0, 0)] if child.by_row else self._equal(conditions, columns)
        found = self._looked_up(child.node, key, self._bound(conditions, columns))
        return found, {**columns, **self._constants(shift + width)}, True, shift + width

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
        shift = int(child.by_row)
        columns = [number] if by_row else []
        columns += [*range(shift, shift + width), *more]
        return _Lifted(self._sheet.pick(node, tuple((i,) for i in columns)), by_row)

    def _pick(self, child: _Lifted, columns: tuple[tuple[int, ...], ...]) -> _Lifted:
        if not child.by_row:
            return _Lifted(self._sheet.pick(child.node, columns), False)
        moved = tuple(tuple(1 + i for i in each) for each in columns)
        return _Lifted(self._sheet.pick(child.node, ((0,), *moved)), True)

    def _same(self, form: p.Negate | p.Consolidate | p.Distinct | p.Reach, child: _Lifted) -> _Lifted:
        return _Lifted(self._sheet.add(replace(form, child=child.node)), child.by_row)

    def _union(self, children: Sequence[int]) -> _Lifted:
        every = [self._done[child] for child in children]
        if not any(each.by_row for each in every):
            return _Lifted(self._sheet.add(p.Union(tuple(each.node for each in every))), False)
        return _Lifted(self._sheet.add(p.Union(tuple(map(self._of_each, every)))), True)

    # --- pairs, groups, ranks -------------------------------------------------------------------------

    def _join(self, left: int, right: int) -> _Lifted:
        sides, forms = [], (self._forms[left], self._forms[right])
        for form in forms:
            if not isinstance(form, p.Arrange) or form.lifetime is not None:
                raise NotLiftedError("what is arranged for some time")
            sides.append(self._done[form.child])
        arranged = [form for form in forms if isinstance(form, p.Arrange)]
        return self._pair(sides, [form.key for form in arranged], [form.loose for form in arranged])

    def _pair(
        self, sides: Sequence[_Lifted], keys: Sequence[tuple[int, ...]], loose: Sequence[tuple[int, ...]]
    ) -> _Lifted:
        """The pairs of two sides that agree on their keys, and on loose columns where both have a value."""
        both = all(side.by_row for side in sides)
        nodes = []
        for side, key, other in zip(sides, keys, loose, strict=True):
            shift = int(side.by_row)
            by = ((0,) if both else ()) + tuple(shift + i for i in key)
            nodes.append(self._sheet.add(p.Arrange(side.node, by, tuple(shift + i for i in other))))
        return self._numbered(self._sheet.add(p.Join(*nodes)), sides)

    def _numbered(self, node: int, sides: Sequence[_Lifted]) -> _Lifted:
        """All columns of two sides, with one number, if there is one, before them."""
        width = self._sheet.width(sides[0].node)
        every = range(self._sheet.width(node))
        if all(side.by_row for side in sides):
            return _Lifted(self._sheet.pick(node, tuple((i,) for i in every if i != width)), True)
        if sides[1].by_row:
            moved = (width, *every[:width], *every[width + 1 :])
            return _Lifted(self._sheet.pick(node, tuple((i,) for i in moved)), True)
        return _Lifted(node, sides[0].by_row)

    def _follow(self, form: p.Follow) -> _Lifted:
        """Pairs in order of time, of one number. Of the left rows some are chosen by each right one, of its number."""
        left, right = self._done[form.left.child], self._done[form.right.child]
        if left.by_row and not right.by_row and form.choice != "ALL":
            right = _Lifted(self._of_each(right), True)
        both = left.by_row and right.by_row
        node = self._sheet.add(
            p.Follow(_shifted(form.left, left, both), _shifted(form.right, right, both), form.choice, form.meeting)
        )
        return self._numbered(node, (left, right))

    def _extreme(self, form: p.Extreme, child: _Lifted) -> _Lifted:
        shift = int(child.by_row)
        key = (*range(shift), *(shift + i for i in form.key))
        return _Lifted(self._sheet.add(p.Extreme(child.node, key, shift + form.time, form.latest)), child.by_row)

    def _group(self, form: p.Group, child: _Lifted) -> _Lifted:
        if not child.by_row:
            return _Lifted(self._sheet.add(replace(form, child=child.node)), False)
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
            return _Lifted(self._sheet.add(replace(form, child=child.node)), False)
        order = tuple(replace(rank, place=1 + rank.place) for rank in form.order)
        key = (0, *(1 + i for i in form.key))
        return _Lifted(self._sheet.add(replace(form, child=child.node, key=key, order=order)), True)
