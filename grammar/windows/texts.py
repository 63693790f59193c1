"""Texts over windows, of continuous SPARQL and RSEP-QL: parse tree → `RspQuery`, and back; `parse(render_rsp(q)) == q`.

In the flow: lark's tree (rules of `rsp.lark`) → `RspQuery` → checks, plan, text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Sequence as Items
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Literal

from pyoxigraph import NamedNode, Variable

from oxiseq.grammar.algebra import (
    Ask,
    Bind,
    Choice,
    Construct,
    EventName,
    EventPattern,
    FirstOf,
    Following,
    GraphPattern,
    Group,
    LastOf,
    MatchPattern,
    Path,
    PatternElement,
    Span,
    SubSelect,
    TermOrVariable,
    TriplePattern,
    WindowPattern,
)
from oxiseq.grammar.parsing.clauses import DURATIONS, LONGEST, ClauseBuilder
from oxiseq.grammar.parsing.sparql import Node, tokens, trees, where
from oxiseq.grammar.render import amount, render_clauses
from oxiseq.grammar.render_sparql import SparqlWriter
from oxiseq.grammar.rsp_algebra import (
    EventDefinition,
    IdentityWindow,
    IntervalWindow,
    LandmarkWindow,
    NamedWindow,
    RangeWindow,
    Report,
    RspLanguage,
    RspQuery,
    WindowOperator,
    event_names,
)
from oxiseq.grammar.scope import visible_variables
from oxiseq.grammar.slips.slip import COMMENT
from oxiseq.grammar.terms import XSD, XSD_INTEGER
from oxiseq.grammar.trees import Lexeme, Tree, tree
from oxiseq.grammar.windows.slips import RSP_RULES

# --- rsp ---------------------------------------------------------------------------------------------


_SHORT = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WINDOWS = ("from_stream", "named_window", "window_as")
_MODIFIERS = ("group_by", "having", "order_by", "limit", "offset", "values")
_DATETIMES = (XSD + "dateTime", XSD + "dateTimeStamp")


class RspBuilder(ClauseBuilder):
    """Builds an `RspQuery` from the tree of one text."""

    def __init__(self, text: str, language: RspLanguage) -> None:
        super().__init__(text)
        self.language = language
        self._bound: dict[str, tuple[Variable, ...]] = {}
        self._in_template = False
        self._made: list[Bind] = []
        """Triple terms of the template."""

    def query(self, tree: Tree) -> RspQuery:
        """The whole text."""
        (prologue,) = trees(tree, "prologue")
        self.prologue(prologue)
        report, into = self.register(trees(tree, "register"))
        events = tuple(self.event(e) for e in trees(tree, "event"))
        self._bound = {event.name: visible_variables(event.pattern) for event in events}
        body = self.body(tree)  # what MATCH binds is known by now
        form, template = self.form(tree, body)
        if self._made:
            if body.group_by or body.having:
                message = "a triple term of a template cannot be made beside GROUP BY"
                hint = "group in a sub-query: WHERE { { SELECT ... WHERE { ... } GROUP BY ?o } }"
                raise self.error(message, self._made[0].span, hint=hint, code="template")
            body = replace(body, where=replace(body.where, elements=(*body.where.elements, *self._made)))
        return RspQuery(
            self.language,
            form,
            body,
            tuple(self.named_window(w) for w in trees(tree, *_WINDOWS)),
            events,
            template,
            report,
            into,
            self.consume(trees(tree, "consume")),
            self.when(trees(tree, "report"), self.period),
            self.graphs(tree, "default_graph"),
            self.graphs(tree, "named_graph"),
            tuple(self.prefixes.items()),
            self.base,
            span=where(tree),
            text=self.text,
        )

    # --- head -------------------------------------------------------------------------------------

    def register(self, nodes: Items[Tree]) -> tuple[Report | None, NamedNode | None]:
        """REGISTER's report and name."""
        if not nodes:
            return None, None
        (word,) = tokens(nodes[0], "REPORTED")
        names = trees(nodes[0], "iri")
        return Report(word.upper()), self.iri_of(names[0]) if names else None

    def form(
        self, tree: Tree, body: SubSelect
    ) -> tuple[Literal["SELECT", "CONSTRUCT", "ASK"], tuple[TriplePattern, ...]]:
        (node,) = trees(tree, "select", "construct", "construct_where", "ask")
        match node.kind:
            case "select":
                return "SELECT", ()
            case "construct":
                return "CONSTRUCT", self.template(node)
            case "construct_where":
                return "CONSTRUCT", tuple(self.same_template(body.where))
            case _:
                return "ASK", ()

    def with_triple_term(
        self, subject: TermOrVariable, verb: Variable | Path, node: Tree, span: Span
    ) -> PatternElement:
        """In a template a triple term is one that WHERE makes; there is no pattern to look for."""
        if not self._in_template or not isinstance(verb, Variable | NamedNode):
            return super().with_triple_term(subject, verb, node, span)
        made = Bind(self.expression(node), self.fresh_variable(), span=span)
        self._made.append(made)
        return TriplePattern(subject, verb, made.variable, span=span)

    def template(self, node: Tree) -> tuple[TriplePattern, ...]:
        made: list[TriplePattern] = []
        self._in_template = True
        for element in (e for t in trees(node, "triples") for e in self.triples(t)):
            if not isinstance(element, TriplePattern):
                raise self.error("a template cannot contain property paths", where(node), code="template")
            made.append(element)
        return tuple(made)

    def same_template(self, where: Group) -> Iterator[TriplePattern]:
        """The template of `CONSTRUCT WHERE`: the patterns of WHERE, in a window or in a graph."""
        for element in where.elements:
            match element:
                case TriplePattern():
                    yield element
                case WindowPattern(_, inner) | GraphPattern(_, inner):
                    yield from self.same_template(inner)
                case _:
                    hint = "name the triples to make: CONSTRUCT { ... } ... WHERE { ... }"
                    message = "CONSTRUCT WHERE takes only triple patterns"
                    raise self.error(message, element.span, hint=hint, code="template")

    def body(self, tree: Tree) -> SubSelect:
        """WHERE and the solution modifiers, read as a sub-query's."""
        everything: list[Node] = [Tree("projection", [Lexeme("STAR", "*")])]
        head = next((s.children for s in trees(tree, "select")), everything)
        return self.sub_select(Tree("sub_select", [*head, *trees(tree, "group", *_MODIFIERS)], tree.start, tree.end))

    def graphs(self, tree: Tree, rule: str) -> tuple[NamedNode, ...]:
        return tuple(dict.fromkeys(self.iri_of(g.children[0]) for g in trees(tree, rule)))

    # --- windows ----------------------------------------------------------------------------------

    def named_window(self, node: Tree) -> NamedWindow:
        operators = tuple(self.operator(w.children[0]) for w in trees(node, "window"))
        iris = [self.iri_of(i) for i in trees(node, "iri")]
        match node.kind:
            case "from_stream":
                return NamedWindow(iris[0], operators, None, span=where(node))
            case "named_window":
                return NamedWindow(iris[1], operators, iris[0], span=where(node))
            case _:
                return NamedWindow(iris[0], operators, iris[1], span=where(node))

    def operator(self, node: Node) -> WindowOperator:
        assert isinstance(node, Tree)
        span = where(node)
        match node.kind:
            case "range":
                return self.range(node)
            case "landmark":
                return LandmarkWindow(self.point(node.children[0]), span=span)
            case "interval":
                start, end = (self.point(c) for c in node.children)
                return IntervalWindow(start, end, span=span)
            case _:
                return IdentityWindow(span=span)

    def range(self, node: Tree) -> RangeWindow:
        (amount,) = trees(node, "amount")
        size, unit = self.amount(amount)
        slides = [self.amount(a) for s in trees(node, "slide") for a in trees(s, "amount")]
        slide = size if tokens(node, "TUMBLING") else slides[0][0] if slides else 1
        events = unit == "events" or (bool(slides) and slides[0][1] == "events")
        if events and "time" in (unit, *(u for _, u in slides)):
            hint = "write [RANGE 100 EVENTS SLIDE 10 EVENTS], or both as spans of time"
            raise self.error("RANGE and SLIDE count different things", where(node), hint=hint, code="window")
        return RangeWindow(size, slide, events, span=where(node))

    def amount(self, node: Tree) -> tuple[int, str]:
        """(size, what it counts: `time`, `events`, or not stated)."""
        first = node.children[0]
        assert isinstance(first, Lexeme)
        match first.kind:
            case "SHORT":
                digits = first.rstrip("mshd")
                return self.micros(Fraction(int(digits)) * _SHORT[first[len(digits) :]], first), "time"
            case "DURATION":
                return self.duration(str(first), first), "time"
            case "STRING":
                datatype = [self.iri_of(c) for c in trees(node, "iri")]
                if datatype and datatype[0] not in DURATIONS:
                    hint = 'write "PT30M"^^xsd:duration'
                    raise self.error("a window's size is an xsd:duration", where(node), hint=hint, code="window")
                return self.duration(self.string(first), first), "time"
        units = tokens(node, "UNIT")
        if units:
            return self.time(first, units[0]), "time"
        return self.size(first), "events" if tokens(node, "EVENTS") else ""

    def point(self, node: Node) -> int:
        """A point in time: an integer of microseconds or an xsd:dateTime."""
        assert isinstance(node, Tree)
        term = self.literal(node)
        typed = term.datatype.value in _DATETIMES
        text = term.value
        if term.datatype == XSD_INTEGER and re.fullmatch(r"[+-]?\d+", text):
            if abs(int(text)) > LONGEST:
                raise self.error(f"a time beyond {LONGEST:,} microseconds", where(node), code="window")
            return int(text)
        try:
            if not typed and node.children[0].kind != "STRING":
                raise ValueError(text)
            read = datetime.fromisoformat(text)
        except ValueError:
            hint = 'write microseconds, or "2024-05-01T10:00:00Z"'
            raise self.error(f"{text} is not a time", where(node), hint=hint, code="window") from None
        aware = read if read.tzinfo is not None else read.replace(tzinfo=UTC)
        since = aware - _EPOCH
        return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds

    # --- clauses ----------------------------------------------------------------------------------

    def event(self, node: Tree) -> EventDefinition:
        (window,), (body,), (name,) = trees(node, "iri"), trees(node, "group"), tokens(node, "NAME")
        choice: Literal["", "FIRST", "LAST"] = (
            "FIRST" if tokens(node, "FIRST") else "LAST" if tokens(node, "LAST") else ""
        )
        return EventDefinition(str(name), self.iri_of(window), self.group(body), choice, span=where(node))

    def period(self, node: Tree) -> int:
        period, unit = self.amount(trees(node, "amount")[0])
        if unit == "events":
            hint = "REPORT EVERY 10 SECONDS"
            raise self.error("REPORT EVERY takes a span of time", where(node), hint=hint, code="report")
        return period

    # --- patterns ---------------------------------------------------------------------------------

    def element(self, node: Tree) -> PatternElement:
        match node.kind:
            case "window_pattern":
                name, body = node.children
                return WindowPattern(self.var_or_iri(name), self.group(body), span=where(node))
            case "match_pattern":
                events = self.event_pattern(node.children[0])
                bound = (v for event in event_names(events) for v in self._bound.get(event.name, ()))
                return MatchPattern(events, tuple(dict.fromkeys(bound)), span=where(node))
            case _:
                return super().element(node)

    def event_pattern(self, node: Node) -> EventPattern:
        assert isinstance(node, Tree)
        span = where(node)
        match node.kind:
            case "event_name":
                return EventName(str(node.children[0]), span=span)
            case "first":
                return FirstOf(self.event_pattern(node.children[-1]), span=span)
            case "last":
                return LastOf(self.event_pattern(node.children[-1]), span=span)
        first, *rest = node.children
        made = self.event_pattern(first)
        for operator, operand in zip(rest[::2], rest[1::2], strict=True):
            choice = Choice(re.sub(r"[^ncr]", "", str(operator)[3:].lower()))
            made = Following(made, self.event_pattern(operand), choice, span=span)
        return made


