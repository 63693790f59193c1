"""Queries that share a clock and the matching against each of them alone.

Queries come and go at random moments, some of them alike; batches have late and simultaneous events; one query settles
by itself or forgets what it has seen, all are saved and restored, the KB changes. After every step each query's
matches, late events and counters must be those of its lonely twin.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from unittest.mock import patch

import pytest
from engine_runs import STREAM, Driven, E, Reading, query, readings_batch
from hypothesis import example, given
from hypothesis import strategies as st
from loaded import load
from profiles import drawn
from pyoxigraph import Literal, NamedNode, Quad, Store

from oxiseq.engine.errors import LimitError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.output import counted_rows
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.patterns import matcher
from oxiseq.engine.plan.own_run import why_own_run
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.run.query import CHUNK, QueryRun
from oxiseq.engine.sequence.memory import Capacities
from oxiseq.engine.sharing import shared
from oxiseq.engine.sharing.dispatching import Outcome
from oxiseq.engine.sharing.shared import SharedRuns
from oxiseq.engine.snapshot.saving import restore, save
from oxiseq.engine.terms.dictionary import TermDictionary

OTHER = E + "s2"
KEYED = "KEYED"
WINDOWS = ["", "WITHIN PT0.00001S", "WITHIN PT0.00001S SLIDING", "WITHIN 5 EVENTS", "WITHIN 4 EVENTS SLIDING"]
TAGGED = "GRAPH :tags { ?k :tag ?tag }"


@pytest.fixture(autouse=True, scope="module")
def few() -> Iterator[None]:
    """A single count is made a row as columns, too."""
    with patch.object(counted_rows, "FEW", 1):
        yield


def two_streams(sequence: str, window: str) -> str:
    text = query(sequence, window, A=KEYED, B=KEYED)
    return text.replace(f"FROM STREAM S1 <{STREAM}>", f"FROM STREAM S1 <{STREAM}> FROM STREAM S2 <{OTHER}>").replace(
        "GPM B ON S1", "GPM B ON S2"
    )


def random_query(dice: random.Random) -> str:
    window = dice.choice(WINDOWS)
    bound = dice.randint(1, 20)
    makers = [
        lambda: query("A", window, A=f"FILTER(?av > {bound})"),
        lambda: query("A", window, A=f"FILTER(?av > {bound} && STRLEN(STR(?av)) = 2)"),
        lambda: query("A; B", window, A=KEYED, B=f"{KEYED} FILTER(?bv > ?av)"),
        lambda: query("A: B", window, A=f"FILTER(?av = {bound})", B=f"FILTER(?bv < {bound})"),
        lambda: query("A, B", window),
        lambda: query("N!; A", window, N=KEYED, A=KEYED),
        lambda: query("A; N!", window or WINDOWS[1], N=KEYED, A=KEYED),
        lambda: query("A; B+", window, A=f"FILTER(?av > {bound})", B="FILTER(?bv > 5)"),
        lambda: query("A & B", window, A=KEYED, B=KEYED),
        lambda: query("A", window, A="OPTIONAL { ?a :missing ?m }"),
        lambda: query("A; B", window, A=f"{KEYED} {TAGGED}", B=KEYED),
        lambda: query("A", window, "SELECT DISTINCT ?tag", A=f"{KEYED} {TAGGED}"),
        lambda: two_streams(dice.choice(["A; B", "A, B", "A & B"]), window),
    ]
    return dice.choice(makers)()


def alike(dice: random.Random) -> list[str]:
    """Queries that find the same matches; some tell the same of them."""
    by = dice.choice(["", "", "PARTITION BY ?k"])
    window = dice.choice(WINDOWS[:3] if by else WINDOWS)
    bound = dice.randint(1, 20)
    sequence, gpms = dice.choice(
        [
            ("A; B+", {"A": KEYED, "B": KEYED}),
            ("A: B", {"A": KEYED, "B": f"{KEYED} FILTER(?bv > ?av)"}),
            ("A; B;+; C", {"A": KEYED, "B": KEYED, "C": KEYED}),
            ("A: N!: B", {"A": KEYED, "N": KEYED, "B": KEYED}),
            ("A; B;+ WITHIN PT0.000004S; C", {"A": KEYED, "B": KEYED, "C": KEYED}),
            ("A; (B: C)+", {"A": KEYED, "B": f"{KEYED} FILTER(?bv > ?av)", "C": KEYED}),
            ("N!; A", {"N": KEYED, "A": KEYED}),
            ("A; N!", {"A": KEYED, "N": KEYED}),
            ("A; B;+; C) UNTIL (N", {"A": KEYED, "B": KEYED, "C": KEYED, "N": KEYED}),
            ("A: B) UNTIL (N", {"A": KEYED, "B": KEYED, "N": "FILTER(?nv > ?av)"}),
        ]
    )
    if sequence == "A; N!" and not window:
        window = WINDOWS[1]
    strategy = dice.choice(["", "", "", "NEXT ", "MAX "])
    limit = dice.choice(["", "", "LIMIT 2"])
    shown = [
        "*",
        "?k",
        "?a ?k",
        "?av",
        "DISTINCT ?k",
        f"(?av + {bound} AS ?more)",
        "(STARTTIME() AS ?from) ?a",
        "(COUNT(*) AS ?n)",
        "?k (COUNT(*) AS ?n)",
        "(SUM(?av) AS ?sum)",
        "(ENDTIME() AS ?to) (COUNT(*) AS ?n)",
    ]
    texts = []
    for chosen in dice.choices(shown, k=dice.choice([2, 3])):
        over = "COUNT(*)" in chosen or "SUM" in chosen
        distinct = "DISTINCT " if chosen.startswith("DISTINCT ") else ""
        select = f"SELECT {strategy}{chosen}" if not distinct or not strategy else f"SELECT {chosen}"
        keys = [word for word in ("?k", "ENDTIME()") if over and word in chosen]
        behind = "".join(f" GROUP BY {key if key == '?k' else f'({key})'}" for key in keys)
        texts.append(query(sequence, f"{window} {by}", select, **gpms) + behind + ("" if over else f" {limit}"))
    return texts


def of_windows(dice: random.Random) -> list[str]:
    """Queries that differ in the length of their sliding window, and may differ in what they tell."""
    sequence = dice.choice(
        [
            "A; B",
            "A: B+",
            "A; B;+; C",
            "A: N!: B",
            "A: B;+) UNTIL (N",
            "A; B;+ WITHIN PT0.000004S; C",
            "A; (B: C)+",
            "A; B?, C",
            "(A | B); C",
        ]
    )
    by = dice.choice(["", "", "PARTITION BY ?k"])
    keyed = KEYED if by or dice.random() < 0.5 else ""
    gpms = {name: keyed for name in "ABCN" if name in sequence}
    if dice.random() < 0.5 and keyed and "|" not in sequence:
        gpms["B"] += " FILTER(?bv > ?av)"
    shown = ["*", "?a", "(STARTTIME() AS ?from) ?a", "?b (GROUP_CONCAT(?av) AS ?all)", "(COUNT(*) AS ?n)"]
    unit = dice.choice(["PT0.0000{:02}S", "PT0.0000{:02}S", "{} EVENTS"])
    if by and "EVENTS" in unit:
        shown = shown[:3]
    elif dice.random() < 0.3:
        shown = counted(dice, "EVENTS" not in unit)
    texts = []
    for length in dice.choices([1, 2, 3, 5, 9, 20], k=dice.choice([2, 3, 5])):
        chosen, _, behind = dice.choice(shown).partition(" GROUP BY ")
        if "GROUP_CONCAT" in chosen:
            behind = "?b"
        behind = f" GROUP BY {behind}" if behind else ""
        texts.append(query(sequence, f"WITHIN {unit.format(length)} SLIDING {by}", f"SELECT {chosen}", **gpms) + behind)
    return texts


def counted(dice: random.Random, of_time: bool) -> list[str]:
    """What may be told of matches that are counted; some of it is apart by ?b, or by the times of ends."""
    ends = ["(ENDTIME() AS ?t) (COUNT(*) AS ?n) GROUP BY (ENDTIME())"]
    ends += [f"{ends[0]} HAVING (COUNT(*) > {dice.randint(1, 4)})", "(COUNT(*) AS ?n) GROUP BY (ENDTIME()) ?b"]
    by_value = ["?b (COUNT(*) AS ?n) GROUP BY ?b", "(SUM(?av) AS ?n) ?b (COUNT(*) AS ?many) GROUP BY ?b"]
    all_ = ["(COUNT(*) AS ?n)", "(COUNT(*) AS ?n) (MAX(?av) AS ?most)"]
    return dice.choice([*([ends] * 2 if of_time else []), [*ends[:1], *ends] if of_time else all_, by_value, all_])


def of_thresholds(dice: random.Random) -> list[str]:
    """Queries that differ in what they compare a variable with, and may differ in their sliding window's length and in
    what they tell."""
    sequence = dice.choice(
        [
            "A",
            "A; B",
            "A: B+",
            "A; B;+; C",
            "A; N!; B",
            "A; (B: C)+",
            "A; B?, C",
            "(A | B); C",
            "A, B",
            "A; (B; C)+",
            "A; B:+; C",
            "A: B, C",
            "A; B;{1,3}; C",
            "A; B) UNTIL (N",
            "A;+; B",
        ]
    )
    by = dice.choice(["", "", "PARTITION BY ?k"])
    keyed = KEYED if by or dice.random() < 0.5 else ""
    base = {name: keyed for name in "ABCN" if name in sequence}
    if dice.random() < 0.5 and keyed and "B" in base and "|" not in sequence and sequence != "A; B?, C":
        base["B"] += " FILTER(?bv > ?av)"
    compared = [name for name in "ABC" if name in base and dice.random() < 0.7] or ["A"]
    how = {name: dice.choice(["?{0}v > {1}", "{1} <= ?{0}v", "?{0}v < {1}", "{1}.5 > ?{0}v"]) for name in compared}
    window = dice.choice(WINDOWS[:3] if by else WINDOWS)
    sliding = window == WINDOWS[2] and dice.random() < 0.5
    shown = ["*", "?a", "(STARTTIME() AS ?from) ?a"]
    if "A; B?" in sequence:
        shown.append("?b (GROUP_CONCAT(?av) AS ?all) GROUP BY ?b")
    known = "B" in base and "|" not in sequence and "A;+" not in sequence
    if known and not (by and "EVENTS" in window) and dice.random() < 0.5:
        shown = counted(dice, "EVENTS" not in window)
    texts = []
    for _ in range(dice.choice([2, 3, 5, 9])):
        gpms = dict(base)
        same = dice.randint(1, 20)
        for name in compared:
            bound = same if dice.random() < 0.7 else dice.randint(1, 20)
            gpms[name] += f" FILTER({how[name].format(name.lower(), bound)})"
        size = f"WITHIN PT0.0000{dice.choice([3, 9, 20]):02}S SLIDING" if sliding else window
        chosen, _, behind = dice.choice(shown).partition(" GROUP BY ")
        behind = f" GROUP BY {behind}" if behind else ""
        texts.append(query(sequence, f"{size} {by}", f"SELECT {chosen}", **gpms) + behind)
    return texts


Row = tuple[int, tuple[int, ...], tuple[tuple[int, int], ...]]


def rows(batches: Iterable[MatchBatch]) -> list[Row]:
    return [
        (
            int(b.time[m]),
            tuple(b.values[m].tolist()),
            tuple(
                zip(
                    b.event_letter[b.ends[m] : b.ends[m + 1]].tolist(),
                    b.event_time[b.ends[m] : b.ends[m + 1]].tolist(),
                    strict=True,
                )
            ),
        )
        for b in batches
        for m in range(len(b))
    ]


@dataclass
class Pair:
    """A query among others and its twin."""

    text: str
    shared: QueryRun
    alone: QueryRun
    start: int | None
    bounds: str | None

    def compare(
        self, outcome: Outcome | None, late: EventBatch | None, found: list[MatchBatch], *, looks: bool = True
    ) -> None:
        """looks: at its state, too; it has caught up."""
        given_late = [] if outcome is None or outcome.late is None else outcome.late.time.tolist()
        assert outcome is None or outcome.error is None, self.text
        mine, its = rows([] if outcome is None else outcome.matches), rows(found)
        assert mine == its, self.text
        assert given_late == ([] if late is None else late.time.tolist())
        for name in ("events", "late", "instants", "matches", "open"):
            assert getattr(self.shared, name) == getattr(self.alone, name), (name, self.text)
        if not looks:
            return
        if self.shared.finder.endless:  # rows go when they are collected
            self.shared.collect()
            self.alone.collect()
        kept, needed = self.shared.state["rows"], self.alone.state["rows"]
        composes = self.shared.finder.plan.runner.composing is not None  # no rows of prefixes are kept
        may_join = why_own_run(self.shared.plan) is None  # an automaton keeps the rows that partial matches name
        joined_late = self.shared.clock.completed > self.alone.clock.completed  # others had seen more
        assert kept <= needed if composes or may_join or joined_late else kept == needed, self.text


class Drill:
    """Random steps."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.terms = TermDictionary()
        self.store = Store()
        self.kb = StoreKb(self.store)
        self.runs = SharedRuns(self.terms)
        self.pairs: list[Pair] = []
        self.now = 0
        self.kinds = "abcn"
        """Of events."""
        self.tagged = 0

    def register(self) -> None:
        self.register_one(random_query(self.dice), self.dice.choice([0, 0, 0, 4]), self.a_start())

    def register_equal(self) -> None:
        """Whose states are bounded."""
        text, lateness, start = random_query(self.dice), self.dice.choice([0, 0, 0, 4]), self.a_start()
        for _ in range(3):
            self.register_one(text, lateness, start, self.dice.choice(["small", "small", "large"]))

    def register_alike(self) -> None:
        lateness, start = self.dice.choice([0, 0, 0, 4]), self.a_start()
        for text in alike(self.dice):
            self.register_one(text, lateness, start)

    def register_windows(self) -> None:
        lateness, start = self.dice.choice([0, 0, 0, 4]), self.a_start()
        for text in of_windows(self.dice):
            self.register_one(text, lateness, start)

    def register_thresholds(self) -> None:
        lateness, start = self.dice.choice([0, 0, 0, 4]), self.a_start()
        capacities = self.dice.choice([None, Capacities.smallest()])
        for text in of_thresholds(self.dice):
            self.register_one(text, lateness, start, capacities=capacities)

    def a_start(self) -> int | None:
        return self.dice.choice([None, None, None, self.now + 3])

    def register_one(
        self,
        text: str,
        lateness: int = 0,
        start: int | None = None,
        bounds: str | None = None,
        capacities: Capacities | None = None,
    ) -> None:
        def compiled(*, composing: bool) -> QueryRun:
            plan = compile_query(load(text), self.terms, composing=composing)
            return QueryRun(plan, self.terms, self.kb, start, lateness, capacities)

        one = compiled(composing=True)
        with patch.object(counted_rows, "in_columns", return_value=False):  # its rows of counts are made one by one
            alone = compiled(composing=False)
        self.runs.add(one, start, bounds=bounds)
        self.pairs.append(Pair(text, one, alone, start, bounds))

    def push(self) -> None:
        stream = self.dice.choice([STREAM, STREAM, OTHER])
        readings = []
        for _ in range(self.dice.choice([1, 1, 1, 2, 5, 12])):
            self.now += self.dice.choice([0, 1, 1, 1, 2, 7])
            time = self.now - self.dice.choice([0, 0, 0, 0, 0, 1, 3, 6])
            kind = self.dice.choice(self.kinds)
            readings.append(Reading(time, kind, self.dice.randint(1, 3), self.dice.randint(1, 20)))
        batch = readings_batch(self.terms, readings)
        outcomes = {outcome.run: outcome for outcome in self.runs.push(stream, batch)}
        looks = self.looks()
        for pair in self.pairs:
            late, found = None, []
            if stream in pair.alone.plan.streams:
                late = pair.alone.push(stream, batch)
                found = pair.alone.advance()
            pair.compare(outcomes.get(pair.shared), late, found, looks=looks)

    def looks(self) -> bool:
        """Whether somebody looks at states, which have caught up then."""
        looks = self.dice.random() < 0.3
        for pair in self.pairs if looks else ():
            self.runs.catch_up(pair.shared)
        return looks

    def punctuate(self) -> None:
        stream, time = self.dice.choice([STREAM, OTHER]), self.now + self.dice.randint(-2, 3)
        outcomes = {outcome.run: outcome for outcome in self.runs.punctuate(stream, time)}
        looks = self.looks()
        for pair in self.pairs:
            found = []
            if stream in pair.alone.plan.streams:
                pair.alone.punctuate(stream, time)
                found = pair.alone.advance()
            pair.compare(outcomes.get(pair.shared), None, found, looks=looks)

    def settle(self, pair: Pair | None = None) -> None:
        pair = pair or self.dice.choice(self.pairs)
        outcomes = {outcome.run: outcome for outcome in self.runs.settle(pair.shared)}
        assert set(outcomes) <= {pair.shared}
        pair.alone.settle()
        pair.compare(outcomes.get(pair.shared), None, pair.alone.advance())

    def close(self) -> None:
        pair = self.pairs.pop(self.dice.randrange(len(self.pairs)))
        outcomes = {outcome.run: outcome for outcome in self.runs.close(pair.shared)}
        pair.alone.close()
        pair.compare(outcomes.get(pair.shared), None, pair.alone.advance())
        self.runs.remove(pair.shared)

    def change_kb(self) -> None:
        for pair in self.pairs:
            self.runs.keep_answers(pair.shared)
            pair.alone.keep_answers()
        self.tagged += 1
        number = Literal(str(self.dice.randint(1, 3)), datatype=NamedNode("http://www.w3.org/2001/XMLSchema#integer"))
        self.store.add(Quad(NamedNode(E + f"t{self.tagged}"), NamedNode(E + "tag"), number, NamedNode(E + "tags")))
        self.kb.touch()

    def forget(self) -> None:
        """One query gives up what it has seen, or all that find what it finds; some go on by themselves in between."""
        pair = self.dice.choice(self.pairs)
        alike = [each for each in self.pairs if each.shared.finder is pair.shared.finder]
        chosen, settles = self.dice.choice([[pair], alike]), self.dice.random() < 0.3
        for each in chosen:
            self.runs.forget(each.shared, 0)
            each.alone.forget(0)
            if settles and self.dice.random() < 0.5:
                self.settle(each)

    def save(self) -> None:
        """All queries go on in runs that have been restored."""
        for pair in self.pairs:
            self.runs.catch_up(pair.shared)
        saved = [save(pair.shared, self.terms) for pair in self.pairs]
        self.runs = SharedRuns(self.terms)
        for data, pair in zip(saved, self.pairs, strict=True):
            pair.shared = restore(data, compile_query(load(pair.text), self.terms), self.terms, self.kb)
            self.runs.add(pair.shared, pair.start, bounds=pair.bounds)

    def step(self) -> None:
        if len(self.pairs) < 2:
            return self.register()
        step = self.dice.choice(
            [
                self.register,
                self.register_alike,
                self.register_windows,
                self.register_thresholds,
                self.register_equal,
                *[self.push] * 5,
                self.punctuate,
                self.settle,
                self.close,
                self.change_kb,
                self.forget,
                self.save,
            ]
        )
        return step()


