"""CEQL's texts: parse tree → `CeqlQuery`, and back; `parse(render_ceql(q), "ceql") == q`.

In the flow: lark's tree (rules of `ceql.lark`) → `CeqlQuery` → checks, plan, text. `==` and `<>` become `=` and `!=`,
the names AND, OR and NOT of predicates become `&&`, `||` and `!`: expressions are those of `algebra.py`.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from typing import ClassVar, Final

from pyoxigraph import Literal, NamedNode, Variable

from oxiseq.grammar.algebra import NOWHERE, Aggregate, Call, Expression, Span, Window
from oxiseq.grammar.ceql.joins import GraphCondition, condition_of
from oxiseq.grammar.ceql.slips import CEQL_COMMENT, CEQL_RULES
from oxiseq.grammar.ceql_algebra import (
    OF,
    OTHER,
    START,
    AllOf,
    AnyOf,
    AttributeWindow,
    CeqlQuery,
    Condition,
    Either,
    EndOrder,
    EventType,
    Filtered,
    Follows,
    Formula,
    Holds,
    Iterated,
    Name,
    Named,
    Told,
    Totals,
)
from oxiseq.grammar.parsing.clauses import ClauseBuilder
from oxiseq.grammar.parsing.sparql import Node, tokens, trees, where
from oxiseq.grammar.parts import parts
from oxiseq.grammar.render import render_clause, render_clauses
from oxiseq.grammar.render_sparql import NOT, PRIMARY, SUM, SparqlWriter, inside
from oxiseq.grammar.terms import number, span_of
from oxiseq.grammar.trees import Lexeme, Tree, tree

# --- ceql --------------------------------------------------------------------------------------------


_COMPARE = {"==": "=", "<>": "!="}
_LOGIC = {"or": "||", "and": "&&", "not": "!"}
_FORMULAS = ("event", "named", "iterated", "repeated", "parenthesised", "follows", "either", "filtered")
MOST_REPEATS: Final = 50
"""Of a formula with numbers in braces, which is unfolded."""
MOST_UNFOLDED: Final = 2_000
"""Events that all of these have in a query."""


class CeqlBuilder(ClauseBuilder):
    """Builds a `CeqlQuery` from the tree of one text."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._unfolded = 0
        """Events of repeats with numbers so far."""

    def query(self, tree: Tree) -> CeqlQuery:
        """The whole text."""
        vocab = [self.namespace(t) for v in trees(tree, "vocab") for t in tokens(v, "IRIREF")]
        self.prefixes.update(("", iri) for iri in vocab)
        (select,) = trees(tree, "select")
        (streams,) = trees(tree, "from")
        (formula,) = trees(tree, *_FORMULAS)
        totals = self.totals(select, trees(tree, "grouped"), trees(tree, "having"))
        return CeqlQuery(
            None if tokens(select, "STAR") or totals is not None else self.names(select),
            self.names(streams),
            self.formula(formula),
            self.window(trees(tree, "within")),
            vocab[0] if vocab else None,
            self.selection(select),
            self.partition(trees(tree, "partition")),
            self.consumption(trees(tree, "consume")),
            self.limit(trees(tree, "limit"), trees(tree, "offset")),
            self.order(trees(tree, "order")),
            self.sample(trees(tree, "sample")),
            totals,
            span=where(tree),
            text=self.text,
        )

    def namespace(self, token: Lexeme) -> str:
        """VOCAB's IRI. What it is put before are letters, digits and `_`, so that no name makes it invalid."""
        text = self.unescape(token[1:-1], token)
        try:
            return NamedNode(text).value
        except ValueError as reason:
            hint = "VOCAB takes the whole IRI: VOCAB <http://example.org/stock#>"
            raise self.error(f"<{text}> is not an IRI: {reason}", span_of(token), hint=hint, code="iri") from None

    def names(self, node: Tree) -> tuple[Name, ...]:
        return tuple(Name(str(t), span=span_of(t)) for t in tokens(node, "NAME"))

    # --- clauses ----------------------------------------------------------------------------------

    def order(self, nodes: Items[Tree]) -> EndOrder | None:
        node = self.only(nodes, "ORDER BY", "order")
        return None if node is None else EndOrder(tuple(map(self.ranked, trees(node, "ranked"))), span=where(node))

    def ranked(self, node: Tree) -> tuple[Expression, bool]:
        """A key of ORDER BY, and whether the greatest comes first."""
        start = tokens(node, "START")
        expression = Call(START.name, (), span=span_of(start[0])) if start else self.predicate(node.children[0])
        return expression, bool(tokens(node, "DESC"))

    def window(self, nodes: Items[Tree]) -> Window | AttributeWindow | None:
        node = self.only(nodes, "WITHIN", "window")
        if node is None:
            return None
        span = where(node)
        times = trees(node, "span")
        if times:
            return Window(sum(self.time(*tokens(t, "NUMBER", "UNIT")) for t in times), False, True, span=span)
        (size,) = tokens(node, "NUMBER")
        names = tokens(node, "NAME")
        if names:
            return AttributeWindow(number(size), self.attribute(names[0]), span=span)
        return Window(self.size(size), True, True, span=span)

    def key(self, token: Lexeme) -> Variable:
        return self.attribute(token)

    def attribute(self, token: Lexeme) -> Variable:
        """An attribute's name, as the variable that holds its value."""
        try:
            return Variable(str(token))
        except ValueError as reason:
            raise self.error(f"{token} is not an attribute's name: {reason}", span_of(token)) from None

    # --- what is emitted for all that end at one event -------------------------------------------------

    def totals(self, select: Tree, group: Items[Tree], having: Items[Tree]) -> Totals | None:
        """None where each complex event is emitted alone."""
        told = trees(select, "told")
        by, condition = self.only(group, "GROUP BY", "group"), self.only(having, "HAVING", "having")
        clause = by or condition
        if not told and clause is None:
            return None
        names = tokens(select, "NAME", "STAR")
        if names or not told:
            message = f"SELECT {names[0]} returns single complex events, aggregates combine all that end at one event"
            hint = "write SELECT COUNT(*) AS n, or leave aggregates, GROUP BY and HAVING out"
            raise self.error(message, span_of(names[0]), hint=hint, code="select")
        return Totals(
            tuple(map(self.told, told)),
            () if by is None else tuple(self.attribute(tokens(key, "NAME")[0]) for key in trees(by, "key")),
            None if condition is None else self.predicate(condition.children[0]),
            by_span=NOWHERE if by is None else where(by),
            having_span=NOWHERE if condition is None else where(condition),
        )

    def told(self, node: Tree) -> Told:
        expression, *name = node.children
        value = self.predicate(expression)
        if not name:
            assert isinstance(expression, Tree)
            name = list(tokens(expression, "NAME"))
        return Told(value, str(name[0]), span=where(node))

    def over_all(self, node: Tree, span: Span) -> Aggregate:
        function, what, *attribute = node.children
        name = str(function).upper()
        if not attribute:
            return Aggregate(name, None if what == "*" else self.attribute(Lexeme("NAME", str(what))), span=span)
        arguments = tuple(self.attribute(Lexeme("NAME", str(each))) for each in (what, *attribute))
        return Aggregate(name, Call(OF, arguments, span=span), span=span)

    # --- formulas ---------------------------------------------------------------------------------

    def formula(self, node: Node) -> Formula:
        """A formula. Parentheses leave a trace only as nesting."""
        assert isinstance(node, Tree)
        span = where(node)
        match node.kind:
            case "event":
                return EventType(str(node.children[0]), span=span)
            case "parenthesised":
                return self.formula(node.children[0])
            case "named":
                return Named(self.formula(node.children[0]), str(node.children[1]), span=span)
            case "iterated":
                return Iterated(self.formula(node.children[0]), bool(tokens(node, "COLON_PLUS")), span=span)
            case "repeated":
                return self.repeated(node, span)
            case "filtered":
                return Filtered(self.formula(node.children[0]), self.condition(node.children[1]), span=span)
            case "either":
                return Either(tuple(self.formula(c) for c in node.children), span=span)
            case _:
                return self.follows(node, span)

    def repeated(self, node: Tree, span: Span) -> Formula:
        """`φ{n,m}`: n to m times one after the other, unfolded: `φ; φ; (φ OR (φ; φ))` is `φ{3,4}`."""
        element, mark = node.children[:2]
        numbers = [self.whole(token) for token in tokens(node, "NUMBER")]
        least, most = numbers[0], numbers[-1]
        if not 0 < least <= most <= MOST_REPEATS:
            message = f"the numbers in braces go from 1 to {MOST_REPEATS}, the first is not above the second"
            hint = "write A OR (A; B) where something may be missing, A+ for any number"
            raise self.error(message, span, hint=hint, code="repeat")
        formula, contiguous = self.formula(element), str(mark).startswith(":")
        self._unfolded += sum(1 for _ in parts(formula, EventType)) * (2 * most - least)
        if self._unfolded > MOST_UNFOLDED:
            message = f"repeats with numbers in braces have more than {MOST_UNFOLDED:,} events, written one by one"
            raise self.error(message, span, hint="write smaller numbers, or A+ for any number", code="repeat")
        tail: Formula = formula
        if len(numbers) == 1 and tokens(node, "COMMA"):
            tail = Iterated(formula, contiguous, span=span)
        for _ in range(most - least):
            tail = Either((formula, Follows(formula, ((contiguous, tail),), span=span)), span=span)
        if least == 1:
            return tail
        return Follows(formula, ((contiguous, formula),) * (least - 2) + ((contiguous, tail),), span=span)

    def follows(self, node: Tree, span: Span) -> Follows:
        first, *rest = node.children
        pairs = zip(rest[::2], rest[1::2], strict=True)
        return Follows(self.formula(first), tuple((op == ":", self.formula(f)) for op, f in pairs), span=span)

    def condition(self, node: Node) -> Condition:
        assert isinstance(node, Tree)
        span = where(node)
        if node.kind == "test":
            return Holds(str(node.children[0]), self.predicate(node.children[1]), span=span)
        conditions = tuple(self.condition(c) for c in node.children)
        return AllOf(conditions, span=span) if node.kind == "all_of" else AnyOf(conditions, span=span)

    # --- predicates -------------------------------------------------------------------------------

    def predicate(self, node: Node) -> Expression:
        """An expression over attributes, or over aggregates."""
        assert isinstance(node, Tree)
        span = where(node)
        match node.kind:
            case "attribute":
                return self.attribute(tokens(node, "NAME")[0])
            case "other":
                of, attribute = tokens(node, "NAME")
                return Call(OTHER, (self.attribute(of), self.attribute(attribute)), span=span)
            case "literal":
                return self.literal(node)
            case "holding":
                return self.holding(node, span)
            case "aggregate":
                return self.over_all(node, span)
            case "key":
                return Call(OF, (self.attribute(tokens(node, "NAME")[0]),), span=span)
            case "or" | "and" | "not" as rule:
                return Call(_LOGIC[rule], tuple(self.predicate(c) for c in node.children), span=span)
            case "signed":
                return self.signed(node, span)
            case _:
                left, op, right = node.children
                name = _COMPARE.get(str(op), str(op))
                return Call(name, (self.predicate(left), self.predicate(right)), span=span)

    def holding(self, node: Tree, span: Span) -> Expression:
        """A condition on the knowledge base."""
        (graph,), (pattern,) = trees(node, "iri"), trees(node, "group")
        given = tuple(self.given(each) for each in trees(node, "given"))
        return GraphCondition(self.iri_of(graph), given, self.group(pattern), span=span).call

    def given(self, node: Tree) -> tuple[Variable, Expression]:
        """`company`, `x.company AS rival`: a variable and what gives its value. Without AS it is called as that is."""
        what, *name = node.children
        assert isinstance(what, Tree)
        named = name[0] if name else tokens(what, "NAME")[-1]
        assert isinstance(named, Lexeme)
        return self.attribute(named), self.predicate(what)

    def signed(self, node: Tree, span: Span) -> Expression:
        """`-1` is a number, `-(1)` and `-price` are calls."""
        sign, operand = node.children
        between = self.text[where(sign).end : where(operand).start]
        numbers = tokens(operand, "NUMBER") if isinstance(operand, Tree) and operand.kind == "literal" else []
        if numbers and not between.strip():
            return number(f"{sign}{numbers[0]}")
        return Call("NEGATE" if sign == "-" else "PLUS", (self.predicate(operand),), span=span)


