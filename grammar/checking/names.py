"""Names: streams, GPMs, the window."""

from __future__ import annotations

from collections.abc import Iterator

from oxiseq.grammar.errors import Finding
from oxiseq.grammar.finding_tools import at_pattern, close_name, error, listing
from oxiseq.grammar.places import Overview


def check_names(seen: Overview) -> Iterator[Finding]:
    """Declared once, used as declared."""
    yield from _streams(seen)
    yield from _gpms(seen)
    window = seen.query.window
    if window is not None and window.size == 0:
        yield error("window", "a window cannot be empty", window.span, "WITHIN takes a length above 0")


def _streams(seen: Overview) -> Iterator[Finding]:
    declared: set[str] = set()
    for stream in seen.query.streams:
        if stream.name in declared:
            yield error("stream", f"the stream {stream.name} is declared twice", stream.span)
        declared.add(stream.name)
    for gpm in seen.query.gpms:
        if gpm.stream in declared:
            continue
        place = at_pattern(rf"(?<=\s){gpm.stream}(?=\s*\{{)", gpm.span, seen.text)
        if not declared:
            hint = f"add FROM STREAM {gpm.stream} <iri of the stream> before WHERE"
            yield error("stream", "the query declares no stream", place, hint)
            return
        known = f"the query declares {listing(sorted(declared))}"
        yield error("stream", f"there is no stream {gpm.stream}", place, close_name(gpm.stream, declared, known))


def _gpms(seen: Overview) -> Iterator[Finding]:
    defined: set[str] = set()
    for gpm in seen.query.gpms:
        if gpm.name in defined:
            span = at_pattern(rf"(?<=\s){gpm.name}(?=\s)", gpm.span, seen.text)
            yield error("gpm", f"the GPM {gpm.name} is defined twice", span, "give the second one another name")
        defined.add(gpm.name)
    used: set[str] = set()
    unused = [n for n in seen.gpms if n not in seen.place_of]
    for place in seen.places:
        if place.name not in defined:
            known = f"define it: DEFINE GPM {place.name} ON ... {{ ... }}"
            hint = close_name(place.name, unused or list(defined), known)
            yield error("gpm", f"there is no GPM {place.name}", place.atom.span, hint)
        if place.name in used:
            hint = "SEQ takes each name once: define another GPM with the same body"
            yield error("gpm", f"the GPM {place.name} is used twice in SEQ", place.atom.span, hint)
        used.add(place.name)
