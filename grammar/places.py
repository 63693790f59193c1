"""What each GPM of a SEQ can see: the order of its atoms, read left to right.

In the flow: algebra → facts for the checks. A GPM sees what positive GPMs left of it bind (other alternatives of a
`|` not included), its partners in `&`, and its own mapping; a negated GPM shows nothing to others (semantics.md 2.2,
2.5). A GPM of UNTIL is negated behind all of them: a FILTER of it may read whatever a match binds (2.5c).

And over what an aggregate of SELECT runs: the iterations of a repeated GPM in one match, or the matches. One whose
argument holds a variable of a repeated GPM that no inner aggregate has consumed runs over that GPM's iterations. Any
other one runs over matches, and so does `COUNT(*)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import field, replace
from itertools import islice
from typing import Any, Generic, TypeVar, cast

from pyoxigraph import Variable

from oxiseq.grammar.algebra import (
    Aggregate,
    Atom,
    Bounded,
    BoundKind,
    Call,
    Conjunction,
    Construct,
    Disjunction,
    Expression,
    FunctionCall,
    Gpm,
    MatchFunction,
    Maybe,
    Not,
    Query,
    Repeat,
    Select,
    Sequence,
    SequenceElement,
    Summary,
)
from oxiseq.grammar.functions import ITERATION_VALUES
from oxiseq.grammar.parts import once
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import (
    GpmParts,
    expression_variables,
    outside_aggregates,
    split_gpm,
    subexpressions,
    visible_variables,
)

# --- places ------------------------------------------------------------------------------------------


T = TypeVar("T")
Variables = frozenset[Variable]
NOTHING: Variables = frozenset()


class Before(AbstractSet[T], Generic[T]):
    """What comes before a place, in order. The places of a sequence share one table, of which each sees a beginning:
    sets of their own would take the square of its length."""

    __slots__ = ("_order", "_size")

    def __init__(self, order: dict[T, int] | None = None) -> None:
        self._order = {} if order is None else order
        self._size = len(self._order)

    def __contains__(self, item: object) -> bool:
        return self._order.get(cast(T, item), self._size) < self._size

    def __iter__(self) -> Iterator[T]:
        return islice(self._order, self._size)

    def __len__(self) -> int:
        return self._size

    def __hash__(self) -> int:
        return hash(self._size)

    def and_then(self, items: Iterable[T]) -> Before[T]:
        """With more behind it. Of two that go on from one place, as alternatives do, the second gets a table of its
        own."""
        order = self._order if self._size == len(self._order) else dict(islice(self._order.items(), self._size))
        for item in items:
            order.setdefault(item, len(order))
        return Before(order)

    @classmethod
    def _from_iterable(cls, items: Iterable[Any]) -> Any:
        """What `|`, `&` and `-` give."""
        return frozenset(items)


@dataclass(frozen=True, slots=True)
class Place:
    """One atom of SEQ: what it sees of others, and its surroundings."""

    atom: Atom
    left: AbstractSet[Variable]
    """Bound by positive GPMs before it."""
    partners: Variables
    """Bound by the other operands of its `&`."""
    repeats: tuple[Repeat, ...]
    """The repeats around it, outermost first."""
    negated: bool
    first: bool
    """No positive GPM precedes it in the text."""
    earlier: AbstractSet[str] = frozenset()
    """The positive GPMs before it."""
    beside: frozenset[str] = frozenset()
    """The other GPMs of its `&`."""

    @property
    def name(self) -> str:
        return self.atom.name

    @property
    def seen(self) -> AbstractSet[Variable]:
        return self.left | self.partners if self.partners else self.left


@dataclass(frozen=True, slots=True)
class Overview:
    """A query with its GPMs split and its atoms placed; `text` may be empty."""

    query: Query
    text: str
    gpms: Mapping[str, Gpm]
    parts: Mapping[str, GpmParts]
    places: tuple[Place, ...]
    bound: Variables = field(default=NOTHING)
    """What positive GPMs of SEQ bind."""
    place_of: Mapping[str, Place] = field(default_factory=dict)
    """By the name of a GPM its first place in SEQ."""

    @property
    def until(self) -> frozenset[str]:
        """The GPMs of UNTIL."""
        return frozenset(a.name for a in atoms(self.query.until)) if self.query.until is not None else frozenset()

    def variables(self, name: str) -> Variables:
        """What the GPM binds; nothing if it is not defined."""
        return frozenset(self.parts[name].variables) if name in self.parts else NOTHING

    def binders(self, variable: Variable, *, negated: bool = False) -> list[str]:
        """The GPMs of SEQ that bind it, in their order."""
        return [p.name for p in self.places if p.negated == negated and variable in self.variables(p.name)]


def overview(query: Query, text: str = "") -> Overview:
    """Place every atom of `query`'s SEQ."""
    seen = _overview(query)
    return replace(seen, text=text) if text else seen


