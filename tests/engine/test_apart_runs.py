"""Queries of other languages than SPAseq, together and each alone.

Together a query is handed events only when something may come of them, and equal ones are one. After every step its
matches must be those of its lonely twin, which is handed everything at once; and whenever somebody looks, its late
events and counters, too.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any
from unittest.mock import Mock, patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loaded import load
from moved_runs import moved
from profiles import drawn
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Store, Triple

from oxiseq.engine.bounds import InstantBounds
from oxiseq.engine.errors import LimitError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.flow.epsparql.facts import STARTED_AT
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.output import end_totals
from oxiseq.engine.run.alone import AloneRun
from oxiseq.engine.run.family import Family, OneQuery
from oxiseq.engine.run.intervals import IntervalRun
from oxiseq.engine.run.tuples import TupleRun
from oxiseq.engine.sharing import apart, member
from oxiseq.engine.sharing.dispatching import Outcome
from oxiseq.engine.sharing.runs import Runs
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.languages.registry import language_for
from oxiseq.options import Options

E = "http://e/"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
STREAMS = (E + "s", E + "r")
NAMES = ("a", "b", "c", "d")
DURATION = "<http://www.w3.org/2001/XMLSchema#duration>"


def iri(name: str) -> NamedNode:
    return NamedNode(E + name)


def ceql(dice: random.Random) -> str:
    x, y, z = (dice.choice("ABCD") for _ in range(3))
    form = dice.choice(
        [
            f"{x} AS x ; {y} AS y",
            f"{x} AS x : {y} AS y",
            f"{x} AS x ; {y}+ AS y ; {z}",
            f"{x} AS x FILTER x[v > 4]",
            f"({x} OR {y}) AS x ; {z}",
        ]
    )
    window = dice.choice(["WITHIN 6 EVENTS", "WITHIN 0.00002 SECONDS", "WITHIN 9 [v]"])
    by = dice.choice(["", "", "PARTITION BY [k]"])
    strategy = dice.choice(["", "", "MAX", "NEXT", "STRICT"])
    names = dice.choice(["s", "s", "s, r"])
    told, having = dice.choice(
        [
            ("*", ""),
            ("*", ""),
            ("COUNT(*) AS n", ""),
            ("COUNT(*) AS n", "HAVING COUNT(*) > 1"),
            ("SUM(x[v]) AS s, COUNT(x) AS d, MAX(x[v]) AS m", ""),
        ]
    )
    return f"VOCAB <{E}> SELECT {strategy} {told} FROM {names} WHERE {form} {by} {window} {having}"


def windows(dice: random.Random) -> str:
    x, y = (dice.choice(NAMES) for _ in range(2))
    slide = dice.choice(["", "STEP PT0.000003S", "STEP PT0.000007S"])
    where = dice.choice(
        [
            f"WINDOW :w {{ ?h :{x} ?v }}",
            f"WINDOW :w {{ ?h :{x} ?v . ?h :{y} ?u FILTER(?u > ?v) }}",
            f"WINDOW :w {{ ?h :{x} ?v OPTIONAL {{ ?h :{y} ?u }} }}",
            f"WINDOW :w {{ {{ ?h :{x} ?v }} UNION {{ ?h :{y} ?v }} }}",
            f"WINDOW :w {{ ?h :{x} ?v MINUS {{ ?h :{y} ?u }} }}",
            f"WINDOW :w {{ ?h :{x} ?v }} GRAPH :g {{ ?h :known ?u }}",
            f"GRAPH :g {{ ?h :known ?v }} FILTER NOT EXISTS {{ WINDOW :w {{ ?h :{x} ?u }} }}",
            f"WINDOW :w {{ ?h ?p ?v }} WINDOW :r {{ ?h :{y} ?u }}",
            f"WINDOW :w {{ ?h a :A ; :{x} ?v }}",
            f"WINDOW :w {{ ?h :{x} ?v }} WINDOW :r {{ ?h :{y} ?v }}",
        ]
    )
    columns, group = dice.choice([("?h ?v", ""), ("?h (COUNT(*) AS ?n)", "GROUP BY ?h"), ("(COUNT(*) AS ?n)", "")])
    kind = dice.choice(["RANGE PT0.00001S", "RANGE PT0.00001S", "RANGE PT0.00003S"])
    told = dice.choice(["", "REGISTER RSTREAM :q AS", "REGISTER DSTREAM :q AS", "REGISTER ISTREAM :q AS"])
    return (
        f"PREFIX : <{E}> {told} SELECT {columns} FROM NAMED WINDOW :w ON :s [{kind} {slide}] "
        f"FROM NAMED WINDOW :r ON :r [RANGE PT0.00001S] WHERE {{ {where} }} {group}"
    )


def intervals(dice: random.Random) -> str:
    x, y, z = (dice.choice(NAMES) for _ in range(3))
    first, second, third = (f"{{ ?h :{name} ?v{i} }}" for i, name in enumerate((x, y, z)))
    where = dice.choice(
        [
            first,
            f"{first} SEQ {second}",
            f"{first} SEQ {second} SEQ {third}",
            f"{first} OPTIONALSEQ {second}",
            f"{first} EQUALS {second}",
            f"{first} SEQ {{ ?h ?p ?o }}",
            f"{first} SEQ {{ ?h :known ?u }}",
            f"{{ ?h :{x} :known }} SEQ {second}",
        ]
    )
    streams = dice.choice([f"FROM STREAM <{STREAMS[0]}>", f"FROM STREAM <{STREAMS[0]}> FROM STREAM <{STREAMS[1]}>"])
    return f'PREFIX : <{E}> SELECT ?h {streams} WHERE {{ {where} FILTER(getDURATION() < "PT0.00003S"^^{DURATION}) }}'


def template(dice: random.Random) -> str:
    """A query in time, to be `filled` with constants."""
    x, y, z = (dice.choice(NAMES) for _ in range(3))
    where = dice.choice(
        [
            f"?h a :$K ; :{x} ?v",
            f"{{ ?h a :$K ; :{x} ?v }} SEQ {{ ?h :{y} ?u }}",
            f"{{ ?h :{x} ?v }} SEQ {{ ?g :{y} $N }}",
            f"{{ :$H :{x} ?v }} SEQ {{ ?h :{y} ?v }}",
            f"{{ ?h :{x} ?v FILTER(?v > $N) }} SEQ {{ ?h :{y} ?u FILTER(?u <= $M) }}",
            f"{{ ?h :{x} ?v }} SEQ {{ ?g :{y} ?u FILTER(?u > ?v + $N) }}",
            f"?h :{x} ?v FILTER(?h = :$H)",
            f"{{ ?h :{x} ?v FILTER(?v < $N) }} OPTIONALSEQ {{ ?h :{y} ?u }}",
            f"{{ ?h :{x} ?v }} OPTIONALSEQ {{ ?h :{y} ?u FILTER(?u > $M) }}",
            f"?h :{x} ?v OPTIONAL {{ ?h :{y} ?u FILTER(?u > ?v - $N) }} BIND(?v * $M AS ?w)",
            f"?h :{x} ?v OPTIONAL {{ ?h :{y} ?u FILTER EXISTS {{ ?h :{z} ?w FILTER(?w > ?u + $N) }} }}",
            f"?h :{x} ?v MINUS {{ ?h :{y} $N }}",
            f"?h :{x} ?v MINUS {{ ?g :{y} $N }}",
            f"?h :{x} ?v FILTER NOT EXISTS {{ ?h a :$K }}",
            f"?h :{x} ?v FILTER EXISTS {{ ?h :{y} ?u FILTER(?u > $N) }}",
            f"?h :{x} ?v FILTER NOT EXISTS {{ ?g :{y} ?u FILTER(?u > ?v * $N) }}",
            f"{{ ?h :{x} ?v }} UNION {{ ?h :{y} $N }}",
            f"{{ ?h :{x} ?v }} EQUALS {{ ?h a :$K }}",
            f"{{ ?h :{x} ?v }} EQUALSOPTIONAL {{ ?h :{y} ?u FILTER(?u != $N) }}",
            f"?h :known $N . ?g :{x} ?v",
            f"{{ SELECT DISTINCT ?h {{ ?h a :$K ; :{x} ?v }} }} ?h :{y} ?u",
            f"?h (:{x}|:{y}) $N",
            f"?h :{x}+ ?g . ?g a :$K",
            f"VALUES ?v {{ 1 2 3 :known }} ?h :{x} ?v FILTER(?v >= $N)",
            f"?h ?p $N . ?h :{y} ?u",
            f"?h :{x} ?v GRAPH :g {{ ?h :known $N }}",
            f"{{ ?h :{x} ?v }} SEQ {{ ?h :{y} ?u GRAPH :g {{ ?h :known ?w FILTER(?w > $N) }} }}",
            f"?h :{x} ?v FILTER NOT EXISTS {{ GRAPH :g {{ ?h :known $N }} }}",
            f"{{ ?h :derived ?v }} SEQ {{ ?h :{y} ?u FILTER(?u > $N) }}",
            f"{{ ?h a :$K ; :{x} ?v }} SEQ {{ ?h :derived ?u }}",
            f"?h :derived ?v FILTER(?v >= $N) OPTIONAL {{ ?h :{y} ?u }}",
        ]
    )
    head = dice.choice(["SELECT ?h ?v", "SELECT DISTINCT ?h", "SELECT ?h (?v + $M AS ?w)"])
    if "?v" not in where or "?w" in where:
        head = "SELECT ?h"
    return (
        f"PREFIX : <{E}> {head} FROM STREAM <{STREAMS[0]}> WHERE {{ {where} "
        f'FILTER(getDURATION() < "PT0.00002S"^^{DURATION}) }}'
    )


def ceql_template(dice: random.Random) -> str:
    """A complex event query, to be `filled` with constants."""
    x, y, z = (dice.choice("ABCD") for _ in range(3))
    form, first, second = dice.choice(
        [
            (f"{x} AS x ; {y} AS y", "x", "y"),
            (f"{x} AS x ; {y}+ AS y ; {z} AS z", "x", "z"),
            (f"({x} OR {y}) AS x ; {z} AS z", "x", "z"),
            (f"{x} AS x ; {x} AS y", "y", "x"),
            (f"{x} AS x", "x", "x"),
        ]
    )
    tests = ["v > $N", "v >= $N.5", "v < $O", "$N <= v", "v = $O", "v > $O AND k != $N", "v > $N AND v < $O", "v > 3"]
    window = dice.choice(["", "WITHIN 0.00002 SECONDS", "WITHIN 0.0000$O4 SECONDS", "WITHIN 6 EVENTS"])
    consumes = dice.choice(["", "", "CONSUME BY ANY", "LIMIT 2"])
    told = dice.choice(["*", "*", f"{first}"])
    names = dice.choice(["s", "s", "s, r"])
    return (
        f"VOCAB <{E}> SELECT {told} FROM {names} WHERE {form} FILTER {first}[{dice.choice(tests)}] "
        f"AND {second}[{dice.choice(tests)}] {window} {consumes}"
    )


RULES = (
    (f"PREFIX : <{E}> CONSTRUCT {{ ?h :derived ?v }} WHERE {{ {{ ?h :a ?u }} SEQ {{ ?h :b ?v }} }}",),
    (
        f"PREFIX : <{E}> CONSTRUCT {{ ?h :derived ?v }} WHERE {{ ?h :c ?v }}",
        f"PREFIX : <{E}> CONSTRUCT {{ ?g :derived ?v }} WHERE {{ {{ ?h :derived ?v }} SEQ {{ ?g :d ?v }} }}",
    ),
    (f"PREFIX : <{E}> CONSTRUCT {{ ?h :derived ?u ; :made _:new }} WHERE {{ ?h :a ?u }}",),
)
"""One alone, two of which one feeds itself, one that makes blank nodes (which no query shows: each run has its own)."""


def filled(text: str, dice: random.Random) -> str:
    """One of the queries that differ in constants only."""
    drawn = {
        "$K": dice.choice("ABCDX"),
        "$H": dice.choice(["h1", "h2", "h3"]),
        "$N": str(dice.randint(0, 5)),
        "$M": dice.choice(["3", "4", "5.5", ":known"]),
        "$O": str(dice.randint(0, 9)),
    }
    return functools.reduce(lambda done, name: done.replace(name, drawn[name]), drawn, text)


def event_patterns(dice: random.Random) -> str:
    x, y = (dice.choice(NAMES) for _ in range(2))
    match = dice.choice(["A SEQ B", "A SEQ^r B", "LAST A", "A SEQ (LAST B)"])
    report = dice.choice(["", "REPORT EVERY 3", "REPORT ON WINDOW CLOSE"])
    return (
        f"PREFIX : <{E}> SELECT * FROM NAMED <{STREAMS[0]}> WIN [RANGE 9 SLIDE 3] AS :w "
        f"EVENT ON :w {{ ?h :{x} ?v }} AS A EVENT ON :w {{ ?h :{y} ?u }} AS B WHERE {{ MATCH {{ {match} }} }} {report}"
    )


LANGUAGES = {"ceql": ceql, "rspql": windows, "epsparql": intervals, "rsepql": event_patterns}


def shown(batch: Any) -> list[Any]:
    return [
        value.tolist() if hasattr(value, "tolist") else value
        for value in (getattr(batch, each.name) for each in fields(batch))
    ]


def told(late: Any) -> list[Any]:
    """Late events, whole."""
    ids = [column.tolist() for column in late.ids]
    bounds = pairwise(late.offset.tolist())
    return [(time, *(column[a:b] for column in ids)) for time, (a, b) in zip(late.time.tolist(), bounds, strict=True)]


@dataclass
class Pair:
    """A query among others and its twin. The late events of the one are those of the other when it has caught up."""

    text: str
    together: AloneRun
    alone: AloneRun
    found: tuple[list[Any], list[Any]] = field(default_factory=lambda: ([], []))
    late: tuple[list[Any], list[Any]] = field(default_factory=lambda: ([], []))


class Drill:
    """Random steps."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.terms = TermDictionary()
        self.store = Store()
        self.kb = StoreKb(self.store)
        self.runs = Runs(self.terms)
        self.pairs: dict[AloneRun, Pair] = {}
        self.now = 0
        self.slept = 0
        self.template: tuple[str, str, Options] | None = None

    def register(self) -> None:
        language = self.dice.choice([*LANGUAGES])
        text = LANGUAGES[language](self.dice)
        start = self.dice.choice([None, None, None, self.now + 3])
        options = Options(origin=start, lateness=self.dice.choice([0, 0, 0, 4]))
        for _ in range(self.dice.choice([1, 1, 3])):
            together, alone = self.compiled(text, language, options), self.compiled(text, language, options)
            self.runs.add(together, start, bounds=self.dice.choice(["small", "small", "large"]))
            self.pairs[together] = Pair(text, together, alone)

    def register_alike(self) -> None:
        if self.template is None or self.dice.random() < 0.4:
            language = self.dice.choice(["epsparql", "epsparql", "ceql"])
            text = template(self.dice) if language == "epsparql" else ceql_template(self.dice)
            rules = self.dice.choice(RULES) if ":derived" in text else ()
            self.template = language, text, Options(lateness=self.dice.choice([0, 0, 4]), rules=rules)
        language, text_of_all, options = self.template
        for text in [filled(text_of_all, self.dice) for _ in range(self.dice.choice([1, 2, 3, 5]))]:
            together, alone = (self.compiled(text, language, options) for _ in range(2))
            self.runs.add(together)
            self.pairs[together] = Pair(text, together, alone)

    def compiled(self, text: str, language: str, options: Options) -> AloneRun:
        query = load(text, language)
        run = language_for(query).compile(query, self.terms, self.kb, options)[0]
        assert isinstance(run, AloneRun)
        return run

    def one(self, run: AloneRun) -> list[Pair]:
        """Those whose state is that of a run."""
        return [pair for pair in self.pairs.values() if vars(pair.together) is vars(run)]

    def graph(self) -> list[Triple]:
        dice, event = self.dice, iri(f"h{self.dice.randint(1, 2)}")
        some = dice.choice([0, 0, 0, 0, 1, 1, 2])
        triples = [Triple(event, iri("noise"), Literal(dice.randint(0, 9)))]
        triples += [
            Triple(event, iri(dice.choice(NAMES)), dice.choice([Literal(dice.randint(0, 9)), iri("known")]))
            for _ in range(some)
        ]
        for _ in range(dice.choice([1, 1, 1, 1, 2])):
            triples.append(Triple(event, NamedNode(RDF + "type"), iri(dice.choice("ABCDXYZXYZ"))))
        triples.append(Triple(event, iri("v"), Literal(dice.randint(0, 9))))
        triples.append(Triple(event, iri("k"), Literal(dice.randint(0, 2))))
        if dice.random() < 0.2:
            triples.append(Triple(event, STARTED_AT, Literal(self.now - dice.choice([9, 4, 1, -30]))))
        return triples

    def tuples(self, events: Sequence[tuple[int, str, int]]) -> EventBatch:
        """Of times, types and values."""
        facts = [(time, ((RDF + "type", iri(kind)), (E + "v", Literal(value)))) for time, kind, value in events]
        graphs = [(time, [Triple(iri("h"), NamedNode(p), o) for p, o in graph]) for time, graph in facts]
        return encode_events(graphs, self.terms)

    def numbers(self, outcome: Outcome) -> list[int]:
        """What the only column of its rows holds."""
        return [int(self.terms.term(i).value) for batch in outcome.matches for (i,) in batch.values.tolist()]

    def push(self) -> None:
        stream = self.dice.choice([STREAMS[0], STREAMS[0], STREAMS[1]])
        events = []
        for _ in range(self.dice.choice([1, 1, 1, 2, 12])):
            self.now += self.dice.choice([0, 1, 1, 1, 2, 9])
            events.append((self.now - self.dice.choice([0, 0, 0, 0, 0, 1, 3, 6]), self.graph()))
        batch = encode_events(events, self.terms)
        self.take(self.runs.push(stream, batch))
        for pair in self.pairs.values():
            if stream in pair.alone.plan.streams:
                late = pair.alone.push(stream, batch)
                pair.late[1].extend([] if late is None else told(late))
                pair.found[1].extend(map(shown, pair.alone.advance()))
        self.compare()
        self.slept += self.runs._apart.behind

    def punctuate(self) -> None:
        stream, time = self.dice.choice(STREAMS), self.now + self.dice.randint(-2, 3)
        self.take(self.runs.punctuate(stream, time))
        for pair in self.pairs.values():
            if stream in pair.alone.plan.streams:
                pair.alone.punctuate(stream, time)
                pair.found[1].extend(map(shown, pair.alone.advance()))
        self.compare()

    def some(self) -> list[Pair]:
        """One, or all that are in its state."""
        pair = self.dice.choice([*self.pairs.values()])
        return self.dice.choice([[pair], self.one(pair.together)])

    def settle(self) -> None:
        for pair in self.some():
            self.take(self.runs.settle(pair.together))
            pair.alone.settle()
            pair.found[1].extend(map(shown, pair.alone.advance()))
        self.compare()

    def sweep(self) -> None:
        """Terms that nobody holds go."""
        self.terms.collect()

    def look(self) -> None:
        """Somebody does."""
        pair = self.dice.choice([*self.pairs.values()])
        self.take(self.runs.catch_up(pair.together))
        self.same(pair)

    def forget(self) -> None:
        for pair in self.some():
            self.take(self.runs.catch_up(pair.together))
            self.runs.forget(pair.together, 0)
            pair.alone.forget(0)

    def move(self) -> None:
        """All are saved and restored."""
        self.take(self.runs.catch_up())
        plans = [pair.together.plan for pair in self.pairs.values()]
        bounds = [self.dice.choice([None, "restored"]) for _ in plans]
        self.runs = moved(self.runs, plans, self.terms, self.terms, self.kb, bounds)
        for run, pair in zip(self.runs.registered, self.pairs.values(), strict=True):
            pair.together = run
        self.pairs = {pair.together: pair for pair in self.pairs.values()}

    def change_kb(self, *, blanks: bool = False) -> None:
        for pair in self.pairs.values():
            self.take(self.runs.catch_up(pair.together))
            assert self.runs.keep_answers(pair.together) == pair.alone.keep_answers(), pair.text
        quad = Quad(
            BlankNode("b") if blanks else iri(f"h{self.dice.randint(1, 2)}"),
            iri(self.dice.choice(["known", "known", *NAMES])),
            Literal(self.dice.randint(0, 9)),
            iri("g"),
        )
        self.store.add(quad)
        if self.dice.random() < 0.5:
            self.store.add(Quad(*quad.triple))
        self.kb.touch()

    def close(self) -> None:
        pair = self.pairs[self.dice.choice([*self.pairs])]
        if self.dice.random() < 0.7:
            self.take(self.runs.close(pair.together))
            pair.alone.close()
            pair.found[1].extend(map(shown, pair.alone.advance()))
            self.compare()
            self.same(pair)
        self.runs.remove(pair.together)
        del self.pairs[pair.together]

    def take(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            assert isinstance(outcome.run, AloneRun)
            pair = self.pairs[outcome.run]
            assert outcome.error is None, pair.text
            pair.found[0].extend(map(shown, outcome.matches))
            pair.late[0].extend([] if outcome.late is None else told(outcome.late))

    def compare(self) -> None:
        for pair in self.pairs.values():
            assert pair.found[0] == pair.found[1], pair.text

    def same(self, pair: Pair) -> None:
        assert sorted(pair.late[0]) == sorted(pair.late[1]), pair.text
        for name in ("events", "late", "matches"):
            assert getattr(pair.together, name) == getattr(pair.alone, name), (name, pair.text)
        assert pair.together.order.passed == pair.alone.order.passed, pair.text
        assert pair.together.faults.count == pair.alone.faults.count, pair.text
        if self.runs._of[pair.together] is self.runs._together or (
            isinstance(pair.together, IntervalRun | TupleRun) and pair.together.shares
        ):
            return  # others have a part of its records
        if isinstance(pair.together, IntervalRun) and not pair.together.records:
            pair.alone.collect()
            self.nothing_in_time(pair.alone)
            return
        for run in (pair.together, pair.alone):
            run.collect()
        assert pair.together.records == pair.alone.records, pair.text

    @staticmethod
    def nothing_in_time(alone: AloneRun) -> None:
        """Runs that become one while they keep nothing ask the knowledge base again when something comes."""
        assert isinstance(alone, IntervalRun)
        assert alone.kept is None

    def step(self) -> None:
        if len(self.pairs) < 2:
            return self.register()
        pushes = [self.push] * 12
        rare = [
            self.register,
            self.punctuate,
            self.settle,
            self.look,
            self.look,
            self.forget,
            self.change_kb,
            self.close,
            self.move,
            self.sweep,
        ]
        return self.dice.choice([*pushes, *rare])()


class Quiet(Drill):
    """Complex event queries, and long stretches of events that begin nothing: few are late or no tuple events."""

    def register(self) -> None:
        with patch.dict(LANGUAGES, {"ceql": ceql}, clear=True):
            super().register()

    def graph(self) -> list[Triple]:
        triples = [Triple(iri("h"), NamedNode(RDF + "type"), iri(self.dice.choice("ABCD" + "XYZ" * 12)))]
        triples.append(Triple(iri("h"), iri("v"), Literal(self.dice.randint(0, 9))))
        if self.dice.random() < 0.02:
            subject, name = self.dice.choice([("i", "w"), ("h", "v")])
            triples.append(Triple(iri(subject), iri(name), iri("x")))
        return triples

    def push(self) -> None:
        with patch.object(self.dice, "choice", self.chosen):
            super().push()

    def chosen(self, options: Sequence[Any]) -> Any:
        """In `push`: the first stream, and of delays almost always none."""
        mostly = options == [0, 0, 0, 0, 0, 1, 3, 6] or [*options] == [STREAMS[0], STREAMS[0], STREAMS[1]]
        return options[0] if mostly and self.dice.random() < 0.97 else options[self.dice.randrange(len(options))]


class Shapes(Drill):
    """Complex event queries of one shape, some of which are past a bound now and then: that concerns them alone. Most
    events come in order, and concern some."""

    def __init__(self, seed: int, most: int) -> None:
        super().__init__(seed)
        self.terms.bounds = InstantBounds(matches=most, running=3)
        self.template = "ceql", ceql_template(self.dice), Options(lateness=self.dice.choice([0, 0, 0, 4]))
        self.errors: dict[str, dict[int, list[str]]] = {"together": {}, "alone": {}}
        self.shared = self.united = 0

    def register_alike(self) -> None:
        language, text_of_all, options = self.template or ("", "", Options())
        for text in [filled(text_of_all, self.dice) for _ in range(self.dice.choice([1, 2, 3, 5]))]:
            together, alone = (self.compiled(text, language, options) for _ in range(2))
            vars(alone)["advance"] = functools.partial(self.advanced, alone, alone.advance)
            self.runs.add(together)
            self.pairs[together] = Pair(text, together, alone)

    def advanced(self, alone: AloneRun, advance: Callable[[], Sequence[Any]]) -> Sequence[Any]:
        """What a twin finds; its error is noted."""
        try:
            return advance()
        except LimitError as error:
            self.errors["alone"].setdefault(id(alone), []).append(str(error))
            return alone.left()

    def take(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            assert isinstance(outcome.run, AloneRun)
            if outcome.error is not None:
                assert isinstance(outcome.error, LimitError), outcome.error
                twin = self.pairs[outcome.run].alone
                self.errors["together"].setdefault(id(twin), []).append(str(outcome.error))
        super().take([outcome._replace(error=None) for outcome in outcomes])

    def compare(self) -> None:
        super().compare()
        assert self.errors["together"] == self.errors["alone"]
        self.shared = max(self.shared, *(len(self.one(pair.together)) for pair in self.pairs.values()), 0)

    def same(self, pair: Pair) -> None:
        if not pair.alone.omitted.over:  # those that are stopped count no event
            super().same(pair)
        assert pair.together.omitted == pair.alone.omitted

    def graph(self) -> list[Triple]:
        kind, v, k = iri(self.dice.choice("ABCD")), Literal(self.dice.randint(0, 9)), Literal(self.dice.randint(0, 2))
        return [Triple(iri("h"), p, o) for p, o in ((NamedNode(RDF + "type"), kind), (iri("v"), v), (iri("k"), k))]

    def step(self) -> None:
        chance = self.dice.random()
        if not self.pairs or chance < 0.1:
            self.register_alike()
        elif chance < 0.25:
            rare = [self.settle, self.look, self.forget, self.close, self.move, self.sweep, self.punctuate]
            self.dice.choice(rare)()
        else:
            self.push()


def passes(seed: int) -> int:
    """How often a query passes by events in a drill."""
    with (
        patch.object(apart, "MOST", 3),
        patch.object(TupleRun, "pass_by", autospec=True, side_effect=TupleRun.pass_by) as times,
    ):
        drill = Quiet(seed)
        for _ in range(4):
            drill.register()
        for _ in range(60):
            drill.step()
        while drill.pairs:
            drill.close()
    return times.call_count


@drawn(20)
@given(st.integers(0, 2**62))
def test_complex_event_queries_that_have_begun_nothing_only_count_events(seed: int) -> None:
    passes(seed)


def test_they_do_pass_by_events() -> None:
    """Or the test above would say nothing."""
    assert sum(map(passes, range(3))) > 20


@drawn(60)
@given(st.integers(0, 2**62), st.sampled_from([3, 40, apart.MOST]))
@pytest.mark.slow
def test_each_query_finds_what_it_finds_alone(seed: int, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apart, "MOST", most)
        drill = Drill(seed)
        for _ in range(drill.dice.choice([2, 6])):
            drill.register()
        for _ in range(40):
            drill.step()
        while drill.pairs:
            drill.close()


@drawn(40)
@given(st.integers(0, 2**62))
def test_queries_that_differ_in_constants_find_what_they_find_alone(seed: int) -> None:
    drill = Drill(seed)
    with patch.object(member, "AT_ONCE", drill.dice.choice([2, 32])):
        for _ in range(drill.dice.choice([1, 2])):
            drill.register_alike()
        blanks = drill.dice.choice([40, 40, drill.dice.randrange(40)])
        for number in range(40):
            if number == blanks:
                drill.change_kb(blanks=True)
            drill.dice.choice([drill.register_alike, *[drill.step] * 15] if drill.pairs else [drill.register_alike])()
        while drill.pairs:
            drill.close()


@drawn(30)
@given(st.integers(0, 2**62), st.sampled_from([3, 6, 1000]))
def test_complex_event_queries_of_one_shape_find_what_they_find_alone(seed: int, most: int) -> None:
    drill = Shapes(seed, most)
    for _ in range(60):
        drill.step()
    while drill.pairs:
        drill.close()


def test_they_have_one_state_and_come_to_have_it() -> None:
    """Those that are there before events come; others as soon as it is looked for."""
    drill = Shapes(1, 1000)
    text = f"VOCAB <{E}> SELECT * FROM s WHERE A AS x ; B AS y FILTER x[v > $N] AND y[v > $N] WITHIN 9 SECONDS"
    runs = [drill.compiled(text.replace("$N", str(n)), "ceql", Options()) for n in range(9)]
    for run in runs[:5]:
        drill.runs.add(run)
    for number, run in enumerate(runs[5:], 1):
        drill.runs.add(run)
        drill.runs.push(STREAMS[0], drill.tuples([(number, "A", 9)]))
    for time in range(9, 300):
        drill.runs.push(STREAMS[0], drill.tuples([(time, "A", 7)]))
    drill.runs.catch_up()
    assert len({id(vars(run)) for run in runs}) == 1
    assert [run.events for run in runs] == [295] * 6 + [294, 293, 292]
    found = matches(drill.runs.push(STREAMS[0], drill.tuples([(300, "B", 8)])), runs)
    assert found == [295] * 6 + [294, 2, 0]


def test_any_two_that_are_alike_are_compared_in_time() -> None:
    """Though only some are at one push."""
    met, meeting = set[frozenset[Any]](), member.Reunions()
    members = [Mock(equal=0, run=Mock(records=1)) for _ in range(4)]
    for each in members:
        meeting.enter(each)
    with patch.object(member, "AT_ONCE", 2):
        for _ in range(100):
            met |= {frozenset(some) for some in meeting.due(1 << 60)}
    assert len(met) == 6


def test_equal_queries_are_one() -> None:
    """As long as they are in the same state, and where each that leaves it does so as the others do."""
    drill = Drill(1)
    text, options = LANGUAGES["epsparql"](drill.dice), Options()
    runs = [drill.compiled(text, "epsparql", options) for _ in range(5)]
    shared = Runs(drill.terms)
    batch = encode_events([(1, drill.graph()), (2, drill.graph())], drill.terms)

    def states() -> list[int]:
        numbers: dict[int, int] = {}
        return [numbers.setdefault(id(vars(run)), len(numbers)) for run in runs]

    for run, bounds in zip(runs[:4], ("small", "small", "small", "large"), strict=True):
        shared.add(run, bounds=bounds)
    assert states() == [0, 0, 0, 1, 2]
    shared.push(STREAMS[0], batch)
    shared.add(runs[4], bounds="small")
    assert states() == [0, 0, 0, 1, 2]
    for run in runs[:2]:
        shared.settle(run)
    assert states() == [0, 0, 1, 2, 3]
    shared.settle(runs[2])
    assert states() == [0, 0, 0, 1, 2]
    for run in runs[:3]:
        shared.forget(run, 0)
    assert states() == [0, 0, 0, 1, 2]
    shared.forget(runs[1], 0)
    shared.push(STREAMS[0], batch)
    shared.forget(runs[2], 0)
    assert states() == [0, 1, 2, 3, 4]


IN_TIME = (
    f"PREFIX : <{E}> SELECT * FROM STREAM <{STREAMS[0]}> WHERE {{ {{ ?h a :$K ; :a ?v }} SEQ {{ ?g :b ?u "
    f'FILTER(?u > $N) }} FILTER(getDURATION() < "PT0.000009S"^^{DURATION}) }}'
)
"""They keep what happened less than 9 us ago; some of that hangs on no constant."""


def in_time(drill: Drill, number: int) -> AloneRun:
    return drill.compiled(IN_TIME.replace("$K", "AB"[number % 2]).replace("$N", str(number)), "epsparql", Options())


def alike(drill: Drill, time: int) -> EventBatch:
    """An event of class A or B that has `:a`, at each time; what `:b` is goes up and down."""

    def graph(n: int) -> list[Triple]:
        kind, least = Triple(iri("h"), NamedNode(RDF + "type"), iri("AB"[n % 2])), Literal(n * 7 % 5)
        return [kind, Triple(iri("h"), iri("a"), Literal(n)), Triple(iri("g"), iri("b"), least)]

    return encode_events([(n, graph(n)) for n in range(time, time + 3)], drill.terms)


def matches(outcomes: Sequence[Outcome], runs: Sequence[AloneRun]) -> list[int]:
    return [sum(len(each) for outcome in outcomes if outcome.run is run for each in outcome.matches) for run in runs]


def test_queries_that_are_registered_while_events_come_share_a_plan() -> None:
    """All but the first, which is at work when nobody is like it."""
    drill = Drill(1)
    runs, alone = [in_time(drill, n) for n in range(5)], [in_time(drill, n) for n in range(5)]
    shared = Runs(drill.terms)
    for number, (run, twin) in enumerate(zip(runs, alone, strict=True)):
        shared.add(run)
        batch = alike(drill, 3 * number)
        found = matches(shared.push(STREAMS[0], batch), runs[: number + 1])
        for each in alone[: number + 1]:
            each.push(STREAMS[0], batch)
        assert found == [sum(map(len, each.advance())) for each in alone[: number + 1]]
        assert (run.events, run.late) == (twin.events, twin.late) == (3, 0)
    for time in range(15, 120, 3):
        shared.push(STREAMS[0], alike(drill, time))
    assert len({id(vars(run)) for run in runs[1:]}) == 1
    assert [run.events for run in runs] == [120, 117, 114, 111, 108]
    shared.settle(runs[2])
    assert [run.events for run in runs] == [120, 117, 114, 111, 108]
    assert len({id(vars(run)) for run in runs}) == 3


def test_queries_share_their_plan_again_after_a_restart() -> None:
    drill = Drill(1)
    runs, alone = [in_time(drill, n) for n in range(6)], [in_time(drill, n) for n in range(6)]
    shared = Runs(drill.terms)
    for run in runs:
        shared.add(run)
    for time in (0, 3, 6, 9):
        if time == 6:
            shared = moved(shared, [run.plan for run in runs], drill.terms, drill.terms, drill.kb)
            runs = [run for run in shared.registered if isinstance(run, AloneRun)]
        batch = alike(drill, time)
        found = matches(shared.push(STREAMS[0], batch), runs)
        for each in alone:
            each.push(STREAMS[0], batch)
        assert found == [sum(map(len, each.advance())) for each in alone]
        assert len({id(vars(run)) for run in runs}) == 1
    assert [run.matches for run in runs] == [twin.matches for twin in alone]
    assert any(found)


def test_a_stream_forgets_what_it_watched_for_queries_that_have_left() -> None:
    drill = Quiet(3)
    for _ in range(6):
        drill.register()
    drill.push()
    streams = drill.runs._apart._streams.values()
    assert any(stream.backlog.watched for stream in streams)
    for pair in drill.pairs.values():
        drill.runs.remove(pair.together)
    assert not any(stream.backlog.watched or stream.watches for stream in streams)


def test_numbers_of_a_family_are_given_once() -> None:
    """Also when some of its queries are gone."""
    drill = Drill(1)
    ones = [OneQuery(in_time(drill, n).plan) for n in range(4)]  # type: ignore[arg-type]
    family = Family(ones[0], drill.terms)
    for one in ones[1:3]:
        family.take_in(one)
    family.narrow(ones[2:3])
    other = family.copy()
    for each in (family, other):
        each.take_in(ones[3])
        assert [number for _, number in each.members] == [2, 3]


def test_who_leaves_a_large_state_stays_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "LARGE", -1)
    drill = Drill(1)
    text = LANGUAGES["epsparql"](drill.dice)
    runs = [drill.compiled(text, "epsparql", Options()) for _ in range(3)]
    for run in runs:
        drill.runs.add(run)
    drill.runs.push(STREAMS[0], encode_events([(1, drill.graph())], drill.terms))
    assert vars(runs[0]) is vars(runs[1]) is vars(runs[2])
    for run in runs[:2]:
        drill.runs.settle(run)
    assert len({id(vars(run)) for run in runs}) == 3


@pytest.mark.parametrize("leaves", [Runs.settle, Runs.close, Runs.remove])
def test_who_leaves_takes_nothing_that_aggregates_read(leaves: Callable[[Runs, AloneRun], object]) -> None:
    drill = Drill(1)
    text = f"VOCAB <{E}> SELECT SUM(x[v]) AS s FROM s WHERE A AS x ; B"
    first, other = (drill.compiled(text, "ceql", Options()) for _ in range(2))
    drill.runs.add(first)
    drill.runs.add(other)
    drill.runs.push(STREAMS[0], drill.tuples([(1, "A", 7), (2, "A", 8)]))
    assert vars(first) is vars(other)
    leaves(drill.runs, first)
    outcomes = drill.runs.push(STREAMS[0], drill.tuples([(3, "A", 9), (4, "B", 0)]))
    assert [drill.numbers(outcome) for outcome in outcomes if outcome.run is other] == [[24]]


@pytest.mark.parametrize("size", [1, 2, 3, 20])
def test_what_is_past_a_limit_costs_nothing_else(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Equal queries are all told of it, and go on behind it."""
    monkeypatch.setattr(end_totals, "MOST_LISTED", 10)
    drill = Drill(1)
    text = f"VOCAB <{E}> SELECT SUM(x[v]) AS s FROM s WHERE A+ AS x; A+ AS y WITHIN 0.000005 SECONDS"
    runs = [drill.compiled(text, "ceql", Options()) for _ in range(2)]
    for run in runs:
        drill.runs.add(run)
    events = [(time, "A", time) for time in (1, 2, 3, 4, 5, 101, 102, 103, 104, 105, 201, 202, 203)]
    found: dict[AloneRun, list[int]] = {run: [] for run in runs}
    errors = []
    for low in range(0, len(events), size):
        for outcome in drill.runs.push(STREAMS[0], drill.tuples(events[low : low + size])):
            found[outcome.run] += drill.numbers(outcome)
            errors += [outcome.error] if outcome.error is not None else []
    assert [*found.values()] == 2 * [[1, 6, 24, 101, 406, 1224, 201, 806]]
    assert errors and all(isinstance(error, LimitError) for error in errors)
    assert [run.matches for run in runs] == [8, 8]


def test_late_events_are_told_beside_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_totals, "MOST_LISTED", 2)
    drill = Drill(1)
    text = f"VOCAB <{E}> SELECT SUM(x[v]) AS s FROM s WHERE A+ AS x; A+ AS y"
    drill.runs.add(drill.compiled(text, "ceql", Options()))
    (outcome,) = drill.runs.push(STREAMS[0], drill.tuples([(5, "A", 5), (6, "A", 6), (7, "A", 7), (1, "A", 1)]))
    assert isinstance(outcome.error, LimitError) and outcome.late is not None
    assert (drill.numbers(outcome), outcome.late.time.tolist()) == ([5], [1])


def test_queries_that_draw_values_by_chance_are_not_one() -> None:
    drill = Drill(1)
    text = f"PREFIX : <{E}> SELECT ?r FROM STREAM :s WHERE {{ ?h :a ?v BIND(RAND() AS ?r) }}"
    one, other = (drill.compiled(text, "epsparql", Options()) for _ in range(2))
    drill.runs.add(one)
    drill.runs.add(other)
    assert vars(one) is not vars(other)


def test_queries_do_sleep() -> None:
    """Or the test above would say nothing."""
    drills = [Drill(seed) for seed in range(5)]
    for drill in drills:
        for _ in range(8):
            drill.register()
        for _ in range(30):
            drill.push()
    assert sum(drill.slept for drill in drills) > 100


def test_a_punctuation_is_no_instant_at_which_rows_go() -> None:
    terms, kb = TermDictionary(), StoreKb(Store())
    window = "FROM NAMED WINDOW :w ON :s [RANGE PT0.00001S] WHERE { WINDOW :w { ?h :a ?v } }"
    query = load(f"PREFIX : <{E}> REGISTER DSTREAM :q AS SELECT ?h {window}", "rspql")
    run = language_for(query).compile(query, terms, kb, Options())[0]
    runs = Runs(terms)
    runs.add(run, shares=False)
    found = []
    for time, name in ((1, "a"), (200, "noise"), (300, "noise"), (400, "noise")):
        batch = encode_events([(time, [Triple(iri("h"), iri(name), Literal(1))])], terms)
        found += [match for each in runs.push(STREAMS[0], batch) for match in each.matches]
        if time == 1:
            runs.punctuate(STREAMS[0], 100)
    assert [match.time.tolist() for match in found] == [[200]]


def test_a_complex_event_query_sleeps_until_its_last_type_comes() -> None:
    """Events of its first type wait for it, and make matches when one of its last type comes."""
    terms = TermDictionary()
    runs = Runs(terms)
    query = load(f"VOCAB <{E}> SELECT * FROM s WHERE (A AS x ; B AS y) WITHIN 100 EVENTS", "ceql")
    run = language_for(query).compile(query, terms, StoreKb(Store()), Options())[0]
    runs.add(run)
    asleep, found = [], []
    for time, name in enumerate("AZAAAAB"):
        batch = encode_events([(time, [Triple(iri("h"), NamedNode(RDF + "type"), iri(name))])], terms)
        found += [len(each) for outcome in runs.push(STREAMS[0], batch) for each in outcome.matches]
        asleep.append(runs._apart.behind)
    assert (asleep[2:], found) == ([1, 1, 1, 1, 0], [5])


@pytest.mark.parametrize(
    ("where", "sleeps", "found"),
    [
        ("{ ?h :a ?v } SEQ { ?h :b ?u }", True, 3),
        ("{ { ?h :a ?v } UNION { ?h :c ?v } } SEQ { ?h :b ?u }", True, 3),
        ("{ ?h :a ?v } SEQ { ?h :b ?u } SEQ { ?h :c ?w }", True, 0),
        ('{ ?h :a ?v } SEQ { ?h :b ?u } FILTER(getDURATION() < "PT0.000003S"^^' + DURATION + ")", True, 2),
        ("{ ?h :a ?v . ?h :known ?x } SEQ { ?h :b ?u }", False, 0),
        ("{ ?h :a ?v } SEQ { ?h :a ?u }", False, 3),
        ("{ ?h :a ?v } OPTIONALSEQ { ?h :b ?u }", False, 3),
    ],
)
def test_a_query_in_time_sleeps_while_triples_are_only_kept(where: str, sleeps: bool, found: int) -> None:
    """Those before a SEQ: rows are made of them when something comes behind them."""
    terms = TermDictionary()
    runs = Runs(terms)
    query = load(f"PREFIX : <{E}> SELECT ?h FROM STREAM <{STREAMS[0]}> WHERE {{ {where} }}", "epsparql")
    run = language_for(query).compile(query, terms, StoreKb(Store()), Options())[0]
    runs.add(run)
    asleep, rows = "", 0
    for time, name in enumerate("zzaaabzz"):
        batch = encode_events([(time, [Triple(iri("h"), iri(name), Literal(time))])], terms)
        rows += sum(len(each) for outcome in runs.push(STREAMS[0], batch) for each in outcome.matches)
        asleep += str(runs._apart.behind)
    assert (asleep[2:5] == "111", rows) == (sleeps, found), asleep
