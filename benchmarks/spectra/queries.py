"""The queries: LUBM's that SPECTRA chose, in conjunctive form over concrete classes, and power queries like its
Appendix B."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from benchmarks.spectra.streams import LUBM, METERS, SEAS, UB
from oxiseq.grammar import load
from oxiseq.grammar.algebra import Query, TriplePattern

PREFIXES: Final = f"PREFIX ub: <{UB}> PREFIX : <{LUBM}> PREFIX seas: <{SEAS}> PREFIX m: <{METERS}> "


@dataclass(frozen=True, slots=True)
class WindowQuery:
    """A graph pattern on one of the streams; `shape` says what is joined how."""

    name: str
    stream: str
    shape: str
    body: str

    @property
    def text(self) -> str:
        """As SPARQL."""
        return f"{PREFIXES}SELECT * {{ {self.body} }}"

    @property
    def patterns(self) -> tuple[TriplePattern, ...]:
        """What is joined."""
        text = f"{PREFIXES}SELECT * FROM STREAM S <urn:s> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ {self.body} }} }}"
        query = load(text)
        assert isinstance(query, Query)
        return tuple(e for e in query.gpms[0].pattern.elements if isinstance(e, TriplePattern))


QUERIES: Final = (
    WindowQuery(
        "Q1",
        "lubm",
        "star, constant",
        "?x a ub:GraduateStudent . ?x ub:takesCourse <http://lubm.example/Department0/Course1>",
    ),
    WindowQuery(
        "Q2",
        "lubm",
        "cycle",
        "?x a ub:GraduateStudent . ?y a ub:University . ?z a ub:Department . "
        "?x ub:memberOf ?z . ?z ub:subOrganizationOf ?y . ?x ub:undergraduateDegreeFrom ?y",
    ),
    WindowQuery(
        "Q3",
        "lubm",
        "star, constant",
        "?x a ub:Publication . ?x ub:publicationAuthor <http://lubm.example/Department0/Professor0>",
    ),
    WindowQuery(
        "Q4",
        "lubm",
        "star",
        "?x a ub:AssociateProfessor . ?x ub:worksFor :Department0 . ?x ub:name ?n . "
        "?x ub:emailAddress ?e . ?x ub:telephone ?t",
    ),
    WindowQuery("Q5", "lubm", "star, constant", "?x a ub:GraduateStudent . ?x ub:memberOf :Department0"),
    WindowQuery("Q6", "lubm", "one pattern", "?x a ub:UndergraduateStudent"),
    WindowQuery(
        "Q7",
        "lubm",
        "tree",
        "?x a ub:UndergraduateStudent . ?y a ub:Course . ?x ub:takesCourse ?y . "
        "<http://lubm.example/Department0/Professor1> ub:teacherOf ?y",
    ),
    WindowQuery(
        "Q9",
        "lubm",
        "cycle",
        "?x a ub:GraduateStudent . ?y a ub:FullProfessor . ?z a ub:GraduateCourse . "
        "?x ub:advisor ?y . ?y ub:teacherOf ?z . ?x ub:takesCourse ?z",
    ),
    WindowQuery(
        "SEAS 1",
        "seas",
        "star, filter",
        "?o a seas:PowerObservation . ?o seas:hasValue ?v . ?o seas:observedBy ?m . FILTER(?v > 900)",
    ),
    WindowQuery(
        "SEAS 2",
        "seas",
        "tree, filter",
        "?o seas:observedBy ?m . ?o seas:hasValue ?v . ?m seas:monitors ?a . ?a a seas:Heater . "
        "?a seas:locatedIn ?h . ?h seas:inDistrict ?d . FILTER(?v > 500 && ?v <= 900)",
    ),
    WindowQuery(
        "SEAS 3",
        "seas",
        "chain, filter over two",
        "?o seas:observedBy ?m . ?o seas:hasValue ?v . ?q seas:observedBy ?m . ?q seas:hasValue ?w . "
        "?m seas:monitors ?a . FILTER(?v > 980 && ?w < 20 && ?v - ?w > 970)",
    ),
)