@once
def _overview(query: Query) -> Overview:
    gpms: dict[str, Gpm] = {}
    for gpm in query.gpms:
        gpms.setdefault(gpm.name, gpm)
    binds = {name: frozenset(visible_variables(gpm.pattern)) for name, gpm in gpms.items()}
    start = _Walk(binds)
    places = tuple(_walk(query.sequence, start))
    if query.until is not None:
        places += tuple(_walk(query.until, replace(start.after(query.sequence), negated=True)))
    seen = {p.name: p.seen for p in places}
    parts = {name: split_gpm(gpm, seen.get(name, NOTHING)) for name, gpm in gpms.items()}
    bound = frozenset(v for p in places if not p.negated for v in binds.get(p.name, NOTHING))
    return Overview(query, "", gpms, parts, places, bound, {p.name: p for p in reversed(places)})


def split_gpms(query: Query) -> Mapping[str, GpmParts]:
    """The parts of each GPM, by name; a GPM's stateful filters depend on where it is in SEQ."""
    return overview(query).parts


@dataclass(frozen=True, slots=True)
class _Walk:
    """The position of a walk through SEQ."""

    binds: Mapping[str, Variables]
    earlier: Before[str] = field(default_factory=Before)
    left: Before[Variable] = field(default_factory=Before)
    """Bound by those."""
    beside: frozenset[str] = frozenset()
    repeats: tuple[Repeat, ...] = ()
    negated: bool = False
    first: bool = True

    def after(self, element: SequenceElement) -> _Walk:
        """Right of `element`."""
        names = [a.name for a in atoms(element, positive=True)]
        if not names:
            return self
        bound = (variable for name in names for variable in self.binds.get(name, ()))
        earlier, left = self.earlier.and_then(names), self.left.and_then(bound)
        return _Walk(self.binds, earlier, left, self.beside, self.repeats, self.negated, first=False)

    def place(self, atom: Atom) -> Place:
        """For an atom at this position."""
        partners = self._bound(self.beside)
        return Place(atom, self.left, partners, self.repeats, self.negated, self.first, self.earlier, self.beside)

    def _bound(self, names: frozenset[str]) -> Variables:
        return NOTHING.union(*(self.binds.get(name, NOTHING) for name in names))


def _walk(element: SequenceElement, at: _Walk) -> Iterator[Place]:
    match element:
        case Atom():
            yield at.place(element)
        case Sequence(first, rest):
            for item in (first, *(e for _, e in rest)):
                yield from _walk(item, at)
                at = at.after(item)
        case Disjunction(items):
            for item in items:
                yield from _walk(item, at)
        case Conjunction(items):
            for item in items:
                others = frozenset(a.name for o in items if o is not item for a in atoms(o))
                yield from _walk(item, replace(at, beside=at.beside | others))
        case Repeat(item):
            yield from _walk(item, replace(at, repeats=(*at.repeats, element)))
        case Maybe(item) | Bounded(item):
            yield from _walk(item, at)
        case Not(item):
            yield from _walk(item, replace(at, negated=True))


def children(element: SequenceElement) -> tuple[SequenceElement, ...]:
    """The elements directly below, left to right."""
    match element:
        case Atom():
            return ()
        case Sequence(first, rest):
            return (first, *(e for _, e in rest))
        case Conjunction(items) | Disjunction(items):
            return items
        case Repeat(item) | Maybe(item) | Not(item) | Bounded(item):
            return (item,)


