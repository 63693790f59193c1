"""A plan in the making."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from oxiseq.engine.expressions.functions import is_pure
from oxiseq.engine.flow.plan.counted import Distinct, Group, Once, Reach
from oxiseq.engine.flow.plan.forms import FlowPlan, Form, inputs, renamed
from oxiseq.engine.flow.plan.happening import Closure, Cover, Look, TimeTerm, Triples
from oxiseq.engine.flow.plan.pairs import Arrange, Extreme, Follow, Join, JoinAll, Lookup
from oxiseq.engine.flow.plan.row_by_row import Extend, Filter, Lasting, Pick, Union
from oxiseq.engine.flow.plan.sources import Asked, Constant, Given, Graphs, Patterns, Quads, column
from oxiseq.grammar.algebra import Expression


class Sheet:
    """A plan in the making: a form that is there is not added again."""

    def __init__(self) -> None:
        self._places: dict[Form, int] = {}
        self._forms: list[Form] = []
        self._widths: list[int] = []
        self._raw: list[tuple[int, ...]] = []

    def add(self, form: Form) -> int:
        """The place of a form."""
        place = self._places.get(form)
        if place is None:
            place = self._places[form] = len(self._widths)
            self._forms.append(form)
            self._raw.append(self._raw_of(form))
            self._widths.append(self._width_of(form))
        return place

    def __len__(self) -> int:
        return len(self._forms)

    def shorten(self, count: int) -> None:
        """Keep the first so many forms."""
        for form in self._forms[count:]:
            del self._places[form]
        del self._forms[count:], self._widths[count:], self._raw[count:]

    def form(self, place: int) -> Form:
        """An operator."""
        return self._forms[place]

    def arrangements(self) -> Iterator[tuple[int, Arrange]]:
        """The places of rows that are kept, and how."""
        for place, form in enumerate(self._forms):
            if isinstance(form, Arrange):
                yield place, form

    def width(self, place: int) -> int:
        """How many columns an operator has."""
        return self._widths[place]

    def raw(self, place: int) -> tuple[int, ...]:
        """Which of them hold numbers."""
        return self._raw[place]

    def pick(self, child: int, columns: tuple[tuple[int, ...], ...]) -> int:
        """The place of other columns of an operator: of the operator itself where they are the same, and of what a
        Pick takes its columns from."""
        form = self._forms[child]
        if isinstance(form, Pick):
            return self.pick(form.child, tuple(tuple(x for i in each for x in form.columns[i]) for each in columns))
        if columns == tuple((i,) for i in range(self._widths[child])):
            return child
        return self.add(Pick(child, columns))

    def filtered(self, child: int, conditions: tuple[Expression, ...]) -> int:
        """The place of the rows for which all conditions hold. Random values are drawn once for a row, and
        still known when the row goes."""
        pure = tuple(each for each in conditions if is_pure(each))
        if pure:
            child = self.add(Filter(child, pure))
        drawn = [each for each in conditions if not is_pure(each)]
        if not drawn:
            return child
        width, made = self._widths[child], child
        for each in drawn:
            made = self.add(Extend(made, each))
        kept = self.add(Filter(made, tuple(column(width + i) for i in range(len(drawn)))))
        return self.pick(kept, tuple((i,) for i in range(width)))

    def is_set(self, place: int) -> bool:
        """Whether it surely has each of its rows once."""
        match self._forms[place]:
            case Patterns() | JoinAll() | Quads() | Graphs() | Distinct() | Once() | Reach() | Group():
                return True
            case Given(once=once):
                return once
            case Constant(rows, _):
                return len(rows) <= 1
            case Closure():
                return True
            case (
                Filter(child)
                | Extend(child)
                | Arrange(child)
                | Lasting(child)
                | Extreme(child)
                | Triples(child)
                | TimeTerm(child)
            ):
                return self.is_set(child)
            case Look(child, _, what="WITH" | "WITHOUT"):
                return self.is_set(child)
            case Pick(child, columns):
                kept = {each[0] for each in columns if len(each) == 1}
                return len(kept) == self._widths[child] and self.is_set(child)
            case Join() | Follow() | Lookup() as form:
                return all(map(self.is_set, inputs(form)))
            case _:
                return False

    def _width_of(self, form: Form) -> int:
        match form:
            case Patterns():
                return len(form.keys)
            case Quads():
                return form.width
            case Graphs():
                return 1
            case Asked(_, width) | Given(width=width) | Constant(_, width):
                return width
            case Extend(child) | TimeTerm(child):
                return self._widths[child] + 1
            case Once(child, numbered):
                return self._widths[child] + 2 * bool(numbered)
            case Triples(_, columns) | Cover(_, _, _, columns):
                return 4 + len(columns)
            case Look(child, kept, what="PAIRS"):
                return self._widths[child] + self._widths[kept]
            case Pick(_, columns):
                return len(columns)
            case Union(children, marked):
                return self._widths[children[0]] + marked
            case JoinAll(_, columns):
                return 1 + max((c for each in columns for c in each), default=-1)
            case Join(left, right) | Lookup(left, right):
                return self._widths[left] + self._widths[right]
            case Follow(left, right):
                return self._widths[left.child] + self._widths[right.child]
            case Group(_, key, sums):
                return len(key) + len(sums)
            case _:
                return self._widths[form.child]

    def _raw_of(self, form: Form) -> tuple[int, ...]:
        match form:
            case Given(raw=raw):
                return raw
            case Patterns() | Asked() | Quads() | Graphs() | Constant() | JoinAll():
                return ()
            case Once(child, numbered):
                width = self._widths[child]
                return (*self._raw[child], *range(width, width + 2 * bool(numbered)))
            case Pick(child, columns):
                return tuple(i for i, places in enumerate(columns) if places and places[0] in self._raw[child])
            case Triples(child, columns):
                return (0, 1, 2, 3, *(4 + i for i, place in enumerate(columns) if place in self._raw[child]))
            case Cover(child, _, _, columns):
                picked = (4 + i for i, places in enumerate(columns) if places and places[0] in self._raw[child])
                return (0, 1, 2, 3, *picked)
            case Union(children, marked):
                mark = [self._widths[children[0]]] if marked else []
                return tuple(sorted({*mark, *(place for child in children for place in self._raw[child])}))
            case Group(child, key, sums):
                return self._of_terms(child, {*key, *(s.place for s in sums)})
            case Reach(child):
                return self._of_terms(child, range(self._widths[child]))
            case Join() | Follow() | Lookup() | Look(what="PAIRS"):
                left, right = inputs(form)
                return (*self._raw[left], *(self._widths[left] + place for place in self._raw[right]))
            case _:
                return self._raw[form.child]

    def _of_terms(self, child: int, read: Iterable[int | None]) -> tuple[int, ...]:
        """No raw columns: of operators that read terms alone. Raises ValueError where they would read numbers."""
        if not set(read).isdisjoint(self._raw[child]):
            raise ValueError("columns that hold numbers cannot be grouped by, added up or connected")
        return ()

    def plan(self, root: int, also: tuple[int, ...] = ()) -> FlowPlan:
        """The operators that an answer needs, and others whose rows are read."""
        forms = self._forms
        needed = {root, *also}
        for place in range(max(needed), -1, -1):
            if place in needed:
                needed.update(inputs(forms[place]))
        if len(needed) == len(forms):
            return FlowPlan(tuple(forms), tuple(self._widths), root, tuple(self._raw), also)
        smaller = Sheet()
        places: dict[int, int] = {}
        for place in sorted(needed):
            places[place] = smaller.add(renamed(forms[place], places))
        here = tuple(places[place] for place in also)
        return FlowPlan(tuple(smaller._forms), tuple(smaller._widths), places[root], tuple(smaller._raw), here)
