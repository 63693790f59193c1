"""A standing query as a graph of operators over rows that come and go (operators.md).

Where it stands: algebra → **plan** → nodes at work. Immutable. A plan is a table: each operator names its inputs by
their places in it, so equal operators on equal inputs are one, and columns are places, not names, so what variables are
called does not tell operators apart. In expressions the column at place 3 is the variable `column(3)`.

Most columns hold ids of terms. Some are *raw*: numbers (`FlowPlan.raw` says where). An i64, a time for instance, is two
of them, one behind the other (times.py): so rows are hashed, compared, kept and handed on in one way. Expressions and
orders of terms do not look at raw columns.

    Patterns, Asked, Given, Constant      where rows come from
    Quads, Graphs                         what a store holds, followed quad by quad
    Triples, Cover, Sometime, TimeTerm    rows that happen at some time, row by row
    Look, Closure                         pairs of what happens with what has happened; paths in time
    Filter, Extend, Pick, Negate, Union   row by row, without memory
    Hull, Lasting                         intervals, row by row
    Arrange, Join                         pairs; the memory of joins is in what is arranged
    Lookup                                rows and what a table has for them, without memory of the rows
    Follow, Extreme                       pairs in order of time; the first or last rows
    Distinct, Consolidate, Once, Group    rows counted
    Best                                  ranks
    Reach                                 paths of any length
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias

from pyoxigraph import NamedNode, Variable

from oxiseq.engine.expressions.functions import IMPURE
from oxiseq.engine.terms.texts import Term
from oxiseq.engine.windows import ConjunctiveQuery
from oxiseq.grammar.algebra import Call, Expression, TermOrVariable, TriplePattern
from oxiseq.grammar.scope import subexpressions


@lru_cache(maxsize=256)
def column(place: int) -> Variable:
    """What stands for the column at a place in the expressions of a plan."""
    return Variable(f"c{place}")


# --- where rows come from -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WindowPlace:
    """What a window holds: the number of its content in the query."""

    content: int


@dataclass(frozen=True, slots=True)
class GraphPlace:
    """A graph of the knowledge base; None: its default graph."""

    name: NamedNode | None


Place: TypeAlias = WindowPlace | GraphPlace


@dataclass(frozen=True, slots=True)
class Patterns:
    """A conjunction of triple patterns, each on a window or on a graph of the knowledge base, with FILTERs on their
    variables: each of its rows once (engine/windows). `query.sources` are places in `places`. Columns: its variables
    and blank nodes in order of appearance, called `column(0)`, `column(1)`... there."""

    query: ConjunctiveQuery
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A SELECT to the knowledge base alone, asked again when that has changed; its rows with their multiplicity."""

    text: str
    width: int


@dataclass(frozen=True, slots=True)
class Quads:
    """The quads of a store that agree with a pattern, each once. graph: None its default graph, a variable any of its
    named ones. Columns: the variables in order of appearance, the graph's last, called `column(0)`... there."""

    pattern: TriplePattern
    graph: NamedNode | Variable | None

    @property
    def parts(self) -> tuple[TermOrVariable | None, ...]:
        """Subject, predicate, object, graph."""
        return (self.pattern.subject, self.pattern.predicate, self.pattern.object, self.graph)

    @property
    def width(self) -> int:
        """How many variables it has."""
        return len({part for part in self.parts if isinstance(part, Variable)})


@dataclass(frozen=True, slots=True)
class Graphs:
    """The named graphs of a store, the empty ones too. One column."""


@dataclass(frozen=True, slots=True)
class Given:
    """Rows that whoever runs the plan gives. raw: places of columns that hold numbers; once: each comes once."""

    name: str
    width: int
    raw: tuple[int, ...] = ()
    once: bool = False


@dataclass(frozen=True, slots=True)
class Constant:
    """Rows that are there from the first tick on: VALUES; `{}` is one row without columns. None: unbound."""

    rows: tuple[tuple[Term | None, ...], ...]
    width: int


Source: TypeAlias = Patterns | Asked | Quads | Graphs | Given | Constant


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long rows are of use, the interval of which stands at `start`: while it begins at most `limit` microseconds
    before the instant in work. Then they are forgotten, which nobody is told of. Rows without a time (times.NO_START)
    stay."""

    start: int
    limit: int = 0



# --- row by row -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows for which all conditions hold. Without EXISTS."""

    child: int
    conditions: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Extend:
    """The rows with the value of an expression behind them, unbound where it is an error. Without EXISTS. lifetime: of
    what is drawn once for equal rows."""

    child: int
    expression: Expression
    lifetime: Lifetime | None = None