def read(language: RspLanguage, text: str) -> RspQuery:
    """The query of a text. Raises QueryError."""
    return RspBuilder(text, language).query(tree(text, "rsp", RSP_RULES, COMMENT))


# --- render rsp --------------------------------------------------------------------------------------


def render_rsp(query: RspQuery) -> str:
    """The whole query, indented, IRIs shortened by its prefixes."""
    return "\n".join(_lines(query, SparqlWriter(dict(query.prefixes)))) + "\n"


def _lines(query: RspQuery, writer: SparqlWriter) -> Iterator[str]:
    yield from writer.prologue(query)
    if query.report is not None:
        into = "" if query.into is None else f" {writer.term(query.into)}"
        yield f"REGISTER {query.report.value}{into} AS"
    yield _form(query, writer)
    yield from (_named_window(w, writer) for w in query.windows)
    yield from (f"FROM {writer.term(g)}" for g in query.default_graphs)
    yield from (f"FROM NAMED {writer.term(g)}" for g in query.named_graphs)
    yield from (_event(e, writer) for e in query.events)
    yield writer.rest_of_select(query.body, "")
    yield from render_clauses(query.consume, query.when)


def _form(query: RspQuery, writer: SparqlWriter) -> str:
    if query.form != "SELECT":
        return writer.form(Ask() if query.form == "ASK" else Construct(query.template))
    mode = "DISTINCT " if query.body.distinct else "REDUCED " if query.body.reduced else ""
    return f"SELECT {mode}{writer.columns(query.body, '')}"


def _named_window(window: NamedWindow, writer: SparqlWriter) -> str:
    operators = "".join(render_window(o) for o in window.operators)
    stream = writer.term(window.stream)
    if window.name is None:
        return f"FROM STREAM {stream} {operators}"
    return f"FROM NAMED WINDOW {writer.term(window.name)} ON {stream} {operators}"


def render_window(operator: WindowOperator) -> str:
    """One operator in its brackets."""
    match operator:
        case RangeWindow(size, slide, True):
            return f"[RANGE {size} EVENTS SLIDE {slide} EVENTS]"
        case RangeWindow(size, slide):
            return f"[RANGE {amount(size)} SLIDE {amount(slide)}]"
        case LandmarkWindow(start):
            return f"[LND {start}]"
        case IntervalWindow(start, end):
            return f"[INTERVAL {start} {end}]"
        case IdentityWindow():
            return "[ID]"


def _event(event: EventDefinition, writer: SparqlWriter) -> str:
    kind = event.choice or "EVENT"
    return f"{kind} ON {writer.term(event.window)} {writer.group(event.pattern, '')} AS {event.name}"
