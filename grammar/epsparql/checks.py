"""Checks of an EP-SPARQL query or rule: what can be answered while the stream runs (semantics.md 5).

unbounded    no bound of getDURATION(): what has come is kept for ever
timeless     OPTIONAL or MINUS after what has no time: nothing of the stream has ended by then
duration     getDURATION() is compared with a text
unjoined     the two sides of an operator share no variable
cross-product, kb-unjoined   parts of one group share nothing
endless      a rule that reads what it derives makes new terms of it, and no FILTER ends that
unbound      SELECT or a template shows, or a condition reads, a variable that nothing binds there
itself, kinds   a comparison that can hardly be meant: see `checking.comparisons`
consume      a part of the pattern does not say which triples an answer consumes

Which parts of an EP-SPARQL pattern keep all that has come: those that no bound on getDURATION() reaches.

A bound reaches all parts of a solution of its group, as the engine takes it: a condition of its own, or joined by &&.
It does not reach what may be missing: OPTIONAL, OPTIONALSEQ and EXISTS have bounds of their own; MINUS, and EXISTS
without conditions, keep each combination of what they compare once. EQUALS and EQUALSOPTIONAL keep an instant.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final

from pyoxigraph import BlankNode, Literal, Variable

from oxiseq.grammar.algebra import (
    Aggregate,
    Ask,
    Bind,
    Call,
    Construct,
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
    PathPattern,
    PathRepeat,
    PathSequence,
    PatternElement,
    Prev,
    Select,
    Span,
    SubSelect,
    TimedPattern,
    TimeOp,
    TriplePattern,
    Union,
)
from oxiseq.grammar.checking.common import check_columns, in_turn, template_variables, unbound
from oxiseq.grammar.checking.patterns import check_every, products
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.epsparql.rules import feeds_itself
from oxiseq.grammar.epsparql.slips import COUNTING
from oxiseq.grammar.errors import Finding, at_variable, error, lint_finding
from oxiseq.grammar.parts import parts
from oxiseq.grammar.rsp_algebra import Consume
from oxiseq.grammar.scope import (
    conjuncts,
    expression_variables,
    inner_groups,
    nested_elements,
    pattern_expressions,
    plain_variables,
    sub_select_expressions,
    subexpressions,
    visible_variables,
)
from oxiseq.grammar.terms import XSD

# --- epsparql ----------------------------------------------------------------------------------------


MOST_JOINED: Final = 300
"""Parts of a pattern in which each is joined with all before it, those around them counted: plan and operators are
nested as deep, and so are the calls that make them."""

_DURATION: Final = "getDURATION"
_LATER: Final = "write { ... } SEQ { ... }"


def _patterns(query: EpQuery, text: str) -> Iterator[Finding]:
    yield from _timeless(query.where)
    for element in _of_the_stream(query.where):
        if isinstance(element, SubSelect):
            yield from _sub_select(element)
        elif isinstance(element, GraphPattern):
            yield from _knowledge(element)


def _of_the_stream(pattern: Group) -> Iterator[PatternElement]:
    """Every element but those inside GRAPH, which the store answers."""
    for element in pattern.elements:
        yield element
        if not isinstance(element, GraphPattern):
            for inner in inner_groups(element):
                yield from _of_the_stream(inner)


def _timeless(pattern: Group) -> Iterator[Finding]:
    """Expressions that have no meaning while the stream runs."""
    for element in _of_the_stream(pattern):
        if isinstance(element, Filter):
            for condition in conjuncts(element.condition):
                yield from _exists_inside(condition)
                yield from _expressions(condition)
        elif isinstance(element, Bind):
            yield from _no_exists(element.expression)
            yield from _expressions(element.expression)


def _exists_inside(condition: Expression) -> Iterator[Finding]:
    if isinstance(condition, Exists):
        return
    if isinstance(condition, Call) and condition.name == "!" and isinstance(condition.args[0], Exists):
        return
    yield from _no_exists(condition)


def _no_exists(expression: Expression) -> Iterator[Finding]:
    for e in subexpressions(expression):
        if isinstance(e, Exists):
            hint = "FILTER EXISTS { ... } and FILTER NOT EXISTS { ... } are used alone, or joined by &&"
            yield error("exists", "EXISTS cannot be part of another expression", e.span, hint)


def _expressions(expression: Expression) -> Iterator[Finding]:
    for e in subexpressions(expression):
        if isinstance(e, Aggregate):
            yield error("aggregate", f"{e.name} has no final value, because the stream does not end", e.span, COUNTING)


def _sub_select(query: SubSelect) -> Iterator[Finding]:
    grouped = query.group_by or query.having or query.order_by or query.limit is not None or query.offset is not None
    if grouped:
        hint = "here a sub-SELECT may only select columns (with DISTINCT or not); inside GRAPH it may do all of these"
        yield error("select", "a sub-SELECT cannot group, order or limit a stream's solutions", query.span, hint)
        return
    for e in sub_select_expressions(query):
        yield from _no_exists(e)
        yield from _expressions(e)


def _knowledge(element: GraphPattern) -> Iterator[Finding]:
    for inner in parts(element.pattern, TimedPattern):
        hint = "put GRAPH inside the operands"
        yield error("graph", f"the knowledge base has no times for {inner.op.value}", inner.span, hint)
    for e in pattern_expressions(element.pattern):
        if isinstance(e, MatchFunction):
            hint = "put it outside GRAPH"
            yield error("function", f"the knowledge base has no times for {e.name}()", e.span, hint)


# --- consumption ------------------------------------------------------------------------------------


def check_use(query: EpQuery, text: str) -> Iterator[Finding]:
    """Parts that do not show which triples they match, where answers consume triples."""
    if query.consume in (None, Consume.UNRESTRICTED):
        return
    for element in _parts_of_solutions(query.where):
        if isinstance(element, SubSelect):
            hint = "write its pattern in braces, without SELECT"
            yield error("consume", "a sub-SELECT does not show which triples an answer consumes", element.span, hint)
        elif isinstance(element, PathPattern) and any(True for _ in parts(element.path, PathRepeat)):
            hint = "write out the steps: ?a :p/:p ?c"
            yield error(
                "consume", "a path of any length does not show which triples an answer consumes", element.span, hint
            )


def _parts_of_solutions(pattern: Group) -> Iterator[PatternElement]:
    """Without MINUS, EXISTS and the knowledge base."""
    for element in pattern.elements:
        if isinstance(element, Filter | Bind | Minus | GraphPattern):
            continue
        yield element
        for inner in inner_groups(element):
            yield from _parts_of_solutions(inner)


# --- what is shown ----------------------------------------------------------------------------------


def _output(query: EpQuery, text: str) -> Iterator[Finding]:
    bound = frozenset(visible_variables(query.where))
    form = query.form
    if isinstance(form, Ask):
        return

    def missing(v: Variable, span: Span) -> Finding:
        return unbound(v, span, bound, text)

    def inside(e: Expression, span: Span, known: AbstractSet[Variable]) -> Iterator[Finding]:
        yield from _no_exists(e)
        yield from _expressions(e)
        yield from (missing(v, span) for v in sorted(expression_variables(e) - bound - known, key=str))

    columns = form.columns or ()
    yield from check_columns(columns, bound, (), text, lambda v: "the pattern binds it", missing, inside)
    made = bound | {c.variable for c in columns}
    for v, span in template_variables(form.template if isinstance(form, Construct) else ()):
        if v not in made:
            yield missing(v, span)


# --- lints ------------------------------------------------------------------------------------------


def _lints(query: EpQuery, text: str) -> Iterator[Finding]:
    for place in islice(unbounded(query.where), 1):
        hint = 'add a bound, for instance FILTER(getDURATION() < "PT10M"^^xsd:duration)'
        yield lint_finding("unbounded", "without a bound on getDURATION() all earlier triples are kept", place, hint)
    for element in parts(query.where, TimedPattern):
        if not set(visible_variables(element.left)) & set(visible_variables(element.right)):
            yield lint_finding(
                "unjoined",
                f"the two sides of {element.op.value} share no variable",
                element.span,
                "every solution of one side combines with every solution of the other",
            )
    for group in [query.where, *_groups(query.where)]:
        yield from _before_all(group)
        own = frozenset(visible_variables(group))
        for part in group.elements:
            if isinstance(part, Filter):
                for v in sorted(plain_variables(part.condition) - own, key=str):
                    yield unbound(v, part.span, own, text, " in this group")


def _endless(query: EpQuery, text: str) -> Iterator[Finding]:
    """Finds rules that feed themselves; a cycle through other rules shows only at run time (LimitError)."""
    if not isinstance(query.form, Construct) or not feeds_itself(query):
        return
    hint = "if each is new, the rule never ends: bound it by a FILTER, or read the past, in the first part of a SEQ"
    what = "the rule makes {} from triples that it derived itself"
    columns = [(c.variable, c.expression) for c in query.form.columns if c.expression is not None]
    binds = [(e.variable, e.expression) for e in nested_elements(query.where) if isinstance(e, Bind)]
    filtered = {v for e in nested_elements(query.where) if isinstance(e, Filter) for v in plain_variables(e.condition)}
    made = {
        variable
        for variable, expression in (*columns, *binds)
        if isinstance(expression, Call | FunctionCall)
        and filtered.isdisjoint((variable, *expression_variables(expression)))
    }
    for triple in query.form.template:
        if any(isinstance(term, BlankNode) for term in (triple.subject, triple.object)):
            yield lint_finding("endless", what.format("blank nodes"), triple.span, hint)
    for v, span in template_variables(query.form.template):
        if v in made:
            yield lint_finding("endless", what.format(f"?{v.value}"), at_variable(v, span, text), hint)


def _every(query: EpQuery, text: str) -> Iterator[Finding]:
    columns = query.form.columns or () if isinstance(query.form, Select | Construct) else ()
    shown = [e for c in columns if c.expression is not None for e in subexpressions(c.expression)]
    every = [*pattern_expressions(query.where), *shown]
    yield from check_every([(query.where, "WHERE")], every, text, foreign=(Prev,), instead=_LATER)
    for call in every:
        if isinstance(call, Call) and any(isinstance(e, MatchFunction) and e.name == _DURATION for e in call.args):
            yield from _texts(call)
    for group in _groups(query.where):
        yield from products(group, "WHERE", text)


def _texts(call: Call) -> Iterator[Finding]:
    """Where a duration is compared with a text."""
    for other in call.args:
        if isinstance(other, Literal) and other.datatype.value == f"{XSD}string":
            hint = 'write "PT10M"^^xsd:duration for 10 minutes'
            yield lint_finding("duration", f"{other} is a text: no duration passes this", call.span, hint)


def _before_all(group: Group) -> Iterator[Finding]:
    """OPTIONAL and MINUS of the stream without a pattern of the stream before them."""
    for element in group.elements:
        reads = reads_stream(element)
        if isinstance(element, OptionalPattern | Minus) and reads:
            word = "OPTIONAL" if isinstance(element, OptionalPattern) else "MINUS"
            hint = "it reads the triples that ended before: put a triple pattern of the stream before it"
            yield lint_finding("timeless", f"what comes before {word} has no time", element.span, hint)
        elif reads and not isinstance(element, Filter):
            return


def _groups(pattern: Group) -> Iterator[Group]:
    for element in pattern.elements:
        if isinstance(element, Filter | Bind):
            continue  # a condition of EXISTS sees what is outside
        for inner in inner_groups(element):
            yield inner
            yield from _groups(inner)


def _deep(query: EpQuery, text: str) -> Iterator[Finding]:
    """Each part of a group is joined with all before it: the first within the second within the third..."""
    todo = [(query.where, 0)]
    while todo:
        group, above = todo.pop()
        joined = [element for element in group.elements if not isinstance(element, Filter)]
        if above + len(joined) > MOST_JOINED:
            what = f"more than {MOST_JOINED} parts joined one after the other"
            yield error("depth", f"the query is nested too deeply: {what}", joined[MOST_JOINED - above].span)
            return
        for number, element in enumerate(reversed(joined), above + 1):
            todo.extend((inner, number) for inner in inner_groups(element))


check_epsparql = in_turn(
    _deep,
    _patterns,
    check_use,
    _output,
    _lints,
    _endless,
    _every,
)
"""All of them."""


# --- bounds ------------------------------------------------------------------------------------------


_SHORTER = {"<", "<=", "="}
_LONGER = {">", ">=", "="}


def unbounded(pattern: Group, bounded: bool = False) -> Iterator[Span]:
    """The places of such parts. `bounded`: a bound outside reaches the group."""
    bounded = bounded or has_bound(pattern)
    joined = [e for e in pattern.elements if not isinstance(e, Filter | Bind | OptionalPattern | Minus)]
    if not bounded and sum(map(reads_stream, joined)) > 1:
        yield pattern.span
    for element in pattern.elements:
        yield from _of(element, bounded)


def reads_stream(element: PatternElement) -> bool:
    """Whether it has triple patterns that the stream may answer."""
    if isinstance(element, TriplePattern | PathPattern):
        return True
    groups = () if isinstance(element, GraphPattern) else inner_groups(element)
    return any(reads_stream(inner) for group in groups for inner in group.elements)


def has_bound(pattern: PatternElement) -> bool:
    """Whether a group's own conditions bound the length of its solutions."""
    elements = pattern.elements if isinstance(pattern, Group) else ()
    return any(_bounds(c) for e in elements if isinstance(e, Filter) for c in conjuncts(e.condition))


