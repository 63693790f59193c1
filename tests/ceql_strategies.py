"""Hypothesis strategies: random CEQL queries and tuple events; small, so that complex events happen.

As in `strategies.py` each draws one number and rolls the dice from there. `ceql_situations` gives queries as
text that the checks accept, with streams of tuple events; options leave out what a use cannot take.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode
from reference.tuples import TupleEvent
from reference.values import normal
from strategies import Dice, E, n_triples_term

VOCAB = f"{E}v#"
TYPES = ("A", "B", "C")
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

PREDICATES = [
    "v > 1",
    "v = 2",
    "v < 3",
    "v >= 2",
    "v != 2",
    "v <= 2.0",
    "NOT v = 1",
    "v = 1 OR v = 3",
    "v > 1 AND v < 3",
    "v + 1 > w",
    "v * 2 >= w",
    "k = 'x'",
    "k != 'x'",
    "NOT k = 'y' OR v = 1",
    "-v < -1",
    "v = 1e0",
    "w = v",
    "v / 2 < 1",
    "k = 1",
    "NOT (v = 2 OR k = 'x')",
]
VALUES = ["1", "2", "3"]
ODD_VALUES = ["1", "2", "3", "2.5", "2e0", '"2"', "true", '"01"^^xsd:integer']
LOW_VALUES = ["-1", "0", "2", "-2.5", "-5e-1", '"NaN"^^xsd:double', '"-INF"^^xsd:double']


@dataclass(frozen=True)
class CeqlOptions:
    """What a query may have; `most` events at most."""

    strategies: bool = True
    consumption: bool = True
    limits: bool = True
    falling_clocks: bool = True
    """Whether the attribute t may fall from one event to the next."""
    most: int = 8


@dataclass(frozen=True)
class CeqlEvent:
    """A tuple event before it is an RDF graph: a stream's name, microseconds, a type's name, attributes as terms
    in Turtle's form."""

    stream: str
    time: int
    type: str
    values: tuple[tuple[str, str], ...]

    @property
    def graph(self) -> str:
        """As N-Triples."""
        lines = [f"_:e <{RDF_TYPE}> <{VOCAB}{self.type}> ."]
        lines += [f"_:e <{VOCAB}{a}> {n_triples_term(value)} ." for a, value in self.values]
        return "".join(line + "\n" for line in lines)


@dataclass(frozen=True)
class CeqlSituation:
    """A query and what arrives, in order of time; simultaneous events in the order of FROM."""

    text: str
    streams: tuple[str, ...]
    """Names, as FROM has them; their IRIs are VOCAB's."""
    events: tuple[CeqlEvent, ...]


@dataclass
class _Draft:
    """A formula under construction."""

    dice: Dice
    budget: int
    names: list[str] = field(default_factory=list)
    """The variables so far."""

    def event(self) -> str:
        self.budget -= 1
        kind = self.dice.pick(TYPES)
        self.names.append(kind)
        if self.dice.chance(50):
            name = self.dice.pick(["x", "y", "z"])
            self.names.append(name)
            return f"{kind} AS {name}"
        return kind

    def formula(self, depth: int) -> str:
        """Any formula; safe as an operand, since it is put into parentheses where it must be."""
        kinds = ["event", "event", "plus", "plus", "or", "or", "follows", "follows", "filtered", "named"]
        kind = self.dice.pick(kinds) if depth and self.budget > 1 else "event"
        match kind:
            case "plus":
                return f"({self.formula(depth - 1)}){self.dice.pick(['+', '+', ':+'])}"
            case "or":
                return f"({self.formula(depth - 1)} OR {self.formula(depth - 1)})"
            case "follows":
                return f"({self.steps(depth - 1)})"
            case "filtered":
                before, self.names = self.names, []
                inner = self.steps(depth - 1)
                text = f"({inner} FILTER {self.condition()})"
                self.names = before + self.names
                return text
            case "named":
                inner = self.formula(depth - 1)
                name = self.dice.pick(["x", "y", "z"])
                self.names.append(name)
                return f"({inner}) AS {name}"
            case _:
                return self.event()

    def steps(self, depth: int) -> str:
        text = self.formula(depth)
        for _ in range(self.dice.pick([0, 1, 1, 2])):
            if self.budget > 0:
                text += f"{self.dice.pick(['; ', '; ', ' : '])}{self.formula(depth)}"
        return text

    def condition(self) -> str:
        count = self.dice.pick([1, 1, 2, 3])
        tests = [f"{self.dice.pick(self.names)}[{self.dice.pick(PREDICATES)}]" for _ in range(count)]
        if len(tests) == 3:
            return f"{tests[0]} {self.dice.pick(['AND', 'OR'])} ({tests[1]} {self.dice.pick(['AND', 'OR'])} {tests[2]})"
        return f" {self.dice.pick(['AND', 'AND', 'OR'])} ".join(tests)


