"""Small random queries over windows, streams and knowledge bases, all written as text."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import assume
from hypothesis import strategies as st
from loaded import load
from pyoxigraph import RdfFormat, Store, Triple, parse

from oxiseq.grammar import QueryError

E = "http://e/"
STREAMS = ("http://e/S", "http://e/T")
PREFIX = "PREFIX : <http://e/>\n"
NODES = ("a", "b", "c")
PREDICATES = ("p", "q", "r")


@dataclass(frozen=True)
class Setting:
    """A query with what it is asked of; `streams` as (time, N-Triples) in order of time."""

    text: str
    language: str
    streams: dict[str, list[tuple[int, str]]]
    kb: str
    instants: list[int] | None
    report: str | None
    consumption: str | None


def triples(text: str) -> list[Triple]:
    """Of an event."""
    return [q.triple for q in parse(text.encode(), format=RdfFormat.N_TRIPLES)]


def kb_store(text: str) -> Store:
    """The knowledge base."""
    store = Store()
    store.extend(parse(text.encode(), format=RdfFormat.N_QUADS))
    return store


@st.composite
def _triple(draw: st.DrawFn, blank: bool = False) -> str:
    subject = draw(st.sampled_from(NODES))
    predicate = draw(st.sampled_from(PREDICATES))
    objects = [f"<{E}{n}>" for n in NODES] + [
        '"1"^^<http://www.w3.org/2001/XMLSchema#integer>',
        '"2"^^<http://www.w3.org/2001/XMLSchema#integer>',
    ]
    if blank:
        objects.append("_:x")
    return f"<{E}{subject}> <{E}{predicate}> {draw(st.sampled_from(objects))} ."


@st.composite
def streams(draw: st.DrawFn, blank: bool = False) -> dict[str, list[tuple[int, str]]]:
    """One to two streams; simultaneous events, repeated triples and gaps are usual."""
    found = {}
    for iri in STREAMS:
        time, events = 0, []
        for _ in range(draw(st.integers(0, 7))):
            time += draw(st.sampled_from([0, 1, 1, 2, 3, 9]))
            events.append((time, "\n".join(draw(st.lists(_triple(blank), min_size=0, max_size=3)))))
        found[iri] = events
    return found


@st.composite
def kbs(draw: st.DrawFn, blank: bool = False) -> str:
    """N-Quads in the default graph and two named graphs."""
    lines = []
    for line in draw(st.lists(_triple(blank), max_size=5)):
        graph = draw(st.sampled_from(["", f" <{E}g>", f" <{E}h>"]))
        lines.append(line.removesuffix(" .") + f"{graph} .")
    return "\n".join(lines)


@st.composite
def bgp(draw: st.DrawFn, least: int = 1, most: int = 3, variables: tuple[str, ...] = ("x", "y", "z")) -> str:
    """Triple patterns."""
    lines = []
    for _ in range(draw(st.integers(least, most))):
        subject = draw(st.sampled_from([*(f"?{v}" for v in variables), *(f"?{v}" for v in variables), ":a"]))
        predicate = draw(st.sampled_from([":p", ":q", ":r", ":p", ":q", "?w"]))
        object_ = draw(st.sampled_from([*(f"?{v}" for v in variables), *(f"?{v}" for v in variables), ":b", "1"]))
        lines.append(f"{subject} {predicate} {object_} .")
    return " ".join(lines)


@st.composite
def pattern(draw: st.DrawFn) -> str:
    """Any pattern over one graph."""
    first = draw(bgp())
    match draw(st.integers(0, 12)):
        case 10:
            return "{ SELECT (COUNT(*) AS ?n) { ?x :p ?y } }"
        case 11:
            return f"OPTIONAL {{ {first} }}"
        case 12:
            return "?x :p [ :q ?y ] ."
        case 0:
            return f"{first} OPTIONAL {{ {draw(bgp(most=2))} }}"
        case 1:
            return f"{{ {first} }} UNION {{ {draw(bgp(most=2))} }}"
        case 2:
            return f"{first} MINUS {{ {draw(bgp(most=1))} }}"
        case 3:
            return f"{first} FILTER NOT EXISTS {{ {draw(bgp(most=1))} }}"
        case 4:
            return f"{first} FILTER(?x != ?y)"
        case 5:
            return "?x :p/:q ?y ."
        case 6:
            return f"{first} ?x :p+ ?z ."
        case 7:
            return f"{first} FILTER(isIRI(?y))"
        case _:
            return first


@st.composite
def windows(draw: st.DrawFn, language: str) -> str:
    """An operator or two."""
    size, slide = draw(st.integers(1, 12)), draw(st.integers(1, 5))
    if language != "rsepql" and draw(st.integers(0, 4)) == 0:
        return f"[RANGE {draw(st.integers(1, 4))} EVENTS SLIDE {draw(st.integers(1, 3))} EVENTS]"
    plain = f"[RANGE {size} SLIDE {slide}]"
    if language == "rspql":
        return plain
    start = draw(st.integers(0, 6))
    others = [f"[LND {start}]", f"[INTERVAL {start} {start + size}]", "[ID]", f"[LND {start}]{plain}", plain]
    return draw(st.sampled_from(others))


@st.composite
def continuous(draw: st.DrawFn) -> Setting:
    """A continuous SPARQL query."""
    body = draw(pattern())
    head, where, tail = "", "", ""
    kind = draw(st.integers(0, 3))
    if kind <= 1:
        froms = f"FROM STREAM <{STREAMS[0]}> {draw(windows('rspql'))}"
        where = body
        if kind == 1:
            froms += f"\nFROM STREAM <{STREAMS[1]}> {draw(windows('rspql'))}"
    else:
        froms = f"FROM NAMED WINDOW :w ON <{STREAMS[0]}> {draw(windows('rspql'))}"
        where = f"WINDOW :w {{ {body} }}"
        if kind == 3:
            froms += f"\nFROM NAMED WINDOW :v ON <{draw(st.sampled_from(STREAMS))}> {draw(windows('rspql'))}"
            where += draw(
                st.sampled_from(
                    [
                        " WINDOW :v { ?x :q ?u }",
                        " WINDOW ?n { ?x :q ?u }",
                        " OPTIONAL { WINDOW :v { ?x :q ?u } }",
                        " FILTER NOT EXISTS { WINDOW :v { ?x :r ?u } }",
                    ]
                )
            )
    where += draw(
        st.sampled_from(
            [
                "",
                "",
                "",
                " GRAPH :g { ?x :p ?k }",
                " GRAPH ?g { OPTIONAL { ?x :p ?k } }",
                " GRAPH ?g { ?x ?kp ?k }",
                " BIND(STR(?x) AS ?s)",
            ]
            + (["", " ?x :q ?d ."] if kind > 1 else [])
        )
    )
    match draw(st.integers(0, 10)):
        case 9:
            asked = "WINDOW :w { ?x :r ?e }" if kind > 1 else "?x :r ?e"
            head, tail = f"SELECT ?x (EXISTS {{ {asked} }} AS ?there)", ""
        case 10:
            head, tail = "ASK", draw(st.sampled_from([" HAVING(COUNT(*) > 1)", " VALUES ?x { :a }", " OFFSET 1"]))
        case 0:
            head = "SELECT DISTINCT ?x"
        case 1:
            head, tail = "SELECT ?x (COUNT(*) AS ?c)", " GROUP BY ?x"
        case 2:
            head = "ASK"
        case 3:
            head = "CONSTRUCT { ?x :made ?y }"
        case 4:
            head = "SELECT ?x (STR(?y) AS ?t)"
        case 5:
            head = "SELECT ?x ?nothing"
        case _:
            head = "SELECT *"
    if draw(st.integers(0, 4)) == 0:
        tail += draw(st.sampled_from(["\nREPORT EVERY 3", "\nREPORT ON CONTENT CHANGE"]))
    text = f"{PREFIX}{head}\n{froms}\nWHERE {{ {where} }}{tail}"
    try:
        load(text, "rspql")
    except QueryError as error:  # FILTER in WINDOW on what only stands outside
        assume(error.code != "scope")
    report = draw(st.sampled_from(["RSTREAM", "ISTREAM", "DSTREAM", None]))
    return Setting(text, "rspql", draw(streams(blank=True)), draw(kbs(blank=True)), None, report, None)


@st.composite
def _event_pattern(draw: st.DrawFn, names: list[str]) -> str:
    if len(names) == 1:
        return draw(st.sampled_from([names[0], names[0], f"FIRST({names[0]})", f"LAST({names[0]})"]))
    cut = draw(st.integers(1, len(names) - 1))
    operator = draw(st.sampled_from(["SEQ", "SEQ", "SEQ^n", "SEQ^c", "SEQ^r"]))
    found = f"({draw(_event_pattern(names[:cut]))} {operator} {draw(_event_pattern(names[cut:]))})"
    return draw(st.sampled_from([found, found, found, f"FIRST{found}", f"LAST{found}"]))


@st.composite
def event_queries(draw: st.DrawFn) -> Setting:
    """A query of RSEP-QL with MATCH."""
    froms = "\n".join(
        f"FROM NAMED <{draw(st.sampled_from(STREAMS))}> WIN {draw(windows('rsepql'))} AS :{name}" for name in "wv"
    )
    names = ["E1", "E2", "E3"][: draw(st.integers(1, 3))]
    variables = [("x", "y"), ("y", "z"), ("z", "u")]
    bodies = []
    for i, name in enumerate(names):
        inside = draw(bgp(most=2, variables=variables[i]))
        extra = draw(st.integers(0, 5))
        if extra == 0:
            inside += f" OPTIONAL {{ ?{variables[i][0]} :r ?o }}"
        elif extra == 1:
            inside += f" GRAPH :g {{ ?{variables[i][0]} :p ?k }}"
        kind = draw(st.sampled_from(["EVENT", "EVENT", "EVENT", "FIRST", "LAST"]))
        bodies.append(f"{kind} ON :{draw(st.sampled_from('wv'))} {{ {inside} }} AS {name}")
    where = f"MATCH {{ {draw(_event_pattern(names))} }}"
    where += draw(
        st.sampled_from(
            [
                "",
                "",
                "",
                " WINDOW :w { ?x :p ?y }",
                " GRAPH :g { ?x ?kp ?k2 }",
                " FILTER(isIRI(?x))",
                " OPTIONAL { WINDOW :v { ?x :q ?n } }",
            ]
        )
    )
    head, tail = draw(
        st.sampled_from(
            [
                ("SELECT *", ""),
                ("SELECT *", ""),
                ("SELECT ?x", ""),
                ("ASK", ""),
                ("SELECT DISTINCT ?x", ""),
                ("SELECT (COUNT(*) AS ?c)", ""),
            ]
        )
    )
    instants = None
    match draw(st.integers(0, 4)):
        case 0:
            tail += "\nREPORT EVERY 4"
        case 1 if "RANGE" in froms:
            tail += "\nREPORT ON WINDOW CLOSE"
        case 2:
            instants = draw(st.lists(st.integers(0, 25), max_size=4))
    text = f"{PREFIX}{head}\n{froms}\n" + "\n".join(bodies) + f"\nWHERE {{ {where} }}{tail}"
    report = draw(st.sampled_from(["RSTREAM", "ISTREAM", "DSTREAM", None]))
    consumption = draw(st.sampled_from([None, None, "UNRESTRICTED", "CHRONOLOGICAL", "RECENT"]))
    return Setting(text, "rsepql", draw(streams()), draw(kbs(blank=True)), instants, report, consumption)


@st.composite
def _dense_stream(draw: st.DrawFn) -> list[tuple[int, str]]:
    """Events that often agree, often at one time."""
    time, events = 0, []
    for _ in range(draw(st.integers(5, 9))):
        time += draw(st.sampled_from([0, 1, 1, 1, 2]))
        facts = draw(st.lists(st.tuples(*map(st.sampled_from, ("ab", "ppqqr", "ab"))), min_size=1, max_size=2))
        events.append((time, "\n".join(" ".join(f"<{E}{part}>" for part in fact) + " ." for fact in facts)))
    return events


@st.composite
def selections(draw: st.DrawFn) -> Setting:
    """A MATCH of events of one triple each, so that most have answers: selections in either operand of others, several
    mappings of an item, items of one time, variables that operands share and that they do not."""
    names = ["E1", "E2", "E3", "E4"][: draw(st.sampled_from([2, 2, 3, 3, 3, 4]))]
    bodies = []
    for i, name in enumerate(names):
        ends = [(f"?s{i}", f"?o{i}"), (f"?s{i}", f"?o{i}"), ("?x", f"?o{i}"), (f"?s{i}", "?x"), ("?x", "?y")]
        subject, object_ = draw(st.sampled_from(ends))
        kind = draw(st.sampled_from(["EVENT"] * 4 + ["FIRST", "LAST"]))
        more = draw(st.sampled_from([""] * 5 + [f" OPTIONAL {{ {subject} :r ?y }}"]))
        window = draw(st.sampled_from("wwv"))
        bodies.append(f"{kind} ON :{window} {{ {subject} :{draw(st.sampled_from('pq'))} {object_}{more} }} AS {name}")
    operator = draw(st.sampled_from(["[LND 0]", "[LND 0]", "[RANGE 6 SLIDE 1]", "[RANGE 4 SLIDE 2]"]))
    froms = f"FROM NAMED <{STREAMS[0]}> WIN [LND 0] AS :w\n"
    froms += f"FROM NAMED <{draw(st.sampled_from(STREAMS))}> WIN {operator} AS :v\n"
    match = draw(_event_pattern(names))
    text = f"{PREFIX}SELECT *\n{froms}" + "\n".join(bodies) + f"\nWHERE {{ MATCH {{ {match} }} }}"
    instants = draw(st.sampled_from([None, None, [9], [3, 6, 9]]))
    consumption = draw(st.sampled_from([None, None, "CHRONOLOGICAL", "RECENT"]))
    report = draw(st.sampled_from(["RSTREAM", "ISTREAM"]))
    return Setting(text, "rsepql", {iri: draw(_dense_stream()) for iri in STREAMS}, "", instants, report, consumption)
