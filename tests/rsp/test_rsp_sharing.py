"""Queries that are registered together tell what each tells alone: row for row, in the same order, whatever happens."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from failing_kb import FailingKb
from hypothesis import example, given
from hypothesis import strategies as st
from loaded import load
from moved_runs import moved
from profiles import drawn
from pyoxigraph import QuerySolutions, RdfFormat, Store, parse

from oxiseq.engine import kinds
from oxiseq.engine.errors import KbError, LimitError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.flow.delta import Ids
from oxiseq.engine.rsp.joint import JointAnswers, Part
from oxiseq.engine.rsp.plan import RspOptions, compile_rsp
from oxiseq.engine.run.rsp import RspRun
from oxiseq.engine.sharing.runs import Runs
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.rsp_algebra import Report
from oxiseq.grammar.windows.texts import render_rsp as render

STREAMS = ("http://e/S", "http://e/T")
WINDOWS = (
    "[RANGE 10 SLIDE 1]",
    "[RANGE 6 SLIDE 4]",
    "[RANGE 3 SLIDE 5]",
    "[RANGE 5 EVENTS]",
    "[RANGE 4 EVENTS SLIDE 3 EVENTS]",
    "[RANGE 2 EVENTS SLIDE 5 EVENTS]",
)
PATTERNS = (
    "?o :on {a} ; :value ?v",
    "?o :on {a} ; :at {b} ; :value ?v",
    "?o :on ?x ; :value ?v FILTER(?v > {n})",
    "?o :on ?x ; :value ?v FILTER(?v <= {n})",
    "?o :on ?x ; :value ?v FILTER({n} < ?v && ?x != {a})",
    "?o :on ?x ; :value ?v FILTER(?v = {n} || ?x = {a})",
    "?o :on ?x ; :value ?v FILTER({n} = ?v)",
    "{{ ?o :on ?x ; :value ?v }} UNION {{ ?o :at ?v }} FILTER(?v < {n})",
    "?o :on ?x ; :value ?w BIND(?w > {n} AS ?v)",
    "?o :on {a} ; :value ?v FILTER(?v > {n} && ?v != {m})",
    "{a} :near ?x . ?o :on ?x ; :value ?v",
    "?o :on {a} ; :value ?v OPTIONAL {{ ?o :at ?y FILTER(?y != {b}) }}",
    "?o :on ?x ; :value ?v OPTIONAL {{ ?x :near {a} BIND(1 AS ?near) }}",
    "?o :on ?x ; :value ?v MINUS {{ ?x :near {a} }}",
    "?o :on ?x ; :value ?v FILTER NOT EXISTS {{ ?x :near {a} }}",
    "{{ ?o :on {a} ; :value ?v }} UNION {{ ?o :at {b} ; :value ?v }}",
    "{{ ?o :on {a} ; :value ?v }} UNION {{ ?o :near ?v }}",
    "?o :on {a} ; :value ?w BIND(?w + {n} AS ?v)",
    "?x :near+ {a} BIND(?x AS ?v) BIND(?x AS ?o)",
    "?o :value ?v {{ SELECT ?o WHERE {{ ?o :on {a} }} }}",
    "?o :on {a} ; :on {b} ; :value ?v",
    "VALUES ?x {{ {a} }} ?o :on ?x ; :value ?v",
    "?o ?p {a} . ?o :value ?v",
    "{a} :near {b} . ?o :value ?v",
)
OF_KB = (
    "GRAPH :kb {{ ?x :type {c} }}",
    "GRAPH :kb {{ ?x :type ?type }}",
    "GRAPH :kb {{ ?x :type {c} ; :in ?place }}",
    "FILTER NOT EXISTS {{ GRAPH :kb {{ ?x :type {c} }} }}",
    "OPTIONAL {{ GRAPH :kb {{ ?x :in ?place }} }}",
    "{{ SELECT ?x (COUNT(*) AS ?k) WHERE {{ GRAPH :kb {{ ?x :in+ ?place }} }} GROUP BY ?x }}",
    "GRAPH ?g {{ ?x :type {c} }}",
    "MINUS {{ GRAPH :kb {{ {{ ?x :type {c} }} UNION {{ ?x :in {a} }} }} }}",
)
"""Of the knowledge base, behind a pattern of a window that binds ?x."""
TWO_STARS = (
    "{a} :near ?x . ?o :on ?x ; :value ?v",
    "?o :on ?x ; :value ?v . ?x :near {a} FILTER(?v > {n})",
    "?x :near {a} ; :value ?u . ?o :on ?x ; :value ?v FILTER(?v > ?u)",
    "?o :at {b} ; :on ?x . ?x :near {a} ; :value ?v",
    "?o :at {b} ; :value ?v . ?o :on ?x",
)
"""Conjunctions, with what is asked of the knowledge base or without."""
RHYTHMS = ("", "", "", "REPORT EVERY 2", "REPORT EVERY 7", "REPORT ON WINDOW CLOSE")
EVENTS = (
    "?o :on {a} ; :value ?v",
    "?o :on {a}",
    "?o :on ?x ; :value ?v FILTER(?v > {n})",
    "?o :on {a} ; :at {b}",
    "{a} :near ?x . ?o :on ?x",
    "?o :on ?x OPTIONAL {{ ?o :at {b} }}",
    "?o :value ?v",
)
MATCHES = (
    "A SEQ B",
    "A",
    "FIRST(A) SEQ B",
    "LAST(A) SEQ B",
    "A SEQ LAST(B)",
    "A SEQ^c B",
    "A SEQ^r B",
    "A SEQ^n B",
    "(A SEQ B) SEQ A",
    "(A SEQ^r B) SEQ A",
    "LAST(A SEQ B)",
)
MATCH_HEADS = (
    ("SELECT *", ""),
    ("SELECT ?o", ""),
    ("SELECT (COUNT(*) AS ?n)", ""),
    ("SELECT ?o (COUNT(*) AS ?n)", "GROUP BY ?o"),
    ("SELECT DISTINCT ?o", ""),
    ("SELECT ?o ?v", "ORDER BY DESC(?v) LIMIT 2"),
    ("ASK", ""),
)
OTHERS = 3
VALUES = (
    '"x"',
    '"1.1"^^<http://www.w3.org/2001/XMLSchema#float>',
    '"NaN"^^<http://www.w3.org/2001/XMLSchema#double>',
    "0",
    "1",
    "2",
    "3",
    "1.1",
    "2e0",
    "3.000000000000000000001",
)
"""The first OTHERS are no numbers that stand in one order with others."""
HEADS = (
    ("SELECT ?o ?v", ""),
    ("SELECT ?v", ""),
    ("SELECT DISTINCT ?v", ""),
    ("SELECT (?v AS ?shown) (NOW() AS ?now)", ""),
    ("SELECT (COUNT(*) AS ?n)", ""),
    ("SELECT (SUM(?v) AS ?s) (COUNT(?o) AS ?n)", ""),
    ("SELECT ?o (MAX(?v) AS ?m)", "GROUP BY ?o"),
    ("SELECT (MIN(?v) AS ?m)", ""),
    ("SELECT ?v (COUNT(?o) AS ?n)", "GROUP BY ?v HAVING(COUNT(?o) > {k})"),
    ("SELECT (AVG(?v) AS ?m)", "HAVING(COUNT(*) > {k})"),
    ("SELECT ?o ?v", "ORDER BY DESC(?v) LIMIT 2"),
    ("SELECT ?v", "ORDER BY ?o"),
    ("ASK", ""),
    ("CONSTRUCT { ?o :has ?v }", ""),
)


@dataclass
class Drill:
    """The same queries and steps with and without sharing."""

    dice: random.Random

    def __post_init__(self) -> None:
        self.terms = TermDictionary(16)
        self.store = Store()
        self.kb = PickyKb(self.store)
        self.asks_kb = self.dice.choice([0, 0.5, 1])
        self.of_kb = OF_KB
        self.blanks = self.dice.random() < 0.2
        self.sides = (Runs(self.terms), Runs(self.terms))
        self.runs: list[tuple[RspRun, RspRun]] = []
        self.lateness = self.dice.choice([0, 0, 2])
        self.windows = self.dice.sample(WINDOWS, self.dice.choice([1, 1, 2]))
        few = self.dice.choice([1, 2, len(PATTERNS)])
        self.patterns = self.dice.sample(PATTERNS, few)
        self.heads = self.dice.sample(HEADS, self.dice.choice([1, 2, len(HEADS)]))
        self.reports = self.dice.choice([[Report.ISTREAM], [Report.RSTREAM], list(Report)])
        self.time, self.moved = 0, False
        self.plain = self.dice.choice([0, OTHERS, OTHERS])
        self.rhythms: Sequence[str] = self.dice.sample(RHYTHMS, self.dice.choice([1, 1, 2]))
        self.matching = False
        self.matches = self.dice.sample(MATCHES, self.dice.choice([1, 2, len(MATCHES)]))
        self.events_of = self.dice.sample(EVENTS, self.dice.choice([1, 2, len(EVENTS)]))
        self.lengths = self.dice.sample((3, 6, 10), self.dice.choice([1, 1, 2]))
        self.shared = 0

    def text(self) -> str:
        return self.match_text() if self.matching else self.window_text()

    def match_text(self) -> str:
        """One that looks for event patterns."""
        dice = self.dice
        known = {"a": f":t{dice.randint(0, 3)}", "b": f":t{dice.randint(0, 3)}", "n": dice.choice(VALUES[OTHERS:])}
        first, second = (dice.choice(self.events_of).format(**known) for _ in "AB")
        where = dice.choice(self.matches)
        event = " ".join(f"EVENT ON :w {{ {each} }} AS {name}" for each, name in ((first, "A"), (second, "B")))
        window = f"FROM NAMED <{STREAMS[0]}> WIN [RANGE {dice.choice(self.lengths)} SLIDE 1] AS :w"
        head, tail = dice.choice(MATCH_HEADS)
        pattern = f"MATCH {{ {where} }} {self.kb_text(known)}"
        return f"PREFIX : <http://e/> {head} {window} {event} WHERE {{ {pattern} }} {tail}"

    def kb_text(self, known: dict[str, Any]) -> str:
        """What is asked of the knowledge base, if anything."""
        dice = self.dice
        known["c"] = dice.choice([":c0", ":c1"] if dice.random() < 0.9 else [":bad"])
        return dice.choice(self.of_kb).format(**known) if dice.random() < self.asks_kb else ""

    def window_text(self) -> str:
        """One over windows."""
        dice = self.dice
        head, tail = dice.choice(self.heads)
        known = {
            "a": f":t{dice.randint(0, 3)}",
            "b": f":t{dice.randint(0, 3)}",
            "n": dice.choice(VALUES[self.plain :]),
            "m": dice.choice(VALUES),
            "k": dice.randint(0, 2),
        }
        where = dice.choice(self.patterns).format(**known)
        of_kb = self.kb_text(known)
        first = dice.choice(self.windows)
        window = f"FROM NAMED WINDOW :w ON <{STREAMS[0]}> {first}"
        pattern = f"WINDOW :w {{ {where} }} {of_kb}"
        if dice.random() < 0.2:
            window += f" FROM NAMED WINDOW :u ON <{STREAMS[1]}> {self.windows[0]}"
            pattern += " WINDOW :u { ?o :at ?place }"
        when = dice.choice(self.rhythms)
        if "CLOSE" in when and all("EVENTS" in each for each in (first, window)):
            when = ""  # none closes
        return f"PREFIX : <http://e/> {head} {window} WHERE {{ {pattern} }} {tail.format(**known)} {when}"

    def register(self) -> None:
        query = load(self.text(), "rsepql" if self.matching else "rspql")
        plan = compile_rsp(query, self.terms, RspOptions(self.dice.choice(self.reports)))
        pair = tuple(RspRun(plan, self.terms, self.kb, None, self.lateness) for _ in self.sides)
        for side, run, shares in zip(self.sides, pair, (True, False), strict=True):
            side.add(run, shares=shares)
        self.runs.append(pair)

    def told(self, step: Any) -> None:
        """Both do the same."""
        found = [self.rows(step(side, number), number) for number, side in enumerate(self.sides)]
        assert found[0] == found[1], self.difference(*found)
        self.shared += sum(run.shares_with > 0 for run, _ in self.runs)
        for run, other in self.runs:
            numbers = [(each.events, each.late, each.matches, each.open) for each in (run, other)]
            assert numbers[0] == numbers[1]

    def difference(self, shared: list[Any], alone: list[Any]) -> str:
        """What is told otherwise, and by which query."""
        lines = []
        for one, other in zip(shared, alone, strict=False):
            if one != other:
                query = self.runs[one[0]][0].plan.query
                lines += [render(query), f"together {self.named(one)}", f"alone {self.named(other)}"]
        return "\n".join([*lines, f"{len(shared)} and {len(alone)} outcomes"])

    def named(self, outcome: Any) -> Any:
        """With terms for ids."""
        number, batches, *more = outcome
        text = {i: str(self.terms.term(i)) for _, rows in batches for row in rows for i in row if i > 0}
        shown = [(at, [[text.get(i, "") for i in row] for row in rows]) for at, rows in batches]
        return number, shown, *more

    def rows(self, outcomes: Any, side: int) -> list[Any]:
        numbers = {pair[side]: number for number, pair in enumerate(self.runs)}
        found = []
        for outcome in outcomes:
            late = None if outcome.late is None else outcome.late.time.tolist()
            rows = [(batch.time.tolist(), self.values(batch.values)) for batch in outcome.matches]
            found.append((numbers[outcome.run], rows, late, type(outcome.error)))
        return found

    def values(self, ids: Ids) -> list[list[int]]:
        """Ids; each side has restored its own blank nodes."""
        blank = self.terms.columns.kind[ids] == kinds.BLANK
        return np.where(blank & self.moved, -1, ids.astype(np.int64)).tolist()

    def events(self) -> Any:
        dice, triples = self.dice, []
        for _ in range(dice.randint(1, 4)):
            self.time += dice.choice([0, 0, 1, 1, 2, 4])
            time = self.time - (dice.randint(0, 5) if dice.random() < 0.15 else 0)
            o = dice.choice(["_:o", f":o{dice.randint(0, 2)}", f":t{dice.randint(0, 3)}"])
            text = f"@prefix : <http://e/> . {o} :value {dice.choice(VALUES)} ; :on :t{dice.randint(0, 3)} ."
            if dice.random() < 0.5:
                text += f"{o} :at :t{dice.randint(0, 3)} ."
            if dice.random() < 0.4:
                text += f":t{dice.randint(0, 3)} :near :t{dice.randint(0, 3)} ."
            triples.append((time, [q.triple for q in parse(text, RdfFormat.TURTLE)]))
        return encode_events(triples, self.terms)

    def change_kb(self) -> None:
        """Something comes to the knowledge base or goes from it, or it cannot be asked for a while."""
        dice = self.dice
        self.told(lambda side, _: side.catch_up())
        for pair in self.runs:
            kept = [_kept(side, run) for side, run in zip(self.sides, pair, strict=True)]
            assert kept[0] == kept[1]
        for _ in range(dice.randint(1, 3)):
            what = dice.choice([":in :t{b}", ":type :c{c}"]).format(b=dice.randint(0, 3), c=dice.randint(0, 1))
            thing = "_:b" if self.blanks and dice.random() < 0.5 else f":t{dice.randint(0, 3)}"
            text = f"@prefix : <http://e/> . :kb {{ {thing} {what} }}"
            (quad,) = parse(text, RdfFormat.TRIG)
            if dice.random() < 0.6:
                self.store.add(quad)
            else:
                self.store.remove(quad)
        self.kb.failing, self.kb.picky = dice.random() < 0.1, dice.random() < 0.3
        self.kb.touch()

    def step(self) -> None:
        dice, what = self.dice, self.dice.random()
        if what < 0.1 and self.asks_kb:
            self.change_kb()
        elif what < 0.7:
            stream, batch = dice.choice(STREAMS[:1] * 3 + STREAMS[1:]), self.events()
            self.terms.hold(*batch.ids)
            self.told(lambda side, _: side.push(stream, batch))
        elif what < 0.78:
            time = self.time + dice.randint(-3, 1)
            for stream in STREAMS:
                self.told(lambda side, _, stream=stream: side.punctuate(stream, time))
        elif what < 0.85:
            for _ in range(dice.choice([1, 1, 4])):
                self.register()
        elif what < 0.88 and self.runs:
            pair = dice.choice(self.runs)
            self.told(lambda side, number: side.settle(pair[number]))
        elif what < 0.92 and self.runs:
            pair = dice.choice(self.runs)
            if dice.random() < 0.5:
                self.told(lambda side, number: side.close(pair[number]))
            for side, run in zip(self.sides, pair, strict=True):
                side.remove(run)
            self.runs.remove(pair)
        elif what < 0.94 and self.runs:
            for run in dice.choice(self.runs):
                run.forget(0)
        elif what < 0.97 and self.runs:
            self.move()
        elif what < 0.98:
            stream, batch = STREAMS[0], self.events()
            self.terms.hold(*batch.ids)
            with patch.object(JointAnswers, "advance", _failing):
                self.told(lambda side, _: side.push(stream, batch))
        else:
            self.terms.collect()

    def play(self, queries: int, most: int) -> None:
        """Register so many, take some steps, and end the streams for all."""
        for _ in range(queries):
            self.register()
        for _ in range(self.dice.randint(5, most)):
            self.step()
        for pair in self.runs:
            self.told(lambda side, number, pair=pair: side.close(pair[number]))

    def move(self) -> None:
        """Both are saved and restored."""
        self.moved = True
        plans = [run.plan for run, _ in self.runs]
        self.sides = tuple(moved(side, plans, self.terms, self.terms, self.kb) for side in self.sides)
        for run in self.sides[1].registered:
            assert isinstance(run, RspRun)
        self.runs = list(zip(*(side.registered for side in self.sides), strict=True))


class PickyKb(FailingKb):
    """While it is `picky`, it cannot be asked about what is bad."""

    picky = False

    def solutions(self, query_text: str) -> QuerySolutions:
        """As asked, or KbError."""
        if self.picky and "bad" in query_text:
            raise KbError("not about that")
        return super().solutions(query_text)


def _kept(side: Runs, run: RspRun) -> bool | str:
    """Whether a query keeps answers before the KB changes, or which error it raises."""
    try:
        return side.keep_answers(run)
    except KbError as error:
        return str(error)


_ADVANCE = JointAnswers.advance


def _failing(answers: JointAnswers, batches: Sequence[EventBatch], passed: int) -> Iterator[Part]:
    """Fails amid its work."""
    yield from islice(_ADVANCE(answers, batches, passed), 1)
    raise LimitError(1, 0, "rows")


@drawn(40)
@given(st.integers(0, 2**32))
@pytest.mark.slow
def test_each_tells_what_it_tells_alone(seed: int) -> None:
    drill = Drill(random.Random(seed))
    drill.play(drill.dice.randint(2, 8), 30)


def test_windows_of_numbers_of_events_are_shared() -> None:
    """At once, by one that comes later when both hold the same, and by one that was alone when others came."""
    drill = Drill(random.Random(1))
    drill.windows, drill.patterns, drill.heads, drill.rhythms = [WINDOWS[3]], PATTERNS[:1], HEADS[:1], ("",)
    drill.asks_kb, drill.lateness = 0, 0
    for _ in range(6):
        drill.register()
        for _ in range(2):
            batch = drill.events()
            drill.terms.hold(*batch.ids)
            drill.told(lambda side, _, batch=batch: side.push(STREAMS[0], batch))
    for _ in range(40):
        batch = drill.events()
        drill.told(lambda side, _, batch=batch: side.push(STREAMS[0], batch))
    alone = [run for run, _ in drill.runs if len(run.plan.streams) == 1 and not run.shares_with]
    assert not alone


@drawn(40)
@given(st.integers(0, 2**32))
@pytest.mark.slow
def test_each_matches_what_it_matches_alone(seed: int) -> None:
    drill = Drill(random.Random(seed))
    drill.matching = True
    drill.play(drill.dice.randint(2, 8), 30)


@drawn(40)
@given(st.integers(0, 2**32))
@example(2170811799)  # windows that hold the same, but slide at other events
@example(5727201)  # the KB fails, or has blank nodes, while ticks are due
@pytest.mark.slow
def test_each_reports_what_it_reports_alone(seed: int) -> None:
    drill = Drill(random.Random(seed))
    drill.rhythms = RHYTHMS[3:]
    drill.windows, drill.patterns = drill.windows[:1], drill.patterns[:1]
    drill.play(drill.dice.randint(3, 8), 30)


@drawn(40)
@given(st.integers(0, 2**32))
@pytest.mark.slow
def test_constants_of_two_stars(seed: int) -> None:
    drill = Drill(random.Random(seed))
    drill.patterns, drill.heads = [drill.dice.choice(TWO_STARS)], [drill.dice.choice(HEADS)]
    drill.of_kb = (drill.dice.choice(OF_KB[:3]),)
    drill.play(drill.dice.randint(4, 9), 20)
