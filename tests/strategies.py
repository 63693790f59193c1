"""Hypothesis strategies: random queries as text, streams, knowledge bases, orders of arrival.

Each strategy draws one number and rolls the dice from there: left to itself, Hypothesis repeats and empties
parts of what it has seen, and most queries would have no answer. `tests/reduction.py` makes a failure small.

Things are small on purpose: three kinds, two keys and a dozen values, so that joins happen; times are small
microseconds, so that events are simultaneous, merged and late. A query is drawn in two steps, the sequence
first, then a body for each GPM in it, which knows the GPMs that stand left of it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

from hypothesis import strategies as st
from loaded import load

from oxiseq.grammar.errors import QueryError

T = TypeVar("T")
Arrivals: TypeAlias = dict[str, list[tuple[int, str]]]
"""Stream IRI → (time in microseconds, N-Triples text) in order of arrival."""

E = "http://e/"
XSD = "http://www.w3.org/2001/XMLSchema#"
PREFIXES = f"PREFIX : <{E}>\nPREFIX xsd: <{XSD}>\n"
STREAMS = ("s1", "s2", "s3")

SMALL = ["1", "2", "3"]
NUMBERS = [
    *SMALL,
    '"01"^^xsd:integer',
    "1.0",
    "2.5",
    "2e0",
    '"2"^^xsd:float',
    '"0.1"^^xsd:float',
    "0.1",
    "1e-1",
]
ODD_NUMBERS = [
    '"NaN"^^xsd:double',
    "-0e0",
    "0",
    "9007199254740993",
    "9007199254740992e0",
    "-1",
    "1.50",
    '"INF"^^xsd:double',
]
TIMES = [
    '"2020-01-01T00:00:00Z"^^xsd:dateTime',
    '"2020-01-01T01:00:00+01:00"^^xsd:dateTime',
    '"2020-01-01T00:00:00"^^xsd:dateTime',
    '"2020-01-02T12:00:00.5Z"^^xsd:dateTime',
]
OTHERS = [
    '"a"',
    '"b"',
    '"ab"',
    '""',
    '"a"@en',
    '"a"@EN',
    "true",
    "false",
    ":t1",
    '"abc"^^xsd:integer',
    '"x"^^:unknown',
]
LITERALS = [*SMALL, *SMALL, *NUMBERS, *ODD_NUMBERS, *TIMES, *OTHERS]


class Dice:
    """Random choices, all from one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def chance(self, percent: int) -> bool:
        """True in so many of 100 rolls."""
        return self._random.randrange(100) < percent

    def pick(self, options: Sequence[T]) -> T:
        return self._random.choice(options)

    def some(self, options: Sequence[T], most: int) -> list[T]:
        """From one to `most` different ones, in any order."""
        return self._random.sample(options, self._random.randint(1, min(most, len(options))))

    def shuffle(self, items: list[T]) -> None:
        self._random.shuffle(items)

    def between(self, low: int, high: int) -> int:
        return self._random.randint(low, high)


# --- events ---------------------------------------------------------------------------------------


def n_triples_term(text: str) -> str:
    """A term of the lists above in N-Triples."""
    if text.startswith(":"):
        return f"<{E}{text[1:]}>"
    if text.startswith('"'):
        return text.replace("^^xsd:", f"^^<{XSD}").replace("^^:", f"^^<{E}") + (">" if "^^" in text else "")
    if text.startswith("_:"):
        return text
    if text in ("true", "false"):
        return f'"{text}"^^<{XSD}boolean>'
    kind = "double" if "e" in text else "decimal" if "." in text else "integer"
    return f'"{text}"^^<{XSD}{kind}>'


def graph(dice: Dice, values: list[str]) -> str:
    """The graph of one event: up to two things, now and then none."""
    lines = []
    for _ in range(dice.pick([1, 1, 1, 1, 2, 2, 0])):
        thing = dice.pick([":t1", ":t2", "_:b"])
        facts = [("kind", dice.pick([":a", ":b", ":c"])), ("k", dice.pick(["1", "2"]))]
        facts += [("v", dice.pick(values)) for _ in range(dice.pick([1, 1, 1, 0, 2]))]
        if dice.chance(25):
            facts.append(("w", dice.pick(["1", "2", *values])))
        if dice.chance(10):
            facts.append(("next", dice.pick([":t1", ":t2"])))
        lines += [f"{n_triples_term(thing)} <{E}{p}> {n_triples_term(o)} ." for p, o in facts]
    return "".join(line + "\n" for line in lines)


