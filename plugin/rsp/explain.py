"""What a query over windows is compiled to, as plain facts, then as text, Graphviz or JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from oxiseq.engine.rsp.plan import RspPlan
from oxiseq.explanation import Explanation
from oxiseq.grammar.render import render_expression
from oxiseq.grammar.render_rsp import amount, render_window
from oxiseq.grammar.render_sparql import SparqlWriter, event_pattern
from oxiseq.grammar.rsp_algebra import OnChange, OnClose
from oxiseq.pictures.svg import Svg
from oxiseq.rsp.picture import picture
from oxiseq.spaseq.explain_text import quoted


@dataclass(frozen=True, slots=True)
class WindowFacts:
    """A window's content; `names`: of the windows that hold it, `default`: it is (part of) the default graph."""

    number: int
    stream: str
    window: str
    names: tuple[str, ...]
    default: bool
    predicates: tuple[str, ...] | None
    """What is kept of its events for WHERE; None for all, empty for nothing."""


@dataclass(frozen=True, slots=True)
class EventFacts:
    """An event: on the content of a window; `answered_by`: kernel or Oxigraph."""

    name: str
    content: int
    variables: tuple[str, ...]
    answered_by: str


@dataclass(frozen=True, slots=True)
class RspExplanation(Explanation):
    """All of it."""

    language: str
    form: str
    columns: tuple[str, ...]
    report: str
    when: str
    consumption: str
    evaluation: str
    """native, direct or asked."""
    why: str | None
    """Of a query that is asked: why it is not answered incrementally."""
    folded: str | None
    """Of a native query: what is made of the joined rows."""
    windows: tuple[WindowFacts, ...]
    events: tuple[EventFacts, ...]
    matches: tuple[str, ...]
    patterns: tuple[str, ...]
    """Of a native query, each with where it is looked for."""
    sparql: str | None
    """What Oxigraph is asked at every instant."""
    kb: tuple[str, ...]
    """What is copied of the knowledge base; of a native query what it is asked, again when it changes."""
    into: str | None
    """The stream that answers go to."""

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    def to_text(self) -> str:
        return as_text(self)

    def to_dot(self) -> str:
        return as_dot(self)

    def to_svg(self) -> Svg:
        return picture(self)

    @property
    def summary(self) -> tuple[str, ...]:
        how = f"evaluation: {self.evaluation} ({_EVALUATIONS[self.evaluation]})"
        return (f"{self.form}, {self.report} {self.when}", how)


_EVALUATIONS = {
    "native": "incremental: each event changes the answer, nothing is asked again",
    "direct": "event mappings in columns, found once for each event",
    "asked": "Oxigraph is asked at every instant, its store follows the windows",
}


def explain_rsp(plan: RspPlan) -> RspExplanation:
    """The explanation of a plan."""
    query = plan.query
    return RspExplanation(
        query.language,
        query.form,
        plan.columns,
        plan.report.value,
        _when(plan),
        "items that justified an answer are not used again" if plan.consumes else "none",
        "native" if plan.native is not None else "direct" if plan.direct else "asked",
        plan.why_not if plan.asked is not None else None,
        _folded(plan),
        tuple(_window(plan, number) for number in range(len(plan.contents))),
        tuple(_events(plan)),
        tuple(event_pattern(match.pattern) for match in plan.matches),
        _patterns(plan),
        None if plan.asked is None else plan.asked.text,
        _kb(plan),
        plan.feeds,
    )


def _when(plan: RspPlan) -> str:
    if plan.rhythm.given is not None:
        return f"at {len(plan.rhythm.given)} given instants"
    if isinstance(plan.query.when, OnClose):
        return f"when a window closes, every {' and every '.join(amount(p) for p in plan.rhythm.periods)}"
    if plan.rhythm.periods:
        return f"every {amount(plan.rhythm.periods[0])}"
    return "at every event's instant" + (" (content change)" if isinstance(plan.query.when, OnChange) else "")


def _window(plan: RspPlan, number: int) -> WindowFacts:
    content = plan.contents[number]
    names = (
        w.name.value
        for w in plan.query.windows
        if w.name is not None
        and w.operators == content.window.operators
        and w.stream.value == plan.streams[content.stream]
    )
    kept = content.predicates if content.named else plan.default_predicates if content.default else ()
    return WindowFacts(
        number,
        plan.streams[content.stream],
        "".join(render_window(o) for o in content.window.operators),
        tuple(names),
        content.default,
        None if kept is None else tuple(p.value for p in kept),
    )


def _events(plan: RspPlan) -> Iterator[EventFacts]:
    for event in plan.events:
        requests = plan.requests[plan.contents[event.content].stream]
        assert requests is not None  # this event is one of them
        native = any(gpm.request == event.request for gpm in requests.kernel)
        by = "the match kernel" if native else "Oxigraph, a batch of events at a time"
        yield EventFacts(event.name, event.content, tuple(v.value for v in event.variables), by)


