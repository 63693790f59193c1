"""RSP-QL as SPECTRA and back, both as RSEP-QL: the same answers on random streams; what RSEP-QL cannot say."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from loaded import load
from profiles import drawn
from reference.rsp import evaluate_rsp
from rsp_lives import Row, row_of, without_label
from rsp_strategies import Setting, continuous, kb_store, triples

import oxiseq
from oxiseq.grammar import LANGUAGES, QueryError, parse
from oxiseq.grammar.rsp_algebra import RspQuery
from oxiseq.grammar.translating import DIRECTIONS


def answers(setting: Setting, text: str, language: str) -> Counter[Row]:
    streams = {iri: events for iri, events in setting.streams.items() if iri in load(text, language).streams}
    found = oxiseq.run(text, streams=streams, kb=kb_store(setting.kb), language=language)  # type: ignore[call-overload]
    return Counter(row_of(answer) for answer in found)


def by_reference(setting: Setting, text: str, language: str) -> Counter[tuple[int, tuple[tuple[str, str], ...]]]:
    query = load(text, language)
    assert isinstance(query, RspQuery)
    streams = {iri: [(time, triples(graph)) for time, graph in events] for iri, events in setting.streams.items()}
    found = evaluate_rsp(query, streams, kb_store(setting.kb))
    return Counter((a.at, tuple((v, without_label(t)) for v, t in a.row)) for a in found)


def same(setting: Setting, one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether two texts, each with its language, have the same answers: by the reference, by the engine."""
    by_both = by_reference(setting, *one) == by_reference(setting, *other)
    return by_both and answers(setting, *one) == answers(setting, *other)


@drawn(30)
@given(continuous(), st.sampled_from([("rspql", "spectra"), ("spectra", "rspql")]))
def test_the_other_form_answers_the_same(setting: Setting, languages: tuple[str, str]) -> None:
    source, target = languages
    text = oxiseq.Query(setting.text, source).translate(target).text
    assert same(setting, (text, target), (setting.text, source))
    back = oxiseq.Query(text, target).translate(source).text
    assert same(setting, (back, source), (setting.text, source))


@drawn(30)
@given(
    continuous(),
    st.sampled_from(["", "\nREPORT EVERY 12", "\nREPORT ON WINDOW CLOSE"]),
    st.booleans(),
    st.sampled_from(["rspql", "spectra"]),
)
def test_rsepql_answers_the_same_where_it_can(setting: Setting, when: str, every_instant: bool, other: str) -> None:
    text = setting.text.split("\nREPORT")[0] + when
    if every_instant:
        for slide in range(2, 6):
            text = text.replace(f"SLIDE {slide}]", "SLIDE 1]")
    try:
        load(text, "rspql")
        translated = oxiseq.Query(text, "rspql").translate("rsepql").text
    except QueryError as error:
        assume(error.code in ("translate", "report"))
        return
    assert same(setting, (translated, "rsepql"), (text, "rspql"))
    back = oxiseq.Query(translated, "rsepql").translate(other).text
    assert same(setting, (back, other), (text, "rspql"))


SPECTRA = "SELECT ?x FROM STREAM <http://e/S> [RANGE 4 SECONDS SLIDE 2 SECONDS] WHERE { ?x <http://e/p> ?y }"


def test_the_window_gets_a_name_and_loses_it() -> None:
    named = oxiseq.Query(SPECTRA, "spectra").translate("rspql").text
    assert "FROM NAMED WINDOW <urn:window> ON <http://e/S>" in named
    assert "WINDOW <urn:window> {" in named
    assert parse(oxiseq.Query(named, "rspql").translate("spectra").text, "spectra") == parse(SPECTRA, "spectra")


@pytest.mark.parametrize(("stream", "name"), [("<http://e/S>", ":w"), (":w", "<urn:window>")])
def test_the_window_is_named_as_people_do_unless_something_is(stream: str, name: str) -> None:
    text = "PREFIX : <http://e/> " + SPECTRA.replace("<http://e/S>", stream)
    named = oxiseq.Query(text, "spectra").translate("rspql").text
    assert f"FROM NAMED WINDOW {name} ON " in named and f"  WINDOW {name} {{" in named
    assert parse(oxiseq.Query(named, "rspql").translate("spectra").text, "spectra") == parse(text, "spectra")