@drawn(40)
@given(st.integers(0, 2**62))
@pytest.mark.slow
def test_each_query_finds_what_it_finds_alone(seed: int) -> None:
    drill = Drill(seed)
    for _ in range(drill.dice.choice([1, 2])):
        drill.register_alike()
    for _ in range(drill.dice.choice([1, 4])):
        drill.register()
    for _ in range(30):
        drill.step()
    while drill.pairs:
        drill.close()


def in_words(batches: Iterable[MatchBatch], terms: TermDictionary) -> list[tuple[int, tuple[str, ...], object]]:
    """Rows that do not depend on the dictionary."""
    return [(at, tuple(terms.text(i) if i else "" for i in ids), events) for at, ids, events in rows(batches)]


@drawn(60)
@given(st.integers(0, 2**62))
@example(6)
@pytest.mark.slow
def test_rows_of_an_instant_come_in_the_order_that_they_have_alone(seed: int) -> None:
    """Whatever else is registered, before the query, with it or later, and removed; however events are batched and
    whichever numbers terms have; after a restart, too."""
    dice = random.Random(seed)
    text, *others = dice.choice([alike, of_windows, of_thresholds])(dice)
    now, instants = 0, list[list[Reading]]()
    for _ in range(25):
        now += dice.choice([1, 1, 2])
        kinds = dice.choices("abcn", weights=[3, 3, 3, 1], k=dice.choice([1, 1, 2, 3]))
        instants.append([Reading(now, kind, dice.randint(1, 2), dice.randint(1, 20)) for kind in kinds])

    lonely = Driven(text)
    expected = list[tuple[int, tuple[str, ...], object]]()
    for readings in instants:
        lonely.push(readings)
        expected += in_words(lonely.run.advance(), lonely.terms)
    lonely.run.close()
    expected += in_words(lonely.run.advance(), lonely.terms)

    terms = renumbered(dice)
    kb, runs = StoreKb(Store()), SharedRuns(terms)
    among = {place: compile_query(load(each), terms) for place, each in enumerate(others, 1)}
    begins = {place: dice.choice([0, 0, 0, dice.randrange(25)]) for place in among}
    ends = {place: dice.choice([25, dice.randrange(25)]) for place in among}
    there = dict[int, QueryRun]()
    found = list[tuple[int, tuple[str, ...], object]]()
    restart, low = dice.choice([-1, dice.randrange(25)]), 0
    for place in sorted([0, *among], key=lambda place: (begins.get(place, 0), dice.random())):
        if begins.get(place, 0) == 0:
            there[place] = QueryRun(compile_query(load([text, *others][place]), terms), terms, kb)
            runs.add(there[place])
    while low < len(instants):
        for place in among:
            if place not in there and 0 < begins[place] <= low < ends[place]:
                there[place] = QueryRun(compile_query(load(others[place - 1]), terms), terms, kb)
                runs.add(there[place])
            elif place in there and ends[place] <= low:
                runs.remove(there.pop(place))
        if 0 <= restart <= low:
            restart = -1
            for run in there.values():
                runs.catch_up(run)
            saved = {place: save(run, terms) for place, run in there.items()}
            terms = renumbered(dice)
            runs = SharedRuns(terms)
            for place, data in saved.items():
                there[place] = restore(data, compile_query(load([text, *others][place]), terms), terms, kb)
                runs.add(there[place])
        high = low + dice.choice([1, 1, 4, 9])
        batch = readings_batch(terms, [reading for readings in instants[low:high] for reading in readings])
        for outcome in runs.push(STREAM, batch):
            if outcome.run is there[0]:
                found += in_words(outcome.matches, terms)
        low = high
    found += in_words([batch for outcome in runs.close(there[0]) for batch in outcome.matches], terms)
    assert found == expected, text