def elements(element: SequenceElement) -> Iterator[SequenceElement]:
    """`element` and everything below it, outermost first."""
    yield element
    for child in children(element):
        yield from elements(child)


def atoms(element: SequenceElement, *, positive: bool = False) -> Iterator[Atom]:
    """The atoms below, left to right; with `positive` those under a `!` are left out."""
    if isinstance(element, Atom):
        yield element
    elif not (positive and isinstance(element, Not)):
        for child in children(element):
            yield from atoms(child, positive=positive)


def names_of(query: Query) -> tuple[str, ...]:
    """The GPMs of SEQ and of UNTIL, in the order of the text."""
    elements = (query.sequence,) if query.until is None else (query.sequence, query.until)
    return tuple(dict.fromkeys(atom.name for element in elements for atom in atoms(element)))


def without_bounds(element: SequenceElement) -> SequenceElement:
    """What WITHIN, AFTER and LASTING bound; an element without them itself."""
    while isinstance(element, Bounded):
        element = element.item
    return element


def negation(element: SequenceElement) -> Not | None:
    """The `!` that an element is, its bounds aside."""
    inner = without_bounds(element)
    return inner if isinstance(inner, Not) else None


def steps_of(negated: SequenceElement) -> tuple[SequenceElement, ...]:
    """What a `!` negates: the elements of a group in their order, or one element."""
    if isinstance(negated, Sequence):
        return tuple(step for child in children(negated) for step in steps_of(child))
    return (negated,)


def always(element: SequenceElement) -> frozenset[str]:
    """The GPMs that every match of it has an event of."""
    match element:
        case Atom(name):
            return frozenset((name,))
        case Not() | Maybe():
            return frozenset()
        case Repeat(item, least):
            return always(item) if least else frozenset()
        case Disjunction(items):
            return frozenset.intersection(*map(always, items))
        case _:
            return frozenset().union(*map(always, children(element)))


def skippable(element: SequenceElement) -> bool:
    """Whether some expansion of its `?` leaves no positive atom."""
    match element:
        case Atom():
            return False
        case Not() | Maybe():
            return True
        case Repeat(item, least):
            return least == 0 or skippable(item)
        case Bounded(item):
            return skippable(item)
        case Disjunction(items):
            return any(skippable(i) for i in items)
        case _:
            return all(skippable(c) for c in children(element))


def shortest(element: SequenceElement) -> int | None:
    """The smallest WITHIN behind an element, in µs."""
    found: int | None = None
    while isinstance(element, Bounded):
        if element.kind is BoundKind.WITHIN:
            found = element.size if found is None else min(found, element.size)
        element = element.item
    return found


# --- negated groups -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupGap:
    """A negated group with its bounds, and what stands before and after it, in the order of the text.

    In a repeat the iteration before and the next one stand there too, as optional elements.
    """

    element: SequenceElement
    before: tuple[SequenceElement, ...]
    after: tuple[SequenceElement, ...]


def group_gaps(
    element: SequenceElement, before: tuple[SequenceElement, ...] = (), after: tuple[SequenceElement, ...] = ()
) -> Iterator[GroupGap]:
    """The gap around each negated group of more than one element."""
    negated = negation(element)
    if negated is not None:
        if len(steps_of(negated.item)) > 1:
            yield GroupGap(element, before, after)
    elif isinstance(element, Sequence):
        items = children(element)
        for i, item in enumerate(items):
            if not isinstance(item, Atom):
                yield from group_gaps(item, (*before, *items[:i]), (*items[i + 1 :], *after))
    elif isinstance(element, Repeat):
        again = Maybe(element.item)
        yield from group_gaps(element.item, (*before, again), (again, *after))
    else:
        for child in children(element):
            yield from group_gaps(child, before, after)


# --- levels ------------------------------------------------------------------------------------------


