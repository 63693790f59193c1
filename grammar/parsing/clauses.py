"""Parse tree → algebra, for the clauses that languages share: selection, PARTITION BY, CONSUME, REPORT, LIMIT,
SAMPLE, spans of time, also as xsd:duration.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Sequence as Items
from fractions import Fraction

from pyoxigraph import NamedNode, Variable

from oxiseq.grammar.algebra import (
    Ask,
    Construct,
    Consumption,
    Every,
    Limit,
    OnChange,
    OnClose,
    Partition,
    Path,
    PatternElement,
    Projection,
    Sample,
    Select,
    Selection,
    Span,
    Strategy,
    TermOrVariable,
    TriplePattern,
    When,
)
from oxiseq.grammar.parsing.sparql import Node, SparqlBuilder, tokens, trees, where
from oxiseq.grammar.rsp_algebra import Consume
from oxiseq.grammar.terms import XSD_DAY_TIME_DURATION, XSD_DURATION, span_of
from oxiseq.grammar.trees import Lexeme, Tree
from oxiseq.grammar.words import MICROSECONDS

# --- durations ---------------------------------------------------------------------------------------


DURATIONS = (XSD_DURATION, XSD_DAY_TIME_DURATION)
_DURATION = re.compile(
    r"P(?=[\dT])(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?",
    re.ASCII,
)


class MonthsError(ValueError):
    """A duration in months, which differ in length."""


def duration_size(text: str) -> Fraction:
    """Microseconds. Raises MonthsError, ValueError for what is no duration."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text} is not a duration that a window can have")
    years, months, days, hours, minutes, seconds = (Fraction(g or 0) for g in match.groups())
    if years or months:
        raise MonthsError("months differ in length: give the window in days")
    return (days * 86_400 + hours * 3_600 + minutes * 60 + seconds) * 1_000_000


# --- clauses -----------------------------------------------------------------------------------------


LONGEST = 3_650_000 * MICROSECONDS["DAY"]
"""The longest span of time, and the most that a window counts: with times of four-digit years sums stay within 64
bits."""


class ClauseBuilder(SparqlBuilder):
    """Builds the clauses from the tree of one text."""

    def only(self, nodes: Items[Tree], clause: str, code: str) -> Tree | None:
        """The one clause of its kind, if there is one."""
        if len(nodes) > 1:
            raise self.error(f"a query has one {clause}", where(nodes[1]), code=code)
        return nodes[0] if nodes else None

    def selection(self, node: Tree) -> Selection | None:
        """Of a SELECT; ALL is the default and may be written out."""
        words = tokens(node, "STRATEGY")
        if len(words) > 1:
            raise self.error("SELECT takes one strategy", span_of(words[1]), code="select")
        if not words or words[0].upper() == "ALL":
            return None
        return Selection(Strategy(words[0].upper()), span=span_of(words[0]))

    def partition(self, nodes: Items[Tree]) -> Partition | None:
        """PARTITION BY variables, or attributes."""
        node = self.only(nodes, "PARTITION BY", "partition")
        return None if node is None else Partition(tuple(map(self.key, tokens(node, "VAR", "NAME"))), span=where(node))

    def key(self, token: Lexeme) -> Variable:
        """Of PARTITION BY."""
        return self.variable(token)

    def consume(self, nodes: Items[Tree]) -> Consume | None:
        """CONSUME: what answers over windows and intervals use up."""
        node = self.only(nodes, "CONSUME", "consume")
        return None if node is None else Consume(tokens(node, "CONSUMPTION")[0].upper())

    def when(self, nodes: Items[Tree], period: Callable[[Tree], int]) -> When | None:
        """REPORT; `period`: of REPORT EVERY, in microseconds."""
        node = self.only(nodes, "REPORT", "report")
        if node is None:
            return None
        if tokens(node, "CONTENT"):
            return OnChange(span=where(node))
        return Every(period(node), span=where(node)) if node.children else OnClose(span=where(node))

    def consumption(self, nodes: Items[Tree]) -> Consumption | None:
        """CONSUME BY; NONE is the default and may be written out."""
        node = self.only(nodes, "CONSUME BY", "consume")
        if node is None:
            return None
        (policy,) = tokens(node, "POLICY")
        return None if policy.upper() == "NONE" else Consumption(policy.upper() == "ANY", span=where(node))

    def limit(self, nodes: Items[Tree], offsets: Items[Tree] = ()) -> Limit | None:
        """LIMIT k, and OFFSET n behind it."""
        node = self.only(nodes, "LIMIT", "limit")
        offset = self.whole(offsets[0].children[0]) if offsets else 0
        return None if node is None else Limit(self.whole(node.children[0]), offset, span=where(node))

    def sample(self, nodes: Items[Tree]) -> Sample | None:
        """SAMPLE k SEED n."""
        node = self.only(nodes, "SAMPLE", "sample")
        if node is None:
            return None
        count, *seed = (self.whole(t) for t in node.children)
        return Sample(count, seed[0] if seed else 0, span=where(node))

    def time(self, number: Lexeme, unit: Lexeme) -> int:
        """`30 MINUTES` in microseconds."""
        return self.micros(Fraction(number) * MICROSECONDS[unit.upper().removesuffix("S")], number)

    def duration(self, text: str, token: Lexeme) -> int:
        """An xsd:duration in microseconds."""
        try:
            return self.micros(duration_size(text), token)
        except MonthsError as reason:
            raise self.error(str(reason), span_of(token), code="window") from None
        except ValueError as reason:
            hint = "durations look like PT30M (30 minutes), PT1.5S, P1DT12H"
            raise self.error(str(reason), span_of(token), hint=hint, code="window") from None

    def micros(self, size: Fraction, token: Lexeme) -> int:
        if size.denominator != 1:
            raise self.error("windows are counted in whole microseconds", span_of(token), code="window")
        if size > LONGEST:
            hint = "write at most 3650000 DAYS"
            raise self.error("a span of time beyond 3,650,000 days", span_of(token), hint=hint, code="window")
        return int(size)

    def size(self, token: Node) -> int:
        """How many events, or microseconds, a window holds."""
        count = self.whole(token)
        if count > LONGEST:
            raise self.error(f"a window of more than {LONGEST:,}", where(token), code="window")
        return count