def renumbered(dice: random.Random) -> TermDictionary:
    """A dictionary that has met the numbers in another order."""
    terms = TermDictionary()
    integer = NamedNode("http://www.w3.org/2001/XMLSchema#integer")
    for number in dice.sample(range(1, 21), 20):
        terms.intern(Literal(str(number), datatype=integer))
    return terms


def of_endings(dice: random.Random) -> str:
    """One whose last event is of a kind that is seldom."""
    sequence = dice.choice(
        [
            "A; I",
            "A: B: I",
            "A; B+; I",
            "A: N!: I",
            "A; B+; I) UNTIL (N",
            "N!; A; I",
            "A; (B | H)?; I",
            "A, B, I",
            "A; I?",
            "A & B; I",
            "A; (B; I)+",
            "A; B;+ WITHIN PT0.000004S; I",
            "A; I & H",
        ]
    )
    by = dice.choice(["", "", "PARTITION BY ?k"])
    keyed = KEYED if by or dice.random() < 0.5 else ""
    gpms = {name: keyed for name in "ABHIN" if name in sequence}
    if keyed and dice.random() < 0.5:
        gpms["I"] += " FILTER(?iv > ?av)"
    select = dice.choice(["SELECT *", "SELECT ?a", "SELECT NEXT *", "SELECT DISTINCT ?a", "SELECT (COUNT(*) AS ?n)"])
    window = dice.choice(WINDOWS[:3] if by else WINDOWS)
    consumes = dice.choice(["", "", "CONSUME BY ANY"])
    text = query(sequence, f"{window} {by} {consumes}", select, **gpms)
    if dice.random() < 0.3:
        text = text.replace(f"FROM STREAM S1 <{STREAM}>", f"FROM STREAM S1 <{STREAM}> FROM STREAM S2 <{OTHER}>")
        text = text.replace("GPM A ON S1", "GPM A ON S2") if "&" not in sequence else text
    return text