def read(text: str) -> CeqlQuery:
    """The query of a text. Raises QueryError."""
    return CeqlBuilder(text).query(tree(text, "ceql", CEQL_RULES, CEQL_COMMENT))


# --- render ceql -------------------------------------------------------------------------------------


_TERMS = SparqlWriter()


def render_ceql(query: CeqlQuery) -> str:
    """`query` as CEQL text, a clause to a line."""
    lines = [] if query.vocab is None else [f"VOCAB <{query.vocab}>"]
    strategy = f"{query.selection.strategy.value} " if query.selection else ""
    columns = "*" if query.columns is None else ", ".join(c.name for c in query.columns)
    if query.totals is not None:
        columns = ", ".join(map(render_told, query.totals.columns))
    lines.append(f"SELECT {strategy}{columns}")
    lines.append("FROM " + ", ".join(s.name for s in query.streams))
    lines.append("WHERE " + render_formula(query.formula))
    if query.partition is not None:
        lines.append("PARTITION BY " + ", ".join(f"[{v.value}]" for v in query.partition.by))
    if query.window is not None:
        lines.append(render_window(query.window))
    if query.totals is not None:
        lines += render_groups(query.totals)
    lines += render_clauses(query.consumption)
    if query.order is not None:
        lines.append(render_order(query.order))
    return "\n".join([*lines, *render_clauses(query.limit, query.sample)]) + "\n"


