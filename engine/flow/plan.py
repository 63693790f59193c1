"""A standing query as a graph of operators over rows that come and go (operators.md).

In the flow: algebra → **plan** → nodes at work. Immutable. A plan is a table: each operator names its inputs by
their places in it, so equal operators on equal inputs are one, and columns are places, not names, so what variables are
called does not distinguish operators. In expressions the column at place 3 is the variable `column(3)`.

Most columns hold ids of terms. Some are *raw*: numbers (`FlowPlan.raw` says where). An i64, a time for instance, is two
of them, one behind the other (times.py): so rows are hashed, compared, kept and passed on in one way. Expressions and
orders of terms do not look at raw columns.

    Patterns, Asked, Given, Constant      where rows come from
    Quads, Graphs                         a store's content, followed quad by quad
    Triples, Cover, Sometime, TimeTerm    rows that happen at some time, row by row
    Look, Closure                         pairs of new facts with earlier ones; paths in time
    Filter, Extend, Pick, Negate, Union   row by row, without memory
    Lasting                               intervals, row by row
    Arrange, Join, JoinAll                joined rows; the memory of joins is in the arrangements
    Lookup                                rows and the rows of a table that compare with them
    Follow                                pairs in order of time
    Distinct, Consolidate, Once, Group    rows counted
    Best                                  ranks
    Reach                                 paths of any length

Of each operators/ has the description, which stands in a plan, and the running one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any, Final, TypeAlias

from oxiseq.engine.expressions.functions import is_pure
from oxiseq.engine.flow.operators.arrange import Arrange
from oxiseq.engine.flow.operators.best import Best, Rank, by_time
from oxiseq.engine.flow.operators.closure import Closure
from oxiseq.engine.flow.operators.computing import Extend, Filter
from oxiseq.engine.flow.operators.distinct import Consolidate, Distinct, Once
from oxiseq.engine.flow.operators.follow import Follow, Timed
from oxiseq.engine.flow.operators.group import Group, Sum
from oxiseq.engine.flow.operators.in_time import PREDICATE, Cover, Lasting, Sometime, TimeTerm, Triples
from oxiseq.engine.flow.operators.join import SIGNS, Bound, Join, JoinAll, Look, Lookup, Only, Sign
from oxiseq.engine.flow.operators.node import Lifetime
from oxiseq.engine.flow.operators.reach import Reach
from oxiseq.engine.flow.operators.rows import Negate, Pick, Union
from oxiseq.engine.flow.operators.sources import (
    MOST_PATTERNS,
    MOST_VARIABLES,
    Asked,
    Constant,
    Given,
    GraphPlace,
    Graphs,
    Patterns,
    Place,
    Quads,
    Source,
    WindowPlace,
    column,
)
from oxiseq.grammar.algebra import Call, Expression
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import subexpressions

__all__ = [
    "MOST_PATTERNS",
    "MOST_VARIABLES",
    "NUMBER",
    "PREDICATE",
    "SIGNS",
    "Arrange",
    "Asked",
    "Best",
    "Bound",
    "Closure",
    "Consolidate",
    "Constant",
    "Cover",
    "Distinct",
    "Extend",
    "Filter",
    "FlowPlan",
    "Follow",
    "Form",
    "Given",
    "GraphPlace",
    "Graphs",
    "Group",
    "Join",
    "JoinAll",
    "Lasting",
    "Lifetime",
    "Look",
    "Lookup",
    "Negate",
    "Once",
    "Only",
    "Patterns",
    "Pick",
    "Place",
    "Quads",
    "Rank",
    "Reach",
    "Sheet",
    "Sign",
    "Sometime",
    "Source",
    "Sum",
    "TimeTerm",
    "Timed",
    "Triples",
    "Union",
    "WindowPlace",
    "by_time",
    "column",
    "draws",
    "draws_in_turn",
    "inputs",
    "is_consolidated",
    "is_one_to_one",
    "is_settled",
    "origins",
    "renamed",
]

Form: TypeAlias = (
    Patterns
    | Asked
    | Quads
    | Graphs
    | Given
    | Constant
    | Filter
    | Extend
    | Pick
    | Negate
    | Union
    | Lasting
    | Arrange
    | Join
    | JoinAll
    | Lookup
    | Follow
    | Distinct
    | Consolidate
    | Once
    | Group
    | Best
    | Reach
    | Triples
    | Look
    | Cover
    | Sometime
    | TimeTerm
    | Closure
)


@dataclass(frozen=True, slots=True)
class FlowPlan:
    """Operators in an order in which each comes after its inputs; `widths`: how many columns each has; `root`: the one
    whose rows are the answer; `raw`: the places of each one's columns that hold numbers, ascending; `also`: others
    whose rows are read."""

    forms: tuple[Form, ...]
    widths: tuple[int, ...]
    root: int
    raw: tuple[tuple[int, ...], ...]
    also: tuple[int, ...] = ()


_CHILDREN: Final = ("child", "children", "left", "right", "kept", "table")
"""Fields that name inputs, in their order."""


def inputs(form: Form) -> tuple[int, ...]:
    """The places of its inputs."""
    found: list[int] = []
    for name in _CHILDREN:
        match getattr(form, name, ()):
            case int() as place:
                found.append(place)
            case Timed(place):
                found.append(place)
            case places:
                found += places
    return tuple(found)


def renamed(form: Form, places: Mapping[int, int]) -> Form:
    """A form with its inputs renumbered."""
    changed: dict[str, Any] = {}
    for name in _CHILDREN:
        match getattr(form, name, None):
            case int() as place:
                changed[name] = places[place]
            case Timed(place) as side:
                changed[name] = replace(side, child=places[place])
            case tuple() as children:
                changed[name] = tuple(places[child] for child in children)
    return replace(form, **changed) if changed else form


Origin: TypeAlias = tuple[tuple[int, int], ...]
"""An input and its column of which a column is, or several, of which the first that is bound is taken."""
TERM: Final[Origin] = ()
NUMBER: Final[Origin] = ((-1, 0),)
"""Of a new column: a term, or a raw number."""


def origins(form: Form, widths: Sequence[int]) -> list[Origin]:
    """Where each of its columns comes from. widths: how many columns each operator before it has."""

    def every(*children: int) -> list[Origin]:
        return [((child, i),) for child in children for i in range(widths[child])]

    match form:
        case Patterns():
            return [TERM] * len(form.keys)
        case Asked(width=width) | Constant(width=width) | Quads(width=width):
            return [TERM] * width
        case Graphs():
            return [TERM]
        case Given(_, width, raw):
            return [NUMBER if i in raw else TERM for i in range(width)]
        case JoinAll(_, columns):
            return [TERM] * (1 + max((c for each in columns for c in each), default=-1))
        case Extend(child) | TimeTerm(child):
            return [*every(child), TERM]
        case Once(child, numbered):
            return [*every(child), *[NUMBER] * (2 * bool(numbered))]
        case Triples(child, columns):
            return [((child, i),) for i in (*range(4), *columns)]
        case Cover(child, columns=picked):
            return [*[NUMBER] * 4, *[tuple(zip(repeat(child), places)) for places in picked]]
        case Pick(child, picked):
            return [tuple(zip(repeat(child), places)) for places in picked]
        case Union(children, marked):
            both = [tuple(zip(children, repeat(i))) for i in range(widths[children[0]])]
            return [*both, *[NUMBER] * marked]
        case Join() | Lookup() | Follow() | Look(what="PAIRS"):
            return every(*inputs(form))
        case Group(child, key, sums):
            return [*(((child, i),) for i in key), *[TERM] * len(sums)]
        case _:
            return every(form.child)


def is_one_to_one(plan: FlowPlan) -> bool:
    """Whether each row of the root is one row of a conjunction of patterns, and no two are alike: then what is new
    there is new here, and nothing has to be counted."""
    place = plan.root
    while True:
        match plan.forms[place]:
            case Patterns() | JoinAll() | Quads() | Graphs():
                return True
            case Filter(child, conditions) if all(map(is_pure, conditions)):
                place = child
            case Extend(child, expression) if is_pure(expression):
                place = child
            case Pick(child, columns) if _keeps(columns, plan.widths[child]):
                place = child
            case _:
                return False


def is_consolidated(plan: FlowPlan) -> bool:
    """Whether no row of the root comes and goes within one tick."""
    return is_settled(plan.forms[plan.root]) or is_one_to_one(plan)


def is_settled(form: Form) -> bool:
    """Whether an operator passes on the outcome of a tick, whatever comes and goes within it."""
    return isinstance(form, Distinct | Consolidate | Group | Best | Reach)


def draws(plan: FlowPlan) -> bool:
    """Whether some value is drawn by chance."""
    drawn = (each.expression for each in plan.forms if isinstance(each, Extend))
    return not all(map(is_pure, drawn))


def draws_in_turn(plan: FlowPlan) -> bool:
    """Whether several operators make blank nodes, which sort by age: then each instant
    is processed alone, or their order would depend on how events are batched."""
    made = (each.expression for each in plan.forms if isinstance(each, Extend))
    return sum(any(isinstance(e, Call) and e.name == "BNODE" for e in subexpressions(each)) for each in made) > 1


def _keeps(columns: tuple[tuple[int, ...], ...], width: int) -> bool:
    """Whether all columns of the child are among these."""
    return {places[0] for places in columns if len(places) == 1} >= set(range(width))


def below(forms: Sequence[Form], roots: Iterable[int]) -> set[int]:
    """The places of these operators, and of all that they are made of."""
    found = {*roots}
    for place in range(max(found, default=-1), -1, -1):
        if place in found:
            found.update(inputs(forms[place]))
    return found


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
        needed = below(forms, (root, *also))
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
