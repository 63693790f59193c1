"""Joins of CEQL: `y[price > x.price]` compares each event of y with the one event of x.

In the flow: algebra → **which event decides a join** → checks, translation to SPAseq, live keys. A join is decided
at the event that comes after the others that it names. So each of those must be one event, in every match, and come
before it; any other join is refused (`JoinError`), since it would need every event of x remembered.

Conditions of CEQL on the knowledge base: `y[GRAPH <kb> (company) { ?company :sector :Tech }]`.

In the flow: text → **condition** → checks, translation to SPAseq. The condition holds where the graph matches the
pattern with the values given to it. All other variables of the pattern are its own. A predicate holds one as the call
`GRAPH(EXISTS { GRAPH <kb> { ... } }, "company", company, "rival", x.company)`: whatever walks through predicates meets
the attributes of events among the arguments and leaves the pattern alone.

Whether the events of a complex event can be taken in one way only.

CEQL answers sets of events, SPAseq the ways to match. The two are the same where no sequence of types has two ways
through the formula (its position automaton, Glushkov 1961); it ignores conditions, so it errs on the safe side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import product
from typing import Final, TypeAlias, TypeVar, cast

from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from oxiseq.grammar.algebra import (
    NOWHERE,
    Call,
    Exists,
    Expression,
    Filter,
    GraphPattern,
    Group,
    PathPattern,
    Span,
    SubSelect,
    TriplePattern,
    Values,
)
from oxiseq.grammar.ceql_algebra import (
    OTHER,
    Either,
    EventType,
    Filtered,
    Follows,
    Formula,
    Holds,
    Iterated,
    Named,
    holds_of,
    joins_in,
    variables,
)
from oxiseq.grammar.parts import changed, components, parts
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import certain_variables, mentioned_variables, subexpressions

# --- ceql joins --------------------------------------------------------------------------------------


_MANY: Final = 2
"""As a number of events: more than one."""


@dataclass(frozen=True, slots=True)
class JoinError(Exception):
    """A join that is not decided at one event."""

    call: Call
    reason: str
    hint: str


@dataclass(frozen=True, slots=True)
class Join:
    """A join as it is evaluated on each event of `name`: in `predicate` variables are attributes of that event,
    `Call(OTHER, (x, price))` of the one event of x, which comes before it."""

    name: str
    predicate: Expression
    always: bool
    """Whether every match holds such an event."""


def decided(test: Holds, formula: Formula) -> Join:
    """Where a condition on `formula` is decided. Raises JoinError."""
    joins = list(joins_in(test.predicate))
    for of, attribute, call in joins:
        if of == test.name:
            reason = f"{of}.{attribute.value} is an attribute of the event itself"
            raise JoinError(call, reason, f"write {attribute.value}")
        if of not in variables(formula):
            known = ", ".join(variables(formula))
            raise JoinError(call, f"the formula before FILTER has no variable {of}", f"it has {known}")
    names = dict.fromkeys((test.name, *(of for of, _, _ in joins)))
    for name in names:
        if all(_before(formula, other, name) for other in names if other != name):
            low, high = _counts(formula)[name]
            if name == test.name or (low, high) == (1, 1):
                return Join(name, _seen_from(test.predicate, test.name, name), low > 0)
    raise _refusal(test, joins, formula)


def _refusal(test: Holds, joins: list[tuple[str, Variable, Call]], formula: Formula) -> JoinError:
    counts = _counts(formula)
    for of, attribute, call in joins:
        low, high = counts[of]
        if high >= _MANY:
            reason = f"{of} may hold several events, so {of}.{attribute.value} is not one value"
            return JoinError(call, reason, "compare with a variable that holds one event in each match")
        if low == 0:
            reason = f"{of} holds no event in some matches"
            return JoinError(call, reason, "compare with a variable that holds one event in each match")
    call = joins[0][2]
    if counts[test.name][1] >= _MANY:
        reason = f"{test.name} may hold several events and comes before {joins[0][0]}"
        return JoinError(
            call, reason, "a join is evaluated at the last of its events: swap its sides, or name one event"
        )
    names = ", ".join(dict.fromkeys((test.name, *(of for of, _, _ in joins))))
    reason = f"no event of {names} comes after the others"
    return JoinError(call, reason, "a join is evaluated at the last of its events")


def _before(formula: Formula, name: str, later: str) -> bool:
    """Whether `name` holds one event in each match, before all that `later` holds."""
    lefts = list(_lefts(formula, later, frozenset(), frozenset()))
    return bool(lefts) and _counts(formula).get(name, (0, 0))[1] == 1 and all(name in left for left in lefts)


def _lefts(formula: Formula, name: str, left: frozenset[str], held: frozenset[str]) -> Iterator[frozenset[str]]:
    """For each type whose events `name` holds: the variables that surely hold an event before it. `held`: by which its
    events are held."""
    match formula:
        case EventType(type_):
            if name == type_ or name in held:
                yield left
        case Named(inner, called):
            yield from _lefts(inner, name, left, held | {called})
        case Filtered(inner) | Iterated(inner):
            yield from _lefts(inner, name, left, held)
        case Either(formulas):
            for each in formulas:
                yield from _lefts(each, name, left, held)
        case Follows(first, rest):
            for each in (first, *(inner for _, inner in rest)):
                yield from _lefts(each, name, left, held)
                left |= {called for called, (low, _) in _counts(each).items() if low}


def _counts(formula: Formula) -> dict[str, tuple[int, int]]:
    """How many events each variable holds, at least and at most; _MANY: that many or more. "" is all of them."""
    match formula:
        case EventType(name):
            return {"": (1, 1), name: (1, 1)}
        case Named(inner, name):
            found = _counts(inner)
            return {**found, name: found[""]}
        case Filtered(inner):
            return _counts(inner)
        case Iterated(inner):
            return {name: (low, _MANY) for name, (low, _) in _counts(inner).items()}
        case Either(formulas):
            ways = [_counts(each) for each in formulas]
            names = dict.fromkeys(name for way in ways for name in way)
            return {
                name: (min(w.get(name, (0, 0))[0] for w in ways), max(w.get(name, (0, 0))[1] for w in ways))
                for name in names
            }
        case Follows(first, rest):
            steps = [_counts(each) for each in (first, *(inner for _, inner in rest))]
            names = dict.fromkeys(name for step in steps for name in step)
            return {name: (_sum(steps, name, 0), _sum(steps, name, 1)) for name in names}


def _sum(steps: list[dict[str, tuple[int, int]]], name: str, which: int) -> int:
    return min(_MANY, sum(step.get(name, (0, 0))[which] for step in steps))


def _seen_from(expression: Expression, own: str, name: str) -> Expression:
    """A predicate about events of `own` as one about those of `name`."""
    match expression:
        case Variable() if own != name:
            return Call(OTHER, (Variable(own), expression))
        case Call(".", (Variable(value=of), attribute)):
            return attribute if of == name else expression
        case Call(called, args):
            return Call(called, tuple(_seen_from(each, own, name) for each in args), span=expression.span)
    return expression


# --- ceql graphs -------------------------------------------------------------------------------------


CALL: Final = "GRAPH"
T = TypeVar("T")
Own: TypeAlias = Variable | BlankNode
"""What a pattern names itself. A label may be in one basic graph pattern of a query only: it is renamed, too."""


@dataclass(frozen=True, slots=True)
class GraphCondition:
    """`given`: each variable of the pattern whose value comes from an event, and which attribute gives it."""

    graph: NamedNode
    given: tuple[tuple[Variable, Expression], ...]
    pattern: Group
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def call(self) -> Call:
        """As part of a predicate."""
        inner = Exists(Group((GraphPattern(self.graph, self.pattern, span=self.span),)), span=self.span)
        given = (part for variable, value in self.given for part in (Literal(variable.value), value))
        return Call(CALL, (inner, *given), span=self.span)

    def written(self, own: Mapping[Own, Variable], certain: frozenset[Variable]) -> Expression:
        """As a condition of SPARQL, where `given` names variables, and `own` renames all that are the pattern's own.

        A variable that is not `certain` may be unbound. EXISTS would find any value for it, and an attribute that an
        event lacks makes a condition an error: so does IF.
        """
        names = self._names(own)
        found = Exists(Group((GraphPattern(self.graph, with_variables(self.pattern, names)),)))
        bound = [Call("SAMETERM", (v, v)) for v in dict.fromkeys(names[v] for v, _ in self.given) if v not in certain]
        if not bound:
            return found
        first, *rest = bound
        for each in rest:
            first = Call("&&", (first, each))
        return Call("IF", (first, found, Literal(False)))

    @property
    def joinable(self) -> bool:
        """Whether the pattern, joined with an event, holds where it does with the event's values put into it.

        A value reaches the inside of OPTIONAL, UNION, BIND and inner groups, a join does not; and a variable that a
        solution leaves unbound is joined with any event, once for each solution. Parts that share no variable are
        asked: joined they would be fetched as their whole product.
        """
        given = {variable for variable, _ in self.given}
        joined = TriplePattern | PathPattern | Values | Filter
        inner = Group(tuple(each for each in self.pattern.elements if not isinstance(each, joined)))
        alone = given.isdisjoint(mentioned_variables(inner))
        return certain_variables(self.pattern) >= given and alone and _is_connected(self.pattern)

    def joined(self, own: Mapping[Own, Variable]) -> GraphPattern:
        """As a pattern that is joined with an event that binds all that is given; it gives each event one mapping."""
        names = self._names(own)
        shown = tuple(dict.fromkeys(names[v] for v, _ in self.given))
        return GraphPattern(self.graph, Group((SubSelect(shown, with_variables(self.pattern, names), True),)))

    def _names(self, own: Mapping[Own, Variable]) -> dict[Own, Variable]:
        """What the pattern's variables are called, where `given` names variables."""
        names = dict(own)
        names.update({v: value for v, value in self.given if isinstance(value, Variable)})
        return names

    def own(self) -> list[Own]:
        """The variables and labels of blank nodes that no event gives, in order of their names."""
        given = {variable for variable, _ in self.given}
        names: set[Own] = {*mentioned_variables(self.pattern), *parts(self.pattern, BlankNode)}
        return sorted(names - given, key=str)