@drawn(40)
@given(st.integers(0, 2**62))
@pytest.mark.full
@pytest.mark.slow
def test_queries_whose_events_come_in_spells_find_what_they_find_alone(seed: int) -> None:
    drill = Drill(seed)
    dice = drill.dice
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared, "CHUNK", dice.choice([2, 5, CHUNK]))
        for _ in range(6):
            drill.register_one(of_endings(dice), dice.choice([0, 0, 0, 4]))
        for _ in range(dice.choice([0, 0, 1, 2])):
            dice.choice([drill.register, drill.register_windows, drill.register_equal, drill.register_alike])()
        for _ in range(6):
            drill.kinds = dice.choice(["a", "ab", "abhn"])
            for _ in range(dice.choice([2, 5, 9])):
                drill.push()
            drill.kinds = dice.choice(["i", "abhin"])
            drill.push()
            if len(drill.pairs) > 2:
                dice.choice(
                    [
                        drill.settle,
                        drill.close,
                        drill.forget,
                        drill.save,
                        drill.punctuate,
                        drill.change_kb,
                        lambda: drill.register_one(of_endings(dice)),
                        drill.register_windows,
                    ]
                )()
        while drill.pairs:
            drill.close()


def test_queries_whose_windows_are_composed_keep_no_rows() -> None:
    """Unlike their twins, which they are compared with."""
    drill = Drill(1)
    for _ in range(2):
        text = query("A; B", WINDOWS[1], "SELECT (ENDTIME() AS ?t) (COUNT(*) AS ?n)", A=KEYED, B=KEYED)
        drill.register_one(text + " GROUP BY (ENDTIME())")
    drill.kinds = "a"
    for _ in range(20):
        drill.push()
    assert all(pair.shared.state["rows"] == 0 < pair.alone.state["rows"] for pair in drill.pairs)