def _patterns(plan: RspPlan) -> tuple[str, ...]:
    if plan.native is None:
        return ()
    writer, contents, joined = SparqlWriter(dict(plan.query.prefixes)), len(plan.contents), plan.native.query
    patterns = [
        f"{writer.term(p.subject)} {writer.verb(p.predicate)} {writer.term(p.object)}"
        + (f"  in window {source}" if source < contents else f"  of the KB, answer {source - contents}")
        for p, source in zip(joined.patterns, joined.sources, strict=True)
    ]
    return (*patterns, *(f"FILTER({render_expression(f)})" for f in joined.filters))


def _folded(plan: RspPlan) -> str | None:
    if plan.native is None or plan.native.fold is None:
        return None
    fold = plan.native.fold
    if fold.grouping is not None:
        return "groups that an instant has touched, and how often each of their rows is shown"
    return "how often each row is there, which is told once" if fold.distinct else "how often each row is there"


def _kb(plan: RspPlan) -> tuple[str, ...]:
    if plan.native is not None:
        return tuple(f"{number}: {part.text}" for number, part in enumerate(plan.native.kb))
    needs = plan.kb
    named = ("all named graphs",) if needs.graphs is None else tuple(f"<{g.value}>" for g in needs.graphs)
    if needs.nothing:
        return ()
    merged = tuple(f"<{g.value}> in the default graph" for g in needs.merged)
    return (*(("its default graph",) if needs.default else ()), *merged, *named)


# --- for people -----------------------------------------------------------------------------------


def as_text(e: RspExplanation) -> str:
    """The whole explanation, for a terminal."""
    return "\n".join(_lines(e)) + "\n"


def _lines(e: RspExplanation) -> Iterator[str]:
    yield f"{e.form} {', '.join(f'?{c}' for c in e.columns)}".rstrip()
    yield f"report: {e.report}, {e.when}"
    if e.into is not None:
        yield f"into stream: {e.into}"
    if e.events:
        yield f"consumption: {e.consumption}"
    yield f"evaluation: {e.evaluation} ({_EVALUATIONS[e.evaluation]})"
    if e.why is not None:
        yield f"  not incremental: {e.why}"
    if e.folded is not None:
        yield f"  kept of the joined rows: {e.folded}"
    yield from ["", "windows"]
    for window in e.windows:
        names = [*(f"<{n}>" for n in window.names), *(["the default graph"] if window.default else [])]
        yield f"  {window.number}: {window.window} on <{window.stream}>: {', '.join(names)}"
        if window.predicates is None:
            yield "    keeps every triple"
        elif window.predicates and e.evaluation == "asked":
            yield f"    keeps {', '.join(f'<{p}>' for p in window.predicates)}"
    if e.events:
        yield from ["", "events"]
        for event in e.events:
            bound = ", ".join(f"?{v}" for v in event.variables)
            yield f"  {event.name} on window {event.content}: {bound}, by {event.answered_by}"
        yield from (f"  MATCH {{ {match} }}" for match in e.matches)
    if e.patterns:
        yield from ["", "patterns", *(f"  {p}" for p in e.patterns)]
    if e.kb:
        if e.evaluation == "native":
            yield from ["", "asked of the knowledge base, again when it changes"]
            yield from (f"  {line}" for text in e.kb for line in text.splitlines())
        else:
            yield from ["", f"of the knowledge base: {', '.join(e.kb)}"]
    if e.sparql is not None:
        yield from ["", "asked", *(f"  {line}" for line in e.sparql.splitlines())]


def as_dot(e: RspExplanation) -> str:
    """Streams, windows, events and the answer in Graphviz' language."""
    lines = ["digraph query {", "  rankdir=LR;", '  node [shape=box, style=rounded, fontname="sans-serif"];']
    streams = list(dict.fromkeys(w.stream for w in e.windows))
    lines += [f"  s{i} [label={quoted(s)}, shape=ellipse];" for i, s in enumerate(streams)]
    for window in e.windows:
        lines.append(f"  w{window.number} [label={quoted(window.window)}];")
        lines.append(f"  s{streams.index(window.stream)} -> w{window.number};")
    lines.append(f"  answer [label={quoted(f'{e.form} {e.report}', e.evaluation)}, peripheries=2];")
    for i, event in enumerate(e.events):
        lines += [f"  e{i} [label={quoted(event.name)}];", f"  w{event.content} -> e{i};", f"  e{i} -> answer;"]
    used = {event.content for event in e.events}
    lines += [f"  w{w.number} -> answer;" for w in e.windows if w.number not in used or w.predicates != ()]
    return "\n".join([*lines, "}"]) + "\n"


