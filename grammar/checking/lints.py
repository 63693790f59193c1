"""Lints: what is legal and perhaps not meant, or dear.

unused-gpm, unused-stream   defined, not used
unbounded                   no WITHIN, of the query or of each gap: partial matches are kept for ever
unjoined                    a GPM shares no variable with what it is joined with
cross-product               the parts of one pattern share no variable
kb-unjoined                 a GRAPH pattern shares no variable with its GPM
loose-join                  a join over a variable that may be unbound costs a scan

`checking.comparisons` has two more, and so has `checking.nested`, beside the errors that are like them:

itself                      a value is compared with itself
kinds                       a comparison with a string of what is used as something else elsewhere
unbound                     the condition of a nested group reads a variable that is not in scope there
local                       a variable inside EXISTS is new, though a GPM further right binds one of that name

`checking.habits` has those of what is often meant otherwise (first-value, skipped).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from pyoxigraph import BlankNode, Variable

from oxiseq.grammar.algebra import (
    Bind,
    Filter,
    GraphPattern,
    Group,
    PathPattern,
    PatternElement,
    TriplePattern,
)
from oxiseq.grammar.checking.common import check_window
from oxiseq.grammar.checking.comparisons import check_comparisons
from oxiseq.grammar.checking.functions import everywhere
from oxiseq.grammar.checking.gap_bounds import may_wait_for_ever
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.finding_tools import at_pattern, lint_finding, named
from oxiseq.grammar.places import Overview, Place, Variables
from oxiseq.grammar.scope import (
    expression_variables,
    visible_variables,
)


def lint(seen: Overview) -> Iterator[Finding]:
    """All lints of a query."""
    yield from _unused(seen)
    yield from check_comparisons(everywhere(seen))
    if may_wait_for_ever(seen.query.sequence):
        yield from check_window(seen.query, seen.query.sequence.span)
    for gpm in seen.gpms.values():
        yield from products(gpm.pattern, gpm.name, seen.text)
    uncertain = _uncertain(seen)
    for place in seen.places:
        if place.name in seen.gpms:
            yield from _joins(place, seen, uncertain)


def _unused(seen: Overview) -> Iterator[Finding]:
    for gpm in seen.gpms.values():
        if gpm.name not in seen.place_of:
            place = at_pattern(rf"(?<=\s){gpm.name}(?=\s)", gpm.span, seen.text)
            yield lint_finding("unused-gpm", f"the GPM {gpm.name} is not in SEQ", place, "put it into SEQ or drop it")
    streams = {g.stream for g in seen.query.gpms}
    for stream in seen.query.streams:
        if stream.name not in streams:
            hint = "its events still count: between two events joined by `,` no event of any stream may come"
            yield lint_finding("unused-stream", f"no GPM reads the stream {stream.name}", stream.span, hint)


def _joins(place: Place, seen: Overview, uncertain: Mapping[Variable, list[Place]]) -> Iterator[Finding]:
    parts = seen.parts[place.name]
    own = frozenset(parts.variables)
    # a leading `!` joins with the first positive GPM, which is on its right
    others_bind = seen.bound if place.negated and place.first else place.seen
    shared = own & others_bind
    others = any(p is not place and not p.negated for p in seen.places)
    if not shared and not parts.stateful and others and not (place.first and not place.negated and not place.partners):
        yield lint_finding(
            "unjoined",
            f"{place.name} shares no variable with {'the other GPMs' if place.first else 'the GPMs before it'}",
            place.atom.span,
            "every event of it combines with every match so far",
        )
    loose = [v for v in shared if v not in parts.certain or any(p is not place for p in uncertain.get(v, ()))]
    if loose:
        yield lint_finding(
            "loose-join",
            f"{place.name} joins over {named(loose)}, which may be unbound: such a join costs a scan",
            place.atom.span,
            "bind it in every branch, outside OPTIONAL",
        )


def _uncertain(seen: Overview) -> dict[Variable, list[Place]]:
    """By variable where a positive GPM may leave it unbound."""
    found = defaultdict[Variable, list[Place]](list)
    for place in seen.places:
        if not place.negated and place.name in seen.parts:
            for v in seen.variables(place.name) - seen.parts[place.name].certain:
                found[v].append(place)
    return found


# --- inside one GPM ---------------------------------------------------------------------------------


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
