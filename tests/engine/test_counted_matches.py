"""Matches counted as they are found: numbers of any size, the same rows as by listing, snapshots, and what says so."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
from profiles import crossed
from pyoxigraph import Literal

sys.path.insert(0, str(Path(__file__).parent))
from engine_runs import STREAM, Reading, query, random_readings, readings_batch
from loaded import load
from pyoxigraph import Store

import oxiseq
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.sequence.memory import Capacities
from oxiseq.engine.terms.dictionary import TermDictionary

KIND = "<http://e/x{0}> <http://e/kind> <http://e/{1}> ."
LOOP = """PREFIX : <http://e/>
SELECT (COUNT(*) AS ?n) {window}
FROM STREAM S <http://e/s>
WHERE {{
  SEQ(A : B:+ : C)
  DEFINE GPM A ON S {{ ?a :kind :a }}
  DEFINE GPM B ON S {{ ?b :kind :b }}
  DEFINE GPM C ON S {{ ?c :kind :c }}
}} {tail}"""


def loop(count: int, window: str = "", tail: str = "") -> list[oxiseq.Match]:
    """One A, so many B's, one C: 2^count - 1 matches."""
    kinds = ["a", *["b"] * count, "c"]
    events = [(time, KIND.format(time, kind)) for time, kind in enumerate(kinds)]
    return list(oxiseq.run(LOOP.format(window=window, tail=tail), streams={"http://e/s": events}))


@pytest.mark.parametrize("window", ["", "WITHIN 1 HOUR", "WITHIN 1 HOUR SLIDING", "WITHIN 500 EVENTS"])
@pytest.mark.parametrize("count", [1, 63, 64, 65, 127, 128, 200, 300])
def test_numbers_are_exact(count: int, window: str) -> None:
    (row,) = loop(count, window)
    assert row["n"] == Literal(2**count - 1)


def test_numbers_beyond_2_to_the_4096_are_unbound_and_compare_rightly() -> None:
    (row,) = loop(4_500, tail="HAVING (COUNT(*) > 1000000)")
    assert row.get("n") is None
    assert loop(4_500, tail="HAVING (COUNT(*) < 1000000)") == []
    (row,) = loop(4_095)
    assert row["n"] == Literal(2**4095 - 1)


KEYED = dict.fromkeys("ABCN", "KEYED")
RISING = {**KEYED, "B": "KEYED FILTER(?bv > ?av)"}
SELECT = "SELECT {} (COUNT(*) AS ?n) (SUM(?av) AS ?s) (MAX(?bv) AS ?m)"
PATTERNS = {
    "next": ("A; B; C", KEYED),
    "any": ("A : B : C", KEYED),
    "strict": ("A, B", KEYED),
    "loop": ("A; B+; C", RISING),
    "any loop": ("A : B:+ : C", {}),
    "negation": ("A; N!; B", KEYED),
    "leading negation": ("N!; A; B", KEYED),
    "optional": ("A; B?; C", KEYED),
    "nested": ("A : (B; C)+", {}),
    "or": ("A; (B | C)", KEYED),
}
WINDOWS = ("", "WITHIN PT0.00002S", "WITHIN PT0.00002S SLIDING", "WITHIN 15 EVENTS", "WITHIN 15 EVENTS SLIDING")


def rows(
    text: str, readings: list[Reading], listing: bool, capacities: Capacities | None, batch: int
) -> list[tuple[object, ...]]:
    terms = TermDictionary()
    plan = compile_query(load(text), terms, listing=listing, composing=False)
    assert (plan.runner.sequence.counted or plan.runner.folding is not None) is not listing, plan.runner.listed
    run = QueryRun(plan, terms, StoreKb(Store()), capacities=capacities)
    found = []
    for low in range(0, len(readings), batch):
        run.push(STREAM, readings_batch(terms, readings[low : low + batch]))
        found += run.advance()
    run.close()
    found += run.advance()
    return [
        (int(each.time[i]), *(terms.term(int(t)) if t else None for t in each.values[i]))
        for each in found
        for i in range(len(each))
    ]


