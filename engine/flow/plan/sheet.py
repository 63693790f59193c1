"""A plan in the making."""

from __future__ import annotations

from collections.abc import Iterator

from oxiseq.engine.expressions.functions import is_pure
from oxiseq.engine.flow.plan.counted import Distinct, Group, Once, Reach
from oxiseq.engine.flow.plan.forms import NUMBER, FlowPlan, Form, inputs, origins, renamed
from oxiseq.engine.flow.plan.happening import Closure, Look, TimeTerm, Triples
from oxiseq.engine.flow.plan.pairs import Arrange, Follow, Join, JoinAll
from oxiseq.engine.flow.plan.row_by_row import Extend, Filter, Lasting, Pick
from oxiseq.engine.flow.plan.sources import Constant, Given, Graphs, Patterns, Quads, column
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
            columns = origins(form, self._widths)
            numbers = {(child, at) for child in inputs(form) for at in self._raw[child]} | {*NUMBER}
            raw = [i for i, each in enumerate(columns) if each and (each[0] in numbers or each[-1] in numbers)]
            self._forms.append(form)
            self._raw.append(tuple(raw))
            self._widths.append(len(columns))
            if isinstance(form, Group | Reach) and (raw or not numbers.isdisjoint(_summed(form))):
                raise ValueError("columns that hold numbers cannot be grouped by, added up or connected")
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
            case Filter(child) | Extend(child) | Arrange(child) | Lasting(child) | Triples(child) | TimeTerm(child):
                return self.is_set(child)
            case Look(child, _, what="WITH" | "WITHOUT"):
                return self.is_set(child)
            case Pick(child, columns):
                kept = {each[0] for each in columns if len(each) == 1}
                return len(kept) == self._widths[child] and self.is_set(child)
            case Join() | Follow() as form:
                return all(map(self.is_set, inputs(form)))
            case _:
                return False

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


def _summed(form: Group | Reach) -> list[tuple[int, int]]:
    """What is added up."""
    sums = form.sums if isinstance(form, Group) else ()
    return [(form.child, each.place) for each in sums if each.place is not None]
