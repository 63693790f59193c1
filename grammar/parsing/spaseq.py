"""Parse tree → `Query`, for SPAseq's own clauses.

Where it stands: lark's tree (rules of `spaseq.lark`) → `Query`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence as Items

from lark import Token, Tree
from pyoxigraph import Variable

from oxiseq.grammar.algebra import (
    NOWHERE,
    Aggregate,
    Ask,
    Atom,
    Conjunction,
    Construct,
    Disjunction,
    Every,
    Expression,
    Gpm,
    Maybe,
    Not,
    OnChange,
    OnClose,
    Op,
    Partition,
    Projection,
    Query,
    Repeat,
    Select,
    Sequence,
    SequenceElement,
    Span,
    Stream,
    Summary,
    TermOrVariable,
    TriplePattern,
    When,
    Window,
)
from oxiseq.grammar.functions import ITERATION_VALUES
from oxiseq.grammar.parsing.clauses import ClauseBuilder
from oxiseq.grammar.parsing.durations import DURATIONS
from oxiseq.grammar.parsing.sparql import Node, between, kind, tokens, trees, where
from oxiseq.grammar.terms import RDF_TYPE


class SpaseqBuilder(ClauseBuilder):
    """Builds a `Query` from the tree of one SPAseq text."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._fresh_columns = 0

    def query(self, tree: Tree[Token]) -> Query:
        """The whole text."""
        prologue, form, *_ = tree.children
        assert isinstance(prologue, Tree) and isinstance(form, Tree)
        self.prologue(prologue)
        (seq,) = trees(tree, "seq")
        return Query(
            self.form(form),
            tuple(self.stream(s) for s in trees(tree, "stream")),
            self.sequence(seq.children[0]),
            tuple(self.gpm(g) for g in trees(tree, "gpm")),
            self.window(trees(tree, "within")),
            tuple(self.prefixes.items()),
            self.base,
            self.partition(trees(tree, "partition")),
            self.consumption(trees(tree, "consume")),
            self.limit(trees(tree, "limit")),
            self.summary(tree),
            span=where(tree),
            text=self.text,
        )

    # --- result forms -----------------------------------------------------------------------------

    def form(self, node: Tree[Token]) -> Select | Construct | Ask:
        match kind(node):
            case "select":
                return self.select(node)
            case "construct":
                return self.construct(node)
            case _:
                return Ask()

    def select(self, node: Tree[Token]) -> Select:
        distinct = bool(tokens(node, "DISTINCT"))
        if tokens(node, "STAR"):
            return Select(None, distinct, self.selection(node))
        columns = tuple(self.projection(c) for c in node.children if kind(c) in ("VAR", "column"))
        return Select(columns, distinct, self.selection(node))

    def projection(self, node: Node) -> Projection:
        column = self.column(node)
        if isinstance(column, Variable):
            return Projection(column, span=where(node))
        return Projection(column[1], column[0], span=where(node))

    def construct(self, node: Tree[Token]) -> Construct:
        columns: list[Projection] = []
        triples: list[TriplePattern] = []
        for subject in trees(trees(node, "template")[0], "template_triples"):
            head, *lists = subject.children
            term = self.template_node(head, triples, columns)
            for properties in lists:
                assert isinstance(properties, Tree)
                self.template_properties(term, properties, head, triples, columns)
        into = [self.iri_of(i.children[0]) for i in trees(node, "into")]
        return Construct(tuple(triples), into[0] if into else None, tuple(columns))

    def template_properties(
        self,
        subject: TermOrVariable,
        node: Tree[Token],
        head: Node,
        out: list[TriplePattern],
        columns: list[Projection],
    ) -> None:
        for prop in trees(node, "template_property"):
            verb_node, *objects = prop.children
            verb = RDF_TYPE if kind(verb_node) == "rdf_type" else self.var_or_iri(verb_node)
            for i, item in enumerate(objects):
                first = item if i else head if prop is node.children[0] else verb_node
                inner: list[TriplePattern] = []
                target = self.template_node(item, inner, columns)
                out.append(TriplePattern(subject, verb, target, span=between(first, item)))
                out.extend(inner)

    def template_node(self, node: Node, out: list[TriplePattern], columns: list[Projection]) -> TermOrVariable:
        if isinstance(node, Tree) and kind(node) == "template_blank":
            head = self.fresh_blank()
            self.template_properties(head, trees(node, "template_properties")[0], node, out, columns)
            return head
        if isinstance(node, Tree) and kind(node) == "template_expression":
            variable = self.fresh_column()
            columns.append(Projection(variable, self.expression(node.children[0]), span=where(node)))
            return variable
        return self.term(node)

    def fresh_column(self) -> Variable:
        """A variable for an expression in a template; one that the text does not hold."""
        while True:
            self._fresh_columns += 1
            name = f"value{self._fresh_columns}"
            if not re.search(rf"[?$]{name}\b", self.text):
                return Variable(name)

    # --- clauses ----------------------------------------------------------------------------------

    def stream(self, node: Tree[Token]) -> Stream:
        name, iri = node.children
        return Stream(str(name), self.iri_of(iri), span=where(node))

    def gpm(self, node: Tree[Token]) -> Gpm:
        name, stream, body = node.children
        return Gpm(str(name), str(stream), self.group(body), span=where(node))

    def partition(self, nodes: Items[Tree[Token]]) -> Partition | None:
        node = self.only(nodes, "PARTITION BY", "partition")
        if node is None:
            return None
        return Partition(tuple(self.variable(t) for t in tokens(node, "VAR")), span=where(node))

    def window(self, nodes: Items[Tree[Token]]) -> Window | None:
        node = self.only(nodes, "WITHIN", "window")
        if node is None:
            return None
        sliding, span = bool(tokens(node, "SLIDING")), where(node)
        if tokens(node, "EVENTS"):
            return Window(self.size(node.children[0]), True, sliding, span=span)
        return Window(self.span_of_time(node, "WITHIN", "window"), False, sliding, span=span)

    def span_of_time(self, node: Tree[Token], clause: str, code: str) -> int:
        """`30 MINUTES`, PT30M or "PT30M"^^xsd:duration in microseconds."""
        first = node.children[0]
        assert isinstance(first, Token)
        if kind(first) == "NUMBER":
            return self.time(first, tokens(node, "UNIT")[0])
        datatype = [self.iri_of(c) for c in node.children if isinstance(c, Tree)]
        if datatype and datatype[0] not in DURATIONS:
            hint = 'write "PT30M"^^xsd:duration'
            raise self.error(f"{clause} takes an xsd:duration", where(node), hint=hint, code=code)
        return self.duration(str(first) if kind(first) == "DURATION" else self.string(first), first)

    # --- behind WHERE -----------------------------------------------------------------------------

    def summary(self, tree: Tree[Token]) -> Summary:
        """GROUP BY, HAVING, ORDER BY, REPORT."""
        clauses = trees(tree, "group_by", "having", "order_by", "report")
        reports = trees(tree, "report")
        return Summary(
            tuple(self.group_key(c) for g in trees(tree, "group_by") for c in g.children),
            tuple(self.expression(c) for h in trees(tree, "having") for c in h.children),
            tuple(self.order_key(k) for o in trees(tree, "order_by") for k in trees(o, "order_key")),
            self.report(reports[0]) if reports else None,
            span=where(clauses[0]) if clauses else NOWHERE,
        )

    def report(self, node: Tree[Token]) -> When:
        """When an answer over matches is reported."""
        if tokens(node, "CONTENT"):
            return OnChange(span=where(node))
        if not node.children:
            return OnClose(span=where(node))
        return Every(self.span_of_time(node, "REPORT EVERY", "report"), span=where(node))

    def call(self, node: Tree[Token], span: Span) -> Expression:
        """As ever, and FIRST(?v), LAST(?v) of a repeated GPM."""
        head, *args = node.children
        if isinstance(head, Token) and head.upper() in ITERATION_VALUES:
            if len(args) != 1 or kind(args[0]) in ("NAME", "STAR"):
                name = head.upper()
                raise self.error(f"{name} takes one expression", span, hint=f"write {name}(?v)", code="function")
            return Aggregate(head.upper(), self.expression(args[0]), span=span)
        return super().call(node, span)

    # --- SEQ --------------------------------------------------------------------------------------

    def sequence(self, node: Node) -> SequenceElement:
        """An expression of SEQ. Parentheses leave a trace only as nesting."""
        assert isinstance(node, Tree)
        span = where(node)
        match kind(node):
            case "atom":
                return Atom(str(node.children[0]), span=span)
            case "parenthesised":
                return self.sequence(node.children[0])
            case "sequence":
                first, *rest = node.children
                pairs = zip(rest[::2], rest[1::2], strict=True)
                return Sequence(
                    self.sequence(first), tuple((Op(str(op)), self.sequence(e)) for op, e in pairs), span=span
                )
            case "conjunction":
                return Conjunction(tuple(self.sequence(c) for c in node.children), span=span)
            case "disjunction":
                return Disjunction(tuple(self.sequence(c) for c in node.children), span=span)
            case "maybe":
                return Maybe(self.sequence(node.children[0]), span=span)
            case "not":
                return Not(self.sequence(node.children[0]), span=span)
            case _:
                return self.repeat(node, span)

    def repeat(self, node: Tree[Token], span: Span) -> Repeat:
        item, mark, *bounds = node.children
        assert isinstance(mark, Token)
        chain = Op(mark[0]) if mark[0] in ",;:" else None
        least, most = self.bounds(bounds[0]) if bounds else (1, None)
        return Repeat(self.sequence(item), least, most, chain, span=span)

    def bounds(self, node: Node) -> tuple[int, int | None]:
        assert isinstance(node, Tree)
        numbers = [self.whole(t) for t in tokens(node, "NUMBER")]
        if len(numbers) == 2:
            return numbers[0], numbers[1]
        return numbers[0], None if tokens(node, "COMMA") else numbers[0]