@pytest.mark.parametrize(
    ("pattern", "window", "tail"),
    crossed([*PATTERNS], [*WINDOWS], ["", "GROUP BY ?k", "GROUP BY (ENDTIME())"], ways=3),
)
def test_counted_as_by_listing(pattern: str, window: str, tail: str) -> None:
    if "EVENTS" in window and "ENDTIME" in tail:
        pytest.skip("the end of a match is no number of an instant: such matches are listed")
    sequence, filters = PATTERNS[pattern]
    if "?k" in tail and not filters:
        filters = KEYED
    text = query(sequence, window, SELECT.format("?k" if "?k" in tail else ""), **filters) + f" {tail}"
    if "+" in sequence:
        text = text.replace("MAX(?bv)", "MAX(LAST(?bv))")
    many = 30 if ":+" in sequence or ")+" in sequence else 120  # listing takes its time
    readings = random_readings(len(text), many, "aabbcn", 2, 5)
    listed = rows(text, readings, True, None, 1_000)
    assert rows(text, readings, False, None, 1_000) == listed
    assert rows(text, readings, False, Capacities.smallest(), random.Random(text).choice([1, 3, 10])) == listed
    assert listed or many == 30 or pattern == "leading negation"


FOLDED = [
    "(SUM(SUM(?bv)) AS ?s)",
    "(SUM(COUNT(B)) AS ?m) (COUNT(*) AS ?i)",
    "(SUM(?av) AS ?s) (SUM(SUM(?bv)) AS ?m)",
    "(COUNT(?av) AS ?i) (MAX(?av) AS ?m) (SUM(SUM(?bv)) AS ?s)",
]
TAILS = [
    "GROUP BY (ENDTIME())",
    "GROUP BY ?k (ENDTIME())",
    "GROUP BY ?av (ENDTIME())",
    "",
    "GROUP BY ?k ?av",
    "HAVING (SUM(COUNT(B)) > 3)",
]
CLAUSES = ["", "NEXT", "LAST", "CONSUME BY ANY", "PARTITION BY ?k", "NEXT PARTITION BY ?k CONSUME BY PARTITION"]


SEQUENCES = ["A; B+; C", "A : B:+ : C", "A : (B; C)+", "N!; A; B;+", "A; (B;+)?; C", "A & N; B+"]


@pytest.mark.parametrize(("sequence", "window"), crossed(SEQUENCES, [*WINDOWS]))
def test_folded_as_by_listing(sequence: str, window: str) -> None:
    dice = random.Random(f"{sequence} {window}")
    found = 0
    for _ in range(20):
        clause, tail = dice.choice(CLAUSES), dice.choice(TAILS)
        if ("SLIDING" in window and "ENDTIME" not in tail) or ("EVENTS" in window and "PARTITION" in clause):
            continue
        select, _, partition = clause.partition("PARTITION")
        chosen = select if select.strip() in ("NEXT", "LAST") else ""
        if "CONSUME" in select:
            window_and = f"CONSUME BY ANY {window}"
        else:
            window_and = f"PARTITION{partition} {window}" if partition else window
        keys = " ".join(name for name in ("?k", "?av") if name in tail.partition("HAVING")[0])
        text = query(sequence, window_and, f"SELECT {chosen} {keys} {dice.choice(FOLDED)}", **KEYED) + f" {tail}"
        readings = random_readings(dice.randrange(1000), 40, "aabbcn", 2, 5)
        listed = rows(text, readings, True, None, 1_000)
        told = rows(text, readings, False, None, 1_000)
        assert sorted(told, key=str) == sorted(listed, key=str), text
        assert rows(text, readings, False, Capacities.smallest(), dice.choice([1, 3, 10])) == told, text
        found += len(listed)
    assert found


def folded(count: int, columns: str, tail: str = "", window: str = "") -> list[dict[str, str]]:
    """One A, so many B's whose v is 1, 2, 3..., one C."""
    text = LOOP.format(window=window, tail=tail).replace("(COUNT(*) AS ?n)", columns)
    text = text.replace("?b :kind :b", "?b :kind :b ; :v ?v")
    kinds = ["a", *["b"] * count, "c"]
    value = ' <http://e/x{0}> <http://e/v> "{0}"^^<http://www.w3.org/2001/XMLSchema#integer> .'
    events = [(time, (KIND + value).format(time, kind)) for time, kind in enumerate(kinds)]
    return [{name: term.value for name, term in row.items()} for row in oxiseq.run(text, {"http://e/s": events})]


@pytest.mark.parametrize(
    ("window", "tail"), [("", ""), ("WITHIN 1 HOUR", ""), ("WITHIN 1 HOUR SLIDING", "GROUP BY (ENDTIME())")]
)
def test_sums_over_iterations_of_matches_that_no_engine_could_list(window: str, tail: str) -> None:
    columns = "(COUNT(*) AS ?n) (SUM(SUM(?v)) AS ?s) (SUM(COUNT(B)) AS ?m)"
    (row,) = folded(200, columns, tail, window)
    assert row == {"n": str(2**200 - 1), "s": str(2**199 * 20_100), "m": str(2**199 * 200)}
    having = f"{tail} HAVING (SUM(COUNT(B)) > 1000000000000)"
    assert len(folded(100, columns, having, window)) == 1 and folded(30, columns, having, window) == []