@drawn(40)
@given(st.integers(0, 2**62))
@pytest.mark.full
@pytest.mark.slow
def test_queries_of_longer_and_shorter_windows_find_what_they_find_alone(seed: int) -> None:
    drill = Drill(seed)
    for _ in range(2):
        drill.register_windows()
    for _ in range(8):
        for _ in range(5):
            drill.push()
        if drill.pairs:
            drill.dice.choice([drill.settle, drill.close, drill.forget, drill.save, drill.punctuate])()
    while drill.pairs:
        drill.close()


@drawn(60)
@given(st.integers(0, 2**62))
@pytest.mark.full
@pytest.mark.slow
def test_queries_of_other_thresholds_find_what_they_find_alone(seed: int) -> None:
    drill = Drill(seed)
    drill.kinds = "abcn"
    for _ in range(2):
        drill.register_thresholds()
    for _ in range(8):
        for _ in range(5):
            drill.push()
        if drill.pairs:
            drill.dice.choice([drill.settle, drill.close, drill.forget, drill.save, drill.punctuate])()
    while drill.pairs:
        drill.close()


def test_queries_that_take_events_alike_are_one_group() -> None:
    """Also those that came later, once the next event has made them alike; and one that has settled by itself."""
    drill = Drill(1)
    runs = drill.runs

    def add(**options: int) -> QueryRun:
        run = QueryRun(compile_query(load(query("A; B")), drill.terms), drill.terms, drill.kb, **options)
        runs.add(run, options.get("start"))
        return run

    def push(*times: int) -> None:
        runs.push(STREAM, readings_batch(drill.terms, [Reading(time, "a") for time in times]))

    first, second = add(), add()
    assert runs.clocks == 1
    push(1, 2)
    third = add()
    assert runs.clocks == 2
    push(3)
    assert runs.clocks == 1
    assert [run.events for run in (first, second, third)] == [3, 3, 1]
    runs.settle(second)
    assert runs.clocks == 2
    assert (first.open, second.open) == (True, False)
    push(4)
    assert runs.clocks == 1
    add(lateness=5)
    assert runs.clocks == 2
    for run in (first, second, third):
        runs.remove(run)
    assert runs.clocks == 1