def arrivals(dice: Dice, iris: tuple[str, ...], most: int = 10) -> Arrivals:
    """Events for each stream, `most` in all; times mostly rise, some stand still, some fall back."""
    values = dice.pick([SMALL, SMALL, SMALL, NUMBERS, [*SMALL, *TIMES], LITERALS])
    streams: Arrivals = {iri: [] for iri in iris}
    clocks = dict.fromkeys(iris, 0)
    for _ in range(dice.between(most // 3, most)):
        iri = dice.pick(iris)
        step = dice.pick([1, 1, 1, 2, 0, 3, -1, -2])
        clocks[iri] = max(0, clocks[iri] + step)
        streams[iri].append((clocks[iri], graph(dice, values)))
    return streams


PUNCTUATION = "^"
"""In the place of an event's text: no earlier event comes after it."""


def punctuated(dice: Dice, events: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """The arrivals of a stream with punctuations between them and behind them."""
    found: list[tuple[int, str]] = []
    for time, text in events:
        found.append((time, text))
        if dice.chance(15):
            found.append((time + dice.between(0, 3), PUNCTUATION))
    last = max((time for time, _ in found), default=0)
    return [*found, (last + dice.between(0, 9), PUNCTUATION)] if dice.chance(50) else found


def knowledge(dice: Dice) -> str:
    """A knowledge base as N-Quads: limits per key in graph :g, some names in :h."""
    lines = []
    for number in range(dice.between(0, 4)):
        entry, graph = f"<{E}e{number}>", f"<{E}{dice.pick(['g', 'g', 'h'])}>"
        lines.append(f"{entry} <{E}of> {n_triples_term(dice.pick(['1', '2', ':t1']))} {graph} .")
        if dice.chance(80):
            limit = dice.pick(["1", "2", "2.5", '"01"^^xsd:integer', '"a"'])
            lines.append(f"{entry} <{E}limit> {n_triples_term(limit)} {graph} .")
    return "".join(line + "\n" for line in lines)


# --- sequences ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Where a GPM stands: the positive GPMs left of it, its partners in `&`."""

    name: str
    positive: bool
    looped: bool
    left: tuple[str, ...]
    partners: tuple[str, ...] = ()


@dataclass
class Shape:
    """A sequence under construction."""

    dice: Dice
    budget: int
    places: dict[str, Place] = field(default_factory=dict)
    left: tuple[str, ...] = ()
    looped: bool = False
    bounds: int = 0
    """How often (of 100) an element gets WITHIN, AFTER or LASTING."""

    def bound(self, kinds: Sequence[str] = ("WITHIN", "WITHIN", "AFTER", "LASTING")) -> str:
        """A bound to put behind an element, or nothing."""
        if not self.dice.chance(self.bounds):
            return ""
        return f" {self.dice.pick(kinds)} PT0.00000{self.dice.pick([1, 2, 2, 3, 3, 4, 5, 6])}S"

    def name(self, positive: bool = True) -> str:
        name = "ABCDEFGHIJKLM"[len(self.places)]
        self.places[name] = Place(name, positive, self.looped and positive, self.left)
        if positive:
            self.left = (*self.left, name)
        return name

    @property
    def room(self) -> int:
        return self.budget - len(self.places)

    def letter(self, positive: bool = True) -> str:
        """An atom, or two of them with `&` or `|`."""
        if self.room < 2 or not self.dice.chance(25):
            return self.name(positive)
        before = self.left
        a, b = self.name(positive), self.name(positive)
        op = self.dice.pick(["&", "|"])
        if op == "&":
            self.places[a] = replace(self.places[a], partners=(b,))
            self.places[b] = replace(self.places[b], left=before, partners=(a,))
        else:
            self.places[b] = replace(self.places[b], left=before)
        return f"({a} {op} {b})"

    def absence(self, bounded: bool) -> str:
        """A trailing negation of a GPM or a group; `bounded`: it needs a bound, as no window ends it."""
        group = self.dice.chance(20)
        self.budget = len(self.places) + 1 + group
        steps = [self.letter(positive=False) for _ in range(1 + group)]
        item = f"({self.dice.pick(['; ', ': ']).join(steps)})" if group else steps[0]
        before, self.bounds = self.bounds, 100 if bounded else 50
        text = f"; {item}!{self.bound(['WITHIN'])}"
        self.bounds = before
        return text

    def element(self, depth: int) -> str:
        kind = self.dice.pick(["letter", "letter", "letter", "repeat", "repeat", "maybe", "group", "or"])
        if kind == "repeat":
            return self.repeat(depth)
        if kind == "maybe":
            return self.letter() + "?"
        if kind == "group" and depth and self.room >= 2:
            return f"({self.sequence(depth - 1)})" + ("?" if self.dice.chance(30) else "")
        if kind == "or" and depth and self.room >= 3:
            before, bounds = self.left, self.bounds
            self.bounds = 0
            first = self.sequence(depth - 1)
            after, self.left = self.left, before
            second = self.element(0)
            self.bounds = bounds
            self.left = tuple(dict.fromkeys((*after, *self.left)))
            return f"(({first}) | {second})"
        return self.letter()

    def repeat(self, depth: int) -> str:
        outer, self.looped = self.looped, True
        group = depth and self.room >= 2 and self.dice.chance(40)
        inner = f"({self.sequence(depth - 1)})" if group else self.letter()
        bound = self.bound()
        inner = f"({inner}{bound})" if bound else inner
        self.looped = outer
        chain = self.dice.pick(["", "", ";", ",", ":"])
        bounds = self.dice.pick(["+", "+", "+", "{2}", "{1,2}", "{2,}", "{0,2}"])
        return inner + chain + bounds

    def sequence(self, depth: int) -> str:
        text = self.element(depth) + self.bound(["LASTING"])
        for _ in range(self.dice.pick([1, 1, 0, 2, 3])):
            if self.room < 1:
                break
            if self.room >= 2 and self.dice.chance(20):
                text += f"{self.dice.pick([',', ';', ':'])} {self.letter(positive=False)}!{self.bound(['WITHIN'])}"
            elif self.room >= 3 and self.dice.chance(8):
                steps = [self.letter(positive=False) for _ in range(2)]
                text += f"{self.dice.pick([',', ';', ':'])} ({self.dice.pick(['; ', ': ']).join(steps)})!"
                text += self.bound(["WITHIN"])
            text += f"{self.dice.pick([';', ',', ':'])} "
            text += self.element(depth) if self.room >= 1 else self.name()
            text += self.bound() + self.bound()
        return text


# --- graph patterns -------------------------------------------------------------------------------

OWN_TESTS = [
    "{v} > 1",
    "{v} != 2",
    "{v} = 1.0",
    "{v} <= 2e0",
    "{v} < 3",
    '{v} IN (1, "a")',
    "{v} NOT IN (1, 2)",
    "!({v} > 1)",
    "{v} * 2 - 1 > 2",
    "{v} / 2 < 1",
    "-{v} < -1",
    '{v} >= "2020-01-01T00:00:00Z"^^xsd:dateTime',
    '{v} < "b"',
    "STRLEN(STR({v})) = 1",
    'REGEX(STR({v}), "^[12a]")',
    'STRSTARTS(STR({v}), "a")',
    "isNumeric({v})",
    "{v} > 1 && {v} < 3",
    "{v} = 1 || {v} = 2",
    "DATATYPE({v}) = xsd:integer",
    "COALESCE({v}, 2) > 1",
    "IF(isLiteral({v}), {v} > 1, false)",
    "sameTerm({v}, 1)",
    "{v}",
    '{v} = "0.1"^^xsd:float',
    "BOUND({v})",
    "{v} = 9007199254740992",
    '{v} != "a"@en',
    '{v} = "x"^^:unknown',
]
PAIR_TESTS = [
    "{v} > {o}",
    "{v} < {o}",
    "{v} >= {o}",
    "{v} <= {o}",
    "{v} != {o}",
    "{v} = {o}",
    "{v} + 1 > {o}",
    "{v} * 2 >= {o} + 1",
    "{v} - {o} < 1",
    "{v} / {o} > 1",
    "STR({v}) < STR({o})",
    "CONTAINS(STR({v}), STR({o}))",
    "{v} > {o} && {v} < 3",
    "{v} = {o} || {v} = 1",
    "!({v} = {o})",
    "{v} IN ({o}, 1)",
    "sameTerm({v}, {o})",
    "{v} > {o} || !BOUND({o})",
    "{o} > 1",
]
EXISTS_TESTS = [
    "EXISTS {{ {s} :v {o} }}",
    "NOT EXISTS {{ {s} :w {o} }}",
    "EXISTS {{ ?n :w {o} }}",
    "NOT EXISTS {{ ?n :v {o} }}",
    "EXISTS {{ ?n :v ?m FILTER(?m > {o}) }}",
    "NOT EXISTS {{ {s} :w ?m FILTER(?m != {o}) }}",
    "EXISTS {{ {s} :v|:w {o} }}",
    "EXISTS {{ {s} :next*/:v {o} }}",
    "EXISTS {{ {s} ?n {o} }}",
    "{v} > {o} || EXISTS {{ {s} :w {o} }}",
    "IF(EXISTS {{ {s} :w {o} }}, 1, 2) < {v}",
    "!(EXISTS {{ ?n :w {o} }})",
    "EXISTS {{ GRAPH :g {{ ?n :limit {o} }} }}",
    "NOT EXISTS {{ GRAPH :g {{ ?n :of {o} ; :limit ?m }} }}",
    "EXISTS {{ GRAPH :g {{ ?n :limit ?m }} FILTER(?m <= {v} && ?m >= {o}) }}",
    "EXISTS {{ {s} :v {v} OPTIONAL {{ {s} :w ?m FILTER(?m = {o}) }} FILTER(BOUND(?m)) }}",
    "EXISTS {{ {{ {s} :v {o} }} UNION {{ {s} :w {o} }} }}",
    "EXISTS {{ {s} :v ?m . {{ ?n :w ?m FILTER(?m >= {o}) }} }}",
    "EXISTS {{ {s} :v ?m MINUS {{ {s} :w {o} }} }}",
    "EXISTS {{ {s} :v {o} FILTER NOT EXISTS {{ {s} :w {o} }} }}",
    "EXISTS {{ {{ SELECT {s} {o} {{ {s} :v {o} }} }} }}",
    "EXISTS {{ {s} :v ?m BIND({o} + 1 AS ?n) FILTER(?m = ?n) }}",
    "EXISTS {{ VALUES {o} {{ 1 2 }} }} && {v} > 1",
    "{o} > 1 || EXISTS {{ {s} :w {v} }}",
    "EXISTS {{ FILTER({o} > 1) }}",
]
PREV_TESTS = [
    "{v} > PREV({v})",
    "{v} != PREV({v})",
    "{v} >= PREV({v}) + 1",
    "STR({v}) < STR(PREV({v}))",
    "{v} <= PREV({v})",
]

TIME_TESTS = [
    'EVENTTIME() > "1970-01-01T00:00:00.000003Z"^^xsd:dateTime',
    "EVENTTIME() != TIMEOF({name})",
    'TIMEOF({name}) > "1970-01-01T00:00:00.000002Z"^^xsd:dateTime || {v} > 1',
    "STR(EVENTTIME()) > STR(TIMEOF({name}))",
    "BOUND({v}) && TIMEOF({name}) < EVENTTIME()",
]
ITERATION_TESTS = [
    "{v} > AVG({o})",
    "SUM({o}) < {v} * 2",
    "COUNT({name}) > 1",
    "COUNT({name}) < 3 && {v} > MIN({o})",
    "MAX({o}) >= {v}",
    "{v} = FIRST({o})",
    "LAST({o}) <= {v} || COUNT({o}) = 2",
    "SUM({o} * 2) > SUM({o}) + 2",
    "STRLEN(GROUP_CONCAT(STR({o}) ; SEPARATOR='-')) > 2",
    "sameTerm(SAMPLE({o}), FIRST({o}))",
    "COALESCE(AVG({o}), 2) <= {v}",
]


@dataclass
class Body:
    """A GPM's body: its parts, its variables, and those of them that surely hold a value."""

    parts: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    certain: list[str] = field(default_factory=list)


def body(dice: Dice, place: Place, bodies: dict[str, Body], stateful: bool, key: str | None = None) -> Body:
    """A random body for the GPM at `place`; with `stateful`, filters may ask for variables of other GPMs. `key` is
    the variable that it must bind."""
    low = place.name.lower()
    out = Body()
    subject = dice.pick([f"?{low}", f"?{low}", f"?{low}", "?s"])
    out.certain.append(subject)
    if dice.chance(45):
        out.parts.append(f"{subject} :kind {dice.pick([':a', ':b', ':c', f'?{low}kind'])} .")
    key = key or dice.pick(["?k", f"?{low}k", "?k", ""])
    if key:
        out.parts.append(f"{subject} :k {key} .")
        out.certain.append(key)
    value = f"?{low}v" if dice.chance(85) else "?v"
    if dice.chance(80) or not out.parts:
        out.parts.append(f"{subject} :v {value} .")
        out.certain.append(value)
        out.values.append(value)
    if dice.chance(25):
        _extra(dice, place, out, subject)
    if dice.chance(20):
        _kb(dice, place, out, subject, key)
    _filters(dice, place, bodies, out, stateful, subject)
    return out


def light_body(dice: Dice, place: Place, bodies: dict[str, Body], stateful: bool) -> Body:
    """One that most events match, so that UNTIL ends runs."""
    subject, value = (f"?{place.name.lower()}{end}" for end in ("", "v"))
    out = Body(certain=[subject])
    if dice.chance(50):
        out.parts.append(f"{subject} :v {value} .")
        out.values.append(value)
    if dice.chance(25) or not out.parts:
        out.parts.append(f"{subject} :k {dice.pick(['?k', value])} .")
    _filters(dice, place, bodies, out, stateful, subject)
    return out


def _extra(dice: Dice, place: Place, out: Body, subject: str) -> None:
    """Something that the store must answer, or that leaves a variable unbound."""
    low = place.name.lower()
    shared = dice.pick([f"?{low}w", f"?{low}w", "?k", "?w", "?v"])
    part = dice.pick(
        [
            f"OPTIONAL {{ {subject} :w {shared} }}",
            f"OPTIONAL {{ {subject} :w {shared} }}",
            f"{{ {subject} :w {shared} }} UNION {{ {subject} :v ?{low}u }}",
            f"MINUS {{ {subject} :w ?{low}m }}",
            f"{subject} :v|:w {shared} .",
            f"{subject} :next*/:k {shared} .",
            f"{subject} ?{low}p {shared} .",
            f"BIND({subject} AS ?{low}x)",
            f"VALUES ?{low}y {{ 1 2 }} {subject} :v ?{low}y .",
            f"FILTER NOT EXISTS {{ {subject} :w 1 }}",
            f"FILTER EXISTS {{ {subject} :w ?{low}m }}",
            f"{{ SELECT {subject} (COUNT(?{low}m) AS ?{low}n) {{ {subject} :v ?{low}m }} GROUP BY {subject} }}",
            f"{{ SELECT DISTINCT {subject} {{ {subject} :v ?{low}m }} }}",
            f"{{ {subject} :v ?{low}z }}",
        ],
    )
    out.parts.append(part)
    if part.startswith(("OPTIONAL", "{ ?", f"{subject} :")) and shared in part:
        out.values.append(shared)


def _kb(dice: Dice, place: Place, out: Body, subject: str, key: str) -> None:
    low = place.name.lower()
    asked = dice.pick([key or f"?{low}o", subject, f"?{low}o", "?k"])
    limit = dice.pick([f"?{low}l", f"?{low}l", "?l", "?v"])
    entry = dice.pick([f"?{low}e", "?e"])
    graph = dice.pick([":g", ":g", ":h", f"?{low}g", ":none"])
    pattern = dice.pick(
        [
            f"{entry} :of {asked} ; :limit {limit}",
            f"{entry} :limit {limit}",
            f"{entry} :of {asked} OPTIONAL {{ {entry} :limit {limit} }}",
        ],
    )
    out.parts.append(f"GRAPH {graph} {{ {pattern} }}")
    out.values.append(limit)


def _filters(dice: Dice, place: Place, bodies: dict[str, Body], out: Body, stateful: bool, subject: str) -> None:
    if not out.values:
        return
    tests = []
    if dice.chance(28):
        tests.append(dice.pick(OWN_TESTS).format(v=dice.pick(out.values)))
    theirs = [v for name in place.left for v in bodies[name].values]
    theirs += [f"?{name.lower()}v" for name in place.partners]
    if stateful and theirs and dice.chance(42):
        tests.append(dice.pick(PAIR_TESTS).format(v=dice.pick(out.values), o=dice.pick(theirs)))
    if stateful and theirs and dice.chance(20):
        tests.append(dice.pick(EXISTS_TESTS).format(v=dice.pick(out.values), o=dice.pick(theirs), s=subject))
    if stateful and place.looped and dice.chance(45):
        test = dice.pick(PREV_TESTS).format(v=dice.pick(out.values))
        tests.append(f"{test} || EXISTS {{ ?n :w {dice.pick(out.values)} }}" if dice.chance(15) else test)
    if stateful and place.left and dice.chance(10):
        tests.append(dice.pick(TIME_TESTS).format(v=dice.pick(out.values), name=dice.pick(place.left)))
    asked = [(name, bodies[name].values) for name in place.left] + [(place.name, out.values)] * place.looped
    if stateful and dice.chance(15):
        name, values = dice.pick(asked or [(place.name, out.values)])
        if values:
            test = dice.pick(ITERATION_TESTS)
            tests.append(test.format(v=dice.pick(out.values), o=dice.pick(values), name=name))
    joined = dice.chance(30)
    if tests and joined:
        out.parts.append("FILTER(" + " && ".join(f"({t})" for t in tests) + ")")
    else:
        out.parts += [f"FILTER({t})" for t in tests]


# --- whole queries --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Situation:
    """A query that the checks accept, what arrives on its streams, and what is known."""

    text: str
    streams: Arrivals
    kb: str
    lateness: int
    order: tuple[str, ...]
    """The stream IRI of each arrival, when all streams are pushed by turns."""
    pauses: frozenset[int]
    """After which arrivals the matches so far are asked for."""


@dataclass(frozen=True)
class Wanted:
    """What queries have: with `clauses` PARTITION BY, selection strategies, CONSUME BY and LIMIT in some; with
    `trailing` every one ends in negations, and streams have punctuations; with `until` every one has UNTIL; with
    `suppress` SUPPRESS, and in some SUPPRESSED()."""

    clauses: bool = False
    trailing: bool = False
    until: bool = False
    suppress: bool = False


def situations(
    clauses: bool = False, trailing: bool = False, until: bool = False, suppress: bool = False
) -> st.SearchStrategy[Situation]:
    """Random situations, whose queries have what is wanted."""
    return st.integers(0, 2**62).map(lambda seed: situation(Dice(seed), clauses, trailing, until, suppress))


def situation(
    dice: Dice, clauses: bool = False, trailing: bool = False, until: bool = False, suppress: bool = False
) -> Situation:
    """One throw. A query that the checks refuse is thrown again, at last without filters on others."""
    wanted = Wanted(clauses, trailing, until, suppress)
    iris = STREAMS[: dice.pick([1, 1, 2, 2, 3])]
    text = next((t for n in range(12) if _accepted(t := query(dice, iris, n < 8, wanted))), None)
    if text is None:
        bare = Body(["?a :v ?av ."])
        text = _text("SELECT *", "", iris, "A", {"A": iris[0]}, {"A": bare})
    streams = arrivals(dice, tuple(E + iri for iri in iris))
    if trailing:
        streams = {iri: punctuated(dice, events) for iri, events in streams.items()}
    order = [iri for iri, events in streams.items() for _ in events]
    dice.shuffle(order)
    pauses = frozenset(i for i in range(len(order)) if dice.chance(30))
    return Situation(text, streams, knowledge(dice), dice.pick([0, 0, 1, 2]), tuple(order), pauses)


def query(dice: Dice, iris: tuple[str, ...], stateful: bool, wanted: Wanted) -> str:
    """A query with everything the language has; the checks may refuse it."""
    clauses, trailing = wanted.clauses, wanted.trailing
    window = dice.pick(["", "", "SLIDING", "SLIDING", "TUMBLING"])
    shape = Shape(dice, budget=dice.pick([2, 3, 3, 4, 5]), bounds=dice.pick([0, 0, 30, 50]))
    lead = f"{shape.letter(positive=False)}!{dice.pick([';', ','])} " if dice.chance(10) else ""
    shape.budget = max(shape.budget, len(shape.places) + 2)
    sequence = lead + shape.sequence(2)
    if trailing:
        sequence += "".join(shape.absence(bounded=not window) for _ in range(dice.pick([1, 1, 2])))
    elif (window or shape.bounds) and dice.chance(12 if not shape.bounds else 30):
        for _ in range(dice.pick([1, 1, 2])):
            shape.budget = len(shape.places) + 1
            sequence += f"; {shape.letter(positive=False)}!{shape.bound(['WITHIN'])}"
    key = "?k" if clauses and dice.chance(60) else None
    until = ""
    ends = len(shape.places)
    if wanted.until:
        shape.budget = ends + dice.pick([1, 1, 2])
        until = f" UNTIL {shape.letter(positive=False)}"
    bodies: dict[str, Body] = {}
    for number, (name, place) in enumerate(shape.places.items()):
        if number >= ends and dice.chance(70):
            bodies[name] = light_body(dice, place, bodies, stateful)
            continue
        bodies[name] = body(dice, place, bodies, stateful, key if place.positive or dice.chance(70) else None)
    on = {name: dice.pick(iris) for name in bodies}
    select, within = _select(dice, shape, bodies), _within(dice, window)
    conditions = _conditions(dice, shape, bodies)
    if wanted.suppress:
        select, suppress = _suppress(dice, select, shape, bodies)
        within = f"{within}\n{suppress}"
    if not clauses:
        return _text(select, within, iris, sequence, on, bodies, conditions, until)
    more, limit = _clauses(dice, key, trailing or "!" in sequence.rpartition(";")[2])
    if select.startswith("SELECT ") and dice.chance(50):
        select = select.replace("SELECT ", f"SELECT {dice.pick(['NEXT', 'LAST', 'MAX'])} ", 1)
    return _text(select, f"{within}\n{more}", iris, sequence, on, bodies, conditions, until) + limit


def _suppress(dice: Dice, select: str, shape: Shape, bodies: dict[str, Body]) -> tuple[str, str]:
    """SELECT or CONSTRUCT, in some queries with SUPPRESSED(), and SUPPRESS."""
    bound = sorted({v for p in shape.places.values() if p.positive for v in bodies[p.name].certain})
    by = f" BY {' '.join(dice.some(bound, 2))}" if dice.chance(60) else ""
    if dice.chance(50) and select.startswith("SELECT") and not select.endswith("*"):
        select += " (SUPPRESSED() AS ?dropped)"
    elif dice.chance(50) and select.startswith("CONSTRUCT"):
        select = select.replace("(ENDTIME())", "(SUPPRESSED())")
    return select, f"SUPPRESS PT0.00000{dice.pick([1, 2, 2, 3, 4, 6, 9])}S{by}"


def _clauses(dice: Dice, key: str | None, undecided: bool) -> tuple[str, str]:
    """What stands before WHERE, and LIMIT."""
    lines = []
    if key and dice.chance(80):
        lines.append(f"PARTITION BY {key}")
    if not undecided and dice.chance(35):
        lines.append(f"CONSUME BY {dice.pick(['ANY', 'PARTITION', 'NONE'])}")
    dice.shuffle(lines)
    return "\n".join(lines), f"\nLIMIT {dice.pick([1, 1, 2, 3])}" if dice.chance(20) else ""


def _conditions(dice: Dice, shape: Shape, bodies: dict[str, Body]) -> list[str]:
    """FILTERs behind SEQ, in some queries."""
    positive = [p for p in shape.places.values() if p.positive]
    values = [v for p in positive for v in bodies[p.name].values]
    if not values or not dice.chance(12):
        return []
    tests = [dice.pick(PAIR_TESTS).format(v=dice.pick(values), o=dice.pick(values))]
    looped = [v for p in positive if p.looped for v in bodies[p.name].values]
    if looped and dice.chance(50):
        tests.append(f"SUM({dice.pick(looped)}) > {dice.pick([1, 2, 3])} || COUNT({dice.pick(looped)}) = 1")
    if dice.chance(30):
        tests.append(f"COUNT({dice.pick(positive).name}) < 3 && ENDTIME() > STARTTIME()")
    return dice.some(tests, 2)


def _accepted(text: str) -> bool:
    try:
        load(text)
    except QueryError:
        return False
    return True


def _within(dice: Dice, window: str) -> str:
    if not window:
        return ""
    sliding = " SLIDING" if window == "SLIDING" else ""
    if dice.chance(30):
        return f"WITHIN {dice.pick([1, 2, 3, 4, 5])} EVENTS{sliding}"
    return f"WITHIN PT0.00000{dice.pick([2, 3, 4, 6, 8, 9])}S{sliding}"


def _select(dice: Dice, shape: Shape, bodies: dict[str, Body]) -> str:
    positive = [p for p in shape.places.values() if p.positive]
    shown = sorted({v for p in positive for v in bodies[p.name].certain})
    kind = dice.pick(["star", "star", "some", "some", "expressions", "aggregates", "construct", "ask"])
    distinct = "DISTINCT " if dice.chance(25) else ""
    if kind == "some" and shown:
        return f"SELECT {distinct}" + " ".join(dice.some(shown, 3))
    if kind == "expressions":
        name = dice.pick([p.name for p in positive])
        columns = ["(STARTTIME() AS ?start)", "(ENDTIME() AS ?end)", "(DURATION() AS ?lasts)"]
        columns += [f"(TIMEOF({name}) AS ?at)", f"(COUNT({name}) AS ?n)"]
        columns += [f"({v} + 1 AS ?more{i})" for i, v in enumerate(shown[:2])]
        return f"SELECT {distinct}" + " ".join(dice.some(columns, 3))
    looped = [p for p in positive if p.looped and bodies[p.name].certain]
    if kind == "aggregates" and looped:
        variable = dice.pick(bodies[dice.pick(looped).name].certain)
        calls = [f"({f}({variable}) AS ?{f.lower()})" for f in ("SUM", "COUNT", "AVG", "MIN", "MAX")]
        calls += [
            f"(COUNT(DISTINCT {variable}) AS ?different)",
            f"(GROUP_CONCAT(STR({variable}) ; SEPARATOR='-') AS ?all)",
        ]
        return f"SELECT {distinct}" + " ".join(dice.some(calls, 3))
    if kind == "construct" and shown:
        return f"CONSTRUCT {{ {shown[0]} :seen {shown[-1]} . [] :at (ENDTIME()) }}"
    return "ASK" if kind == "ask" else f"SELECT {distinct}*"


def _text(
    select: str,
    within: str,
    iris: tuple[str, ...],
    sequence: str,
    on: dict[str, str],
    bodies: dict[str, Body],
    conditions: Sequence[str] = (),
    until: str = "",
) -> str:
    streams = "\n".join(f"FROM STREAM {iri.upper()} <{E}{iri}>" for iri in iris)
    gpms = "\n".join(  # a part to a line: `reduction` takes lines away
        f"  DEFINE GPM {name} ON {on[name].upper()} {{\n    " + "\n    ".join(b.parts) + "\n  }"
        for name, b in bodies.items()
    )
    behind = "".join(f"  FILTER({condition})\n" for condition in conditions)
    return f"{PREFIXES}{select}\n{within}\n{streams}\nWHERE {{\n  SEQ({sequence}){until}\n{behind}{gpms}\n}}"
