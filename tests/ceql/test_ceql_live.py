"""Live CEQL queries: the protocol of continuous queries, late events, several streams, beside SPAseq."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from ceql_strategies import VOCAB, CeqlOptions, CeqlSituation, as_tuples, ceql_situations
from hypothesis import given
from hypothesis import strategies as st
from loaded import load
from reference.ceql import evaluate_ceql

import oxiseq
from oxiseq.sources.warned import IgnoredWarning

PAIR = f"VOCAB <{VOCAB}> SELECT * FROM S WHERE A AS x; B AS y WITHIN 10 SECONDS"
TWO = f"VOCAB <{VOCAB}> SELECT * FROM S, T WHERE A; B"


def event(kind: str, **values: object) -> str:
    more = "".join(f"; <{VOCAB}{name}> {value}" for name, value in values.items())
    return f"_:e a <{VOCAB}{kind}> {more} ."


def spans(matches: list[oxiseq.Match]) -> list[tuple[int, int]]:
    return [(m.positions.first, m.positions.last) for m in matches]


def test_a_match_comes_with_the_push_that_completes_it() -> None:
    """With a single stream nothing later has to be waited for."""
    store = oxiseq.Store()
    query = store.register(PAIR, language="ceql")
    seen: list[oxiseq.Match] = []
    query.subscribe(seen.append)
    stream = store.stream(f"{VOCAB}S")
    stream.push(event("A"), 1)
    stream.push(event("B"), 2)
    assert spans(seen) == [(0, 1)] and not query.open
    assert seen[0].events["y"] == ((f"{VOCAB}S", 2),)
    stream.push(event("B"), 2)
    assert spans(seen) == [(0, 1), (0, 2)]
    assert query.events == 3 and query.variables == ("A", "x", "B", "y") and query.state["events"] <= 3


def test_matches_are_handed_out_and_the_query_closes() -> None:
    store = oxiseq.Store()
    query = store.register(PAIR, language="ceql")
    store.stream(f"{VOCAB}S").extend([(1, event("A")), (2, event("B"))])
    assert spans(list(query.poll("0s"))) == [(0, 1)]
    query.close()
    assert not list(query.poll()) and not store.queries


def test_with_two_streams_an_event_waits_for_the_other_stream() -> None:
    store = oxiseq.Store()
    query = store.register(TWO, language="ceql")
    s, t = store.stream(f"{VOCAB}S"), store.stream(f"{VOCAB}T")
    s.push(event("A"), 1)
    s.push(event("B"), 5)
    assert query.open
    t.push(event("B"), 3)
    assert spans(list(query.poll("0s", idle=None))) == [(0, 1)]
    store.advance(6)
    assert spans(list(query.poll("0s", idle=None))) == [(0, 2)]
    t.push(event("B"), 5)
    assert query.late_count == 1


def test_a_waiting_consumer_takes_what_is_there_as_complete() -> None:
    store = oxiseq.Store()
    query = store.register(TWO, language="ceql")
    store.stream(f"{VOCAB}S").extend([(1, event("A")), (2, event("B"))])
    assert spans(list(query.poll("200ms"))) == [(0, 1)]


def test_late_events_are_counted_and_handed_out() -> None:
    store = oxiseq.Store()
    query = store.register(PAIR, language="ceql")
    stream = store.stream(f"{VOCAB}S")
    stream.push(event("B"), 5)
    stream.push(event("A", v=1), 4)
    assert query.late_count == 1
    (late,) = query.drain_late_events()
    assert (late.stream, late.time_us, len(late.graph)) == (f"{VOCAB}S", 4, 2)


def test_lateness_puts_events_in_order() -> None:
    store = oxiseq.Store()
    query = store.register(PAIR, language="ceql", lateness="5us")
    stream = store.stream(f"{VOCAB}S")
    stream.extend([(10, event("B")), (8, event("A"))])
    assert query.open and not query.late_count
    stream.advance(20)
    assert spans(list(query.poll("0s", idle=None))) == [(0, 1)]


def test_what_is_no_tuple_is_left_out_and_told() -> None:
    store = oxiseq.Store()
    query = store.register(PAIR, language="ceql")
    stream = store.stream(f"{VOCAB}S")
    with pytest.warns(IgnoredWarning, match="1970-01-01T00:00:00.000001Z on <.*S> .*its triples have several subjects"):
        stream.push(f"<urn:a> a <{VOCAB}A> . <urn:b> a <{VOCAB}A> .", 1)
    with pytest.warns(IgnoredWarning, match="it has two types"):
        stream.extend([(1, event("A")), (2, f"<urn:a> a <{VOCAB}A>, <{VOCAB}B> ."), (3, event("B"))])
    assert spans(list(query.poll("0s"))) == [(0, 1)]
    assert (query.ignored_count, query.events, query.late_count) == (2, 4, 0)
    assert [each.partition(" is ")[0] for each in query.ignored_events] == [
        f"the event of 1970-01-01T00:00:00.00000{time}Z on <{VOCAB}S>" for time in (1, 2)
    ]
    assert query.state["ignored"] == 2


@pytest.mark.filterwarnings("ignore::oxiseq.sources.warned.IgnoredWarning")
@given(ceql_situations(CeqlOptions()), st.integers(0, 2**32))
def test_what_is_no_tuple_costs_nothing_else(situation: CeqlSituation, seed: int) -> None:
    """The answer is that of the other events, order and positions included, however they are pushed together."""
    dice = random.Random(seed)
    stores = [oxiseq.Store() for _ in range(2)]
    queries = [store.register(situation.text, language="ceql", lateness="2us") for store in stores]
    found: tuple[list[oxiseq.Match], ...] = ([], [])
    for query, mine in zip(queries, found, strict=True):
        query.subscribe(mine.append)
    faulty = 0
    for name in situation.streams:
        whole, clean = [], []
        for each in (e for e in situation.events if e.stream == name):
            if dice.random() < 0.4:
                wrong = dice.choice(["<urn:other> a <urn:X> .", f"_:e a <{VOCAB}A>, <{VOCAB}B> ."])
                whole.append((each.time + dice.randrange(9), each.graph + wrong))
                faulty += 1
            whole.append((each.time, each.graph))
            clean.append((each.time, each.graph))
        stores[0].stream(VOCAB + name).extend(whole)
        stores[1].stream(VOCAB + name).extend(clean)
    for query in queries:
        query.close()
    assert [(m.positions.first, m.positions.last, m.positions.all, m.at_us) for m in found[0]] == [
        (m.positions.first, m.positions.last, m.positions.all, m.at_us) for m in found[1]
    ]
    assert (queries[0].ignored_count, queries[1].ignored_count) == (faulty, 0)
    assert queries[0].late_count == queries[1].late_count


def test_queries_of_both_languages_share_a_stream() -> None:
    """Matches of one push come in the order of registration."""
    store = oxiseq.Store()
    seen: list[str] = []
    head = f"PREFIX v: <{VOCAB}> SELECT ?e FROM STREAM S <{VOCAB}S>"
    spaseq = f"{head} WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?e a v:B }} }}"
    store.register(PAIR, language="ceql").subscribe(lambda _: seen.append("first"))
    store.register(spaseq).subscribe(lambda _: seen.append("spaseq"))
    store.register(PAIR, language="ceql").subscribe(lambda _: seen.append("second"))
    store.stream(f"{VOCAB}S").extend([(1, event("A")), (2, event("B")), (3, event("D"))])
    assert seen == ["first", "spaseq", "second"]


def test_names_of_streams_may_be_mapped() -> None:
    store = oxiseq.Store()
    query = store.register(PAIR, language="ceql", stream_names={"S": "urn:mine"})
    store.stream("urn:mine").extend([(1, event("A")), (2, event("B"))])
    assert query.reads == ("urn:mine",) and len(list(query.poll("0s"))) == 1


@given(ceql_situations(CeqlOptions(limits=False)), st.lists(st.integers(0, 3), max_size=30))
def test_answers_do_not_depend_on_how_events_are_pushed(situation: CeqlSituation, cuts: list[int]) -> None:
    """Streams in turn, in pieces; the clock of one behind that of the other."""
    store = oxiseq.Store()
    query = store.register(situation.text, language="ceql")
    found: list[oxiseq.Match] = []
    query.subscribe(found.append)
    left = {name: [(e.time, e.graph) for e in situation.events if e.stream == name] for name in situation.streams}
    for turn, count in enumerate([*cuts, *[9] * 9]):
        name = situation.streams[turn % len(situation.streams)]
        store.stream(VOCAB + name).extend(left[name][:count])
        left[name] = left[name][count:]
    query.close()
    expected = evaluate_ceql(load(situation.text, "ceql"), as_tuples(situation.events))
    assert Counter((m.positions.first, m.positions.last, frozenset(m.positions.all)) for m in found) == Counter(
        (c.start, c.end, c.positions) for c in expected
    )


COUNTED = f"""VOCAB <{VOCAB}> SELECT [k], COUNT(*) AS n, SUM(x[v]) AS s FROM S WHERE A+ AS x; B
PARTITION BY [k] WITHIN 10 SECONDS GROUP BY [k] HAVING COUNT(*) > 2"""


def test_an_alert_on_how_many_complex_events_end_at_an_event() -> None:
    store = oxiseq.Store()
    query = store.register(COUNTED, language="ceql", lateness="2us")
    seen: list[oxiseq.Match] = []
    query.subscribe(seen.append)
    stream = store.stream(f"{VOCAB}S")
    stream.push(event("A", k=1, v=1), 1)
    stream.push(event("A", k=2, v=8), 2)
    stream.push(event("B", k=1), 5)
    stream.push(event("A", k=1, v=2), 3)  # not in order, not late
    stream.push(event("A", k=1, v=9), 2)  # late
    store.advance(9)
    assert query.late_count == 1 and query.variables == ("k", "n", "s")
    assert [(m.at_us, {name: term.value for name, term in m.items()}) for m in seen] == [
        (5, {"k": "1", "n": "3", "s": "6"})
    ]
    assert seen[0].events == {} and seen[0].positions is None