def test_sums_of_too_many_matches_are_told_of() -> None:
    """Composed windows leave them unbound."""
    with pytest.raises(oxiseq.LimitError, match="binary digits of the number of matches"):
        folded(4_100, "(SUM(SUM(?v)) AS ?s)", "HAVING (RAND() < 2)", "WITHIN 1 HOUR")
    assert folded(4_100, "(SUM(SUM(?v)) AS ?s)", "HAVING (COUNT(*) > 9)", "WITHIN 1 HOUR") == [{}]


def test_queries_that_fold_alike_and_otherwise_tell_what_they_tell_alone() -> None:
    """They differ in HAVING, in what is summed, and in whether matches are folded at all."""
    template = LOOP.replace("?b :kind :b", "?b :kind :b ; :v ?v")
    told = [
        ("(SUM(SUM(?v)) AS ?s)", ""),
        ("(SUM(SUM(?v)) AS ?s)", "HAVING (COUNT(*) > 10)"),
        ("(SUM(COUNT(B)) AS ?s)", ""),
        ("(COUNT(*) AS ?s)", ""),
        ("(MAX(SUM(?v)) AS ?s)", ""),
    ]
    texts = [template.format(window="", tail=tail).replace("(COUNT(*) AS ?n)", columns) for columns, tail in told]
    value = ' <http://e/x{0}> <http://e/v> "{0}"^^<http://www.w3.org/2001/XMLSchema#integer> .'
    events = [(time, (KIND + value).format(time, kind)) for time, kind in enumerate("abbcbabcbbc")]
    alone = [[(m.at_us, m["s"]) for m in oxiseq.run(text, {"http://e/s": events})] for text in texts]
    store = oxiseq.Store()
    queries = [store.register(text) for text in texts]
    for event in events:
        store.stream("http://e/s").push(event[1], event[0])
    store.advance(1_000)
    assert [[(m.at_us, m["s"]) for m in q.poll("0s", idle="0s")] for q in queries] == alone
    assert [len(rows) for rows in alone] == [3, 2, 3, 3, 3]


def test_what_would_join_too_many_values_is_unbound() -> None:
    """Counted matches may be 2^200."""
    (row,) = folded(200, "(COUNT(*) AS ?n) (GROUP_CONCAT(?a) AS ?x)")
    assert row == {"n": str(2**200 - 1)}
    (row,) = folded(2, "(GROUP_CONCAT(STR(?a)) AS ?x)")
    assert row == {"x": "http://e/x0 http://e/x0 http://e/x0"}


def test_explain_says_how() -> None:
    counted = (
        query("A; B", "WITHIN 5 MINUTES", "SELECT ?k (COUNT(*) AS ?n)", **KEYED) + " GROUP BY ?k HAVING (RAND() < 2)"
    )
    assert "matches are counted as they are found, apart by ?k" in oxiseq.Query(counted).explain().clauses
    visits = "matches are counted by visiting the live nodes of an instant, none is listed"
    composed = "matches are counted by composed windows, none is listed"
    weights = "matches are counted and summed as they are found, by weights of nodes"
    for window, inner, tail, how in (
        ("", "MIN", "", "lists every match"),
        ("WITHIN PT1M SLIDING", "SUM", "HAVING (RAND() < 2)", "lists every match"),
        ("WITHIN PT1M SLIDING", "SUM", "GROUP BY (ENDTIME()) REPORT EVERY 1 HOUR", visits),
        ("WITHIN PT1M SLIDING", "SUM", "GROUP BY (ENDTIME())", composed),
        ("WITHIN PT1M SLIDING", "SUM", "", composed),
        ("", "SUM", "", composed),
        ("WITHIN PT1M", "SUM", "", composed),
        ("WITHIN PT1M", "SUM", "HAVING (RAND() < 2)", weights),
    ):
        made = query("A; B+", window, f"SELECT (SUM({inner}(?bv)) AS ?n)", **KEYED) + f" {tail}"
        because = "" if how == composed else f": {inner}(?bv) is no value that a run carries"
        assert f"{how}{because}" in oxiseq.Query(made).explain().clauses


