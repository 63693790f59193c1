"""The report of `why`, for every language: the same values for all, so that text, JSON and the page are the same; and
what the matches were made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, field, fields, is_dataclass
from html import escape
from typing import Any, Final, get_args, get_origin, get_type_hints
from urllib.parse import quote

from pyoxigraph import BlankNode, NamedNode, Quad, RdfFormat, Triple, parse, serialize

from oxiseq.engine.events.time import to_literal, to_text
from oxiseq.engine.terms.texts import Term, parse_term, term_text
from oxiseq.grammar.arguments import public
from oxiseq.grammar.records import dataclass
from oxiseq.languages.reasons.read import FREE, Bounds, Reading

# --- provenance --------------------------------------------------------------------------------------


PROV = "http://www.w3.org/ns/prov#"
_A = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")


@dataclass(frozen=True, slots=True)
class Source:
    """An event of a match: its GPM (or variables, window, pattern), stream IRI, time (µs) and graph; `number` tells it
    from others of its time, where they are not one event. `matched`: the numbers of the triples that the pattern
    matched; None where the language cannot say."""

    gpm: str
    stream: str
    time: int
    graph: tuple[Triple, ...]
    number: int | None = None
    matched: tuple[int, ...] | None = None

    @property
    def iri(self) -> NamedNode:
        """A name of its own."""
        number = "" if self.number is None else f":{self.number}"
        return NamedNode(f"urn:oxiseq:event:{quote(self.stream, safe='')}:{self.time}{number}")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a match rests on: facts of the knowledge base, and per (pattern, time in µs) of its events the numbers of
    the triples that the pattern matched in the event's graph."""

    facts: tuple[Quad, ...] = ()
    matched: Mapping[tuple[str, int], tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Provenance:
    """A match: its end (µs), all that it binds, its events, and the facts of the knowledge base that it used (those of
    plain triple patterns in GRAPH; of a GPM that came several times, those of the last)."""

    time: int
    bindings: Mapping[str, Term | None]
    events: tuple[Source, ...]
    facts: tuple[Quad, ...]


def to_prov(matches: Sequence[Provenance], names: Sequence[NamedNode] | None = None) -> str:
    """TriG: what each match was derived from in the default graph, events as named graphs, facts in theirs. `names`:
    of the matches, which are blank nodes else."""
    quads: dict[Quad, None] = {}

    def add(*parts: Any) -> None:
        quads[Quad(*parts)] = None

    for number, match in enumerate(matches):
        entity = BlankNode(f"match{number}") if names is None else names[number]
        add(entity, _A, NamedNode(PROV + "Entity"))
        add(entity, NamedNode(PROV + "generatedAtTime"), to_literal(match.time))
        for source in match.events:
            event = source.iri
            add(entity, NamedNode(PROV + "wasDerivedFrom"), event)
            add(event, _A, NamedNode(PROV + "Entity"))
            add(event, NamedNode(PROV + "generatedAtTime"), to_literal(source.time))
            add(event, NamedNode(PROV + "wasAttributedTo"), NamedNode(source.stream))
            for triple in source.graph:
                add(*triple, event)
        for fact in match.facts:
            if isinstance(fact.graph_name, NamedNode):
                add(entity, NamedNode(PROV + "wasDerivedFrom"), fact.graph_name)
            quads[fact] = None
    text = serialize(quads, format=RdfFormat.TRIG, prefixes={"prov": PROV})
    assert text is not None  # it is only when a file is given
    return text.decode()


# --- report ------------------------------------------------------------------------------------------


SHOWN: Final = 3
"""Events, matches, near matches that are listed of each part."""


@dataclass(frozen=True, slots=True)
class WhyRequest:
    """The request: which events, for how many matches it shows what they were made of, how much work it may
    be."""

    reading: Reading
    provenance: int = SHOWN
    bounds: Bounds = FREE


@dataclass(frozen=True, slots=True)
class Miss:
    """An event that came no further: its time (µs), and the values that the part read."""

    time: int
    values: Mapping[str, Term | None]


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a pattern. `kind`: constants, pattern, type, filter, kb or kb filter: `events` were left after it;
    holds: there are so many of `text`. `misses` are some of those that it stopped, the nearest first where that can be
    given."""

    kind: str
    text: str
    events: int
    misses: tuple[Miss, ...] = ()


@dataclass(frozen=True, slots=True)
class Funnel:
    """One graph pattern (SPAseq), event of the formula (CEQL), window, event pattern or triple pattern: `saw` events of
    its stream. FILTERs that need what precedes a graph pattern are examined in the sequence."""

    gpm: str
    stream: str
    saw: int
    steps: tuple[Step, ...]

    @property
    def passed(self) -> int:
        """How many events were left in the end."""
        return self.steps[-1].events if self.steps else self.saw


@dataclass(frozen=True, slots=True)
class Stage:
    """A beginning of the query and how many matches it has (CEQL: events that complete it; queries over windows: rows
    at the instant that is described); `more`: at least so many."""

    text: str
    matches: int
    more: bool


@dataclass(frozen=True, slots=True)
class Near:
    """A match that one condition prevents: GPM → times of its events (µs), the values that the condition reads, and
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
class Wording:
    """A language's names for parts of the report: the heads of its `patterns` and `steps`, the answers of a step, what
    steps do with them, and the prefix of a value's name."""

    patterns: str = "windows and patterns"
    steps: str = "WHERE, part by part"
    one: str = "row"
    many: str = "rows"
    verb: str = ""
    mark: str = "?"


WORDING: Final = Wording()


@public
@dataclass(frozen=True, slots=True)
class Why:
    """What became of everything, of a query of any language.

    `gpms`: per graph pattern how far its events came. `stages`: how many matches the beginnings of the query have.
    `stopped`: the first stage that has none, None if all have some; `reasons`: what its last step fails by (of the last
    stage if none has stopped). `found`: how many matches the unchanged query has (at least so many if `more`).
    `matches`: what some of them were made of. `late`: events that came too late to be seen. `at`: the one instant that
    is described (queries over windows); `notes`: what else there is to say.

    >>> import oxiseq
    >>> text = '''PREFIX : <http://example.org/>
    ... SELECT ?who ?paid FROM STREAM S <http://example.org/payments>
    ... WHERE { SEQ(A) DEFINE GPM A ON S { ?who :paid ?paid } }'''
    >>> payment = "<http://example.org/ann> <http://example.org/paid> 5 ."
    >>> told = oxiseq.Query(text).why({"S": [(1, payment)]})
    >>> told.found, told.stopped, told.gpms[0].gpm
    (1, None, 'A')
    """

    gpms: tuple[Funnel, ...]
    stages: tuple[Stage, ...]
    stopped: str | None
    reasons: tuple[Reason, ...]
    found: int
    more: bool
    late: int
    matches: tuple[Provenance, ...] = field(repr=False)
    language: str
    at: int | None = None
    notes: tuple[str, ...] = ()
    wording: Wording = field(default=WORDING, repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """As JSON values; terms as N-Triples, times in microseconds."""
        return {name: _plain(value) for name, value in asdict(self).items()}

    def to_prov(self) -> str:
        """The matches' provenance in TriG, after W3C's PROV-O: events are named graphs, matches derive from them."""
        return to_prov(self.matches)

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)


def _plain(value: Any) -> Any:
    convert: dict[type, Callable[[Any], Any]] = {
        dict: lambda each: {k: _plain(v) for k, v in each.items()},
        list: lambda each: [_plain(v) for v in each],
        tuple: lambda each: [_plain(v) for v in each],
    }
    if type(value) in convert:
        return convert[type(value)](value)
    return value if value is None or isinstance(value, str | int | float) else str(value)


# --- text --------------------------------------------------------------------------------------------


_WORDS = {
    "window": "the window",
    "contiguity": "contiguity",
    "bound": "a bound",
    "negation": "the negation",
    "filter": "a filter",
    "knowledge base": "the knowledge base",
    "join": "a join",
    "partition": "the partitions",
    "strategy": "the strategy",
    "consumption": "consumption",
    "limit": "the limit",
    "constant": "a constant",
    "sample": "the sample",
    "order": "the order in time",
    "pattern": "a part",
}

NO_REASON = "leaving out a single condition would not change that: see how many events the patterns matched"


def as_text(why: Why, time: Callable[[int], str] = to_text) -> str:
    """The whole report; `time` writes times."""
    return "\n".join(lines(why, time)) + "\n"


def lines(why: Why, time: Callable[[int], str] = to_text) -> Iterator[str]:
    """The same by lines."""
    late = f", {why.late} events came too late and were not seen" if why.late else ""
    yield f"{'at least ' * why.more}{count(why.found, 'match', 'matches')}{late}"
    yield from why.notes
    words = why.wording
    yield words.patterns
    for funnel in why.gpms:
        yield from _funnel(funnel, time, why.wording.mark)
    yield f"partial matches by step: {words.steps}{'' if why.at is None else f', at {time(why.at)}'}"
    for stage in why.stages:
        yield f"  {stage.text}:{words.verb} {'at least ' * stage.more}{count(stage.matches, words.one, words.many)}"
    if why.stopped is not None:
        yield f"  no partial match completes `{why.stopped}`"
    yield from _reasons(why, time)


def _funnel(funnel: Funnel, time: Callable[[int], str], mark: str) -> Iterator[str]:
    saw = f" saw {count(funnel.saw, 'event', 'events')} of {funnel.stream}" if funnel.stream else ""
    yield f"  {funnel.gpm}{saw}"
    before = funnel.saw
    for step in funnel.steps:
        if step.kind == "holds":
            yield f"    {step.events:,} {step.text}"
            continue
        yield f"    {step.events:,} passed {part_text(step.kind, step.text)}"
        if step.events < before:
            for miss in step.misses:
                yield f"      not {time(miss.time)}{values_text(miss.values, mark)}"
        before = step.events


def part_text(kind: str, text: str) -> str:
    return f"FILTER({text})" if kind in ("filter", "kb filter") else text


def _reasons(why: Why, time: Callable[[int], str]) -> Iterator[str]:
    if why.stopped is not None and not why.reasons:
        yield f"  {NO_REASON}"
        return
    if why.reasons:
        yield "near misses: without one condition"
    for reason in why.reasons:
        yield f"  {reason_text(reason)}"
        for near in reason.nearest:
            yield f"    {near_text(near, time, why.wording.mark)}"


def reason_text(reason: Reason) -> str:
    """Without which condition there would be how many more."""
    least = "at least " * reason.more
    return f"without {_WORDS[reason.kind]}, {reason.condition}: {least}{reason.matches:,} more"


def near_text(near: Near, time: Callable[[int], str], mark: str) -> str:
    """A match that one condition prevents."""
    events = ", ".join(f"{gpm} at {' '.join(time(t) for t in times)}" for gpm, times in near.events.items())
    words = f": {near.words}" if near.words else ""
    return f"{events}{values_text(near.values, mark)}{words}"


def values_text(values: Mapping[str, Term | None], mark: str) -> str:
    if not values:
        return ""
    return " with " + ", ".join(f"{mark}{name} = {'unbound' if t is None else short(t)}" for name, t in values.items())


def short(term: Term) -> str:
    """A literal without its marks."""
    text = term_text(term)
    return text.split("^^")[0].strip('"') if "XMLSchema#" in text and text.startswith('"') else text


def count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


# --- html --------------------------------------------------------------------------------------------


_BAR: Final = 120
"""Pixels of all events."""
_COLOUR: Final = "#3b82c4"


def as_html(why: Why) -> str:
    """The whole report; a bar's length is its share of the events, or of the matches."""
    late = f", {why.late:,} events came too late" if why.late else ""
    found = f"{'at least ' * why.more}{count(why.found, 'match', 'matches')}"
    words = why.wording
    steps = f"partial matches by step: {words.steps}{'' if why.at is None else f', at {to_text(why.at)}'}"
    most = max((stage.matches for stage in why.stages), default=0)
    stages = (
        _row(stage.matches, most, f"{'at least ' * stage.more}{stage.matches:,}", f"<code>{escape(stage.text)}</code>")
        for stage in why.stages
    )
    return (
        f"<div><p><b>{found}</b>{late}{''.join(f'. {escape(note)}' for note in why.notes)}</p>"
        f"{_table(words.patterns, (row for funnel in why.gpms for row in _funnel_rows(why, funnel)))}"
        f"{_table(steps, stages)}{''.join(_reason_rows(why))}</div>"
    )


def _funnel_rows(why: Why, funnel: Funnel) -> Iterator[str]:
    saw = f" saw {count(funnel.saw, 'event', 'events')} of {funnel.stream}" if funnel.stream else ""
    yield f'<tr><td colspan="3" style="text-align:left"><b>{escape(funnel.gpm)}</b>{escape(saw)}</td></tr>'
    before = funnel.saw
    for step in funnel.steps:
        missed = "".join(
            f"<li>{to_text(miss.time)}{escape(values_text(miss.values, why.wording.mark))}</li>" for miss in step.misses
        )
        stopped = before - step.events if step.kind != "holds" else 0
        more = f"<details><summary>{stopped:,} stopped here</summary><ul>{missed}</ul></details>"
        told = escape(step.text if step.kind == "holds" else part_text(step.kind, step.text))
        yield _row(step.events, funnel.saw, f"{step.events:,}", f"{told}{more if missed and stopped > 0 else ''}")
        before = step.events if step.kind != "holds" else before


def _reason_rows(why: Why) -> Iterator[str]:
    if why.stopped is not None:
        yield f"<p>It comes no further than before <code>{escape(why.stopped)}</code> is complete.</p>"
    if not why.reasons:
        if why.stopped is not None:
            yield f"<p>{escape(NO_REASON)}</p>"
        return
    yield "<p><b>near misses: without one condition</b></p><ul>"
    for reason in why.reasons:
        near = "".join(f"<li>{escape(near_text(each, to_text, why.wording.mark))}</li>" for each in reason.nearest)
        yield f"<li>{escape(reason_text(reason))}<ul>{near}</ul></li>"
    yield "</ul>"


def _table(title: str, rows: Iterable[str]) -> str:
    body = "".join(rows)
    return f'<table><caption style="text-align:left"><b>{escape(title)}</b></caption>{body}</table>' if body else ""


def _row(part: int, whole: int, number: str, words: str) -> str:
    """`words` are HTML."""
    wide = round(_BAR * part / whole) if whole else 0
    bar = f'<div style="width:{max(wide, 1 if part else 0)}px;height:9px;background:{_COLOUR}"></div>'
    return f'<tr><td style="width:{_BAR}px">{bar}</td><td>{number}</td><td style="text-align:left">{words}</td></tr>'


# --- told --------------------------------------------------------------------------------------------


def why_from_json(value: Mapping[str, Any]) -> Why:
    """Raises KeyError, ValueError, TypeError for what is no such thing."""
    found: Why = _read(Why, value)
    return found


def _read(kind: Any, value: Any) -> Any:
    """A value of this type, as it is in the annotations of `Why`."""
    if value is None:
        return None
    if isinstance(kind, type) and is_dataclass(kind):
        types = get_type_hints(kind)
        return kind(**{each.name: _read(types[each.name], value[each.name]) for each in fields(kind)})
    if get_origin(kind) is tuple:
        return tuple(_read(get_args(kind)[0], each) for each in value)
    if isinstance(origin := get_origin(kind), type) and issubclass(origin, Mapping):
        return {name: _read(get_args(kind)[1], each) for name, each in value.items()}
    if kind is Triple or kind is Quad:
        quad = next(parse(f"{value} .".encode(), format=RdfFormat.N_QUADS))
        return quad if kind is Quad else quad.triple
    return parse_term(value) if set(get_args(Term)) <= set(get_args(kind)) else value