def _bounds(condition: Expression) -> bool:
    match condition:
        case Call(op, (MatchFunction("getDURATION"), Literal())):
            return op in _SHORTER
        case Call(op, (Literal(), MatchFunction("getDURATION"))):
            return op in _LONGER
    return False


def _of(element: PatternElement, bounded: bool) -> Iterator[Span]:
    match element:
        case Group():
            yield from unbounded(element, bounded)
        case Union(branches):
            for branch in branches:
                yield from unbounded(branch, bounded)
        case SubSelect(_, where):
            yield from unbounded(where, bounded)
        case TimedPattern():
            yield from _in_time(element, bounded)
        case OptionalPattern(inner):
            if reads_stream(inner) and not has_bound(inner):
                yield element.span
            yield from unbounded(inner)
        case Minus(inner):
            yield from unbounded(inner)
        case PathPattern(_, path) if not bounded and _has_steps(path):
            yield element.span
        case Filter(condition):
            for e in subexpressions(condition):
                if isinstance(e, Exists):
                    if any(isinstance(inner, Filter) for inner in e.pattern.elements) and not has_bound(e.pattern):
                        yield e.span
                    yield from unbounded(e.pattern)


def _in_time(element: TimedPattern, bounded: bool) -> Iterator[Span]:
    earlier = element.op is TimeOp.OPTIONALSEQ
    if (element.op is TimeOp.SEQ and not bounded) or (earlier and not has_bound(element.left)):
        yield element.span
    yield from _of(element.left, bounded and not earlier)
    yield from _of(element.right, bounded)


def _has_steps(path: Path) -> bool:
    """Whether it may take more than one triple."""
    return any(parts(path, PathSequence)) or any(each.mark != "?" for each in parts(path, PathRepeat))
