"""Lints: what is legal and perhaps not meant, or dear.

unused-gpm, unused-stream   defined, not used
unbounded                   no WITHIN, of the query or of each gap: partial matches are kept for ever
unjoined                    a GPM shares no variable with what it is joined with
loose-join                  a join over a variable that may be unbound costs a scan

`checking.every` has those of all languages. `checking.nested` has two more, beside the errors that are like them:

unbound                     the condition of a nested group reads a variable that is not in scope there
local                       a variable inside EXISTS is new, though a GPM further right binds one of that name

`checking.habits` has those of what is often meant otherwise (first-value, skipped).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from pyoxigraph import Variable

from oxiseq.grammar.checking.common import check_window
from oxiseq.grammar.checking.gap_bounds import may_wait_for_ever
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.finding_tools import at_pattern, lint_finding, named
from oxiseq.grammar.places import Overview, Place


def lint(seen: Overview) -> Iterator[Finding]:
    """All lints of a query."""
    yield from _unused(seen)
    if may_wait_for_ever(seen.query.sequence):
        yield from check_window(seen.query, seen.query.sequence.span)
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