def render_told(told: Told) -> str:
    """A column of aggregates."""
    if told.expression == Call(OF, (Variable(told.name),)):
        return _WRITER.expression(told.expression)
    return f"{_sum(told.expression)} AS {told.name}"


def render_groups(totals: Totals) -> list[str]:
    """GROUP BY and HAVING."""
    lines = ["GROUP BY " + ", ".join(f"[{v.value}]" for v in totals.by)] if totals.by else []
    return lines if totals.having is None else [*lines, f"HAVING {render_predicate(totals.having)}"]


def render_order(order: EndOrder) -> str:
    """ORDER BY."""
    return "ORDER BY " + ", ".join(f"{_sum(e)} {'DESC' if descending else 'ASC'}" for e, descending in order.keys)


def _sum(expression: Expression) -> str:
    return _WRITER.at(expression, SUM)


def render_window(window: Window | AttributeWindow) -> str:
    """WITHIN: windows of CEQL always slide, and do not say so."""
    return render_clause(window).removesuffix(" SLIDING")


# --- formulas -------------------------------------------------------------------------------------


def render_formula(formula: Formula) -> str:
    """A formula, with the parentheses that it needs."""
    match formula:
        case EventType(name):
            return name
        case Named(inner, name):
            return f"{_operand(inner, Follows, Either, Filtered)} AS {name}"
        case Iterated(inner, contiguous):
            return f"{_operand(inner, Follows, Either, Filtered)}{':+' if contiguous else '+'}"
        case Follows(first, rest):
            text = _operand(first, Follows, Either, Filtered)
            for contiguous, inner in rest:
                text += f"{' : ' if contiguous else '; '}{_operand(inner, Follows, Either, Filtered)}"
            return text
        case Either(formulas):
            return " OR ".join(_operand(f, Either, Filtered) for f in formulas)
        case Filtered(inner, condition):
            return f"{render_formula(inner)} FILTER {render_condition(condition)}"