def test_the_limit_of_one_query_does_not_cost_the_others_their_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matcher.StreamMatcher.__init__, "__defaults__", (None, matcher.MatchLimits(rows=3), None))
    drill = Drill(1)
    texts = [query("A"), query("A", A="?x1 ?p ?x2 . ?x3 ?q ?x4 .")]
    fine, wild = (QueryRun(compile_query(load(text), drill.terms), drill.terms, drill.kb) for text in texts)
    drill.runs.add(fine)
    drill.runs.add(wild)
    assert drill.runs.push(STREAM, readings_batch(drill.terms, [Reading(1, "a")])) == []
    one, other = drill.runs.push(STREAM, readings_batch(drill.terms, [Reading(2, "a")]))
    assert (one.run, len(one.matches[0]), one.error) == (fine, 1, None)
    assert other.run is wild and isinstance(other.error, LimitError)


def test_queries_that_find_the_same_matches_find_them_once() -> None:
    """Those registered before an instant; not one that came later, shares nothing, or has gone on by itself."""
    drill = Drill(1)
    filters = {"A": KEYED, "B": KEYED}
    drill.register_one(query("A; B", "WITHIN PT0.00001S", "SELECT ?a", **filters))
    drill.register_one(query("A; B", "WITHIN PT0.00001S", "SELECT ?b ?k", **filters))
    drill.register_one(query("A; B", "WITHIN PT0.00001S", "SELECT ?a", **filters))
    drill.register_one(query("A; B", "WITHIN PT0.00002S", "SELECT ?a", **filters))
    by_itself = QueryRun(drill.pairs[0].shared.plan, drill.terms, drill.kb)
    drill.runs.add(by_itself, shares=False)
    first, second, third, other = (pair.shared for pair in drill.pairs)
    drill.push()
    drill.now += 1
    drill.push()
    assert first.finder is second.finder is third.finder
    assert first.teller is third.teller is not second.teller
    assert (first.others, other.others, by_itself.others) == (2, 0, 0)
    drill.register_one(query("A; B", "WITHIN PT0.00001S", "SELECT ?a", **filters))
    late = drill.pairs[-1].shared
    drill.now += 1
    drill.push()
    drill.push()
    assert late.others == 0
    drill.runs.settle(third)
    assert (first.others, third.others) == (1, 0)
    drill.runs.remove(first)
    assert second.others == 0