# --- result forms ------------------------------------------------------------------------------------


class FormBuilder(ClauseBuilder):
    """Builds SELECT, CONSTRUCT and ASK of queries whose answers are matches or solutions with times."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._fresh_columns = 0
        self._shown: list[Projection] | None = None
        """The expressions of a template, while it is read."""

    def form(self, node: Tree) -> Select | Construct | Ask:
        match node.kind:
            case "select":
                return self.select(node)
            case "construct":
                return self.construct(node)
            case _:
                return Ask()

    def select(self, node: Tree) -> Select:
        distinct = bool(tokens(node, "DISTINCT"))
        if tokens(node, "STAR"):
            return Select(None, distinct, self.selection(node))
        columns = tuple(self.projection(c) for c in node.children if c.kind in ("VAR", "column"))
        return Select(columns, distinct, self.selection(node))

    def projection(self, node: Node) -> Projection:
        column = self.column(node)
        if isinstance(column, Variable):
            return Projection(column, span=where(node))
        return Projection(column[1], column[0], span=where(node))

    def construct(self, node: Tree) -> Construct:
        self._shown = []
        subjects = trees(trees(node, "template")[0], "triples")
        triples = tuple(t for each in subjects for t in self.triples(each) if isinstance(t, TriplePattern))
        into = [self.iri_of(i.children[0]) for i in trees(node, "into")]
        columns, self._shown = tuple(self._shown), None
        return Construct(triples, into[0] if into else None, columns)

    def with_triple_term(
        self, subject: TermOrVariable, verb: Variable | Path, node: Tree, span: Span
    ) -> PatternElement:
        """In a template one that each match makes."""
        if self._shown is None or not isinstance(verb, Variable | NamedNode):
            return super().with_triple_term(subject, verb, node, span)
        return TriplePattern(subject, verb, self.shown(self._shown, node, node), span=span)

    def graph_node(self, node: Node, out: list[PatternElement]) -> TermOrVariable:
        """As ever, or the value of an expression in a template."""
        if self._shown is not None and node.kind == "template_expression":
            assert isinstance(node, Tree)
            return self.shown(self._shown, node.children[0], node)
        return super().graph_node(node, out)

    def shown(self, columns: list[Projection], node: Node, place: Node) -> Variable:
        """A column for an expression of a template."""
        columns.append(Projection(self.fresh_column(), self.expression(node), span=where(place)))
        return columns[-1].variable

    def fresh_column(self) -> Variable:
        """A variable for an expression in a template; one that the text does not hold."""
        while True:
            self._fresh_columns += 1
            name = f"value{self._fresh_columns}"
            if not re.search(rf"[?$]{name}\b", self.text):
                return Variable(name)
