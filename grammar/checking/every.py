"""What all languages check of their patterns and expressions, whatever these are parts of.

cross-product   the parts of one pattern share no variable
kb-unjoined     a GRAPH pattern shares no variable with the pattern around it
function        a function called by IRI that the store does not know: it would fail when the first event comes
foreign         a function that another language has
itself, kinds, text   comparisons that can hardly be meant: see `checking.comparisons`

`checking.patterns` has SPARQL's own rules for patterns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from zoneinfo import available_timezones

from pyoxigraph import BlankNode, Literal, Variable

from oxiseq.grammar.algebra import (
    Bind,
    Expression,
    Filter,
    FunctionCall,
    GraphPattern,
    Group,
    MatchFunction,
    PathPattern,
    PatternElement,
    Prev,
    TriplePattern,
)
from oxiseq.grammar.checking.comparisons import check_comparisons
from oxiseq.grammar.checking.patterns import check_pattern
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.finding_tools import at_pattern, close_name, error, lint_finding, named
from oxiseq.grammar.functions import CASTS, GEO_FUNCTIONS, GEOSPARQL, LOCAL, OWN_FUNCTIONS
from oxiseq.grammar.places import Variables
from oxiseq.grammar.scope import expression_variables, visible_variables


def check_every(
    patterns: Iterable[tuple[Group, str]],
    expressions: Sequence[Expression],
    text: str,
    mark: str = "?",
    foreign: tuple[type[Prev | MatchFunction], ...] = (),
    instead: str = "",
) -> Iterator[Finding]:
    """Patterns with what people call them, and all expressions with their subexpressions; `mark` stands before the
    names of variables. `foreign`: functions that SPAseq has and this language has not, `instead`: what it has."""
    for pattern, name in patterns:
        yield from check_pattern(pattern, text)
        yield from products(pattern, name, text)
    for e in expressions:
        yield from check_function(e)
        if isinstance(e, foreign):
            name = "PREV" if isinstance(e, Prev) else e.name
            yield error("function", f"{name} is a function of SPAseq", e.span, instead)
    yield from check_comparisons(expressions, mark)


def check_function(e: Expression) -> Iterator[Finding]:
    """A call by IRI, if it is one."""
    if isinstance(e, FunctionCall):
        iri = e.function.value
        if iri in CASTS and (len(e.args) != 1 or e.distinct):
            yield error("function", f"the cast <{iri}> takes one argument", e.span)
        elif iri in OWN_FUNCTIONS:
            yield from _check_own(e, OWN_FUNCTIONS[iri])
        elif iri not in CASTS and iri not in GEO_FUNCTIONS:
            known = GEO_FUNCTIONS if iri.startswith(GEOSPARQL) else CASTS | OWN_FUNCTIONS.keys()
            hint = close_name(
                iri, known, "a function with an IRI is a cast to an XSD type, a GeoSPARQL function or one of oxiseq's"
            )
            yield error("function", f"there is no function <{iri}>", e.span, hint)


def _check_own(e: FunctionCall, arguments: int) -> Iterator[Finding]:
    if len(e.args) != arguments or e.distinct:
        count = "one argument" if arguments == 1 else f"{arguments} arguments"
        yield error("function", f"the function <{e.function.value}> takes {count}", e.span)
    elif e.function.value == LOCAL and isinstance(zone := e.args[1], Literal):
        known = available_timezones()
        if zone.value not in known:
            hint = close_name(zone.value, known, 'write a name of the IANA database, such as "Europe/Berlin"')
            yield error("function", f"there is no time zone {zone.value!r}", e.span, hint)


def products(pattern: Group, name: str, text: str) -> Iterator[Finding]:
    """Parts of a pattern (`name` for people), its top level, that share nothing; filters count as links."""
    clusters: list[tuple[set[Variable | BlankNode], list[PatternElement]]] = []
    links: list[Variables] = []
    for element in pattern.elements:
        if isinstance(element, Filter):
            links.append(expression_variables(element.condition))
            continue
        names = _names(element)
        if names:
            _merge(clusters, names, [element])
    for link in links:
        touched = [c for c in clusters if c[0] & link]
        if len(touched) > 1:
            _merge(clusters, {v for c in touched for v in c[0]}, [])
    for names, members in clusters[1:]:
        variables = (
            named(n for n in names if isinstance(n, Variable)) if any(isinstance(n, Variable) for n in names) else "it"
        )
        if all(isinstance(m, GraphPattern) for m in members):
            yield lint_finding(
                "kb-unjoined",
                f"this GRAPH pattern shares no variable with the rest of {name}",
                at_pattern(r"(?i)GRAPH\s+\S+", members[0].span, text),
                "every event combines with every answer of the knowledge base",
            )
        else:
            yield lint_finding(
                "cross-product",
                f"{variables} shares nothing with the pattern before it in {name}"
                if variables == "it" or " and " not in variables
                else f"{variables} share nothing with the pattern before them in {name}",
                members[0].span,
                "all combinations are matches; link them by a variable",
            )


def _merge(
    clusters: list[tuple[set[Variable | BlankNode], list[PatternElement]]],
    names: set[Variable | BlankNode],
    members: list[PatternElement],
) -> None:
    """Put `names` into the first cluster that shares one, folding in the others."""
    touched = [c for c in clusters if c[0] & names]
    if not touched:
        clusters.append((set(names), members))
        return
    first = touched[0]
    first[0].update(names)
    for other in touched[1:]:
        first[0].update(other[0])
        first[1].extend(other[1])
        clusters.remove(other)
    first[1].extend(members)


def _names(element: PatternElement) -> set[Variable | BlankNode]:
    if isinstance(element, TriplePattern | PathPattern):
        terms = {element.subject, element.object}
        if isinstance(element, TriplePattern):
            terms.add(element.predicate)
        return {t for t in terms if isinstance(t, Variable | BlankNode)}
    if isinstance(element, Bind):
        return {element.variable, *expression_variables(element.expression)}
    return set(visible_variables(element))