@pytest.mark.parametrize("window", WINDOWS)
def test_a_filter_behind_seq_drops_matches_before_they_count(window: str) -> None:
    text = query("A : B", window, "SELECT (COUNT(*) AS ?n)", **KEYED).replace(
        "SEQ(A : B)", "SEQ(A : B) FILTER(?bv > ?av)"
    )
    terms = TermDictionary()
    run = QueryRun(compile_query(load(text), terms), terms, StoreKb(Store()))
    run.push(STREAM, readings_batch(terms, [Reading(0, "a", 1, 5), Reading(1, "b", 1, 9), Reading(2, "b", 1, 3)]))
    found = run.advance()
    run.close()
    found += run.advance()
    assert [terms.term(int(i)) for batch in found for i in batch.values[:, 0]] == [Literal(1)]


def test_a_window_closes_when_the_clock_has_passed_it() -> None:
    """Without a later event, as a live store does where idle is configured."""
    terms = TermDictionary()
    text = query("A; B", "WITHIN PT0.00001S", "SELECT (COUNT(*) AS ?n)", **KEYED)
    run = QueryRun(compile_query(load(text), terms), terms, StoreKb(Store()), start=0)
    run.push(STREAM, readings_batch(terms, [Reading(1, "a"), Reading(2, "b"), Reading(3, "a")]))
    assert run.advance() == []
    assert run.deadline == 9
    run.punctuate(STREAM, 9)
    assert run.advance() == []
    run.punctuate(STREAM, 10)
    (batch,) = run.advance()
    assert (batch.time.tolist(), terms.term(int(batch.values[0, 0]))) == ([9], Literal(1))
    assert run.deadline is None
    run.close()
    assert run.advance() == []


@pytest.mark.parametrize("window", ["", "WITHIN 5 seconds SLIDING"])
def test_a_lone_instant_is_told_of_at_the_first_moment_of_report_every(window: str) -> None:
    """As a store tells of it when its clock goes on."""
    text = LOOP.format(window=window, tail="REPORT EVERY PT2S").replace("A : B:+ : C", "A")
    one, second = KIND.format(0, "a"), 1_000_000
    assert [(m.at_us, m["n"]) for m in oxiseq.run(text, {"http://e/s": [(7, one)]})] == [(7 + 2 * second, Literal(1))]
    store = oxiseq.Store()
    query_ = store.register(text)
    store.stream("http://e/s").push(one, 7)
    store.advance(7 + 3 * second)
    assert [(m.at_us, m["n"]) for m in query_.poll("0s", idle="0s")] == [(7 + 2 * second, Literal(1))]
    both = [(7, one), (7 + 2 * second, KIND.format(1, "a"))]
    assert [m.at_us - 7 for m in oxiseq.run(text, {"http://e/s": both})] == [2 * second]


def test_too_many_moments_of_report_every_are_told_of() -> None:
    """One wrong clock costs an error, not the machine; what comes after it is reported as ever."""
    store = oxiseq.Store()
    query_ = store.register(LOOP.format(window="", tail="REPORT EVERY PT1S").replace("A : B:+ : C", "A"))
    stream, far = store.stream("http://e/s"), 1_700_000_000_000_000
    stream.push(KIND.format(0, "a"), 0)
    with pytest.raises(oxiseq.LimitError, match="write a longer EVERY"):
        stream.push(KIND.format(1, "a"), far)
    stream.push(KIND.format(2, "a"), far + 1_000_000)
    query_.close()
    rows = [(match.at_us - far, match["n"]) for match in query_.poll("0s", idle=None)]
    assert rows == [(0, Literal(2)), (1_000_000, Literal(3))]


def test_the_last_of_no_iteration_is_unbound_also_where_another_pattern_binds_the_variable() -> None:
    text = """PREFIX : <http://e/>
SELECT (SUM(LAST(?k)) AS ?s) (COUNT(*) AS ?n)
FROM STREAM S <http://e/s>
WHERE {
  SEQ((A; B{2}) | C)
  DEFINE GPM A ON S { ?a :kind :a }
  DEFINE GPM B ON S { ?b :kind :b ; :k ?k }
  DEFINE GPM C ON S { ?c :kind :c ; :k ?k }
}"""
    event = "<http://e/x> <http://e/kind> <http://e/{}> . <http://e/x> <http://e/k> {} ."
    numbers = [(1, "c", 7), (2, "a", 1), (3, "b", 2), (4, "b", 3)]
    integer = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    events = [(time, event.format(kind, integer.format(k))) for time, kind, k in numbers]
    rows = oxiseq.run(text, {"http://e/s": events})
    assert [(row["n"], row.get("s")) for row in rows] == [(Literal(1), None), (Literal(2), None)]
    assert [row["s"] for row in oxiseq.run(text, {"http://e/s": events[1:]})] == [Literal(3)]
