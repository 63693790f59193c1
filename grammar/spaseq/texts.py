"""SPAseq's texts: parse tree → `Query`, and back; `parse(render_spaseq(q)) == q`.

In the flow: lark's tree (rules of `spaseq.lark`) → `Query` → checks, plan, text. Groups and expressions are
`parsing.sparql`'s and `render_sparql`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Items

from oxiseq.grammar.algebra import (
    NOWHERE,
    Aggregate,
    Atom,
    Bounded,
    BoundKind,
    Conjunction,
    Disjunction,
    Expression,
    Filter,
    Gpm,
    Maybe,
    Not,
    Op,
    Query,
    Repeat,
    Sequence,
    SequenceElement,
    Span,
    Stream,
    Summary,
    Suppression,
    Window,
)
from oxiseq.grammar.functions import ITERATION_VALUES
from oxiseq.grammar.parsing.clauses import DURATIONS, FormBuilder
from oxiseq.grammar.parsing.sparql import Node, tokens, trees, where
from oxiseq.grammar.render import render_clauses, time_span
from oxiseq.grammar.render_sparql import SparqlWriter, inside
from oxiseq.grammar.slips.slip import COMMENT
from oxiseq.grammar.spaseq.slips import RULES
from oxiseq.grammar.trees import Lexeme, Tree, tree

# --- spaseq ------------------------------------------------------------------------------------------


class SpaseqBuilder(FormBuilder):
    """Builds a `Query` from the tree of one SPAseq text."""

    def query(self, tree: Tree) -> Query:
        """The whole text."""
        prologue, form, *_ = tree.children
        assert isinstance(prologue, Tree) and isinstance(form, Tree)
        self.prologue(prologue)
        (seq,) = trees(tree, "seq")
        return Query(
            self.form(form),
            tuple(self.stream(s) for s in trees(tree, "stream")),
            self.sequence(seq.children[0]),
            self.gpms(trees(tree, "gpm")),
            self.window(trees(tree, "within")),
            tuple(self.prefixes.items()),
            self.base,
            self.partition(trees(tree, "partition")),
            self.consumption(trees(tree, "consume")),
            self.limit(trees(tree, "limit"), trees(tree, "offset")),
            tuple(Filter(self.expression(f.children[0]), span=where(f)) for f in trees(tree, "filter")),
            next((self.sequence(u.children[0]) for u in trees(tree, "until")), None),
            self.summary(tree),
            self.sample(trees(tree, "sample")),
            self.suppression(trees(tree, "suppress")),
            span=where(tree),
            text=self.text,
        )

    # --- clauses ----------------------------------------------------------------------------------

    def stream(self, node: Tree) -> Stream:
        name, iri = node.children
        return Stream(str(name), self.iri_of(iri), span=where(node))

    def gpms(self, nodes: Items[Tree]) -> tuple[Gpm, ...]:
        """All definitions; `DEFINE GPM B2 AS B` is B's pattern written again (semantics.md 2.5b)."""
        written = {str(n.children[0]): n for n in nodes if len(n.children) == 3}
        return tuple(self.gpm(node, written) for node in nodes)

    def gpm(self, node: Tree, written: Mapping[str, Tree]) -> Gpm:
        name, *_ = node.children
        if len(node.children) == 2:
            other = node.children[1]
            if str(other) not in written:
                hint = "AS takes a GPM that is defined with ON: DEFINE GPM B ON S1 { ... }"
                raise self.error(f"no GPM {other} is defined", where(other), hint=hint, code="gpm")
            node = written[str(other)]
        _, stream, body = node.children
        return Gpm(str(name), str(stream), self.group(body), span=where(node))

    def window(self, nodes: Items[Tree]) -> Window | None:
        node = self.only(nodes, "WITHIN", "window")
        if node is None:
            return None
        size, events = self.extent(node.children, "WITHIN", where(node))
        return Window(size, events, bool(tokens(node, "SLIDING")), span=where(node))

    def suppression(self, nodes: Items[Tree]) -> Suppression | None:
        """SUPPRESS, with the variables of its key."""
        node = self.only(nodes, "SUPPRESS", "suppress")
        if node is None:
            return None
        size, events = self.extent(node.children, "SUPPRESS", where(node), "suppress")
        if events:
            hint = "write a time: SUPPRESS 10 MINUTES"
            raise self.error("SUPPRESS takes a time, not EVENTS", where(node), hint=hint, code="suppress")
        by = tuple(map(self.variable, tokens(node, "VAR")))
        return Suppression(size, by or None, span=where(node))

    def extent(self, parts: Items[Node], word: str, span: Span, code: str = "window") -> tuple[int, bool]:
        """What follows `word`: microseconds, or a number of instants and True."""
        first, *rest = parts
        assert isinstance(first, Lexeme)
        if first.kind == "NUMBER":
            unit = rest[0]
            assert isinstance(unit, Lexeme)
            events = unit.kind == "EVENTS"
            return self.size(first) if events else self.time(first, unit), events
        datatype = [self.iri_of(c) for c in rest if isinstance(c, Tree)]
        if datatype and datatype[0] not in DURATIONS:
            raise self.error(f"{word} takes an xsd:duration", span, hint='write "PT30M"^^xsd:duration', code=code)
        text = str(first) if first.kind == "DURATION" else self.string(first)
        return self.duration(text, first), False

    # --- behind WHERE -----------------------------------------------------------------------------

    def summary(self, tree: Tree) -> Summary:
        """GROUP BY, HAVING, ORDER BY, REPORT."""
        clauses = trees(tree, "group_by", "having", "order_by", "report")
        return Summary(
            *self.grouping(tree),
            self.when(trees(tree, "report"), self.period),
            span=where(clauses[0]) if clauses else NOWHERE,
        )

    def period(self, node: Tree) -> int:
        return self.extent(node.children, "REPORT EVERY", where(node), "report")[0]

    def call(self, node: Tree, span: Span) -> Expression:
        """As ever, and FIRST(?v), LAST(?v) of a repeated GPM."""
        head, *args = node.children
        if isinstance(head, Lexeme) and head.upper() in ITERATION_VALUES:
            if len(args) != 1 or args[0].kind in ("NAME", "STAR"):
                name = head.upper()
                raise self.error(f"{name} takes one expression", span, hint=f"write {name}(?v)", code="function")
            return Aggregate(head.upper(), self.expression(args[0]), span=span)
        return super().call(node, span)

    # --- SEQ --------------------------------------------------------------------------------------

    def sequence(self, node: Node) -> SequenceElement:
        """An expression of SEQ. Parentheses leave a trace only as nesting."""
        assert isinstance(node, Tree)
        span = where(node)
        match node.kind:
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
                self.no_reluctance(node.children[0], span)
                return Maybe(self.sequence(node.children[0]), span=span)
            case "not":
                return Not(self.sequence(node.children[0]), span=span)
            case "within_bound" | "after_bound" | "lasting_bound" as rule:
                return self.bounded(node, BoundKind(rule.removesuffix("_bound").upper()), span)
            case _:
                return self.repeat(node, span)

    def no_reluctance(self, item: Node, span: Span) -> None:
        """`B+?`, `B*?`, `B{2}?` and `B??` of SQL, which ask for the fewest iterations, are refused."""
        if item.kind in ("repeat", "maybe"):
            written = self.text[where(item).start : where(item).end]
            message = f"`{written}?` is a reluctant repeat of SQL: here every length is a match"
            hint = f"write {written} for every length, ({written})? if the whole may be missing"
            raise self.error(message, span, hint=hint, code="repeat")

    def bounded(self, node: Tree, bound: BoundKind, span: Span) -> Bounded:
        item, *parts = node.children
        size, events = self.extent(parts, bound.value, span)
        if events:
            word, hint = bound.value, f"write a time: {bound.value} 10 MINUTES"
            raise self.error(f"{word} in SEQ takes a time, not EVENTS", where(parts[1]), hint=hint, code="bounds")
        return Bounded(self.sequence(item), bound, size, span=span)

    def repeat(self, node: Tree, span: Span) -> Repeat:
        item, mark, *bounds = node.children
        assert isinstance(mark, Lexeme)
        chain = Op(mark[0]) if mark[0] in ",;:" else None
        least, most = self.bounds(bounds[0]) if bounds else (0 if mark == "*" else 1, None)
        return Repeat(self.sequence(item), least, most, chain, span=span)

    def bounds(self, node: Node) -> tuple[int, int | None]:
        assert isinstance(node, Tree)
        numbers = [self.whole(t) for t in tokens(node, "NUMBER")]
        if len(numbers) == 2:
            return numbers[0], numbers[1]
        return numbers[0], None if tokens(node, "COMMA") else numbers[0]