def ceql_situations(options: CeqlOptions = CeqlOptions()) -> st.SearchStrategy[CeqlSituation]:
    """Random situations."""
    return st.integers(0, 2**62).map(lambda seed: ceql_situation(Dice(seed), options))


def ceql_situation(dice: Dice, options: CeqlOptions) -> CeqlSituation:
    """One throw."""
    streams = dice.pick([("S",), ("S",), ("S", "T")])
    return CeqlSituation(ceql_query(dice, streams, options), streams, ceql_events(dice, streams, options))


COLUMNS = [
    "COUNT(*)",
    "COUNT({0})",
    "COUNT({0}[v])",
    "SUM({0}[v])",
    "AVG({0}[v])",
    "MIN({0}[v])",
    "MAX({0}[w])",
    "SUM({0}[w]) - COUNT({0})",
    "SUM({0}[v]) / SUM({0}[w])",
    "2 * COUNT(*) + 1",
    "MIN({0}[k])",
    "COUNT({0}[none])",
    "MAX({0}[none])",
    "SUM({0}[k])",
]
HAVINGS = [
    "COUNT(*) > 1",
    "COUNT({0}) < 3",
    "SUM({0}[v]) >= 4 OR COUNT(*) > 2",
    "c0 > 2",
    "NOT c0 = 1",
    "COUNT(*) < 3",
    "MIN({0}[v]) = 1",
    "c0 < COUNT(*) * 3 AND MAX({0}[w]) > 1",
    "AVG({0}[w]) > 1.5",
]
RANKED = [
    "START",
    "START",
    "SUM({0}[v])",
    "SUM({0}[v])",
    "COUNT({0})",
    "COUNT({0})",
    "SUM({0}[v]) - 2 * COUNT({1})",
    "MAX({0}[v])",
    "MIN({0}[k])",
    "AVG({0}[w])",
    "SUM({0}[v]) / COUNT({0})",
    "0.5 * SUM({0}[w]) + SUM({1}[v])",
    "COUNT({0}[none])",
    "-SUM({0}[v])",
]
STRATEGIES = ("ALL ", "NEXT ", "LAST ", "MAX ", "STRICT ")


def with_totals(situation: CeqlSituation, seed: int) -> CeqlSituation:
    """The same formula and clauses with aggregates of what ends at one event; the situation has no LIMIT."""
    dice = Dice(seed)
    lines = situation.text.split("\n")
    formula = "\n".join(lines[3:])
    names = [name for name in ("A", "B", "C", "x", "y", "z") if re.search(rf"(?<!')\b{name}\b(?!')", formula)]
    strategy = next((s for s in STRATEGIES if lines[1].startswith(f"SELECT {s}")), "")
    shown = [f"{c.format(dice.pick(names))} AS c{i}" for i, c in enumerate(dice.some(COLUMNS, 4))]
    clauses = []
    by = next((re.findall(r"\[(\w)\]", line) for line in lines if line.startswith("PARTITION")), [])
    if by and dice.chance(60):
        keys = dice.some(by, 2)
        clauses.append(f"GROUP BY {', '.join(f'[{k}]' for k in keys)}")
        shown.append(f"[{dice.pick(keys)}]")
    if dice.chance(50):
        clauses.append(f"HAVING {dice.pick(HAVINGS).format(dice.pick(names))}")
    lines[1] = f"SELECT {strategy}{', '.join(shown)}"
    return replace(situation, text="\n".join([*lines, *clauses]))


