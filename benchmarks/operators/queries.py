"""Operators, each as the body of a query over one stream (stream.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

STREAM: Final = "urn:S"
PREFIX: Final = "PREFIX : <urn:> "
_READING: Final = "?o :sensor ?s ; :value ?v"


@dataclass(frozen=True, slots=True)
class Operator:
    """`select` and `where` of a query over a window; `behind`: what follows WHERE."""

    name: str
    where: str
    select: str = "SELECT *"
    behind: str = ""

    def text(self, events: int) -> str:
        """As RSP-QL, over a window of so many events that slides by one."""
        window = f"[RANGE {events} EVENTS SLIDE 1 EVENTS]"
        return f"{PREFIX}{self.select} FROM STREAM <{STREAM}> {window} WHERE {{ {self.where} }} {self.behind}"

    @property
    def asked(self) -> str:
        """As SPARQL, for a store that holds the window."""
        return f"{PREFIX}{self.select} WHERE {{ {self.where} }} {self.behind}"


OPERATORS: Final = (
    Operator("pattern", "?o :value ?v"),
    Operator("join", f"{_READING} . ?s :alarm ?a"),
    Operator("FILTER", f"{_READING} FILTER(?v > 90)"),
    Operator("BIND", "?o :value ?v BIND(?v + 1 AS ?w)"),
    Operator("OPTIONAL", f"{_READING} OPTIONAL {{ ?s :alarm ?a }}"),
    Operator("OPTIONAL, condition", f"{_READING} OPTIONAL {{ ?s :alarm ?a FILTER(?v > 50) }}"),
    Operator("MINUS", f"{_READING} MINUS {{ ?s :alarm ?a }}"),
    Operator("NOT EXISTS", f"{_READING} FILTER NOT EXISTS {{ ?s :alarm ?a }}"),
    Operator("UNION", "{ ?o :value ?v } UNION { ?o :alarm ?v }"),
    Operator("DISTINCT", "?o :sensor ?s", "SELECT DISTINCT ?s"),
    Operator("GROUP BY", _READING, "SELECT ?s (COUNT(*) AS ?n) (SUM(?v) AS ?t) (MIN(?v) AS ?m)", "GROUP BY ?s"),
    Operator("HAVING", _READING, "SELECT ?s (AVG(?v) AS ?m)", "GROUP BY ?s HAVING (AVG(?v) > 70)"),
    Operator("top 10", "?o :value ?v", "SELECT ?o ?v", "ORDER BY DESC(?v) ?o LIMIT 10"),
    Operator("sub-SELECT", f"?s :alarm ?a {{ SELECT ?s (MAX(?v) AS ?m) {{ {_READING} }} GROUP BY ?s }}"),
    Operator("path", "?s :near+ ?z . ?s :alarm ?a"),
)


@dataclass(frozen=True, slots=True)
class InTime:
    """An order of events: EP-SPARQL's pattern, whose triples lie within the window's length, and RSEP-QL's."""

    name: str
    language: str
    where: str
    behind: str = ""

    def text(self, events: int) -> str:
        """Over the last `events` seconds, one event a second."""
        if self.language == "epsparql":
            bound = f'FILTER(getDURATION() < "PT{events}S"^^<http://www.w3.org/2001/XMLSchema#duration>)'
            return f"{PREFIX}SELECT * FROM STREAM <{STREAM}> WHERE {{ {self.where} {bound} }} {self.behind}"
        windows = f"FROM NAMED <{STREAM}> WIN [RANGE {events} SECONDS SLIDE 1 SECONDS] AS :w"
        told = "REGISTER ISTREAM <urn:told> AS"  # RSEP-QL's default tells the whole answer at each instant
        return f"{PREFIX}{told} SELECT * {windows} {self.behind} WHERE {{ {self.where} }}"


_EVENTS: Final = "EVENT ON :w { ?s :alarm ?a } AS A EVENT ON :w { ?s :reset ?b } AS B EVENT ON :w { ?s :alarm ?c } AS C"
_ALARMS: Final = "{ ?s :alarm ?a } SEQ { ?s :reset ?b } SEQ { ?s :alarm ?c }"
IN_TIME: Final = (
    InTime("MATCH, three", "rsepql", "MATCH { A SEQ B SEQ C }", _EVENTS),
    InTime("SEQ, three", "epsparql", f"{{ {_ALARMS} }}"),
    InTime("SEQ, CONSUME", "epsparql", "{ { ?s :alarm ?a } SEQ { ?s :reset ?b } }", "CONSUME CHRONOLOGICAL"),
    InTime("SEQ, two", "epsparql", "{ { ?s :alarm ?a } SEQ { ?s :reset ?b } }"),
    InTime("OPTIONAL in time", "epsparql", f"{_READING} OPTIONAL {{ ?s :alarm ?a }}"),
    InTime("OPTIONAL, CONSUME", "epsparql", f"{_READING} OPTIONAL {{ ?s :alarm ?a }}", "CONSUME CHRONOLOGICAL"),
    InTime("MINUS in time", "epsparql", f"{_READING} MINUS {{ ?s :alarm ?a }}"),
)
