"""`oxiseq.why`: what became of events and partial matches of a query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from pyoxigraph import NamedNode

from oxiseq.driving import microseconds
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.report import OnError
from oxiseq.engine.events.time import to_microseconds, to_text
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar import load
from oxiseq.grammar.algebra import Query
from oxiseq.knowledge import Kb, knowledge_of
from oxiseq.reasons.blockers import blockers
from oxiseq.reasons.bounds import FREE, Bounds
from oxiseq.reasons.funnel import Funnel, funnels
from oxiseq.reasons.provenance import Provenance, provenances, to_prov
from oxiseq.reasons.read import History, Span, read_history
from oxiseq.reasons.relax import Relaxation, relaxations
from oxiseq.reasons.replaying import Answered, Found, answered
from oxiseq.reasons.stages import Beginning, beginnings, with_items

SHOWN = 3


@dataclass(frozen=True, slots=True)
class Stage:
    """A beginning of the sequence and how many matches it has; `more`: at least so many."""

    text: str
    matches: int
    more: bool


@dataclass(frozen=True, slots=True)
class Near:
    """A match that one condition prevents: GPM → times of its events (µs), the values that the condition looks at, and
    in words what is against it."""

    events: Mapping[str, tuple[int, ...]]
    values: Mapping[str, Term | None]
    words: str = ""


@dataclass(frozen=True, slots=True)
class Reason:
    """A condition of the last step: without it alone there would be `matches` more (at least so many if `more`)."""

    kind: str
    condition: str
    matches: int
    more: bool
    nearest: tuple[Near, ...]


@dataclass(frozen=True, slots=True)
class Why:
    """What became of everything.

    `gpms`: per graph pattern how far its events came. `stages`: how many matches the beginnings of the sequence have.
    `stopped`: the first stage that has none, None if all have some; `reasons`: what its last step fails by (of the last
    stage if none has stopped). `found`: how many matches the query as it stands has (at least so many if `more`).
    `matches`: what some of them were made of. `late`: events that came too late to be seen.
    """

    gpms: tuple[Funnel, ...]
    stages: tuple[Stage, ...]
    stopped: str | None
    reasons: tuple[Reason, ...]
    found: int
    more: bool
    late: int
    matches: tuple[Provenance, ...] = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """As JSON values; terms as N-Triples, times in microseconds."""
        return {name: _plain(value) for name, value in asdict(self).items()}

    def to_prov(self) -> str:
        """The matches' provenance in TriG, after W3C's PROV-O: events are named graphs, matches derive from them."""
        return to_prov(self.matches)

    def __str__(self) -> str:
        from oxiseq.reasons.text import as_text  # noqa: PLC0415  it knows this class

        return as_text(self)

    def _repr_html_(self) -> str:
        from html import escape  # noqa: PLC0415

        return f"<pre>{escape(str(self))}</pre>"


def why(
    text: str,
    streams: Mapping[str, Any],
    kb: Kb = None,
    start: int | datetime | None = None,
    *,
    begin: int | datetime | None = None,
    end: int | datetime | None = None,
    lateness: int | timedelta = 0,
    on_error: OnError = "stop",
    time_predicate: str | NamedNode = GENERATED_AT,
    provenance: int = SHOWN,
) -> Why:
    """Why a SPAseq query matches or does not, over whole streams as `oxiseq.run` takes them.

    Only events from `begin` to before `end` are looked at, as if there were no others. `provenance`: of how many
    matches it is told what they were made of. It runs the query's beginnings and variants of them: allow for some
    ten times the query's own time. Raises QueryError (also for other languages), EventError, KbError, LimitError.
    """
    query = load(text, "spaseq")
    assert isinstance(query, Query)
    predicate = NamedNode(time_predicate) if isinstance(time_predicate, str) else time_predicate
    times = [None if t is None else to_microseconds(t) for t in (begin, end, start)]
    history = read_history(query, streams, Span(times[0], times[1]), times[2], microseconds(lateness), on_error,
                           predicate)  # fmt: skip
    return why_of(query, history, knowledge_of(kb), provenance)


def why_of(
    query: Query, history: History, kb: KnowledgeBase, provenance: int = SHOWN, bounds: Bounds = FREE
) -> Why:
    """The same of a history."""
    stages: list[Stage] = []
    last, answer = None, None
    for last in beginnings(query):
        answer = answered(with_items(query, last.items), history, kb, bounds)
        stages.append(Stage(last.text, len(answer.found), answer.more))
        if not answer.found:
            break
    assert last is not None and answer is not None, "a sequence has an element"
    reasons = tuple(_reasons(query, last, answer, history, kb, bounds))
    whole = answered(query, history, kb, bounds, as_is=True) if answer.found else answer
    return Why(
        tuple(funnels(query, history, kb)), tuple(stages), None if answer.found else last.text, reasons,
        len(whole.found), whole.more, history.late, tuple(provenances(query, whole.found[:provenance], history, kb)),
    )  # fmt: skip


def _reasons(
    query: Query, at: Beginning, strict: Answered, history: History, kb: KnowledgeBase, bounds: Bounds
) -> Iterator[Reason]:
    """Those that would find more, the most first."""
    known = {found.key for found in strict.found}
    reasons = []
    for relaxation in relaxations(query, at):
        try:
            answer = answered(relaxation.query, history, kb, bounds)
        except OxiseqError:
            continue  # a variant that the engine refuses tells nothing
        new = [found for found in answer.found if _as_strict(found, relaxation).key not in known]
        if new:
            nearest = tuple(_near(query, relaxation, found, history, kb, bounds) for found in _nearest(new, relaxation))
            reasons.append(Reason(relaxation.kind, relaxation.text, len(new), answer.more, nearest))
    yield from sorted(reasons, key=lambda reason: -reason.matches)


def _as_strict(found: Found, relaxation: Relaxation) -> Found:
    """As the strict query would have bound it: a join's second variable is no other where the two agree."""
    bindings = dict(found.bindings)
    if relaxation.kind == "join":
        one, other = relaxation.shown
        if bindings.get(one) == bindings.get(other):
            del bindings[other]
    return Found(bindings, found.events)


