"""Parse tree → algebra, for the SPARQL part of a text.

In the flow: lark's tree (rules of `sparql.lark`) → `Group`, `Expression`, `Path`. Collections and
blank node property lists become triples over fresh blank nodes, triples with triple terms become sub-queries; nothing
else is rewritten.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final, TypeAlias, TypeGuard

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
    MatchFunction,
    Minus,
    OptionalPattern,
    Path,
    PathAlternative,
    PathInverse,
    PathNegated,
    PathPattern,
    PathRepeat,
    PathSequence,
    PatternElement,
    Prev,
    Span,
    SubSelect,
    TermOrVariable,
    TriplePattern,
    Union,
    Values,
)
from oxiseq.grammar.functions import AGGREGATES, ALL_NAMES, BUILTINS, IRI_MAKERS, MANY, MATCH_FUNCTIONS
from oxiseq.grammar.terms import (
    RDF_FIRST,
    RDF_NIL,
    RDF_REST,
    RDF_TYPE,
    XSD_BOOLEAN,
    TermBuilder,
    number,
    span_of,
)
from oxiseq.grammar.trees import Lexeme, Tree

Node: TypeAlias = Tree | Lexeme


def where(node: Node) -> Span:
    """A node's span in the text."""
    return span_of(node) if isinstance(node, Lexeme) else node.span


def between(first: Node, last: Node) -> Span:
    """From the start of `first` to the end of `last`."""
    a = where(first)
    return Span(a.start, where(last).end, a.line, a.column)


def trees(node: Tree, *names: str) -> list[Tree]:
    """Its children that are of one of these rules."""
    return [c for c in node.children if isinstance(c, Tree) and c.kind in names]


def tokens(node: Tree, *names: str) -> list[Lexeme]:
    """Its children that are one of these terminals."""
    return [c for c in node.children if isinstance(c, Lexeme) and c.kind in names]


def token(node: Node) -> Lexeme:
    """A node that is a token by the grammar."""
    assert isinstance(node, Lexeme)
    return node


def is_triple_term(node: Node) -> TypeGuard[Tree]:
    """Whether it is `<<( s p o )>>`."""
    return isinstance(node, Tree) and node.kind == "triple_term"


_DEEPEST: Final = 50
"""Of triple terms in each other: behind the parser others walk through them, too."""


