"""What ends at an instant where there is too much to choose from is not told; all the rest is."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from loaded import load
from profiles import crossed
from pyoxigraph import Store
from restarted import lasted

import oxiseq
from oxiseq.engine.automaton import run
from oxiseq.engine.bounds import InstantBounds
from oxiseq.engine.cea.cache import StepCache
from oxiseq.engine.errors import LimitError
from oxiseq.engine.flow.delta import Buffer
from oxiseq.engine.flow.operators.join import JoinAllNode
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.kernels.flow import conjoining
from oxiseq.engine.matches import runner
from oxiseq.engine.matches.choice import Chooser
from oxiseq.engine.matches.found import Found, without_last
from oxiseq.engine.output.folding import MatchFolder
from oxiseq.engine.output.picking import MatchPicker
from oxiseq.engine.output.sieve import MatchSieve
from oxiseq.engine.patterns.matcher import DEFAULT_LIMITS, StreamMatcher
from oxiseq.engine.terms import dictionary

E = "http://e/"
TEXT = f"""PREFIX : <{E}> SELECT {{}} WITHIN 8 SECONDS SLIDING FROM STREAM S :s WHERE {{{{ SEQ(A:+ ; B)
DEFINE GPM A ON S {{{{ ?x :v ?v }}}} DEFINE GPM B ON S {{{{ ?x :w ?w }}}} }}}} {{}}"""
FOLDED = TEXT.format("MAX (SUM(SUM(?v)) AS ?s) (COUNT(*) AS ?n)", "GROUP BY (ENDTIME() AS ?end)")
FILTERED = (
    TEXT.format("NEXT ?v ?w", "")
    .replace("B) ", "B) FILTER(SUM(?v) != 3) ")
    .replace("B)\n", "B) FILTER(SUM(?v) != 3)\n")
)
CASES: dict[str, tuple[str, type, str]] = {
    "MAX": (TEXT.format("MAX ?v ?w", ""), Chooser, "choose"),
    "SAMPLE": (TEXT.format("?v ?w", "SAMPLE 3 SEED 1"), MatchPicker, "pick"),
    "FILTER": (FILTERED, MatchSieve, "pick"),
    "folded": (FOLDED, MatchFolder, "pick"),
}


def events(seed: int) -> Iterator[tuple[int, str]]:
    dice, time = random.Random(seed), 0
    for _ in range(30):
        time += dice.choice([1, 1, 1, 2, 6])
        yield time * 1_000_000, f"<{E}a> <{E}{dice.choice('vvw')}> {time} ."


def told(text: str, queries: int, seed: int, size: int) -> tuple[list[list[tuple[int, str]]], int]:
    """What each of equal queries finds, and how often a limit was raised; so many events are pushed at a time."""
    store, errors = oxiseq.Store(), 0
    registered = [store.register(text) for _ in range(queries)]
    every = [*events(seed), (99_000_000, f"<{E}a> <{E}other> 0 .")]
    for low in range(0, len(every), size):
        try:
            store.stream(E + "s").extend(every[low : low + size])
        except LimitError:
            errors += 1
    return [[(match.at_us, str(match)) for match in query.matches()] for query in registered], errors


@pytest.mark.parametrize(("case", "size", "queries"), crossed([*CASES], [1, 4, 100], [1, 2], ways=2))
def test_only_what_ends_there_is_missing(monkeypatch: pytest.MonkeyPatch, case: str, size: int, queries: int) -> None:
    text, kind, method = CASES[case]
    for seed in range(3):
        (every,), _ = told(text, 1, seed, 1)
        usual, calls = getattr(kind, method), [0]

        def fails(self: Any, *given: Any, usual: Any = usual, calls: list[int] = calls) -> Any:
            calls[0] += 1
            if calls[0] % 5 == 3:
                raise LimitError(2, 1, "matches")
            return usual(self, *given)

        with monkeypatch.context() as patch:
            patch.setattr(kind, method, fails)
            found, errors = told(text, queries, seed, size)
        assert errors
        for each in found:
            left = {at for at, _ in each}
            missing = {at for at, _ in every} - left
            assert each == [match for match in every if match[0] in left]
            assert len(missing) <= calls[0] // 5 + 1


RUN = f"""PREFIX : <{E}> SELECT ?n WITHIN 60 SECONDS SLIDING FROM STREAM S :s WHERE {{ SEQ(A : B:+ : C)
DEFINE GPM A ON S {{ ?x :a ?n }} DEFINE GPM B ON S {{ ?x :b ?v FILTER(?v > 0) }} DEFINE GPM C ON S {{ ?x :c ?w }} }}"""
TOO_LONG: dict[str, tuple[str, ...]] = {
    "SPAseq": (RUN,),
    "thresholds": (RUN, RUN.replace("?v > 0", "?v > 1")),
    "a negation that time decides": (
        RUN.replace(": C)", ": C; N! WITHIN 1 SECONDS)").replace("} }", "} DEFINE GPM N ON S { ?x :n ?m } }"),
    ),
    "MAX of sums": (RUN.replace("SELECT ?n", "SELECT (MAX(SUM(?v)) AS ?m)") + " GROUP BY (ENDTIME())",),
    "CEQL": (f"VOCAB <{E}> SELECT * FROM s WHERE (A ; B+ ; C) WITHIN 60 SECONDS",),
}


def run_of(count: int, begin: int) -> Iterator[tuple[int, str]]:
    """A, so many B's and C, a second apart; each a tuple event, too."""
    for place, name in enumerate(["a", *"b" * count, "c"]):
        graph = f"<{E}x> a <{E}{name.upper()}> ; <{E}{name}> {place + 1} ."
        yield (begin + place) * 1_000_000, graph


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("case", TOO_LONG)
def test_an_instant_with_millions_of_matches_is_left_out(monkeypatch: pytest.MonkeyPatch, case: str, size: int) -> None:
    """2^21 and 2^40 matches would end at the second and the third run: they are counted before more than a few
    thousand are listed, though a million may be."""
    dropped: list[int] = []

    def drops(parts: Sequence[Found], count: int) -> list[Found]:
        dropped.append(count)
        return without_last(parts, count)

    for listing in (runner, run):
        monkeypatch.setattr(listing, "without_last", drops)
    store = oxiseq.Store()
    queries = [store.register(text, language="ceql" if case == "CEQL" else "spaseq") for text in TOO_LONG[case]]
    runs = [*run_of(3, 0), *run_of(21, 100), *run_of(40, 200), *run_of(2, 300), (400_000_000, f"<{E}x> <{E}z> 1 .")]
    errors: list[str] = []
    for low in range(0, len(runs), size):
        try:
            store.stream(E + "s").extend(runs[low : low + size])
        except LimitError as error:
            errors.append(str(error))
    found = [[match.end_us // 1_000_000 for match in query.matches()] for query in queries]
    assert len(errors) == (2 if size == 1 else 1)
    assert all("matches that end at one instant (write LIMIT, or count them)" in error for error in errors)
    rows = {4: 7, 303: 3} if case != "MAX of sums" else {4: 1, 303: 1}
    assert found == [[at for at, count in rows.items() for _ in range(count)]] * len(queries)
    assert dropped and max(dropped) <= 2 * runner.UNCOUNTED_MOST


def test_as_many_matches_as_are_allowed_are_counted_and_listed() -> None:
    """2^15 - 1 end at the last event: more than are listed without counting."""
    store = oxiseq.Store()
    query, ceql = store.register(RUN), store.register(TOO_LONG["CEQL"][0], language="ceql")
    store.stream(E + "s").extend([*run_of(15, 0), (100_000_000, f"<{E}x> <{E}z> 1 .")])
    assert len(query.matches()) == len(ceql.matches()) == 2**15 - 1
    assert query.omitted == ceql.omitted == 0


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("case", ["SPAseq", "CEQL", "joined CEQL", "a cross product"])
def test_three_running_stop_a_query(monkeypatch: pytest.MonkeyPatch, case: str, size: int) -> None:
    """The third cluster has three instants beyond the bound; nothing of what comes behind is found, in any batches."""
    monkeypatch.setattr(dictionary, "BOUNDS", InstantBounds(matches=30, rows=30))
    text, language = {
        "SPAseq": (ENDLESS, "spaseq"),
        "CEQL": (f"VOCAB <{E}> SELECT * FROM s WHERE (T AS a ; T+ AS b) WITHIN 50 SECONDS", "ceql"),
        "joined CEQL": (
            f"VOCAB <{E}> SELECT * FROM s WHERE (T AS a ; T+ AS b) FILTER b[x = a.x] WITHIN 50 SECONDS",
            "ceql",
        ),
        "a cross product": (
            f"PREFIX : <{E}> SELECT ?a ?b FROM STREAM :s [RANGE 50 SECONDS SLIDE 1 SECONDS] "
            "WHERE { ?e :v ?a . ?f :v ?b }",
            "spectra",
        ),
    }[case]
    seconds = [*range(6), *range(100, 107), *range(200, 220), *range(300, 303)]
    events = [(at * 1_000_000, f"<{E}e{at}> a <{E}T> ; <{E}x> 1 ; <{E}v> {at} .") for at in seconds]
    store = oxiseq.Store()
    query = store.register(text, language=language, **({"stream_operator": "RSTREAM"} if language == "spectra" else {}))
    raised: list[LimitError] = []
    for low in range(0, len(events), size):
        try:
            store.stream(E + "s").extend(events[low : low + size])
        except LimitError as error:
            raised.append(error)
    assert query.failed and "stopped" in str(raised[-1]) and "stopped" in query.omitted_instants[-1]
    assert "allowed; the instant 1970-01-01T00:0" in query.omitted_instants[0]
    found = [match.at_us // 1_000_000 for match in query.matches()]
    assert query.omitted >= 3 and min(found) < 3 and 200 <= max(found) < 210
    assert (query.omitted, found) == ALIKE.setdefault(case, (query.omitted, found))


ALIKE: dict[str, tuple[int, list[int]]] = {}
"""What was found, and how many instants were left out, in the first batches that were tried."""
ENDLESS = f"""PREFIX : <{E}> SELECT ?a WITHIN 50 SECONDS SLIDING FROM STREAM S :s WHERE {{ SEQ(A : B:+)
DEFINE GPM A ON S {{ ?x :v ?a }} DEFINE GPM B ON S {{ ?y :v ?b }} }}"""


PAIRS = "WINDOW :w { { ?e :v ?a } { ?f :v ?b } }"
RSPQL = f"""PREFIX : <{E}> REGISTER {{}} :o AS SELECT {{}}
FROM NAMED WINDOW :w ON :s [RANGE PT50S STEP PT1S] WHERE {{{{ {{}} }}}}"""
OPERATORS: dict[str, tuple[str, str]] = {
    "a conjunction": (
        f"PREFIX : <{E}> SELECT (COUNT(*) AS ?n) FROM STREAM :s [RANGE 50 SECONDS SLIDE 1 SECONDS] "
        "WHERE { ?e :v ?a . ?f :v ?b }",
        "spectra",
    ),
    "a join": (RSPQL.format("RSTREAM", "(COUNT(*) AS ?n)", PAIRS), "rspql"),
    "new rows": (RSPQL.format("ISTREAM", "?a ?b", PAIRS), "rspql"),
    "events": (RSPQL.format("ISTREAM", "?a ?b", PAIRS).replace("PT50S", "PT20S"), "rspql"),
    "rows that are tried": (
        f"PREFIX : <{E}> SELECT ?a ?b FROM STREAM :s [RANGE 50 SECONDS SLIDE 1 SECONDS] "
        "WHERE { ?e :v ?a . ?f :v ?b FILTER(?a < ?b && ?a + 2 > ?b) }",
        "spectra",
    ),
    "a path": (RSPQL.format("RSTREAM", "(COUNT(*) AS ?n)", "WINDOW :w { ?a :next+ ?b }"), "rspql"),
    "a pattern of events": (
        f"""PREFIX : <{E}> SELECT ?a ?b FROM NAMED :s WIN [RANGE 50000000 SLIDE 1000000] AS :w
        EVENT ON :w {{ ?x :v ?a }} AS A EVENT ON :w {{ ?y :v ?b }} AS B WHERE {{ MATCH {{ A SEQ B }} }}""",
        "rsepql",
    ),
}
TRIED = {"rows that are tried"}
"""Cases in which few rows are made."""
OTHER = f"PREFIX : <{E}> SELECT ?a FROM STREAM :s [RANGE 50 SECONDS SLIDE 1 SECONDS] WHERE {{ ?e :v ?a }}"


def bounds_of(case: str, most: int) -> InstantBounds:
    return InstantBounds(reads=most) if case in TRIED else InstantBounds(made=most)


def clusters(seconds: Iterable[int]) -> list[tuple[int, str]]:
    """An event at each, with a value and an edge to the next second."""
    return [(at * 1_000_000, f"<{E}e{at}> <{E}v> {at} ; <{E}next> <{E}e{at + 1}> .") for at in seconds]


CLUSTERS = clusters([*range(6), *range(100, 107), *range(200, 206), 240, *range(300, 330), *range(400, 403)])


@pytest.mark.parametrize(("case", "queries", "size"), crossed([*OPERATORS], [1, 2], [1, 3, 1000], ways=2))
def test_an_instant_at_which_an_operator_makes_too_much_is_left_out(
    monkeypatch: pytest.MonkeyPatch, case: str, queries: int, size: int
) -> None:
    """What else is found is what is found without a bound, up to the third instant running; other queries go on."""
    text, language = OPERATORS[case]

    def found(most: int, size: int) -> list[tuple[int, bool, list[tuple[int, str]]]]:
        monkeypatch.setattr(dictionary, "BOUNDS", bounds_of(case, most))
        store = oxiseq.Store()
        registered = [store.register(text, language=language) for _ in range(queries)]
        other = store.register(OTHER, language="spectra")
        for low in range(0, len(CLUSTERS), size):
            try:
                store.stream(E + "s").extend(CLUSTERS[low : low + size])
            except LimitError as error:
                what = "a join tries" if case in TRIED else "an operator makes"
                assert f"rows that {what} at one instant" in str(error)
        assert other.omitted == 0 and max(match.at_us for match in other.matches()) == 401_000_000
        return [(q.omitted, q.failed, [(match.at_us, str(match)) for match in q.matches()]) for q in registered]

    every, *_ = found(1 << 20, 1000)
    bounded = found(9, size)
    assert all(each == bounded[0] for each in bounded)
    omitted, failed, rows = bounded[0]
    assert omitted >= 3 and failed and rows
    instants = {at for at, _ in rows}
    assert rows == [row for row in every[2] if row[0] in instants]
    assert max(instants) >= 100_000_000
    assert (omitted, rows) == ALIKE_OPERATORS.setdefault(case, (omitted, rows))


ALIKE_OPERATORS: dict[str, tuple[int, list[tuple[int, str]]]] = {}
"""What was found, and how many instants were left out, in the first batches that were tried."""


@pytest.mark.parametrize("case", OPERATORS)
def test_operators_are_made_again_after_a_restart(monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    """Saved after each event, also where an instant has just been left out."""
    monkeypatch.setattr(dictionary, "BOUNDS", bounds_of(case, 9))
    text, language = OPERATORS[case]
    kb, query = StoreKb(Store()), load(text, language)
    once, again = (lasted(query, E + "s", CLUSTERS, kb, restarts=restarts)[:2] for restarts in (False, True))
    assert once == again
    assert once[1] >= 3


GPMS = """DEFINE GPM A ON S { ?x :v ?a . ?y :v ?b } DEFINE GPM B ON S { ?z :w ?c }"""
MAPPED: dict[str, tuple[str, str]] = {
    "SPAseq": (f"PREFIX : <{E}> SELECT ?a ?c FROM STREAM S :s WHERE {{ SEQ(A; B) {GPMS} }}", "spaseq"),
    "OPTIONAL": (
        f"PREFIX : <{E}> SELECT ?a ?c FROM STREAM S :s WHERE {{ SEQ(A; B) {GPMS} }}".replace(
            "?y :v ?b", "?y :v ?b OPTIONAL { ?x :u ?d }"
        ),
        "spaseq",
    ),
    "RSEP-QL": (
        f"""PREFIX : <{E}> SELECT ?a ?c FROM NAMED :s WIN [RANGE 9000000 SLIDE 1000000] AS :w
        EVENT ON :w {{ ?x :v ?a . ?y :v ?b }} AS A EVENT ON :w {{ ?z :w ?c }} AS B WHERE {{ MATCH {{ A SEQ B }} }}""",
        "rsepql",
    ),
}


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("queries", [1, 2])
@pytest.mark.parametrize("case", MAPPED)
def test_an_event_with_too_many_mappings_has_none(
    monkeypatch: pytest.MonkeyPatch, case: str, queries: int, size: int
) -> None:
    """n triples have n x n mappings, 16 of which are allowed. The third such event with none matched in between stops
    the query."""
    counts = [1, 2, 5, 3, 5, 2, 5, 5, 1, 5, 5, 5, 1]
    events: list[tuple[int, str]] = []
    for place, count in enumerate(counts):
        events.append((2_000_000 * place, " ".join(f"<{E}s{n}> <{E}v> {n} ." for n in range(count))))
        if place < 8:
            events.append((2_000_000 * place + 1_000_000, f"<{E}s> <{E}w> {place} ."))

    def found(rows: int, kept: list[tuple[int, str]]) -> list[tuple[int, bool, list[tuple[int, str]]]]:
        limits = (None, replace(DEFAULT_LIMITS, rows=rows), None)
        monkeypatch.setattr(StreamMatcher.__init__, "__defaults__", limits)
        store = oxiseq.Store()
        text, language = MAPPED[case]
        registered = [store.register(text, language=language) for _ in range(queries)]
        for low in range(0, len(kept), size):
            with suppress(LimitError):
                store.stream(E + "s").extend(kept[low : low + size])
        return [(q.omitted, q.failed, [(match.at_us, str(match)) for match in q.matches()]) for q in registered]

    bounded = found(16, events)
    assert all(each == bounded[0] for each in bounded)
    omitted, failed, rows = bounded[0]
    assert omitted == counts.count(5) and failed
    until = 2_000_000 * 9  # the last one before the three
    without = [(at, graph if graph.count(" .") < 5 else f"<{E}s> <{E}other> 0 .") for at, graph in events]
    left_out = {at for (at, graph) in events if graph.count(" .") == 5}
    whole = [row for row in found(1000, without)[0][2] if row[0] < until and row[0] not in left_out]
    assert [row for row in rows if row[0] < until] == whole


@pytest.mark.parametrize("case", ["a conjunction", "a join", "rows that are tried", "a path"])
def test_operators_that_cannot_be_made_again_do_not_try_for_long(monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    """One event makes, or has tried, 10,000 rows where 100 may be; no operator ever makes, or tries, a fifth of these,
    also where they are made again of what windows hold."""
    monkeypatch.setattr(dictionary, "BOUNDS", bounds_of(case, 100))
    rooms, joins = set[int](), list[JoinAllNode]()
    grow, provide = Buffer.grow, JoinAllNode.provide

    def grows(self: Buffer) -> None:
        grow(self)
        rooms.add(self._room)

    def provides(self: JoinAllNode, answer: int) -> None:
        joins.append(self)
        provide(self, answer)

    monkeypatch.setattr(Buffer, "grow", grows)
    monkeypatch.setattr(JoinAllNode, "provide", provides)
    text, language = OPERATORS[case]
    store = oxiseq.Store()
    query = store.register(text, language=language)
    graph = " ".join(f"<{E}e{n}> <{E}v> {n} ; <{E}next> <{E}e{n + 1}> ." for n in range(100 + 41 * (case == "a path")))
    for event in [(1_000_000, graph), *clusters(range(2, 6))]:
        with suppress(LimitError):
            store.stream(E + "s").extend([event])
    assert query.failed and query.omitted == 3 and "stopped" in query.omitted_instants[-1]
    assert not query.matches() and max(rooms) <= 2_048
    tried = [int(join._memory.arrays.scalars[conjoining.TRIED]) for join in joins]
    assert case not in TRIED or max(tried) < 2_000


def test_an_operator_without_windows_stops_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it keeps cannot be made again: not the batch is lost, but the query ends, by name, and no other."""
    monkeypatch.setattr(dictionary, "BOUNDS", InstantBounds(made=16))
    store = oxiseq.Store()
    pairs = store.register(
        f"PREFIX : <{E}> SELECT ?a ?b FROM STREAM :s WHERE {{ {{ ?x :v ?a }} SEQ {{ ?y :v ?b }} }}", language="epsparql"
    )
    other = store.register(OTHER, language="spectra")
    raised: list[LimitError] = []
    for event in CLUSTERS[:30]:
        try:
            store.stream(E + "s").extend([event])
        except LimitError as error:
            raised.append(error)
    assert len(raised) == 1 and "stopped" in str(raised[0])
    assert pairs.failed and pairs.omitted == 1 and pairs.matches()
    assert not other.failed and other.omitted == 0


def sequence(text: str, tail: str = "", select: str = "?n", within: str = "WITHIN 9 SECONDS SLIDING") -> str:
    names = [name for name in "ABCNJKPQ" if name in text]
    gpms = " ".join(f"DEFINE GPM {name} ON S {{ {PATTERNS[name]} }}" for name in names)
    return f"PREFIX : <{E}> SELECT {select} {within} FROM STREAM S :s WHERE {{ SEQ({text}) {gpms} }} {tail}"


PATTERNS = {
    "A": "?x :a ?n",
    "B": "?x :b ?v",
    "C": "?x :c ?w",
    "N": "?x :d ?m",
    "K": "?x :b ?n GRAPH :g { ?p :friend ?f }",
    "J": "?x :b ?n . ?y :b ?v GRAPH :g { ?p :friend ?f } FILTER(?f > ?n)",
    "P": "?x :b ?n",
    "Q": "?y :b ?v",
}
RULED: dict[str, tuple[str, InstantBounds, tuple[str, int] | None]] = {
    "matches that wait": (
        sequence("A ; B+ ; C; N! WITHIN 2 SECONDS", "ORDER BY ?n"),
        InstantBounds(matches=6),
        None,
    ),
    "MAX of those": (
        sequence("A ; B+ ; C; N! WITHIN 2 SECONDS", "", "MAX ?n"),
        InstantBounds(choices=2),
        ("oxiseq.engine.output.deferred.DEAR", 1),
    ),
    "a window's matches": (
        sequence("B; C", "ORDER BY ?v REPORT ON WINDOW CLOSE", "?v ?w", "WITHIN 9 SECONDS"),
        InstantBounds(matches=5),
        None,
    ),
    "a window's matches of many instants": (
        sequence("B", "ORDER BY ?v REPORT ON WINDOW CLOSE", "?v", "WITHIN 9 SECONDS"),
        InstantBounds(matches=5),
        None,
    ),
    "a window's sample": (
        sequence("B", "SAMPLE 6 SEED 1 REPORT ON WINDOW CLOSE", "?v", "WITHIN 9 SECONDS"),
        InstantBounds(matches=5),
        None,
    ),
    "moments": (
        sequence("A; B", "REPORT EVERY 1 SECONDS", "(COUNT(*) AS ?k)"),
        InstantBounds(),
        ("oxiseq.engine.output.due.MOST_TICKS", 20),
    ),
    "moments of listed matches": (
        sequence("A; B+", "REPORT EVERY 1 SECONDS", "(MAX(SUM(?v)) AS ?k)"),
        InstantBounds(),
        ("oxiseq.engine.output.due.MOST_TICKS", 20),
    ),
    "what the knowledge base adds to a match": (sequence("K+ ; C", "", "?n ?f ?w"), InstantBounds(matches=100), None),
    "that of FILTER": (
        sequence("K+ ; C", "", "NEXT ?n ?f ?w").replace("C)", "C) FILTER(MAX(?f) > 0)", 1),
        InstantBounds(matches=80),
        None,
    ),
    "that of FILTER later": (
        sequence("K+ ; C; N! WITHIN 2 SECONDS", "", "NEXT ?n ?f ?w").replace("S)", "S) FILTER(MAX(?f) > 0)", 1),
        InstantBounds(matches=80),
        None,
    ),
    "a join with the knowledge base": (sequence("J; C", "", "?n ?f ?v"), InstantBounds(made=6), None),
    "patterns at one instant": (sequence("P & Q; C", "", "?n ?v"), InstantBounds(made=3), None),
    "patterns at one instant of partitions": (
        sequence("P & Q", "", "?n ?v", "WITHIN 9 SECONDS SLIDING PARTITION BY ?n").replace(
            "?y :b ?v", "?x :b ?n ; :b ?v"
        ),
        InstantBounds(made=1),
        None,
    ),
}
FRIENDS = " ".join(f"GRAPH <{E}g> {{ <{E}p> <{E}friend> {n} }}" for n in range(3, 5))


def blocks() -> list[tuple[int, str]]:
    """Every fourth block has more of B than the others, and values of it."""
    dice, events = random.Random(7), list[tuple[int, str]]()
    for block in range(12):
        many = block % 4 == 3
        names = ["a", *"b" * (4 if many else dice.randint(1, 2)), "c", *("d" if block % 4 == 1 else "")]
        for place, name in enumerate(names):
            values = range(1, 3 if many and place <= 2 else 2) if name == "b" else (block,)
            graph = " ".join(f"<{E}x> <{E}{name}> {value} ." for value in values)
            events.append((1_000_000 * (40 * block + place), graph))
    events.append((1_000_000 * 600, f"<{E}x> <{E}z> 1 ."))
    return events


@pytest.mark.parametrize(("case", "queries", "size"), crossed([*RULED], [1, 2], [1, 3, 1000], ways=2))
def test_beyond_a_bound_only_the_instant_is_left_out(
    monkeypatch: pytest.MonkeyPatch, case: str, queries: int, size: int
) -> None:
    """What is found is of what is found without the bound; of an instant all or nothing. Another query goes on."""
    text, bounds, constant = RULED[case]
    events = blocks()

    def found(bounds: InstantBounds, constant: tuple[str, int] | None) -> list[tuple[int, bool, list[tuple[int, str]]]]:
        with monkeypatch.context() as patch:
            patch.setattr(dictionary, "BOUNDS", bounds)
            if constant is not None:
                patch.setattr(*constant)
            store = oxiseq.Store()
            store.update(f"INSERT DATA {{ {FRIENDS} }}")
            registered = [store.register(text) for _ in range(queries)]
            other = store.register(OTHER.replace(":v", ":c"), language="spectra")
            for low in range(0, len(events), size):
                with suppress(LimitError):
                    store.stream(E + "s").extend(events[low : low + size])
            assert other.omitted == 0 and len(other.matches()) == 12
            return [(q.omitted, q.failed, [(match.at_us, str(match)) for match in q.matches()]) for q in registered]

    (none, _, every), *_ = found(InstantBounds(), None)
    bounded = found(bounds, constant)
    assert none == 0 and all(each == bounded[0] for each in bounded)
    omitted, failed, rows = bounded[0]
    assert omitted >= 2 and not failed and rows
    instants = {at for at, _ in rows}
    if case in EVENTS:
        events = [(at, graph if graph.count(f"<{E}b>") < 2 else f"<{E}x> <{E}z> 0 .") for at, graph in events]
        assert rows == found(InstantBounds(), None)[0][2]
    else:
        assert rows == [row for row in every if row[0] in instants]
        assert len({at for at, _ in every} - instants) == omitted or case in GAPS
    assert (omitted, rows) == ALIKE_RULED.setdefault(case, (omitted, rows))


GAPS = {"moments", "moments of listed matches"}
"""Cases in which what is left out are many moments as one."""
EVENTS = {"a join with the knowledge base", "patterns at one instant", "patterns at one instant of partitions"}
"""Cases in which an event has no mappings, also for what ends later."""
WINDOWS = {each for each in RULED if each.startswith("a window's")}
"""Cases in which others are answered between two that are left out."""
ALIKE_RULED: dict[str, tuple[int, list[tuple[int, str]]]] = {}


@pytest.mark.parametrize("case", RULED)
def test_what_is_left_out_is_the_same_after_restarts(monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    """Saved after each event; twice as many blocks with too much, so that three come running."""
    text, bounds, constant = RULED[case]
    monkeypatch.setattr(dictionary, "BOUNDS", bounds)
    if constant is not None:
        monkeypatch.setattr(*constant)
    friends = Store()
    friends.update(f"INSERT DATA {{ {FRIENDS} }}")
    kb, query = StoreKb(friends), load(text, "spaseq")
    many = [event for event in blocks() if event[0] // 40_000_000 % 4 == 3]
    events = [*blocks(), *((at + 600_000_000, graph) for at, graph in many), (2_000_000_000, f"<{E}x> <{E}z> 1 .")]
    once, again = (lasted(query, E + "s", sorted(events), kb, restarts=restarts) for restarts in (False, True))
    assert once == again
    assert once.omitted >= 3 and once.over == (case not in GAPS | EVENTS | WINDOWS)


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("formula", ["A ; B+ ; C", "A : B+ : C"])
def test_an_event_that_takes_too_many_steps_is_read_by_no_letter(
    monkeypatch: pytest.MonkeyPatch, formula: str, size: int
) -> None:
    """A step is made when an event needs it first. Here one of them cannot be made, or none from then on: the query
    is stopped where even an event that no letter reads takes one, or with the third event."""
    usual, calls = StepCache.add_step, [0]
    kinds = "ABABCABBBCABCZZ"

    def found(fails: range, kinds: str) -> tuple[tuple[str, ...], bool, list[str]]:
        calls[0] = 0

        def add_step(self: StepCache, state: int, symbol: int) -> bool:
            calls[0] += 1
            if calls[0] in fails:
                raise LimitError(17, 16, "steps of the automaton that one event takes")
            return usual(self, state, symbol)

        with monkeypatch.context() as patch:
            patch.setattr(StepCache, "add_step", add_step)
            store = oxiseq.Store()
            query = store.register(f"VOCAB <{E}> SELECT * FROM s WHERE {formula} WITHIN 6 SECONDS", language="ceql")
            events = [(1_000_000 * at, f"<{E}x> a <{E}{kind}> .") for at, kind in enumerate(kinds)]
            for low in range(0, len(events), size):
                with suppress(LimitError):
                    store.stream(E + "s").extend(events[low : low + size])
            return query.omitted_instants, query.failed, [str(match) for match in query.matches()]

    omitted, failed, one = found(range(4, 5), kinds)
    assert len(omitted) == 1 and not failed and "steps of the automaton" in omitted[0]
    at = int(omitted[0].split("00:00:")[1][:2])
    assert kinds[at] in "ABC"
    assert ((), False, one) == found(range(0), f"{kinds[:at]}Z{kinds[at + 1 :]}")
    assert one != found(range(0), kinds)[2]
    omitted, failed, _ = found(range(4, 1000), kinds)
    assert failed and "stopped" in omitted[-1]