@dataclass(frozen=True, slots=True)
class Pick:
    """Other columns: each is the first of some places that is bound; of none: unbound. Projections, what fills a joined
    row's columns from both sides, the columns that a branch of UNION has not."""

    child: int
    columns: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Negate:
    """What comes, goes, and the other way about."""

    child: int


@dataclass(frozen=True, slots=True)
class Union:
    """The rows of all children, which are of one width."""

    children: tuple[int, ...]


# --- intervals, row by row --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hull:
    """The rows with the least interval that holds some others behind them, as four raw columns: its start, the least of
    those at `starts`, and its end, the greatest of those at `ends`."""

    child: int
    starts: tuple[int, ...]
    ends: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Lasting:
    """The rows whose interval from `start` to `end` lasts from `least` to `most` microseconds, both included. None of
    those whose start is after their end: they have no time."""

    child: int
    start: int
    end: int
    least: int
    most: int


# --- pairs ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Arrange:
    """Rows kept, to be found by their columns at `key` (unbound being a value like others) and at `loose`, which agree
    where both sides have a value. coming: rows only come."""

    child: int
    key: tuple[int, ...]
    loose: tuple[int, ...] = ()
    lifetime: Lifetime | None = None
    coming: bool = False


@dataclass(frozen=True, slots=True)
class Join:
    """The pairs of two arrangements that agree: all columns of the left, then all of the right. `key` and `loose` of
    both are as long."""

    left: int
    right: int


@dataclass(frozen=True, slots=True)
class Bound:
    """A condition on pairs: the row's column at `place` is above (">"), below or equal to the table's at `column`, as
    numbers. It may let others pass: a FILTER behind it decides."""

    place: int
    column: int
    sign: Literal["<", "=", ">"]


@dataclass(frozen=True, slots=True)
class Lookup:
    """The pairs of rows with those of an arrangement that have the same columns at its key: all columns of both. What
    is arranged is there before the first row comes, and does not change: so the rows need not be kept. bound: where
    there is no key."""

    child: int
    table: int
    key: tuple[int, ...]
    bound: Bound | None = None


# --- order of time --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Timed:
    """Rows that agree in some columns, in order of a raw time. `loose`: they agree where both sides have a value."""

    child: int
    time: int
    key: tuple[int, ...] = ()
    loose: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Follow:
    """The pairs of rows that agree of which the time of the left is before that of the right, or (`meeting`) equal to
    it: all columns of the left, then all of the right. EARLIEST, LATEST: of a right row and all left rows with its key
    before it only those that are first, or last; loose columns are compared after that."""

    left: Timed
    right: Timed
    choice: Literal["ALL", "EARLIEST", "LATEST"] = "ALL"
    meeting: bool = False


@dataclass(frozen=True, slots=True)
class Extreme:
    """By key the rows with the first time, or (`latest`) the last: all that are equal. As Best with `ties`, for raw
    times."""

    child: int
    key: tuple[int, ...]
    time: int
    latest: bool


# --- what happens and what has happened ---------------------------------------------------------------

# A row's interval is four raw columns, its first. Its changes come at the instant at which it ends, those of a row
# without a time (times.NO_START, times.NO_END) when the knowledge base changes. So a row finds all that may pair with
# it in what there is at the end of its tick: what comes later ends later.


@dataclass(frozen=True, slots=True)
class Triples:
    """The triples that a pattern accepts, of rows (interval, subject, predicate, object, more): the interval and the
    columns at `columns`. equal: places where a constant stands; same: places of equal terms; but: predicates that are
    not wanted; longest: of the interval; timed: not those without a time."""

    child: int
    columns: tuple[int, ...]
    equal: tuple[tuple[int, Term], ...] = ()
    same: tuple[tuple[int, int], ...] = ()
    but: tuple[NamedNode, ...] = ()
    longest: int | None = None
    timed: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """What has come, and what it finds in an arrangement at the end of its tick: PAIRS, all columns of both; those that
    find something (WITH) or nothing (WITHOUT). What is found has the same `key`, and `loose` where both have a value,
    has ended before (BEFORE) the start of what has come, or by its end (BY), and both together last `limit` at most.
    earlier: what comes at the same tick is not found."""

    child: int
    kept: int
    key: tuple[int, ...]
    loose: tuple[int, ...] = ()
    order: Literal["ANY", "BEFORE", "BY"] = "ANY"
    what: Literal["PAIRS", "WITH", "WITHOUT"] = "PAIRS"
    limit: int | None = None
    earlier: bool = False


