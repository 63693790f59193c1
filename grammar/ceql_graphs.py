"""Conditions of CEQL on the knowledge base: `y[GRAPH <kb> (company) { ?company :sector :Tech }]`.

In the flow: text → **condition** → checks, translation to SPAseq. The condition holds where the graph matches the
pattern with the values given to it. All other variables of the pattern are its own. A predicate holds one as the call
`GRAPH(EXISTS { GRAPH <kb> { ... } }, "company", company, "rival", x.company)`: whatever walks through predicates meets
the attributes of events among the arguments and leaves the pattern alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
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
from oxiseq.grammar.ceql_algebra import Formula, Holds, holds_of
from oxiseq.grammar.components import components
from oxiseq.grammar.parts import changed, parts
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import certain_variables, mentioned_variables, subexpressions

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
