"""CEQL shown in SPAseq: the same complex events on random streams, by the references and by the engine; what SPAseq
cannot say."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from ceql_strategies import RDF_TYPE, VOCAB, CeqlEvent, CeqlOptions, CeqlSituation, ceql_situations
from hypothesis import assume, event, given
from profiles import drawn
from pyoxigraph import RdfFormat, Triple, parse
from reference.ceql import evaluate_ceql
from reference.evaluate import evaluate
from reference.tuples import tuple_events

import oxiseq
from oxiseq.grammar import QueryError, load

OPTIONS = CeqlOptions(limits=False)
Found = Counter[tuple[int, frozenset[tuple[str, int]]]]
"""(end, events) → how often."""


def at_different_times(events: tuple[CeqlEvent, ...]) -> tuple[CeqlEvent, ...]:
    """Each a little later than those that were simultaneous; gaps stay gaps."""
    moved, last = [], -1
    for each in events:
        last = max(each.time, last + 1)
        moved.append(replace(each, time=last))
    return tuple(moved)


def answers(text: str, language: str, situation: CeqlSituation) -> Found:
    streams = {
        f"{VOCAB}{name}": [(e.time, e.graph) for e in situation.events if e.stream == name]
        for name in situation.streams
    }
    found = oxiseq.run(text, streams, language=language)  # type: ignore[call-overload]
    return Counter((m.at_us, frozenset(e for each in m.events.values() for e in each)) for m in found)


def by_ceql_reference(text: str, situation: CeqlSituation) -> Found:
    items = tuple_events([stream for _, stream in streams_of(situation)])
    times = {item.position: item.time for item in items}
    names = {e.time: e.stream for e in situation.events}
    found = evaluate_ceql(load(text, "ceql"), items)
    return Counter((c.time, frozenset((VOCAB + names[times[p]], times[p]) for p in c.positions)) for c in found)


def by_spaseq_reference(text: str, situation: CeqlSituation) -> Found:
    rows = evaluate(load(text), dict(streams_of(situation))).rows
    return Counter((r.end, frozenset(e for each in r.events.values() for e in each)) for r in rows)


def streams_of(situation: CeqlSituation) -> list[tuple[str, list[tuple[int, list[Triple]]]]]:
    return [
        (
            VOCAB + name,
            [
                (e.time, [q.triple for q in parse(e.graph.encode(), format=RdfFormat.N_TRIPLES)])
                for e in situation.events
                if e.stream == name
            ],
        )
        for name in situation.streams
    ]


@drawn(40)
@given(ceql_situations(OPTIONS))
def test_spaseq_finds_the_same_complex_events(situation: CeqlSituation) -> None:
    try:
        text = oxiseq.Query(situation.text, "ceql").translate("spaseq").text
    except QueryError as error:
        assume(error.code != "translate")
        raise
    load(text)
    situation = replace(situation, events=at_different_times(situation.events))
    expected = by_ceql_reference(situation.text, situation)
    event(f"complex events: {min(sum(expected.values()), 3)}")
    assert by_spaseq_reference(text, situation) == expected
    assert answers(situation.text, "ceql", situation) == expected
    assert answers(text, "spaseq", situation) == expected


def query(where: str, columns: str = "*", rest: str = "") -> str:
    return f"VOCAB <http://e/> SELECT {columns} FROM S WHERE {where} {rest}"


@pytest.mark.parametrize(
    "where",
    [
        "A; B",
        "A OR B",
        "A+",
        "A; (A OR B)+",
        "(A; B)+",
        "(A OR B)+; A",
        "A AS x; B FILTER x[v > 1] OR x[w < 2]",
        "A+ FILTER A[v > 1] AND A[w > 1]",
    ],
)
def test_these_can_be_said(where: str) -> None:
    load(oxiseq.Query(query(where), "ceql").translate("spaseq").text)


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        (query("A; B", rest="WITHIN 3 [t]"), "a window over an attribute", "WITHIN 3 [t]"),
        (query("A; B", rest="WITHIN 0 EVENTS"), "SPAseq has no window of size 0", "WITHIN 0 EVENTS"),
        (query("A+; A+"), "an event A can match here and at column 41", "A+ "),
        (query("A OR A"), "an event A can match here and at column 41", "A "),
        (query("A; B", "B"), "SELECT does not show this A", "A; B"),
        (
            query("A+ FILTER A[v > 1] OR A[w > 1]"),
            "this OR concerns several events",
            "A[v > 1] OR A[w > 1]",
        ),
        (
            query("A; B FILTER A[v > 1] OR B[v > 1]"),
            "this OR concerns several events",
            "A[v > 1] OR B[v > 1]",
        ),
    ],
)
def test_what_spaseq_cannot_say_has_its_place(text: str, message: str, place: str) -> None:
    with pytest.raises(QueryError) as raised:
        oxiseq.Query(text, "ceql").translate("spaseq")
    assert raised.value.message.startswith(message)
    assert raised.value.code == "translate"
    assert text[raised.value.column - 1 :].startswith(place)
    assert "^" in str(raised.value)


def test_attributes_that_may_be_missing_are_optional() -> None:
    asked = query("A FILTER A[v > 1 AND (w = 1 OR u = 2 OR NOT (v = 2 OR x = 3))]")
    text = oxiseq.Query(asked, "ceql").translate("spaseq").text
    certain, *optional = " ".join(text.split()).split("OPTIONAL")
    assert certain.endswith("{ ?A a :A . ?A :v ?A_v . ")
    assert [part.split()[2] for part in optional] == [":u", ":w", ":x"]


def test_partitions_with_contiguity_take_events_of_any_type() -> None:
    text = query("A : B", rest="PARTITION BY [k]")
    graphs = [
        (time, f'_:e <{RDF_TYPE}> <http://e/{kind}> . _:e <http://e/k> "1" .')
        for time, kind in ((1, "A"), (2, "C"), (3, "B"))
    ]
    translated = oxiseq.Query(text, "ceql").translate("spaseq").text
    assert len(oxiseq.run(translated, {"http://e/S": graphs})) == 0
    assert len(oxiseq.run(translated, {"http://e/S": [graphs[0], graphs[2]]})) == 1


def test_names_of_several_types_are_told() -> None:
    text = oxiseq.Query(query("(A OR B)+ AS x"), "ceql").translate("spaseq").text
    assert "# x is A and B\n" in text


def test_order_by_start_is_that_of_starttime() -> None:
    text = query("A AS x; B AS y", rest="ORDER BY START DESC\nLIMIT 2")
    graphs = [(time, f"_:e <{RDF_TYPE}> <http://e/{kind}> .") for time, kind in enumerate("AAAB")]
    translated = oxiseq.Query(text, "ceql").translate("spaseq").text
    found = oxiseq.run(translated, {"http://e/S": graphs})
    assert [min(t for events in m.events.values() for _, t in events) for m in found] == [2, 1]


def test_sums_are_not_ordered_by() -> None:
    with pytest.raises(QueryError, match="order by START"):
        oxiseq.Query(query("A AS x; B AS y", rest="ORDER BY SUM(x[v]) DESC\nLIMIT 2"), "ceql").translate("spaseq")


def test_samples_are_others() -> None:
    with pytest.raises(QueryError, match="SAMPLE draws other matches in SPAseq"):
        oxiseq.Query(query("A; B", rest="SAMPLE 2"), "ceql").translate("spaseq")


@pytest.mark.parametrize("having", ["", "HAVING n > 2 AND COUNT(*) < 8"])
def test_counts_are_those_that_end_at_one_time(having: str) -> None:
    text = query("A+ AS x; B", "COUNT(*) AS n, [k]", f"PARTITION BY [k] GROUP BY [k] {having}")
    events = [
        (time, f"_:e <{RDF_TYPE}> <http://e/{kind}> . _:e <http://e/k> {key} .")
        for time, (kind, key) in enumerate(zip("AABABABB", ['"1"', '"2"'] * 4, strict=True))
    ]
    translated = oxiseq.Query(text, "ceql").translate("spaseq")
    told, again = (
        [(m.at_us, dict(m)) for m in oxiseq.run(each, {name: events}, language=language)]
        for each, name, language in ((text, "S", "ceql"), (translated, "S", "spaseq"))
    )
    assert told == again and len(told) == (1 if having else 4)


def test_sums_over_all_events_are_not_translated() -> None:
    with pytest.raises(QueryError, match="runs over all events of all complex events") as raised:
        oxiseq.Query(query("A+", "SUM(A[v]) AS s"), "ceql").translate("spaseq")
    assert raised.value.code == "translate"