def _is_connected(pattern: Group) -> bool:
    """Whether its triple patterns, paths and tables hang together by their variables and blank nodes."""
    sets = [
        {*mentioned_variables(Group((each,))), *parts(each, BlankNode)}
        for each in pattern.elements
        if isinstance(each, TriplePattern | PathPattern | Values)
    ]
    return len(components([names for names in sets if names], lambda names: names)) <= 1


def condition_of(expression: Expression) -> GraphCondition | None:
    """The condition that this part of a predicate is, if it is one."""
    match expression:
        case Call("GRAPH", (Exists(Group((GraphPattern(NamedNode() as graph, pattern),))), *given)):
            names, values = cast(list[Literal], given[::2]), given[1::2]
            pairs = tuple((Variable(name.value), value) for name, value in zip(names, values, strict=True))
            return GraphCondition(graph, pairs, pattern, span=expression.span)
    return None


def conditions_in(expression: Expression) -> Iterator[GraphCondition]:
    """The conditions on the knowledge base in a predicate."""
    for part in subexpressions(expression):
        if (found := condition_of(part)) is not None:
            yield found


def first_graph(formula: Formula) -> tuple[Holds, GraphCondition] | None:
    """The first condition that queries the knowledge base, if any."""
    return next(((test, found) for test in holds_of(formula) for found in conditions_in(test.predicate)), None)