def _operand(formula: Formula, *loose: type) -> str:
    return inside(render_formula(formula), formula, *loose)


def render_condition(condition: Condition) -> str:
    """A condition of FILTER."""
    match condition:
        case Holds(name, predicate):
            return f"{name}[{render_predicate(predicate)}]"
        case AllOf(conditions):
            return " AND ".join(inside(render_condition(c), c, AllOf, AnyOf) for c in conditions)
        case AnyOf(conditions):
            return " OR ".join(inside(render_condition(c), c, AnyOf) for c in conditions)


# --- predicates -----------------------------------------------------------------------------------


def render_predicate(expression: Expression) -> str:
    """An expression over attributes."""
    return _WRITER.expression(expression)


class CeqlWriter(SparqlWriter):
    """Writes expressions over attributes: `x.price > 2 AND NOT [room] = "a"`."""

    words: ClassVar = {"||": "OR", "&&": "AND"}
    prefixed: ClassVar = {**SparqlWriter.prefixed, "!": ("NOT ", NOT)}

    def _expression(self, expression: Expression, indent: str) -> tuple[str, int]:
        match expression:
            case Variable():
                return expression.value, PRIMARY
            case Call(name, (Variable(value=attribute),)) if name == OF:
                return f"[{attribute}]", PRIMARY
            case Call(name, (Variable(value=variable), Variable(value=attribute))) if name in (OF, OTHER):
                return f"{variable}[{attribute}]" if name == OF else f"{variable}.{attribute}", PRIMARY
            case Call("GRAPH") if (condition := condition_of(expression)) is not None:
                return self._graph(condition), PRIMARY
            case Call(name, ()):
                return name, PRIMARY
            case Literal() | Aggregate() | Call():
                return super()._expression(expression, indent)
            case _:
                raise TypeError(f"{type(expression).__name__} cannot be used in a predicate of CEQL")

    def _graph(self, condition: GraphCondition) -> str:
        """A condition on the knowledge base, in one line."""
        given = []
        for variable, value in condition.given:
            text = self.expression(value)
            given.append(text if text.rpartition(".")[2] == variable.value else f"{text} AS {variable.value}")
        pattern = " ".join(line.strip() for line in _TERMS.group(condition.pattern, "").splitlines())
        return f"GRAPH {_TERMS.iri(condition.graph)} ({', '.join(given)}) {pattern}"


_WRITER: Final = CeqlWriter()
