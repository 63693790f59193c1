"""Lints: what is legal and perhaps not meant, or dear.

unused-gpm, unused-stream   defined, not used
until                       no event of UNTIL lies in a gap, since there is none, or `,` leaves no room in it
unbounded                   no WITHIN, of the query or of each gap: partial matches are kept for ever
unjoined                    a GPM shares no variable with what it is joined with
loose-join                  a join over a variable that may be unbound costs a scan

`checking.patterns` has those of all languages. `conditions` has two more, beside the errors that are like them:

unbound                     the condition of a nested group reads a variable that is not in scope there
local                       a variable inside EXISTS is new, though a GPM further right binds one of that name

What people write and mean otherwise, each with what the query does instead:

first-value   COALESCE(PREV(?v), ...): a condition with PREV is not looked at in the first iteration
skipped       `,` with PARTITION BY passes over events that no pattern puts into the partition, by a constant
fresh         a repeat that stands first: its variables are new in each iteration, and another GPM joins the last
same-values   `DEFINE GPM H2 AS H`: all variables join, the subject included
in-a-row      values that rise (or fall) along a chain of `;`, which passes over those that do not
at-once       `A & B` as the whole SEQ is one instant, and no "both, at some time"
own-event     an aggregate over iterations in the FILTER of a later GPM leaves out that GPM's own event
over-all      SELECT NEXT, LAST or MAX without PARTITION BY chooses among the matches of all keys
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from pyoxigraph import BlankNode, Variable

from oxiseq.grammar.algebra import (
    Aggregate,
    Call,
    Conjunction,
    Filter,
    Group,
    Op,
    Prev,
    Select,
    Sequence,
    TriplePattern,
)
from oxiseq.grammar.checking.common import check_window
from oxiseq.grammar.errors import Finding, at_pattern, lint_finding, listing, named
from oxiseq.grammar.functions import MIRRORED_ORDER
from oxiseq.grammar.parts import parts
from oxiseq.grammar.places import Overview, Place, Variables, atoms, children, elements
from oxiseq.grammar.scope import expression_variables
from oxiseq.grammar.spaseq.sequence import gap_operators, may_wait_for_ever
from oxiseq.grammar.spaseq.texts import render_sequence

# --- lints -------------------------------------------------------------------------------------------


def lint(seen: Overview) -> Iterator[Finding]:
    """All lints of a query."""
    yield from _unused(seen)
    if may_wait_for_ever(seen.query.sequence):
        yield from check_window(seen.query, seen.query.sequence.span)
    yield from _until(seen)
    uncertain = _uncertain(seen)
    for place in seen.places:
        if place.name in seen.gpms:
            yield from _joins(place, seen, uncertain)


def _until(seen: Overview) -> Iterator[Finding]:
    until = seen.query.until
    if until is None:
        return
    gaps = frozenset(gap_operators(seen.query.sequence))
    if not gaps:
        message, hint = "SEQ has no gap, so UNTIL ends no run", "it forbids events between two steps: SEQ(A; B) UNTIL U"
        yield lint_finding("until", message, until.span, hint)
    elif gaps == {Op.STRICT}:
        message = "every gap of SEQ is `,`, in which no event lies: UNTIL ends no run"
        yield lint_finding("until", message, until.span, "write ; or : where other events may come between")


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
        stops = place.name in seen.until
        those = "the other GPMs" if place.first or stops else "the GPMs before it"
        yield lint_finding(
            "unjoined",
            f"{place.name} shares no variable with {those}",
            place.atom.span,
            f"every event of it {'ends every run' if stops else 'combines with every match so far'}",
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


# --- habits ------------------------------------------------------------------------------------------


def habits(seen: Overview) -> Iterator[Finding]:
    """All of them."""
    for gpm in seen.gpms.values():
        for element in gpm.pattern.elements:
            if isinstance(element, Filter) and any(map(_falls_back, parts(element.condition, Call))):
                yield lint_finding(
                    "first-value",
                    "COALESCE(PREV(...), ...) admits any first value: a condition with PREV begins with the second",
                    at_pattern(r"(?i:COALESCE)\s*\((?=[^,]*(?i:PREV))", element.span, seen.text),
                    "give the first iteration a GPM and a FILTER of its own in front of the repeat",
                )
    for find in (_skipped, _fresh, _same_values, _in_a_row, _at_once, _own_event, _over_all):
        yield from find(seen)


def _by(seen: Overview) -> Variables:
    return frozenset(seen.query.partition.by) if seen.query.partition is not None else frozenset()


def _fresh(seen: Overview) -> Iterator[Finding]:
    for place in seen.places:
        repeat = next((each for each in place.repeats if each.most != 1), None)
        if repeat is None or place.negated or not place.first:
            continue
        inside = {atom.name for atom in atoms(repeat)}
        others = [seen.variables(other.name) for other in seen.places if other.name not in inside]
        own = seen.variables(place.name)
        alone = not others and not seen.parts[place.name].stateful
        if joined := (own if alone else own & frozenset().union(*others)) - _by(seen):
            yield lint_finding(
                "fresh",
                f"{named(joined)} may be another in each iteration of {place.name}"
                f"{'' if alone else ', and what follows joins the last one'}",
                repeat.span,
                f"for one value throughout write PARTITION BY {' '.join(sorted(f'?{v.value}' for v in joined))}"
                f"{' (those that make the key)' if len(joined) > 1 else ''}",
            )


def _same_values(seen: Overview) -> Iterator[Finding]:
    alike = defaultdict[tuple[str, Group], list[str]](list)
    for place in seen.places:
        if (gpm := seen.gpms.get(place.name)) is None:
            continue
        own, others = seen.variables(place.name), alike[gpm.stream, gpm.pattern]
        joined = next((name for name in others if name in place.earlier or name in place.beside), None)
        others.append(place.name)
        if joined is not None and len(own) > 1:
            yield lint_finding(
                "same-values",
                f"{place.name} matches only where {named(own)} have the values that they have in {joined}",
                place.atom.span,
                "write the pattern again with new names for what may differ, also the subject of each event",
            )


def _in_a_row(seen: Overview) -> Iterator[Finding]:
    for element in elements(seen.query.sequence):
        if not isinstance(element, Sequence):
            continue
        run: list[tuple[str, str]] = []
        steps = list(zip(children(element), [op for op, _ in element.rest], children(element)[1:], strict=False))
        for left, op, right in steps:
            names = [[atom.name for atom in atoms(each, positive=True)] for each in (left, right)]
            order = _order(seen, names[0][-1:], names[1][:1]) if op is Op.NEXT else ""
            run = [*(each for each in run if each[0] == order), (order, names[1][0])] if order else []
            if len(run) == 2:
                key = named(frozenset.intersection(*(seen.variables(name) for name in (names[0][-1], names[1][0]))))
                yield lint_finding(
                    "in-a-row",
                    f"`;` passes over events that do not pass the FILTER of {run[0][1]} or {run[1][1]}: "
                    "values between them may go the other way",
                    element.span,
                    f"for values in a row write `,` in place of `;`, and PARTITION BY {key or 'the key'}",
                )


def _order(seen: Overview, left: list[str], right: list[str]) -> str:
    """`<` or `>`: how the FILTER of a GPM compares its value with one of the GPM before it; empty if it does not."""
    if not left or not right or right[0] not in seen.parts:
        return ""
    before, own = seen.variables(left[0]), seen.variables(right[0])
    for condition in seen.parts[right[0]].stateful:
        for call in parts(condition, Call):
            if call.name in MIRRORED_ORDER and all(isinstance(arg, Variable) for arg in call.args):
                one, other = call.args
                if one in own - before and other in before - own:
                    return call.name[0]
                if other in own - before and one in before - own:
                    return MIRRORED_ORDER[call.name[0]]
    return ""


def _at_once(seen: Overview) -> Iterator[Finding]:
    element = seen.query.sequence
    if isinstance(element, Conjunction):  # within a sequence it is meant
        yield lint_finding(
            "at-once",
            f"`{render_sequence(element)}` is one instant: all of it at the same time, to the microsecond",
            element.span,
            _in_any_order(element),
        )


def _in_any_order(element: Conjunction) -> str:
    first, second = (render_sequence(each) for each in element.items[:2])
    hint = f"for one after the other write {first}; {second}"
    if len(element.items) > 2 or not all(map(_is_name, (first, second))):
        return hint
    return (
        f"{hint}; for any order ({first}; {second}) | ({second}2; {first}2) with DEFINE GPM {first}2 AS {first} "
        f"and {second}2 AS {second}"
    )


def _is_name(text: str) -> bool:
    return text.isidentifier()


def _own_event(seen: Overview) -> Iterator[Finding]:
    repeated = {place.name for place in seen.places if place.repeats}
    for place in seen.places:
        if place.name not in seen.parts:
            continue
        for condition in seen.parts[place.name].stateful:
            for total in parts(condition, Aggregate):
                over = expression_variables(total)
                of = [name for name in place.earlier if name in repeated and seen.variables(name) & over]
                own = [v for name in of for v in _alike(seen, name, place.name, over)]
                if own and not expression_variables(condition) & set(own):
                    value = own[0].value
                    yield lint_finding(
                        "own-event",
                        f"{total.name} is over the events of {listing(of)}: that of {place.name} is not among them",
                        total.span,
                        f"if it counts, too, add its value: {total.name}(...) + ?{value}"
                        if total.name == "SUM"
                        else f"if it counts, too, compare ?{value} in the FILTER as well",
                    )


def _alike(seen: Overview, name: str, later: str, over: Variables) -> Iterator[Variable]:
    """Objects of the later GPM that have a predicate of which the earlier one aggregates the objects."""
    predicates = {t.predicate for t in parts(seen.gpms[name].pattern, TriplePattern) if t.object in over}
    for triple in parts(seen.gpms[later].pattern, TriplePattern):
        if triple.predicate in predicates and isinstance(triple.object, Variable):
            yield triple.object


def _over_all(seen: Overview) -> Iterator[Finding]:
    form = seen.query.form
    selection = form.selection if isinstance(form, Select) else None
    positive = [seen.variables(place.name) for place in seen.places if not place.negated]
    if selection is None or _by(seen) or len(positive) < 2:
        return
    if keys := frozenset.intersection(*positive):
        shown = " ".join(sorted(f"?{v.value}" for v in keys))
        yield lint_finding(
            "over-all",
            f"SELECT {selection.strategy.value} chooses among all matches that end together, whatever {named(keys)} is",
            selection.span,
            f"to choose for each value write PARTITION BY {shown}",
        )


def _falls_back(call: Call) -> bool:
    return call.name == "COALESCE" and any(True for arg in call.args[:1] for _ in parts(arg, Prev))


def _skipped(seen: Overview) -> Iterator[Finding]:
    partition = seen.query.partition
    if partition is None:
        return
    by = set(partition.by)
    binding = [gpm for gpm in seen.parts.values() if by <= set(gpm.pattern_variables)]
    groups = [each for each in elements(seen.query.sequence) if isinstance(each, Sequence)]
    strict = [group.span for group in groups if any(op is Op.STRICT for op, _ in group.rest)]
    if strict and binding and all(_names_a_value(gpm.pattern) for gpm in binding):
        yield lint_finding(
            "skipped",
            "`,` passes over events of the same value of PARTITION BY that no pattern here matches",
            strict[0],
            "compare constants in a FILTER: an event is of a partition by a pattern without its FILTERs",
        )


def _names_a_value(pattern: Group) -> bool:
    """Whether a constant object, at the top level, lets only some events match."""
    triples = (element for element in pattern.elements if isinstance(element, TriplePattern))
    return any(not isinstance(triple.object, Variable | BlankNode) for triple in triples)