def repeated_gpms(seen: Overview, aggregate: Aggregate) -> tuple[str, ...]:
    """The repeated GPMs over whose iterations an aggregate runs; one if it is right, none if it runs over matches.

    Those that bind one of its variables which no unrepeated positive GPM binds. FIRST and LAST run over iterations
    whatever they name.
    """
    if aggregate.arg is None:
        return ()
    used = frozenset(outside_aggregates(aggregate.arg))
    single = frozenset(v for p in seen.places if not p.negated and not p.repeats for v in seen.variables(p.name))
    repeated = dict.fromkeys(p.name for p in seen.places if p.repeats and not p.negated)
    own = tuple(n for n in repeated if seen.variables(n) & (used - single))
    if own or aggregate.name not in ITERATION_VALUES:
        return own
    return tuple(n for n in repeated if seen.variables(n) & used)


def is_over_matches(seen: Overview, aggregate: Aggregate) -> bool:
    """Whether an aggregate runs over matches. One with a variable that nothing binds is an error of its own."""
    if aggregate.name in ITERATION_VALUES:
        return False
    known = aggregate.arg is None or expression_variables(aggregate.arg) <= seen.bound
    return known and not repeated_gpms(seen, aggregate)


def over_matches(seen: Overview, expression: Expression) -> Iterator[Aggregate]:
    """The aggregates over matches in an expression, outermost only."""
    match expression:
        case Aggregate(_, arg):
            if is_over_matches(seen, expression):
                yield expression
            elif arg is not None:
                yield from over_matches(seen, arg)
        case Call(_, args) | FunctionCall(_, args):
            for arg in args:
                yield from over_matches(seen, arg)


def summarises(seen: Overview) -> bool:
    """Whether the answer has a row per group of matches, not one per match."""
    query = seen.query
    if query.summary.group_by or query.summary.having:
        return True
    return any(True for e in shown_expressions(seen) for _ in over_matches(seen, e))


def shown_expressions(seen: Overview) -> Iterator[Expression]:
    """Those of SELECT or of CONSTRUCT's template."""
    form = seen.query.form
    if isinstance(form, Select | Construct):
        yield from (c.expression for c in form.columns or () if c.expression is not None)


def behind_where(summary: Summary) -> Iterator[Expression]:
    """Those of GROUP BY, HAVING, ORDER BY."""
    yield from (key[0] if isinstance(key, tuple) else key for key in summary.group_by)
    yield from summary.having
    yield from (expression for expression, _ in summary.order_by)


@dataclass(frozen=True, slots=True)
class Keys:
    """The group keys: by the expression as the text has it, the variable that stands for it behind the grouping."""

    expressions: Mapping[Expression, Variable]
    pairs: tuple[tuple[Expression, Variable], ...]
    """All of them, in order: one expression may have several names."""
    names: frozenset[Variable]
    """Variables that may be named outside aggregates."""


@once
def keys_of(summary: Summary) -> Keys:
    """The keys of GROUP BY, in its order; one without a name gets one that no text can have."""
    known: dict[Expression, Variable] = {}
    pairs: list[tuple[Expression, Variable]] = []
    names: set[Variable] = set()
    for number, key in enumerate(summary.group_by):
        expression, name = key if isinstance(key, tuple) else (key, None)
        if isinstance(expression, Variable):
            names.add(expression)
        if name is not None:
            names.add(name)
        stands = name or (expression if isinstance(expression, Variable) else _unnamed(number))
        known.setdefault(expression, stands)
        pairs.append((expression, stands))
    return Keys(known, tuple(pairs), frozenset(names))


def suppression_keys(query: Query, *, grouped: bool) -> tuple[Variable, ...]:
    """The variables of SUPPRESS's key: those behind BY; else those of PARTITION BY, of rows of groups those of GROUP
    BY."""
    suppression, summary = query.suppression, query.summary
    if suppression is not None and suppression.by is not None:
        return suppression.by
    if grouped:
        keys = (key[1] if isinstance(key, tuple) else key for key in summary.group_by)
        return tuple(dict.fromkeys(key for key in keys if isinstance(key, Variable)))
    return () if query.partition is None else query.partition.by


def _unnamed(number: int) -> Variable:
    return Variable(f"__key{number}")


def ends_with_its_instant(summary: Summary) -> bool:
    """Whether a group is complete with its instant, since its keys hold ENDTIME()."""
    return any(
        isinstance(e, MatchFunction) and e.name == "ENDTIME"
        for key in keys_of(summary).expressions
        for e in subexpressions(key)
    )
