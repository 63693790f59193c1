"""What a query over windows is compiled to, as plain facts, then as text, Graphviz, JSON or a picture: streams →
windows → events, operators → the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from pyoxigraph import Variable

from oxiseq.engine.flow.explain import Step, steps
from oxiseq.engine.flow.relations import Column
from oxiseq.engine.rsp.joint import why_alone
from oxiseq.engine.rsp.plan import RspPlan
from oxiseq.engine.rsp.steady import is_steady
from oxiseq.engine.sharing.member import why_unequal
from oxiseq.grammar.algebra import OnChange, OnClose
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.render import amount
from oxiseq.grammar.render_sparql import event_pattern
from oxiseq.grammar.windows.texts import render_window
from oxiseq.languages.explanation import WITH_EQUALS, Explanation, network, operator_lines
from oxiseq.pictures.drawing import Arrow, Drawing, Node

# --- picture -----------------------------------------------------------------------------------------


def picture(e: RspExplanation) -> Drawing:
    """As a network from left to right."""
    streams = list(dict.fromkeys(w.stream for w in e.windows))
    nodes = [Node(f"s{i}", _short(s), note="stream") for i, s in enumerate(streams)]
    arrows: list[Arrow] = []
    for w in e.windows:
        names = [*map(_short, w.names), *(["default graph"] if w.default else [])]
        nodes.append(Node(f"w{w.number}", w.window, note=", ".join(names)))
        arrows.append(Arrow(f"s{streams.index(w.stream)}", f"w{w.number}"))
    for i, event in enumerate(e.events):
        nodes.append(Node(f"e{i}", f"EVENT {event.name}", note=" ".join(f"?{v}" for v in event.variables)))
        arrows.append(Arrow(f"w{event.content}", f"e{i}"))

    def drawn(step: Step) -> list[str] | None:
        if step.what == "rows":
            return [f"e{i}" for i, event in enumerate(e.events) if event.name == step.detail[0]]
        return _views(step, nodes, arrows) if step.what == "patterns" else None

    def asked(step: Step) -> str | None:
        return _knowledge(nodes) if step.asked else None

    last = network(e.operators, nodes, arrows, drawn=drawn, source=asked)[e.root]
    for i, match in enumerate(e.matches):
        nodes.append(Node(f"m{i}", f"MATCH {match}"))
        arrows += [Arrow(name, f"m{i}") for name in last]
        last = [f"m{i}"]
    nodes.append(Node("answer", f"{e.form} {e.report}", True, "incremental"))
    arrows += [Arrow(name, "answer") for name in last]
    return Drawing(f"{e.form}: windows and what is queried from them", nodes, arrows, network=True)


def _views(step: Step, nodes: list[Node], arrows: list[Arrow]) -> list[str]:
    """Patterns that are joined, each a view of its own, then their filters: the text behind two spaces says on
    what."""
    views, filters = [], list[str]()
    for i, line in enumerate(step.detail):
        text, _, place = line.partition("  ")
        name = f"o{step.number}_{i}"
        nodes.append(Node(name, text, note=place))
        if not place:
            filters.append(name)
            continue
        views.append(name)
        window = place.removeprefix("in window ")
        source = f"w{window}" if window.isdigit() else _knowledge(nodes)
        arrows.append(Arrow(source, name))
    arrows += [Arrow(view, filters[0]) for view in views if filters]
    arrows += [Arrow(a, b) for a, b in pairwise(filters)]
    return filters[-1:] or views


def _knowledge(nodes: list[Node]) -> str:
    if not any(node.name == "kb" for node in nodes):
        nodes.append(Node("kb", "knowledge base"))
    return "kb"


def _short(iri: str) -> str:
    """The last part of an IRI."""
    name = iri.strip("<>").rstrip("/#")
    return name[max(name.rfind("/"), name.rfind("#")) + 1 :] if "://" in name or name.startswith("urn:") else name


# --- explain -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WindowFacts:
    """A window's content; `names`: of the windows that hold it, `default`: it is (part of) the default graph."""

    number: int
    stream: str
    window: str
    names: tuple[str, ...]
    default: bool
    asked: bool
    """Whether patterns are about it."""


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
    sharing: str
    """What it shares with other queries that are registered beside it."""
    windows: tuple[WindowFacts, ...]
    events: tuple[EventFacts, ...]
    matches: tuple[str, ...]
    operators: tuple[Step, ...]
    """How WHERE is answered: by operators over rows that come and go, inputs first."""
    root: int
    """The number of the one that has the answer."""
    into: str | None
    """The stream that answers go to."""

    def __str__(self) -> str:
        return as_text(self)

    @property
    def drawing(self) -> Drawing:
        return picture(self)

    @property
    def summary(self) -> tuple[str, ...]:
        return (f"{self.form}, {self.report} {self.when}", f"evaluation: {self.evaluation}")