class SparqlBuilder(TermBuilder):
    """Builds algebra from the tree of one text."""

    # --- terms ------------------------------------------------------------------------------------

    def prologue(self, node: Tree) -> None:
        """Read BASE and PREFIX, in their order."""
        for declaration in node.children:
            assert isinstance(declaration, Tree)
            if declaration.kind == "base_decl":
                self.base = self.iri(token(declaration.children[0])).value
                continue
            name, iri = tokens(declaration, "PNAME", "IRIREF")
            prefix, _, local = name.partition(":")
            if local:
                raise self.error(f"{name} is not a prefix", span_of(name), hint=f"PREFIX {prefix}: <...>")
            self.prefixes[prefix] = self.iri(iri).value

    def iri_of(self, node: Node) -> NamedNode:
        assert isinstance(node, Tree)
        return self.iri(token(node.children[0]))

    def literal(self, node: Tree) -> Literal:
        first = node.children[0]
        assert isinstance(first, Lexeme)
        match first.kind:
            case "NUMBER" | "SIGNED":
                return number(str(first))
            case "BOOLEAN":
                return Literal(first.lower(), datatype=XSD_BOOLEAN)
        text = self.string(first)
        if len(node.children) == 1:
            return Literal(text)
        more = node.children[1]
        if isinstance(more, Lexeme):
            return self.tagged(text, more)
        return Literal(text, datatype=self.iri_of(more))

    def term(self, node: Node) -> TermOrVariable:
        """A variable, IRI, literal or blank node."""
        if isinstance(node, Lexeme):
            return self.variable(node)
        match node.kind:
            case "iri":
                return self.iri_of(node)
            case "literal":
                return self.literal(node)
            case _:
                labels = tokens(node, "BLANK_LABEL")
                return self.blank(labels[0]) if labels else self.fresh_blank()

    def var_or_iri(self, node: Node) -> Variable | NamedNode:
        return self.variable(node) if isinstance(node, Lexeme) else self.iri_of(node)

    # --- triples ----------------------------------------------------------------------------------

    def triples(self, node: Tree) -> list[PatternElement]:
        """One subject with its properties."""
        out: list[PatternElement] = []
        head, *lists = node.children
        subject = self.graph_node(head, out)
        for properties in lists:
            assert isinstance(properties, Tree)
            self.properties(subject, properties, head, out)
        return out

    def properties(self, subject: TermOrVariable, node: Tree, head: Node, out: list[PatternElement]) -> None:
        for prop in trees(node, "property"):
            verb_node, objects = prop.children
            verb = self.variable(verb_node) if isinstance(verb_node, Lexeme) else self.path(verb_node)
            assert isinstance(objects, Tree)
            for i, object_node in enumerate(objects.children):
                first = head if i == 0 and prop is node.children[0] else (verb_node if i == 0 else object_node)
                span = between(first, object_node)
                if is_triple_term(object_node):
                    out.append(self.with_triple_term(subject, verb, object_node, span))
                    continue
                inner: list[PatternElement] = []
                target = self.graph_node(object_node, inner)
                if isinstance(verb, NamedNode | Variable):
                    out.append(TriplePattern(subject, verb, target, span=span))
                else:
                    out.append(PathPattern(subject, verb, target, span=span))
                out.extend(inner)

    def with_triple_term(
        self, subject: TermOrVariable, verb: Variable | Path, node: Tree, span: Span
    ) -> PatternElement:
        """A triple whose object is a triple term of RDF 1.2: a sub-query that finds the terms, keeps those whose parts
        are as they should, and shows its variables, not the term. Where it has none, a group that only asks EXISTS: a
        pattern still, which decides to what an event belongs, as no FILTER does."""
        if isinstance(subject, BlankNode):
            raise self.error(
                "a triple with a triple term has a variable or an IRI as its subject here, not a blank node",
                span,
                hint="write a variable instead: ?r rdf:reifies <<( ?s ?p ?o )>>",
                code="triple-term",
            )
        self.check_nesting(node)
        seen = {each: None for each in (subject, verb) if isinstance(each, Variable)}
        elements: list[PatternElement] = []
        whole = self.fresh_variable()
        if isinstance(verb, NamedNode | Variable):
            elements.append(TriplePattern(subject, verb, whole, span=span))
        else:
            elements.append(PathPattern(subject, verb, whole, span=span))
        self.parts_of(whole, node, elements, seen)
        group = Group(tuple(elements), span=span)
        if seen:
            return SubSelect(tuple(seen), group, span=span)
        return Group((Filter(Exists(group, span=span), span=span),), span=span)

    def parts_of(self, whole: Variable, node: Tree, elements: list[PatternElement], seen: dict[Variable, None]) -> None:
        """What must hold for the term `whole` to be as `node` says; `seen`: the variables that have a value."""
        elements.append(Filter(Call("ISTRIPLE", (whole,)), span=where(node)))
        for function, part in zip(("SUBJECT", "PREDICATE", "OBJECT"), node.children, strict=True):
            value, span = Call(function, (whole,), span=where(part)), where(part)
            if is_triple_term(part):
                inner = self.fresh_variable()
                elements.append(Bind(value, inner, span=span))
                self.parts_of(inner, part, elements, seen)
                continue
            term = self.part(part)
            if isinstance(term, Variable) and term not in seen:
                seen[term] = None
                elements.append(Bind(value, term, span=span))
            else:
                elements.append(Filter(Call("SAMETERM", (value, term), span=span), span=span))

    def check_nesting(self, node: Tree) -> None:
        """Raise QueryError for a triple term in a triple term in a triple term..."""
        inside = [node]
        for _ in range(_DEEPEST):
            inside = [part for term in inside for part in term.children if is_triple_term(part)]
            if not inside:
                return
        raise self.error(f"triple terms are nested deeper than {_DEEPEST}", where(node), code="triple-term")

    def part(self, node: Node) -> Expression:
        """A part of a triple term, as an expression."""
        if is_triple_term(node):
            return self.expression(node)
        term = RDF_TYPE if node.kind == "rdf_type" else self.term(node)
        if isinstance(term, BlankNode):
            hint = "write a variable instead"
            message = "a blank node is not allowed in a triple term here"
            raise self.error(message, where(node), hint=hint, code="triple-term")
        return term

    def graph_node(self, node: Node, out: list[PatternElement]) -> TermOrVariable:
        """A term, or the head of a collection or property list whose triples go to `out`."""
        if isinstance(node, Tree) and node.kind == "blank_properties":
            head = self.fresh_blank()
            self.properties(head, trees(node, "property_list")[0], node, out)
            return head
        if isinstance(node, Tree) and node.kind == "collection":
            return self.collection(node, out)
        if is_triple_term(node):
            raise self.error(
                "a triple term is not allowed in a collection here",
                where(node),
                hint="it is the object of a triple: ?r rdf:reifies <<( ?s ?p ?o )>>",
                code="triple-term",
            )
        return self.term(node)

    def collection(self, node: Tree, out: list[PatternElement]) -> NamedNode | BlankNode:
        cells: list[NamedNode | BlankNode] = [self.fresh_blank() for _ in node.children]
        cells.append(RDF_NIL)
        for i, item in enumerate(node.children):
            span = where(item)
            inner: list[PatternElement] = []
            out.append(TriplePattern(cells[i], RDF_FIRST, self.graph_node(item, inner), span=span))
            out.extend(inner)
            out.append(TriplePattern(cells[i], RDF_REST, cells[i + 1], span=span))
        return cells[0]

    # --- property paths ---------------------------------------------------------------------------

    def path(self, node: Node) -> Path:
        assert isinstance(node, Tree)
        match node.kind:
            case "iri":
                return self.iri_of(node)
            case "rdf_type":
                return RDF_TYPE
            case "path_alternative":
                return PathAlternative(tuple(self.path(c) for c in node.children))
            case "path_sequence":
                return PathSequence(tuple(self.path(c) for c in node.children))
            case "path_inverse":
                return PathInverse(self.path(node.children[0]))
            case "path_repeat":
                return PathRepeat(self.path(node.children[0]), str(node.children[1]))
            case _:
                return PathNegated(tuple(self.negated_member(c) for c in node.children if isinstance(c, Tree)))

    def negated_member(self, node: Tree) -> NamedNode | PathInverse:
        if node.kind == "negated_inverse":
            return PathInverse(self.path(node.children[0]))
        return RDF_TYPE if node.kind == "rdf_type" else self.iri_of(node)

    # --- groups -----------------------------------------------------------------------------------

    def group(self, node: Node) -> Group:
        assert isinstance(node, Tree)
        elements: list[PatternElement] = []
        for child in node.children:
            assert isinstance(child, Tree)
            if child.kind == "triples":
                elements.extend(self.triples(child))
            else:
                elements.append(self.element(child))
        return Group(tuple(elements), span=where(node))

    def element(self, node: Tree) -> PatternElement:
        span = where(node)
        match node.kind:
            case "union":
                groups = tuple(self.group(c) for c in node.children)
                return groups[0] if len(groups) == 1 else Union(groups, span=span)
            case "optional":
                return OptionalPattern(self.group(node.children[0]), span=span)
            case "minus":
                return Minus(self.group(node.children[0]), span=span)
            case "graph":
                return GraphPattern(self.var_or_iri(node.children[0]), self.group(node.children[1]), span=span)
            case "filter":
                return Filter(self.expression(node.children[0]), span=span)
            case "bind":
                return Bind(*self.aliased(node), span=span)
            case "values":
                return self.values(node)
            case "sub_select":
                return self.sub_select(node)
            case _:
                raise self.error(
                    "SERVICE is not supported: patterns are matched on the event or on the knowledge base",
                    where(node.children[0]),
                    hint="load the data into the knowledge base and use GRAPH <...> { ... }",
                    code="service",
                )

    def values(self, node: Tree) -> Values:
        span = where(node)
        head, *rest = node.children
        if isinstance(head, Lexeme):
            return Values((self.variable(head),), tuple((self.datum(c),) for c in rest), span=span)
        variables = tuple(self.variable(t) for t in tokens(head, "VAR"))
        rows = []
        for row in rest:
            assert isinstance(row, Tree)
            if len(row.children) != len(variables):
                raise self.error(
                    f"VALUES has {len(variables)} variables, this row has {len(row.children)}",
                    where(row),
                    hint="write UNDEF where a row has no value",
                    code="values",
                )
            rows.append(tuple(self.datum(c) for c in row.children))
        return Values(variables, tuple(rows), span=span)

    def datum(self, node: Node) -> NamedNode | Literal | None:
        if isinstance(node, Lexeme):
            return None
        return self.iri_of(node) if node.kind == "iri" else self.literal(node)

    def sub_select(self, node: Tree) -> SubSelect:
        (projection,) = trees(node, "projection")
        (body,) = trees(node, "group")
        chosen = None if tokens(projection, "STAR") else tuple(self.column(c) for c in projection.children)
        values = trees(node, "values")
        group_by, having, order_by = self.grouping(node)
        return SubSelect(
            chosen,
            self.group(body),
            distinct=bool(tokens(node, "DISTINCT")),
            reduced=bool(tokens(node, "REDUCED")),
            group_by=group_by,
            having=having,
            order_by=order_by,
            limit=next((self.whole(t) for c in trees(node, "limit") for t in c.children), None),
            offset=next((self.whole(t) for c in trees(node, "offset") for t in c.children), None),
            values=self.values(values[0]) if values else None,
            span=where(node),
        )

    def grouping(
        self, node: Tree
    ) -> tuple[
        tuple[Expression | tuple[Expression, Variable], ...],
        tuple[Expression, ...],
        tuple[tuple[Expression, bool], ...],
    ]:
        """GROUP BY, HAVING and ORDER BY of a query."""
        return (
            tuple(self.group_key(c) for g in trees(node, "group_by") for c in g.children),
            tuple(self.expression(c) for h in trees(node, "having") for c in h.children),
            tuple(self.order_key(k) for o in trees(node, "order_by") for k in trees(o, "order_key")),
        )

    def column(self, node: Node) -> Variable | tuple[Expression, Variable]:
        if isinstance(node, Lexeme):
            return self.variable(node)
        return self.aliased(node)

    def group_key(self, node: Node) -> Expression | tuple[Expression, Variable]:
        if isinstance(node, Tree) and node.kind == "group_key":
            return self.expression(node.children[0]) if len(node.children) == 1 else self.aliased(node)
        return self.expression(node)

    def aliased(self, node: Tree) -> tuple[Expression, Variable]:
        """`expression AS ?variable`."""
        expression, variable = node.children
        return self.expression(expression), self.variable(token(variable))

    def order_key(self, node: Tree) -> tuple[Expression, bool]:
        return self.expression(node.children[-1]), bool(tokens(node, "DESC"))

    def whole(self, node: Node) -> int:
        """A number that counts something."""
        assert isinstance(node, Lexeme)
        if not node.isdecimal():
            raise self.error(f"{node} is not a whole number", span_of(node))
        return int(node)

    # --- expressions ------------------------------------------------------------------------------

    def expression(self, node: Node) -> Expression:
        if isinstance(node, Lexeme):
            return self.variable(node)
        span = where(node)
        match node.kind:
            case "binary":
                left, op, right = node.children
                return Call(str(op), (self.expression(left), self.expression(right)), span=span)
            case "prefixed":
                op, operand = node.children
                name = {"-": "NEGATE", "+": "PLUS"}.get(str(op), "!")
                return Call(name, (self.expression(operand),), span=span)
            case "signed_sum":
                return self.signed_sum(node, span)
            case "in_list" | "not_in_list" as rule:
                tested, members = node.children
                assert isinstance(members, Tree)
                args = (self.expression(tested), *self.expressions(members.children))
                return Call("IN" if rule == "in_list" else "NOT IN", args, span=span)
            case "exists" | "not_exists" as rule:
                return Exists(self.group(node.children[0]), rule == "not_exists", span=span)
            case "iri":
                return self.iri_of(node)
            case "literal":
                return self.literal(node)
            case "triple_term":
                self.check_nesting(node)
                return Call("TRIPLE", tuple(map(self.part, node.children)), span=span)
            case "function":
                name_node, *rest = node.children
                arguments = self.expressions(c for c in rest if not (isinstance(c, Lexeme) and c.kind == "DISTINCT"))
                return FunctionCall(self.iri_of(name_node), arguments, bool(tokens(node, "DISTINCT")), span=span)
            case _:
                return self.call(node, span)

    def signed_sum(self, node: Tree, span: Span) -> Call:
        """`9 -1 * 2`, read as 9 - (1 * 2)."""
        left, signed, *rest = node.children
        assert isinstance(signed, Lexeme)
        right: Expression = number(signed[1:])
        for op, factor in zip(rest[::2], rest[1::2], strict=True):
            right = Call(str(op), (right, self.expression(factor)), span=between(signed, factor))
        return Call(signed[0], (self.expression(left), right), span=span)

    def expressions(self, nodes: Iterable[Node]) -> tuple[Expression, ...]:
        return tuple(self.expression(n) for n in nodes)

    def call(self, node: Tree, span: Span) -> Expression:
        """A call by name: an aggregate, a function of the match, PREV or a SPARQL built-in."""
        head, *rest = node.children
        assert isinstance(head, Lexeme)
        name = head.upper()
        gpms = [c for c in rest if isinstance(c, Lexeme) and c.kind == "NAME"]
        args = [c for c in rest if isinstance(c, Tree) or c.kind == "VAR"]
        separator = trees(node, "separator")
        if name not in BUILTINS and name not in AGGREGATES and name not in MATCH_FUNCTIONS and name != "PREV":
            close = get_close_matches(name, ALL_NAMES, 1)
            hint = f"did you mean {close[0]}?" if close else "call your own functions by IRI"
            raise self.error(f"there is no function {head}", span_of(head), hint=hint, code="function")
        if gpms and not (MATCH_FUNCTIONS.get(name) or name == "COUNT"):
            raise self.error(
                f"{name} takes expressions, {gpms[0]} is a plain name",
                span_of(gpms[0]),
                hint=f"did you mean ?{gpms[0]}?",
                code="function",
            )
        if name in MATCH_FUNCTIONS or gpms:
            return self.match_function(name, gpms, node)
        if name in AGGREGATES:
            return self.aggregate(name, node, [a for a in args if a not in separator])
        if separator or tokens(node, "DISTINCT", "STAR"):
            raise self.error(f"{name} takes plain arguments only", span, code="function")
        arguments = self.expressions(args)
        if name == "PREV":
            return self.prev(arguments, span)
        self.check_arity(name, arguments, span)
        if name in IRI_MAKERS and self.base is not None:
            arguments = (*arguments, NamedNode(self.base))
        return Call(name, arguments, span=span)

    def match_function(self, name: str, gpms: Sequence[Lexeme], node: Tree) -> MatchFunction:
        span = where(node)
        if MATCH_FUNCTIONS.get(name, True) and len(gpms) == 1:
            return MatchFunction(name, str(gpms[0]), span=span)
        if not MATCH_FUNCTIONS.get(name, True) and len(node.children) == 1:
            return MatchFunction(name, None, span=span)
        form = f"{name}(A)" if MATCH_FUNCTIONS[name] else f"{name}()"
        takes = "the name of a GPM" if MATCH_FUNCTIONS[name] else "no argument"
        raise self.error(f"{name} takes {takes}", span, hint=f"write {form}", code="function")

    def aggregate(self, name: str, node: Tree, args: Sequence[Node]) -> Aggregate:
        span = where(node)
        star = tokens(node, "STAR")
        texts = [t for s in trees(node, "separator") for t in tokens(s, "STRING")]
        if (star and name != "COUNT") or (not star and len(args) != 1):
            raise self.error(f"{name} takes one expression", span, code="function")
        if texts and name != "GROUP_CONCAT":
            raise self.error("only GROUP_CONCAT takes a SEPARATOR", span, code="function")
        separator = self.string(texts[0]) if texts else None
        arg = None if star else self.expression(args[0])
        return Aggregate(name, arg, bool(tokens(node, "DISTINCT")), separator, span=span)

    def prev(self, args: tuple[Expression, ...], span: Span) -> Prev:
        if len(args) == 1 and isinstance(args[0], Variable):
            return Prev(args[0], span=span)
        raise self.error("PREV takes one variable", span, hint="write PREV(?price)", code="function")

    def check_arity(self, name: str, args: tuple[Expression, ...], span: Span) -> None:
        least, most = BUILTINS[name]
        if not least <= len(args) <= most:
            wanted = str(least) if least == most else f"{least} to {most}" if most < MANY else f"at least {least}"
            many = "argument" if wanted == "1" else "arguments"
            raise self.error(f"{name} takes {wanted} {many}, not {len(args)}", span, code="function")
        if name == "BOUND" and not isinstance(args[0], Variable):
            raise self.error("BOUND takes one variable", span, code="function")