def with_variables(value: T, names: Mapping[Own, Variable]) -> T:
    """A pattern, or a part of one, with other variables."""
    return changed(value, lambda part: names.get(part, part) if isinstance(part, Variable | BlankNode) else part)


# --- ceql choices ------------------------------------------------------------------------------------


def twofold(formula: Formula) -> tuple[EventType, EventType] | None:
    """Two places of one type that the same event of the same complex event can stand for, None if there are none."""
    automaton = _Positions()
    first, last = automaton.of(formula)
    places, follow = automaton.places, automaton.follow
    start = {(p, q) for p, q in product(first, first) if places[p].name == places[q].name}
    forwards: dict[tuple[int, int], set[tuple[int, int]]] = {}
    backwards: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for (p, after_p), (q, after_q) in product(follow, follow):
        if places[p].name == places[q].name and places[after_p].name == places[after_q].name:
            forwards.setdefault((p, q), set()).add((after_p, after_q))
            backwards.setdefault((after_p, after_q), set()).add((p, q))
    both = _reached(start, forwards) & _reached(set(product(last, last)), backwards)
    pairs = sorted((p, q) for p, q in both if p < q and places[p].name == places[q].name)
    return (places[pairs[0][0]], places[pairs[0][1]]) if pairs else None


def _reached(start: set[tuple[int, int]], steps: dict[tuple[int, int], set[tuple[int, int]]]) -> set[tuple[int, int]]:
    found, waiting = set(start), list(start)
    while waiting:
        new = steps.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found


class _Positions:
    """The types of a formula, left to right, and which may follow which."""

    def __init__(self) -> None:
        self.places: list[EventType] = []
        self.follow: set[tuple[int, int]] = set()

    def of(self, formula: Formula) -> tuple[set[int], set[int]]:
        """Where `formula` may begin and end."""
        match formula:
            case EventType():
                self.places.append(formula)
                here = {len(self.places) - 1}
                return here, here
            case Named(inner) | Filtered(inner):
                return self.of(inner)
            case Iterated(inner):
                first, last = self.of(inner)
                self.follow |= set(product(last, first))
                return first, last
            case Either(formulas):
                ends = [self.of(f) for f in formulas]
                return set().union(*(f for f, _ in ends)), set().union(*(l for _, l in ends))
            case Follows(head, rest):
                first, last = self.of(head)
                for _, inner in rest:
                    begin, end = self.of(inner)
                    self.follow |= set(product(last, begin))
                    last = end
                return first, last