_INCREMENTAL = "incremental: each change of a window updates the answer, no query is repeated"
_ASKS = (
    "; a part about the knowledge base alone that is more than triple patterns is queried from it (`asked` below), "
    "again when a quad of it is added or removed"
)

_WITHOUT_BLANKS = "as long as the knowledge base has no blank nodes for them, whose order is each query's own"


def explain_rsp(plan: RspPlan) -> RspExplanation:
    """The explanation of a plan."""
    query = plan.query
    called = {plan.flow.plan.root: [_called(column) for column in plan.flow.relation.columns]}
    operators = steps(plan.flow.plan, called, dict(query.prefixes))
    return RspExplanation(
        query.language,
        query.form,
        plan.columns,
        plan.report.value,
        _when(plan),
        "items that justified an answer are not used again" if plan.consumes else "none",
        _INCREMENTAL + (_ASKS if any(step.asked for step in operators) else ""),
        _sharing(plan),
        tuple(_window(plan, number) for number in range(len(plan.contents))),
        tuple(_events(plan)),
        tuple(event_pattern(match.pattern) for match in plan.matches),
        operators,
        plan.flow.plan.root,
        plan.feeds,
    )


def _sharing(plan: RspPlan) -> str:
    unequal, why = why_unequal(plan), why_alone(plan)
    if unequal is not None:
        return f"nothing: {unequal}"
    if why is not None:
        return f"{WITH_EQUALS}; nothing with others: {why}"
    shared = "events, windows and equal operators, with queries that read the same streams through the same windows"
    if not is_steady(plan):
        shared += " and are answered at the same instants; a later one joins them once its windows hold the same"
    return shared + ("; " + _WITHOUT_BLANKS if plan.reads_kb else "")


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
    return WindowFacts(
        number,
        plan.streams[content.stream],
        "".join(render_window(o) for o in content.window.operators),
        tuple(names),
        content.default,
        content.stored,
    )


def _events(plan: RspPlan) -> Iterator[EventFacts]:
    for event in plan.events:
        requests = plan.requests[plan.contents[event.content].stream]
        assert requests is not None  # this event is one of them
        native = any(gpm.request == event.request for gpm in requests.kernel)
        by = "the match kernel" if native else "Oxigraph, a batch of events at a time"
        yield EventFacts(event.name, event.content, tuple(v.value for v in event.variables), by)


def _called(column: Column) -> str:
    """A column of full rows; those without a name are the times of event mappings and what only sorts."""
    return column.value if isinstance(column, Variable) else ""


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
    yield f"evaluation: {e.evaluation}"
    yield f"shares: {e.sharing}"
    yield from ["", "windows"]
    for window in e.windows:
        names = [*(f"<{n}>" for n in window.names), *(["the default graph"] if window.default else [])]
        yield f"  {window.number}: {window.window} on <{window.stream}>: {', '.join(names)}"
    if e.events:
        yield from ["", "events"]
        for event in e.events:
            bound = ", ".join(f"?{v}" for v in event.variables)
            yield f"  {event.name} on window {event.content}: {bound}, by {event.answered_by}"
        yield from (f"  MATCH {{ {match} }}" for match in e.matches)
    yield from ["", "operators", *operator_lines(e.operators)]
