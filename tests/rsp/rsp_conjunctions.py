"""Random conjunctions over windows and a knowledge base that changes, folded in all ways that are incremental."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from rsp_strategies import NODES, PREFIX, STREAMS, E, Setting, windows

XSD = "http://www.w3.org/2001/XMLSchema#"
NUMBERS = {
    "exact": [
        '"1"^^<{}integer>',
        '"2"^^<{}integer>',
        '"-7"^^<{}integer>',
        '"0.1"^^<{}decimal>',
        '"1.005"^^<{}decimal>',
        '"3"^^<{}byte>',
    ],
    "double": ['"0.5"^^<{}double>', '"-2.25"^^<{}double>', '"3.0E4"^^<{}double>'],
    "mixed": ['"1"^^<{}integer>', '"2.5"^^<{}decimal>', '"-0.25"^^<{}double>', '"8.5"^^<{}float>'],
    "odd": ['"1"^^<{}integer>', '"text"', '"2.5"^^<{}decimal>', '"INF"^^<{}double>'],
    # by themselves: whether 2^63 - 1, 1 and 2.5 have a sum in Oxigraph hangs on which two are added first
    "large": ['"1"^^<{}integer>', '"2"^^<{}byte>', '"9223372036854775807"^^<{}integer>'],
}
AGGREGATES = (
    "COUNT(*)",
    "COUNT(?y)",
    "COUNT(DISTINCT ?y)",
    "SUM(?y)",
    "SUM(DISTINCT ?y)",
    "AVG(?y)",
    "AVG(DISTINCT ?y)",
    "MIN(?y)",
    "MAX(?y)",
    "MIN(?x)",
)
HAVING = ("", "", " HAVING(COUNT(*) > 1)", " HAVING(SUM(?y) > 2 || MIN(?y) < 0)", " HAVING(AVG(?y) != 1)")


@dataclass(frozen=True)
class Changing:
    """A setting whose knowledge base is another one from some times on, which rise."""

    setting: Setting
    changes: tuple[tuple[int, str], ...]


@st.composite
def _events(draw: st.DrawFn, numbers: list[str]) -> list[tuple[int, str]]:
    time, events = 0, []
    objects = [*(f"<{E}{n}>" for n in NODES[:2]), *numbers, "_:x"]
    for _ in range(draw(st.integers(2, 8))):
        time += draw(st.sampled_from([0, 1, 1, 1, 2, 5]))
        triples = []
        for _ in range(draw(st.integers(1, 4))):
            subject, predicate = draw(st.sampled_from(NODES[:2])), draw(st.sampled_from("pppqqr"))
            triples.append(f"<{E}{subject}> <{E}{predicate}> {draw(st.sampled_from(objects))} .")
        events.append((time, "\n".join(triples)))
    return events


@st.composite
def _kb(draw: st.DrawFn) -> str:
    """N-Quads, about what the streams are about."""
    objects = [*(f"<{E}{n}>" for n in NODES[:2]), f"<{E}b>", f'"1"^^<{XSD}integer>', "_:known"]
    lines = []
    for _ in range(draw(st.integers(3, 12))):
        subject, predicate = draw(st.sampled_from([f"<{E}a>", f"<{E}b>", "_:known"])), draw(st.sampled_from("ppqqr"))
        graph = draw(st.sampled_from(["", "", f"<{E}g> ", f"<{E}h> "]))
        lines.append(f"{subject} <{E}{predicate}> {draw(st.sampled_from(objects))} {graph}.")
    return "\n".join(lines)


_OF_WINDOW = (
    "?x :p ?y",
    "?x :p ?y . ?x :q ?z",
    "?x :p ?y . ?y :q ?z",
    "?x :p ?y . ?x :p ?z",
    "?x ?w ?y",
    "?x :p ?y . ?x :q _:n",
    "?x :p ?y FILTER(?y != 2)",
    "?x :p ?y . ?x ?w ?z FILTER(?y != ?z)",
    "?x :p ?y . ?y :r :a",
)
_OF_OTHER = (
    *[""] * 4,
    " WINDOW :v { ?x :q ?u }",
    " WINDOW :v { ?x :p ?y }",
    " WINDOW :v { ?u :r ?x . ?u :q ?t }",
    " WINDOW :v { ?u :r _:m }",
)
_OF_KB = (
    *[""] * 6,
    " GRAPH :g { ?x :p ?k }",
    " ?x :q ?k .",
    " ?x :q ?k . ?k :p ?k2 .",
    " ?y :p ?k . GRAPH :h { ?k ?kp ?x }",
    " GRAPH ?g { ?x ?kp ?k }",
    " ?x :p/:q ?k .",
    " ?x (:p|:q) ?k .",
    " ?x :p+ :b .",
    " ?x ^:q ?k .",
    " { ?x :p ?k } UNION { ?k :q ?x }",
    " GRAPH :g { ?x :p ?k FILTER(isIRI(?k)) }",
    " :a :p :b .",
    " GRAPH :g { ?x :p _:k }",
    " GRAPH ?g { :a :p :b }",
    " GRAPH :g { ?x :p ?k OPTIONAL { ?k :q ?k3 } FILTER(!bound(?k3)) }",
)
HEADS = (
    ("SELECT *", ""),
    ("SELECT ?y ?nothing", ""),
    ("SELECT DISTINCT ?x", ""),
    ("ASK", ""),
    ("SELECT DISTINCT *", ""),
    ("CONSTRUCT { ?x :made ?y }", ""),
    *[("", "")] * 5,
)


@st.composite
def conjunctions(draw: st.DrawFn) -> Changing:
    """A query that is (all but always) answered incrementally."""
    where = f"WINDOW :w {{ {draw(st.sampled_from(_OF_WINDOW))} }}"
    other, known = draw(st.sampled_from(_OF_OTHER)), draw(st.sampled_from(_OF_KB))
    froms = f"FROM NAMED WINDOW :w ON <{STREAMS[0]}> {draw(windows('rspql'))}"
    if other or draw(st.integers(0, 4)) == 0:
        froms += f"\nFROM NAMED WINDOW :v ON <{draw(st.sampled_from(STREAMS))}> {draw(windows('rspql'))}"
    if known and ":g" not in known and "?g" not in known and draw(st.integers(0, 3)) == 0:
        froms += draw(st.sampled_from(["\nFROM :g", "\nFROM :g FROM :h"]))
    where += other + known + draw(st.sampled_from(["", "", " FILTER(?x != ?y)", " FILTER(isIRI(?y) || ?y > 1)"]))
    head, tail = draw(st.sampled_from(HEADS))
    if not head:
        listed = draw(st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=3))
        keys = draw(st.sampled_from(["", "", "?x", "?y", "?x ?y"]))
        named = " ".join(f"({each} AS ?a{i})" for i, each in enumerate(listed))
        distinct = draw(st.sampled_from(["", "", "DISTINCT "]))
        head = f"SELECT {distinct}{keys if draw(st.booleans()) else ''} {named}"
        tail = (f" GROUP BY {keys}" if keys else "") + draw(st.sampled_from(HAVING))
    text = f"{PREFIX}{head}\n{froms}\nWHERE {{ {where} }}{tail}"
    numbers = [each.format(XSD) for each in NUMBERS[draw(st.sampled_from([*NUMBERS, "exact"]))]]
    streams = {iri: draw(_events(numbers)) for iri in STREAMS}
    report = draw(st.sampled_from(["RSTREAM", "ISTREAM", "DSTREAM"]))
    times = draw(st.lists(st.integers(0, 12), max_size=3, unique=True).map(sorted))
    changes = tuple((time, draw(_kb())) for time in times)
    return Changing(Setting(text, "rspql", streams, draw(_kb()), None, report, None), changes)