def read(text: str) -> Query:
    """The query of a text. Raises QueryError."""
    return SpaseqBuilder(text).query(tree(text, "spaseq", RULES, COMMENT))


# --- render spaseq -----------------------------------------------------------------------------------


def render_spaseq(query: Query) -> str:
    """A SPAseq query: `parse(render_spaseq(q)) == q`."""
    writer, summary = SparqlWriter(dict(query.prefixes)), query.summary
    lines = [*writer.prologue(query), writer.form(query.form), *render_clauses(query.window)]
    if query.partition is not None:
        lines.append("PARTITION BY " + " ".join(writer.term(v) for v in query.partition.by))
    lines += render_clauses(query.consumption, query.suppression)
    lines += [f"FROM STREAM {s.name} <{s.iri.value}>" for s in query.streams]
    lines += ["WHERE {", f"  {render_seq(query)}"]
    lines += [f"  FILTER({writer.expression(f.condition)})" for f in query.filters]
    lines += [f"  DEFINE GPM {g.name} ON {g.stream} {writer.group(g.pattern, '  ')}" for g in query.gpms]
    lines += ["}", *writer.clauses_of_groups(summary.group_by, summary.having, summary.order_by, "")]
    return "\n".join([*lines, *render_clauses(query.limit, query.sample, summary.report)]) + "\n"