def test_what_is_told_is_written_out() -> None:
    text = SPECTRA.replace(" SLIDE 2 SECONDS", "")
    assert "REGISTER ISTREAM AS\n" in oxiseq.Query(text, "spectra").translate("rsepql").text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SPECTRA, "between two slides this window holds other events in RSEP-QL"),
        (SPECTRA + " REPORT EVERY 3 SECONDS", "between two slides this window holds other events in RSEP-QL"),
        (SPECTRA.replace("SECONDS", "EVENTS"), "windows of RSEP-QL count time, not events"),
    ],
)
def test_windows_that_rsepql_fills_otherwise(text: str, message: str) -> None:
    with pytest.raises(QueryError) as raised:
        oxiseq.Query(text, "spectra").translate("rsepql")
    assert (raised.value.code, raised.value.message) == ("translate", message)
    assert text[raised.value.column - 1 :].lstrip("[").startswith("RANGE 4")


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        (
            "SELECT * FROM NAMED <urn:s> WIN [ID][RANGE 5 SLIDE 2] AS <urn:w> WHERE { WINDOW <urn:w> { ?x ?y ?z } }",
            "between two slides this window holds other events in RSP-QL",
            "RANGE 5",
        ),
        (
            "SELECT * FROM NAMED <urn:s> WIN [RANGE 5 SLIDE 2] AS <urn:w> WHERE { WINDOW <urn:w> { ?x ?y ?z } }",
            "between two slides this window holds other events in RSP-QL",
            "RANGE 5",
        ),
        (
            "SELECT ?x FROM NAMED <urn:s> WIN [ID] AS <urn:w> EVENT ON <urn:w> { ?x ?y 1 } AS A WHERE { MATCH { A } }",
            "RSP-QL has no events",
            "EVENT ON",
        ),
    ],
)
def test_what_rsp_ql_lacks_of_rsepql_has_its_place(text: str, message: str, place: str) -> None:
    load(text, "rsepql")
    with pytest.raises(QueryError) as raised:
        oxiseq.Query(text, "rsepql").translate("rspql")
    assert (raised.value.code, raised.value.message) == ("translate", message)
    assert text[raised.value.column - 1 :].startswith(place)


@pytest.mark.parametrize("window", ["[LND 3]", "[ID]", "[INTERVAL 2 5]", "[LND 3][RANGE 2 SLIDE 1]"])
@pytest.mark.parametrize("language", ["rspql", "spectra"])
def test_landmarks_and_intervals_are_the_same_windows(window: str, language: str) -> None:
    text = f"SELECT ?x FROM NAMED <http://e/S> WIN {window} AS <urn:w> WHERE {{ WINDOW <urn:w> {{ ?x <urn:p> ?y }} }}"
    events = [(time, f"<urn:x{time}> <urn:p> <urn:y> .") for time in range(1, 8)]
    setting = Setting(text, "rsepql", {"http://e/S": events}, "", None, None, None)
    translated = oxiseq.Query(text, "rsepql").translate(language).text
    assert same(setting, (translated, language), (text, "rsepql"))
    assert answers(setting, text, "rsepql")


SPASEQ = "SELECT * FROM STREAM S <urn:s> WHERE { SEQ(A) DEFINE GPM A ON S { ?x ?y ?z } }"
OTHERS = {
    "spaseq": (SPASEQ, "A) DEFINE"),
    "ceql": ("VOCAB <http://e/> SELECT * FROM S WHERE A ; B", "A ; B"),
    "epsparql": ("SELECT * FROM STREAM <urn:s> WHERE { ?x <urn:p> ?y }", "{ ?x"),
    "rsepql": ("SELECT * FROM NAMED <urn:s> WIN [ID] AS <urn:w> WHERE { WINDOW <urn:w> { ?x ?y ?z } }", "FROM NAMED"),
    "spectra": (SPECTRA, "FROM STREAM"),
}


@pytest.mark.parametrize("source", OTHERS)
@pytest.mark.parametrize("target", LANGUAGES)
def test_languages_without_a_direction_say_why(source: str, target: str) -> None:
    if source == target or (source, target) in DIRECTIONS:
        return
    text, place = OTHERS[source]
    with pytest.raises(QueryError, match=f"{source} is not translated to {target}: ") as raised:
        oxiseq.Query(text, source).translate(target)
    assert text[raised.value.column - 1 :].startswith(place)
    assert raised.value.code == "translate" and raised.value.hint and "^" in str(raised.value)


def test_no_direction() -> None:
    with pytest.raises(QueryError, match="spectra is not translated to ceql: CEQL matches events that are") as raised:
        oxiseq.Query(SPECTRA, "spectra").translate("ceql")
    assert SPECTRA[raised.value.column - 1 :].startswith("FROM STREAM")
    assert raised.value.hint == "spectra is translated to rspql and rsepql"
    with pytest.raises(oxiseq.OxiseqError, match="'sql' is not known"):
        oxiseq.Query(SPECTRA, "spectra").translate("sql")