def _nearest(found: Sequence[Found], relaxation: Relaxation) -> list[Found]:
    """The shortest first."""
    def length(each: Found) -> tuple[int, int]:
        times = [t for _, of in each.events for t in of]
        return max(times) - min(times), max(times)

    return sorted(found, key=length)[:SHOWN]


def _near(
    query: Query, relaxation: Relaxation, found: Found, history: History, kb: KnowledgeBase, bounds: Bounds
) -> Near:
    values = {name: found.bindings[name] for name in relaxation.shown if name in found.bindings}
    return Near(dict(found.events), values, _words(query, relaxation, found, history, kb, bounds))


def _words(
    query: Query, relaxation: Relaxation, found: Found, history: History, kb: KnowledgeBase, bounds: Bounds
) -> str:
    times = [t for _, of in found.events for t in of]
    if relaxation.kind == "window":
        return _window_words(query, min(times), max(times), history)
    if relaxation.kind == "contiguity":
        here = [t for name in relaxation.names for t in found.times(name)]
        before = max((t for t in times if t < min(here)), default=min(here))
        instants = history.instants
        between = instants[(instants > before) & (instants < max(here)) & ~np.isin(instants, times)]
        if len(between) == 1:
            return f"one instant comes before, {to_text(int(between[0]))}"
        return f"{len(between)} instants come before, the first at {to_text(int(between[0]))}" if len(between) else ""
    if relaxation.kind == "negation" and relaxation.negated is not None:
        seen = blockers(query, relaxation, found, history, kb, bounds)
        return f"there is one at {', '.join(to_text(t) for t in seen[:SHOWN])}" if seen else ""
    return ""


def _window_words(query: Query, first: int, last: int, history: History) -> str:
    window = query.window
    assert window is not None
    if window.events:
        instants = history.instants
        return f"{int(np.searchsorted(instants, last) - np.searchsorted(instants, first)) + 1} instants"
    span = f"it takes {_length(last - first)} of {_length(window.size)}"
    return span if window.sliding else f"{span}, and windows begin at fixed times"


def _length(micros: int) -> str:
    """Microseconds for people: `1 day 2 h`."""
    parts = []
    for size, one, many in ((86_400_000_000, "day", "days"), (3_600_000_000, "h", "h"), (60_000_000, "min", "min")):
        number, micros = divmod(micros, size)
        parts += [f"{number:,} {one if number == 1 else many}"] if number else []
    if micros or not parts:
        parts.append(f"{micros / 1_000_000:.6f}".rstrip("0").rstrip(".") + " s")
    return " ".join(parts)


def _plain(value: Any) -> Any:
    convert: dict[type, Callable[[Any], Any]] = {
        dict: lambda each: {k: _plain(v) for k, v in each.items()},
        list: lambda each: [_plain(v) for v in each],
        tuple: lambda each: [_plain(v) for v in each],
    }
    if type(value) in convert:
        return convert[type(value)](value)
    return value if value is None or isinstance(value, str | int | float) else str(value)