@pytest.mark.parametrize(
    ("sequence", "select", "window", "behind"),
    [
        ("A; B", "SELECT *", "SLIDING", "LIMIT 1"),
        ("A; B", "SELECT DISTINCT ?a", "SLIDING", ""),
        ("A; B", "SELECT NEXT *", "SLIDING", ""),
        ("A; B", "SELECT *", "SLIDING CONSUME BY ANY", ""),
        ("A; B", "SELECT *", "", ""),
        ("N!; A; B", "SELECT *", "SLIDING", ""),
        ("A; B; N!", "SELECT *", "SLIDING", ""),
        ("A; B", "SELECT (COUNT(*) AS ?n)", "", ""),
    ],
)
def test_queries_of_other_windows_find_by_themselves_where_a_longer_one_does_more_than_hold_more(
    sequence: str, select: str, window: str, behind: str
) -> None:
    drill = Drill(1)
    for length in (3, 9):
        drill.register_one(query(sequence, f"WITHIN PT0.00000{length}S {window}", select) + behind)
    drill.push()
    drill.now += 1
    drill.push()
    assert [pair.shared.others for pair in drill.pairs] == [0, 0]


def test_equal_queries_of_the_same_bounds_are_one_and_forget_as_one() -> None:
    drill = Drill(1)
    for bounds in ("small", "small", "small", "large"):
        drill.register_one(query("A; B", "WITHIN PT0.00001S", "SELECT ?a"), bounds=bounds)
    equal = [pair.shared for pair in drill.pairs]
    drill.push()
    drill.now += 1
    drill.push()
    assert [run.others for run in equal] == [2, 2, 2, 0]
    for run in equal[:3]:
        drill.runs.forget(run, 0)
    assert [run.others for run in equal] == [2, 2, 2, 0]
    assert len({run.teller for run in equal}) == 2


def test_a_query_that_forgets_after_an_equal_one_has_gone_on_by_itself_does_not_go_on_as_that() -> None:
    drill = Drill(1)
    for _ in range(3):
        drill.register_one(query("A; B", WINDOWS[2], A=KEYED, B=KEYED))
    first, second, third = (pair.shared for pair in drill.pairs)
    for time, kind in ((1, "a"), (2, "a")):
        drill.runs.push(STREAM, readings_batch(drill.terms, [Reading(time, kind)]))
    drill.runs.forget(first, 0)
    drill.runs.settle(first)  # it has seen the second instant, for which the others wait
    drill.runs.forget(second, 0)
    assert first.finder is not second.finder
    drill.runs.push(STREAM, readings_batch(drill.terms, [Reading(3, "b"), Reading(4, "b")]))
    assert [run.matches for run in (first, second, third)] == [1, 1, 2]


