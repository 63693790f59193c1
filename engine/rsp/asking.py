"""WHERE for Oxigraph: `WINDOW :w {...}` becomes `GRAPH`, `MATCH {...}` a pattern over rows that stand in a graph.

Where it stands: algebra → **SPARQL 1.1 text**. `dataset.py` fills the graphs named here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from oxiseq.grammar.algebra import (
    Aggregate,
    Bind,
    Call,
    Exists,
    Expression,
    Filter,
    FunctionCall,
    GraphPattern,
    Group,
    MatchPattern,
    Minus,
    OptionalPattern,
    PathPattern,
    PatternElement,
    SubSelect,
    TermOrVariable,
    TriplePattern,
    Union,
    Values,
    WindowPattern,
)
from oxiseq.grammar.scope import nested_elements

_WINDOW: Final = "urn:oxiseq:window:"
_MATCH: Final = "urn:oxiseq:match:"
_ROW: Final = "urn:oxiseq:row:"
ROW_MARK: Final = NamedNode("urn:oxiseq:row")
"""Predicate of the triple that says of a row that it is one."""
ROW_VARIABLE: Final = Variable("oxiseq_row")
_TRUE: Final = Literal(True)


def window_graph(content: int) -> NamedNode:
    """Where the content of this number stands."""
    return NamedNode(f"{_WINDOW}{content}")


def match_graph(match: int) -> NamedNode:
    """Where the rows of this MATCH stand."""
    return NamedNode(f"{_MATCH}{match}")


def row_node(row: int) -> NamedNode:
    """A row of a MATCH."""
    return NamedNode(f"{_ROW}{row}")


def row_number(node: NamedNode) -> int:
    """Its number again."""
    return int(node.value[len(_ROW) :])


def value_predicate(place: int) -> NamedNode:
    """From a row to its value of the variable in this place."""
    return NamedNode(f"urn:oxiseq:value:{place}")


@dataclass(frozen=True, slots=True)
class AskedMatch:
    """One MATCH: its number, its variables, those of them that every mapping binds, and whether its rows carry times
    (then `ROW_VARIABLE` is bound to the row)."""

    number: int
    variables: tuple[Variable, ...]
    certain: frozenset[Variable]
    timed: bool


@dataclass(frozen=True, slots=True)
class Rewriting:
    """How windows and MATCH are named in the store. `contents`: window's name → number of its content; `timed`: the one
    MATCH of WHERE itself whose rows carry times, if there is one; `graphs`: the KB's, for what is `asked_by_name`."""

    contents: Mapping[NamedNode, int]
    matches: Mapping[MatchPattern, AskedMatch]
    timed: AskedMatch | None = None
    graphs: Sequence[NamedNode] | None = None
    branch: str = ""
    """Behind the labels of blank nodes: a label stands in one pattern, and a pattern may be written several times."""

    def where(self, group: Group) -> Group:
        """WHERE; blank nodes of its own triple patterns become variables, so that mappings are full."""
        return Group(tuple(_named(self._of_where(e)) for e in group.elements))

    def _of_where(self, element: PatternElement) -> PatternElement:
        asked = self.timed if isinstance(element, MatchPattern) else None
        return self.element(element) if asked is None else _rows(asked)

    def group(self, group: Group) -> Group:
        """A group below."""
        return Group(tuple(self.element(e) for e in group.elements))

    def element(self, element: PatternElement) -> PatternElement:
        match element:
            case TriplePattern(s, p, o) if self.branch:
                return TriplePattern(self._own(s), p, self._own(o))
            case PathPattern(s, p, o) if self.branch:
                return PathPattern(self._own(s), p, self._own(o))
            case WindowPattern(NamedNode() as name, inner):
                return GraphPattern(window_graph(self.contents[name]), self.group(inner))
            case WindowPattern(Variable() as name, inner):
                return self._each(name, inner, [(w, window_graph(number)) for w, number in self.contents.items()])
            case MatchPattern():
                return _rows(self.matches[element])
            case GraphPattern(Variable() as name, inner) if self.graphs is not None and asked_by_name(element):
                return self._each(name, inner, [(graph, graph) for graph in self.graphs])
            case GraphPattern(name, inner) if isinstance(name, Variable):
                return Group((GraphPattern(name, self.group(inner)), *self._not_ours(name)))
            case GraphPattern(name, inner):
                return GraphPattern(name, self.group(inner))
            case OptionalPattern(inner):
                return OptionalPattern(self.group(inner))
            case Minus(inner):
                return Minus(self.group(inner))
            case Union(branches):
                return Union(tuple(self.group(b) for b in branches))
            case SubSelect():
                return self.select(element)
            case Group():
                return self.group(element)
            case Filter(condition):
                return Filter(self.expression(condition))
            case Bind(expression, variable):
                return Bind(self.expression(expression), variable)
            case _:
                return element

    def select(self, query: SubSelect) -> SubSelect:
        """A sub-query."""
        return replace(
            query,
            where=self.group(query.where),
            projection=None if query.projection is None else tuple(self._column(c) for c in query.projection),
            having=tuple(self.expression(e) for e in query.having),
            group_by=tuple(
                (self.expression(k[0]), k[1]) if isinstance(k, tuple) else self.expression(k) for k in query.group_by
            ),
            order_by=tuple((self.expression(e), descending) for e, descending in query.order_by),
        )

    def _column(self, column: Variable | tuple[Expression, Variable]) -> Variable | tuple[Expression, Variable]:
        return (self.expression(column[0]), column[1]) if isinstance(column, tuple) else column

    def expression(self, expression: Expression) -> Expression:
        """With the patterns of EXISTS in it."""
        match expression:
            case Call(name, args):
                return Call(name, tuple(self.expression(a) for a in args))
            case FunctionCall(function, args, distinct):
                return FunctionCall(function, tuple(self.expression(a) for a in args), distinct)
            case Aggregate(name, arg, distinct, separator) if arg is not None:
                return Aggregate(name, self.expression(arg), distinct, separator)
            case Exists(pattern, negated):
                return Exists(self.group(pattern), negated)
            case _:
                return expression

    def _own(self, term: TermOrVariable) -> TermOrVariable:
        return BlankNode(f"{term.value}{self.branch}") if isinstance(term, BlankNode) else term

    def _each(self, name: Variable, inner: Group, graphs: Sequence[tuple[NamedNode, NamedNode]]) -> PatternElement:
        """`GRAPH ?name {...}` over the graphs known: (what they are called, where they stand). Oxigraph's own takes the
        name for a variable of all that is inside, MINUS and sub-queries as well, and forgets it where a sub-query does
        not show it. Conditions inside see it, as they do in Oxigraph and other stores."""
        branches = [
            Group((GraphPattern(graph, self._titled(name, title, inner, number)),))
            for number, (title, graph) in enumerate(graphs)
        ]
        return Union(tuple(branches)) if branches else Values((name,), ())

    def _titled(self, name: Variable, title: NamedNode, inner: Group, number: int) -> Group:
        said = Values((name,), ((title,),))
        group = replace(self, branch=f"{self.branch}.{number}").group(inner)
        if len(group.elements) == 1 and isinstance(group.elements[0], SubSelect):
            return Group((said, group))
        made_inside = any(isinstance(e, Bind) and e.variable == name for e in group.elements)
        return Group((*group.elements, said) if made_inside else (said, *group.elements))

    def _not_ours(self, name: Variable) -> list[Filter]:
        """GRAPH ?g ranges over the KB's graphs only."""
        ours = [window_graph(n) for n in sorted(set(self.contents.values()))]
        ours += [match_graph(m.number) for m in (*self.matches.values(), *([self.timed] if self.timed else []))]
        return [Filter(Call("NOT IN", (name, *ours)))] if ours else []


