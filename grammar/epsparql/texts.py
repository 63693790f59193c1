"""EP-SPARQL's texts: parse tree → `EpQuery`, and back; `parse(render_ep(q), "epsparql") == q`.

In the flow: lark's tree (rules of `epsparql.lark`) → `EpQuery` → checks, plan, text. Result forms are SPAseq's.
"""

from __future__ import annotations

from pyoxigraph import Variable

from oxiseq.grammar.algebra import (
    Expression,
    Filter,
    Group,
    MatchFunction,
    Path,
    PatternElement,
    Span,
    Stream,
    SubSelect,
    TermOrVariable,
    TimedPattern,
    TimeOp,
    TriplePattern,
    Union,
)
from oxiseq.grammar.ep_algebra import TIME_FUNCTIONS, EpQuery
from oxiseq.grammar.epsparql.slips import EP_RULES
from oxiseq.grammar.functions import MATCH_FUNCTIONS
from oxiseq.grammar.parsing.clauses import FormBuilder
from oxiseq.grammar.parsing.sparql import between, tokens, trees, where
from oxiseq.grammar.render import render_clauses
from oxiseq.grammar.render_sparql import SparqlWriter
from oxiseq.grammar.slips.slip import COMMENT
from oxiseq.grammar.terms import span_of
from oxiseq.grammar.trees import Lexeme, Tree, tree

# --- epsparql ----------------------------------------------------------------------------------------


class EpBuilder(FormBuilder):
    """Builds an `EpQuery` from the tree of one text."""

    def ep_query(self, tree: Tree) -> EpQuery:
        """The whole text."""
        prologue, form, *_ = tree.children
        assert isinstance(prologue, Tree) and isinstance(form, Tree)
        self.prologue(prologue)
        (body,) = trees(tree, "where")
        pattern = self.body(body)
        for data in trees(tree, "values"):
            pattern = Group((pattern, self.values(data)), span=between(body, data))
        return EpQuery(
            self.form(form),
            pattern,
            tuple(self.stream(s) for s in trees(tree, "stream")),
            tuple(self.prefixes.items()),
            self.base,
            self.consume(trees(tree, "consume")),
            span=where(tree),
            text=self.text,
        )

    def stream(self, node: Tree) -> Stream:
        names = tokens(node, "NAME")
        return Stream(str(names[0]) if names else "", self.iri_of(node.children[-1]), span=where(node))

    def body(self, node: Tree) -> Group:
        """WHERE's pattern; what follows its braces makes a group with it."""
        first, *filters = trees(node, "union", "filter")
        element = self.element(first)
        if isinstance(element, Group) and not filters:
            return element
        return Group((element, *(self.element(f) for f in filters)), span=where(node))

    def element(self, node: Tree) -> PatternElement:
        if node.kind == "union":
            return self.timed(node)
        if node.kind == "filter":
            return Filter(self.expression(node.children[0]), span=where(node))
        return super().element(node)

    def timed(self, node: Tree) -> PatternElement:
        """`{...} SEQ {...} UNION {...}`, from left to right."""
        first, *rest = node.children
        left: Group | Union | TimedPattern = self.either(first)
        for op, operand in zip(rest[::2], rest[1::2], strict=True):
            left = TimedPattern(TimeOp(str(op).upper()), left, self.either(operand), span=between(first, operand))
        return left

    def with_triple_term(
        self, subject: TermOrVariable, verb: Variable | Path, node: Tree, span: Span
    ) -> PatternElement:
        """One with a variable: EXISTS, which asks for one without any, has no interval."""
        found = super().with_triple_term(subject, verb, node, span)
        if isinstance(found, SubSelect | TriplePattern):
            return found
        raise self.error(
            "a triple with a triple term needs a variable here",
            span,
            hint="write ?t for the term: ?r rdf:reifies ?t FILTER(?t = <<( :s :p :o )>>)",
            code="triple-term",
        )

    def either(self, node: Tree | Lexeme) -> Group | Union:
        assert isinstance(node, Tree)
        groups = tuple(self.group(c) for c in node.children)
        return groups[0] if len(groups) == 1 else Union(groups, span=where(node))

    def call(self, node: Tree, span: Span) -> Expression:
        """A call by name; the functions of time take no argument."""
        head, *rest = node.children
        assert isinstance(head, Lexeme)
        name = TIME_FUNCTIONS.get(head.upper())
        if name is not None:
            if rest:
                raise self.error(f"{name} takes no argument", span, hint=f"write {name}()", code="function")
            return MatchFunction(name, span=span)
        if head.upper() in MATCH_FUNCTIONS:
            close = {"STARTTIME": "getSTARTTIME", "ENDTIME": "getENDTIME", "DURATION": "getDURATION"}.get(head.upper())
            hint = f"write {close}()" if close else "EP-SPARQL has getSTARTTIME(), getENDTIME() and getDURATION()"
            raise self.error(f"EP-SPARQL has no function {head}", span_of(head), hint=hint, code="function")
        return super().call(node, span)


def read(text: str) -> EpQuery:
    """The query of a text. Raises QueryError."""
    return EpBuilder(text).ep_query(tree(text, "epsparql", EP_RULES, COMMENT))


# --- render ep ---------------------------------------------------------------------------------------


def render_ep(query: EpQuery) -> str:
    """`query` as EP-SPARQL text, IRIs shortened by its prefixes."""
    writer = SparqlWriter(dict(query.prefixes))
    lines = [*writer.prologue(query), writer.form(query.form)]
    lines += [f"FROM STREAM {s.name + ' ' if s.name else ''}<{s.iri.value}>" for s in query.streams]
    lines += [f"WHERE {writer.group(query.where, '')}", *render_clauses(query.consume)]
    return "\n".join(lines) + "\n"