@dataclass(frozen=True, slots=True)
class Cover:
    """Rows with the least interval that holds those at `left` and `right`, as their first columns, and with others as
    Pick has them, if that lasts `limit` at most. What has ended before the instants in work does not change."""

    child: int
    left: int
    right: int
    columns: tuple[tuple[int, ...], ...]
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Sometime:
    """The rows with an interval before all others if they have a time: that they have happened, not when."""

    child: int


@dataclass(frozen=True, slots=True)
class TimeTerm:
    """The rows with a function of their interval behind them, as a term: getDURATION, getSTARTTIME, getENDTIME; number:
    in microseconds. Unbound if they have no time."""

    child: int
    function: str
    number: bool = False


@dataclass(frozen=True, slots=True)
class Closure:
    """Paths of one step or more, each with the least interval that holds its steps, if that lasts `limit` at most;
    steps and paths are two columns behind their interval, each once."""

    child: int
    limit: int | None = None


# --- rows counted ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Distinct:
    """Each row once, as long as its weight is above 0."""

    child: int
    lifetime: Lifetime | None = None


@dataclass(frozen=True, slots=True)
class Consolidate:
    """The same rows, what comes and goes within a tick left out. Without memory."""

    child: int


@dataclass(frozen=True, slots=True)
class Once:
    """Each row of a tick once, where rows only come. Without memory. numbered: its first columns are an interval, and
    two columns behind it are the halves of a number that tells it from all other rows and is higher than those of
    earlier ticks; 0 if it has no time."""

    child: int
    numbered: bool = False


@dataclass(frozen=True, slots=True)
class Sum:
    """An aggregate of a group that is a sum: COUNT of rows (`place` None) or of bound values, SUM, AVG; or all its
    values (GROUP_CONCAT, which are written in term order)."""

    name: Literal["COUNT", "SUM", "AVG", "GROUP_CONCAT"]
    place: int | None
    separator: str = " "


@dataclass(frozen=True, slots=True)
class Group:
    """A row for each group: its key, unbound being a value like others, then its sums, unbound where SPARQL has an
    error. Without keys there is one group, also of no rows, from the first tick on."""

    child: int
    key: tuple[int, ...]
    sums: tuple[Sum, ...]


# --- ranks ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rank:
    """A column to order by, as ORDER BY does."""

    place: int
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Best:
    """By key the rows of the ranks [start, stop), or (`ties`) all that are equal to the first in `order`. Ranks go by
    `order`, then by the other columns, in term order, so that they are a function of what there is. A row of weight 3
    has three ranks. stop None: to the end."""

    child: int
    key: tuple[int, ...]
    order: tuple[Rank, ...]
    start: int = 0
    stop: int | None = None
    ties: bool = False


# --- paths ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reach:
    """Edges (the last two columns of the child) → each pair of nodes that one step or more connect, once. Columns
    before those are context: paths stay within one."""

    child: int