def with_order(situation: CeqlSituation, seed: int) -> CeqlSituation:
    """The same with ORDER BY, LIMIT or SAMPLE; the situation has no LIMIT."""
    dice = Dice(seed)
    lines = situation.text.split("\n")
    selected = re.sub(r"^SELECT (ALL |NEXT |LAST |MAX |STRICT )?", "", lines[1])
    shown = selected.split(", ")
    if selected == "*":
        formula = "\n".join(lines[3:])
        shown = [n for n in ("A", "B", "C", "x", "y", "z") if re.search(rf"(?<!')\b{n}\b(?!')", formula)]
    keys = [
        f"{dice.pick(RANKED).format(dice.pick(shown), dice.pick(shown))}{dice.pick(['', ' ASC', ' DESC'])}"
        for _ in range(dice.pick([1, 1, 2]))
    ]
    clauses = [f"ORDER BY {', '.join(keys)}"]
    match dice.pick(["", "limit", "limit", "offset", "sample"]):
        case "limit":
            clauses.append(f"LIMIT {dice.pick([1, 2, 3, 50])}")
        case "offset":
            clauses.append(f"LIMIT {dice.pick([1, 2, 50])} OFFSET {dice.pick([0, 1, 2, 3])}")
        case "sample":
            clauses = [*clauses[: dice.pick([0, 1])], f"SAMPLE {dice.pick([1, 2, 3])} SEED {dice.pick([0, 7])}"]
    return replace(situation, text="\n".join([*lines, *clauses]))


def ceql_query(dice: Dice, streams: tuple[str, ...], options: CeqlOptions) -> str:
    """A query, a clause to a line."""
    draft = _Draft(dice, budget=dice.pick([1, 2, 3, 3, 4]))
    formula = draft.steps(3)
    while draft.budget > 0 and dice.chance(50):
        formula += f"{dice.pick(['; ', ' : '])}{draft.formula(1)}"
    if dice.chance(30):
        formula += f"\nFILTER {draft.condition()}"
    known = list(dict.fromkeys(draft.names))
    columns = "*" if dice.chance(60) else ", ".join(dice.some(known, 3))
    strategy = dice.pick(["", "", "ALL ", "NEXT ", "LAST ", "MAX ", "STRICT "]) if options.strategies else ""
    lines = [f"VOCAB <{VOCAB}>", f"SELECT {strategy}{columns}", f"FROM {', '.join(streams)}", f"WHERE {formula}"]
    if dice.chance(30):
        lines.append("PARTITION BY " + ", ".join(f"[{a}]" for a in dice.some(["k", "v"], 2)))
    if dice.chance(50):
        n = dice.pick([0, 1, 2, 3, 4, 5, 6, 7])
        lines.append(f"WITHIN {dice.pick([f'{n} EVENTS', f'0.00000{n} SECONDS', f'{n} [t]'])}")
    if options.consumption and dice.chance(35):
        lines.append(f"CONSUME BY {dice.pick(['ANY', 'PARTITION', 'NONE'])}")
    if options.limits and dice.chance(15):
        lines.append(f"LIMIT {dice.pick([1, 1, 2, 3])}")
    head, clauses = lines[:4], lines[4:]
    dice.shuffle(clauses)
    return "\n".join([*head, *clauses])


def ceql_events(dice: Dice, streams: tuple[str, ...], options: CeqlOptions) -> tuple[CeqlEvent, ...]:
    """Events in order; some lack attributes, some are simultaneous."""
    values = dice.pick([VALUES, VALUES, VALUES, ODD_VALUES, LOW_VALUES])
    time, clock = 0, 0
    places = []
    for _ in range(dice.between(options.most // 2, options.most)):
        time += dice.pick([1, 1, 1, 2, 0, 3])
        places.append((time, dice.pick(streams)))
    events = []
    for time, stream in sorted(places, key=lambda p: (p[0], streams.index(p[1]))):
        clock += dice.pick([1, 1, 2, 0, -2 if options.falling_clocks else 3])
        found = [("v", dice.pick(values)), ("w", dice.pick(values)), ("k", dice.pick(['"x"', '"y"']))]
        found.append(("t", str(clock)))
        stated = tuple((a, v) for a, v in found if dice.chance(90))
        events.append(CeqlEvent(stream, time, dice.pick([*TYPES, *TYPES, *TYPES, "D"]), stated))
    return tuple(events)


def as_tuples(events: tuple[CeqlEvent, ...]) -> list[TupleEvent]:
    """For the reference, without the way through RDF."""
    return [TupleEvent(n, e.time, VOCAB + e.type, _terms(e.values)) for n, e in enumerate(events)]


def _terms(values: tuple[tuple[str, str], ...]) -> Mapping[str, Literal]:
    return {VOCAB + a: normal(_literal(n_triples_term(text))) for a, text in values}


def _literal(text: str) -> Literal:
    value, _, datatype = text.rpartition("^^")
    if not value:
        return Literal(text[1:-1])
    return Literal(value[1:-1], datatype=NamedNode(datatype[1:-1]))