def asked_by_name(element: PatternElement) -> bool:
    """Whether it is GRAPH ?g over what Oxigraph takes ?g for a variable of, though it is none."""
    return (
        isinstance(element, GraphPattern)
        and isinstance(element.name, Variable)
        and any(isinstance(e, Minus | SubSelect) for e in nested_elements(element.pattern))
    )


def _named(element: PatternElement) -> PatternElement:
    """A triple pattern with variables for its blank nodes."""
    match element:
        case TriplePattern(s, p, o):
            return TriplePattern(blank_variable(s), p, blank_variable(o))
        case PathPattern(s, p, o):
            return PathPattern(blank_variable(s), p, blank_variable(o))
        case _:
            return element


def blank_variable(term: TermOrVariable) -> TermOrVariable:
    """A variable in place of a blank node."""
    return Variable(f"oxiseq_blank_{term.value}") if isinstance(term, BlankNode) else term


def _rows(asked: AskedMatch) -> PatternElement:
    """The rows of a MATCH: a row has a triple for each variable that it binds."""
    row = ROW_VARIABLE if asked.timed else Variable(f"oxiseq_row_{asked.number}")
    values = [(v, TriplePattern(row, value_predicate(i), v)) for i, v in enumerate(asked.variables)]
    certain = [pattern for v, pattern in values if v in asked.certain]
    loose = [OptionalPattern(Group((pattern,))) for v, pattern in values if v not in asked.certain]
    body = Group((TriplePattern(row, ROW_MARK, ROW_MARK), *certain, *loose))
    graph = GraphPattern(match_graph(asked.number), body)
    if asked.timed and not loose:
        return graph
    shown: list[Variable | tuple[Expression, Variable]] = [*asked.variables]
    if asked.timed:
        shown.append(ROW_VARIABLE)
    return Group((SubSelect(tuple(shown) or ((_TRUE, Variable("oxiseq_there")),), Group((graph,))),))