def render_seq(query: Query) -> str:
    """SEQ(...), with its UNTIL."""
    until = "" if query.until is None else f" UNTIL {inside(render_sequence(query.until), query.until, Sequence)}"
    return f"SEQ({render_sequence(query.sequence)}){until}"


def render_sequence(element: SequenceElement) -> str:
    """An expression of SEQ, with the parentheses that it needs."""
    match element:
        case Atom(name):
            return name
        case Sequence(first, rest):
            text = _operand(first, Sequence)
            for op, item in rest:
                text += (" : " if op is Op.ANY else f"{op.value} ") + _operand(item, Sequence)
            return text
        case Disjunction(items):
            return " | ".join(_operand(i, Sequence, Disjunction, Bounded) for i in items)
        case Conjunction(items):
            return " & ".join(_operand(i, Sequence, Disjunction, Conjunction, Bounded) for i in items)
        case Bounded(item, kind, size):
            return f"{_operand(item, Sequence)} {kind.value} {time_span(size)}"
        case Maybe(item):  # `A+?` would be SQL's reluctant repeat
            return _operand(item, Sequence, Disjunction, Conjunction, Bounded, Repeat, Maybe) + "?"
        case Not(item):
            return _postfixed(item) + "!"
        case Repeat(item, least, most, chain):
            bounds = (
                "+"
                if (least, most) == (1, None)
                else f"{{{least}}}"
                if least == most
                else f"{{{least},{'' if most is None else most}}}"
            )
            return _postfixed(item) + (chain.value if chain else "") + bounds


def _operand(element: SequenceElement, *loose: type) -> str:
    return inside(render_sequence(element), element, *loose)


def _postfixed(element: SequenceElement) -> str:
    return _operand(element, Sequence, Disjunction, Conjunction, Bounded)