@pytest.mark.parametrize(
    ("select", "pattern"),
    [
        ("SELECT ?a (RAND() AS ?by_chance)", KEYED),
        ("SELECT (STRUUID() AS ?id)", KEYED),
        ("SELECT ?a", f"{KEYED} FILTER(RAND() < 0.5)"),
    ],
)
def test_equal_queries_that_draw_values_by_chance_draw_their_own(select: str, pattern: str) -> None:
    drill = Drill(1)
    for _ in range(2):
        drill.register_one(query("A; B", "", select, A=pattern, B=KEYED))
    for reading in [*(Reading(time, "a") for time in range(60)), Reading(60, "b"), Reading(61, "x")]:
        told = drill.runs.push(STREAM, readings_batch(drill.terms, [reading]))
    assert [pair.shared.others for pair in drill.pairs] == [0, 0]
    one, other = (rows(outcome.matches) for outcome in told)
    assert one != other


def test_a_query_without_rows_has_no_memory_for_partial_matches() -> None:
    """Nor one that has been saved and restored so; the first row brings it."""
    drill = Drill(1)
    for _ in range(3):
        drill.register_one(query("A; N!: B", WINDOWS[1], A=KEYED, N=KEYED, B=KEYED))
    drill.runs.push(STREAM, readings_batch(drill.terms, [Reading(time, "c") for time in range(5)]))
    drill.save()
    for pair in drill.pairs:
        assert pair.shared.finder.sequence.bytes == 0
        assert (pair.shared.records, pair.shared.waits, pair.shared.deadline) == (0, False, None)
    drill.runs.push(STREAM, readings_batch(drill.terms, [Reading(6, "a"), Reading(7, "c")]))
    assert all(pair.shared.finder.sequence.bytes for pair in drill.pairs)


def test_queries_that_forget_before_the_first_instant_begin_their_windows_with_it() -> None:
    drill = Drill(1)
    for _ in range(3):
        drill.register_one(query("A; N!", WINDOWS[1], N=KEYED, A=KEYED))
    drill.runs.push(STREAM, readings_batch(drill.terms, []))  # those that are equal are one now
    for pair in drill.pairs:
        drill.runs.forget(pair.shared, 0)
    drill.runs.push(STREAM, readings_batch(drill.terms, [Reading(4, "b", 1, 1), Reading(15, "a", 1, 1)]))
    assert [pair.shared.window_start for pair in drill.pairs] == [4, 4, 4]


def test_equal_queries_are_one_again_when_they_are_restored_from_one_state() -> None:
    drill = Drill(1)
    other = query("A; B", WINDOWS[2], "SELECT ?k", A=KEYED, B=KEYED)
    texts = [*[query("A; B", WINDOWS[2], A=KEYED, B=KEYED)] * 3, other]
    for text in texts:
        drill.register_one(text)
    drill.runs.push(STREAM, readings_batch(drill.terms, [Reading(4, "a", 1, 1), Reading(5, "a", 1, 1)]))
    drill.save()
    first, *others = [pair.shared for pair in drill.pairs]
    drill.runs.push(STREAM, readings_batch(drill.terms, [Reading(6, "b", 1, 1)]))
    assert [run.finder is first.finder for run in others] == [True, True, False], "the last stores other columns"
    outcomes = {o.run: o for o in drill.runs.push(STREAM, readings_batch(drill.terms, [Reading(7, "a", 1, 1)]))}
    assert [sum(map(len, outcomes[pair.shared].matches)) for pair in drill.pairs] == [2] * 4
    drill.save()
    drill.runs.forget(drill.pairs[1].shared, 0)  # before anything has come
    drill.runs.push(STREAM, readings_batch(drill.terms, [Reading(8, "b", 1, 1)]))
    finders = [pair.shared.finder for pair in drill.pairs]
    assert finders[0] is finders[2] is not finders[1]


def test_counts_of_windows_of_events_are_told_of_a_window_that_began_before_the_query_forgot() -> None:
    terms = TermDictionary()
    plan = compile_query(load(query("N!; A", WINDOWS[3], "SELECT (SUM(?av) AS ?sum)", N=KEYED, A=KEYED)), terms)
    run = QueryRun(plan, terms, StoreKb(Store()))
    run.push(STREAM, readings_batch(terms, [Reading(1, "a", 1, 1), *(Reading(t, "b", 1, 1) for t in (2, 3, 4))]))
    run.advance()
    run.forget(0)
    run.push(STREAM, readings_batch(terms, [Reading(9, "a", 1, 5)]))
    run.close()
    assert [[terms.term(row[0]).value for row in batch.values.tolist()] for batch in run.advance()] == [["5"]]