Form: TypeAlias = (
    Patterns | Asked | Quads | Graphs | Given | Constant | Filter | Extend | Pick | Negate | Union | Hull | Lasting
    | Arrange | Join | Lookup | Follow | Extreme | Distinct | Consolidate | Once | Group | Best | Reach | Triples | Look
    | Cover | Sometime | TimeTerm | Closure
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FlowPlan:
    """Operators in an order in which each comes after its inputs; `widths`: how many columns each has; `root`: the one
    whose rows are the answer; `raw`: the places of each one's columns that hold numbers, ascending; `also`: others
    whose rows are looked at."""

    forms: tuple[Form, ...]
    widths: tuple[int, ...]
    root: int
    raw: tuple[tuple[int, ...], ...]
    also: tuple[int, ...] = ()


def inputs(form: Form) -> tuple[int, ...]:
    """The places of its inputs."""
    match form:
        case Patterns() | Asked() | Quads() | Graphs() | Given() | Constant():
            return ()
        case Union(children):
            return children
        case Join(left, right):
            return left, right
        case Follow(left, right):
            return left.child, right.child
        case Look(child, kept) | Lookup(child, kept):
            return child, kept
        case _:
            return (form.child,)


def is_one_to_one(plan: FlowPlan) -> bool:
    """Whether each row of the root is one row of a conjunction of patterns, and no two are alike: then what is new
    there is new here, and nothing has to be counted."""
    place = plan.root
    while True:
        match plan.forms[place]:
            case Patterns() | Quads() | Graphs():
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
    """Whether an operator hands on the outcome of a tick, whatever comes and goes within it."""
    return isinstance(form, Distinct | Consolidate | Group | Best | Reach)


def draws(plan: FlowPlan) -> bool:
    """Whether some value is drawn by chance."""
    drawn = (each.expression for each in plan.forms if isinstance(each, Extend))
    return not all(map(is_pure, drawn))


def is_pure(expression: Expression) -> bool:
    """Whether its value depends on what it reads alone."""
    return not any(isinstance(e, Call) and e.name in IMPURE for e in subexpressions(expression))


def draws_in_turn(plan: FlowPlan) -> bool:
    """Whether several operators make blank nodes, which stand in the order in which they come to be: then each instant
    is worked on by itself, or their order would hang on how events are put together in batches."""
    made = (each.expression for each in plan.forms if isinstance(each, Extend))
    return sum(any(isinstance(e, Call) and e.name == "BNODE" for e in subexpressions(each)) for each in made) > 1


def _keeps(columns: tuple[tuple[int, ...], ...], width: int) -> bool:
    """Whether all columns of the child are among these."""
    return {places[0] for places in columns if len(places) == 1} >= set(range(width))


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
        """The place of the rows for which all conditions hold. What is drawn by chance is drawn once for a row, and
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
            case Patterns() | Quads() | Graphs() | Distinct() | Once() | Reach() | Group():
                return True
            case Given(once=once):
                return once
            case Constant(rows, _):
                return len(rows) <= 1
            case Closure():
                return True
            case (
                Filter(child) | Extend(child) | Arrange(child) | Hull(child) | Lasting(child) | Extreme(child)
                | Triples(child) | TimeTerm(child)
            ):  # fmt: skip
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
            case Patterns(query, _):
                return len(query.keys)
            case Quads():
                return form.width
            case Graphs():
                return 1
            case Asked(_, width) | Given(width=width) | Constant(_, width):
                return width
            case Extend(child) | TimeTerm(child):
                return self._widths[child] + 1
            case Once(child, numbered):
                return self._widths[child] + 2 * numbered
            case Triples(_, columns) | Cover(_, _, _, columns):
                return 4 + len(columns)
            case Look(child, kept, what="PAIRS"):
                return self._widths[child] + self._widths[kept]
            case Hull(child):
                return self._widths[child] + 4
            case Pick(_, columns):
                return len(columns)
            case Union(children):
                return self._widths[children[0]]
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
            case Patterns() | Asked() | Quads() | Graphs() | Constant():
                return ()
            case Hull(child):
                width = self._widths[child]
                return (*self._raw[child], *range(width, width + 4))
            case Once(child, numbered):
                width = self._widths[child]
                return (*self._raw[child], *range(width, width + 2 * numbered))
            case Pick(child, columns):
                return tuple(i for i, places in enumerate(columns) if places and places[0] in self._raw[child])
            case Triples(child, columns):
                return (0, 1, 2, 3, *(4 + i for i, place in enumerate(columns) if place in self._raw[child]))
            case Cover(child, _, _, columns):
                picked = (4 + i for i, places in enumerate(columns) if places and places[0] in self._raw[child])
                return (0, 1, 2, 3, *picked)
            case Union(children):
                return tuple(sorted({place for child in children for place in self._raw[child]}))
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
        """The operators that an answer needs, and others that are looked at."""
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


def renamed(form: Form, places: Mapping[int, int]) -> Form:
    """A form whose inputs stand at other places."""
    match form:
        case Patterns() | Asked() | Quads() | Graphs() | Given() | Constant():
            return form
        case Union(children):
            return Union(tuple(places[c] for c in children))
        case Join(left, right):
            return Join(places[left], places[right])
        case Look(child, kept):
            return replace(form, child=places[child], kept=places[kept])
        case Lookup(child, table):
            return replace(form, child=places[child], table=places[table])
        case Follow(left, right):
            here = replace(left, child=places[left.child]), replace(right, child=places[right.child])
            return replace(form, left=here[0], right=here[1])
        case _:
            return replace(form, child=places[form.child])
