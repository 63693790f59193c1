"""EP-SPARQL's doors: events that start after they end, or at what is no time, among many. They alone are left out,
counted and named."""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oxiseq
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.flow.epsparql.query import compile_intervals
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.run.intervals import IntervalRun
from oxiseq.engine.snapshot.saving import restore, save
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load
from oxiseq.sources.warned import IgnoredWarning

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
sys.path.insert(0, str(Path(__file__).parents[1] / "live"))
from cli_files import oxiseq as command
from live_events import Batch
from live_services import live, push, rest, rows

EX = "http://example.org/"
STREAM = f"{EX}S"
QUERY = f"PREFIX : <{EX}> SELECT ?v ?w FROM STREAM <{STREAM}> {{ {{ :e :p ?v }} SEQ {{ :e :p ?w }} }}"
STARTED = "http://www.w3.org/ns/prov#startedAtTime"
TIME = "http://www.w3.org/ns/prov#generatedAtTime"
STAMP = "<http://www.w3.org/2001/XMLSchema#dateTime>"
SECOND = 1_000_000


def graph(number: int) -> str:
    """Of twenty events; the tenth starts after it ends, the eleventh at no time, the twelfth lasts since the fifth."""
    line = f'<{EX}e> <{EX}p> "{number}" .\n'
    start = {10: f'"1970-01-01T00:00:15Z"^^{STAMP}', 11: f"<{EX}noon>", 12: f'"1970-01-01T00:00:05Z"^^{STAMP}'}
    return line + (f"<{EX}e> <{STARTED}> {start[number]} .\n" if number in start else "")


def pairs(*without: int) -> list[tuple[int, str]]:
    return [(number * SECOND, graph(number)) for number in range(20) if number not in without]


def quads() -> str:
    """The same as N-Quads."""
    lines = []
    for number in range(20):
        name = f"<urn:event:{number}>"
        lines += [line.removesuffix(".") + f"{name} ." for line in graph(number).splitlines()]
        lines.append(f'{name} <{TIME}> "1970-01-01T00:00:{number:02}Z"^^{STAMP} .')
    return "\n".join(lines) + "\n"


FIRST = (
    f"the event of 1970-01-01T00:00:10Z on <{STREAM}> is no interval: its prov:startedAtTime is 1970-01-01T00:00:15Z, "
    "but an event cannot start after its time"
)
SECOND_ONE = (
    f"the event of 1970-01-01T00:00:11Z on <{STREAM}> is no interval: its prov:startedAtTime is not a time: "
    f"<{EX}noon>; xsd:dateTime or xsd:integer (microseconds) expected"
)


def expected() -> int:
    """Answers of the other eighteen."""
    return len(oxiseq.run(QUERY, {STREAM: pairs(10, 11)}, language="epsparql"))


def test_run_warns_and_goes_on() -> None:
    with pytest.warns(IgnoredWarning, match="00:00:10Z.*00:00:11Z") as told:
        found = oxiseq.run(QUERY, {STREAM: pairs()}, language="epsparql")
    ignored = [warning.filename for warning in told if issubclass(warning.category, IgnoredWarning)]
    assert ignored == [__file__]
    assert (len(found), found.events, found.ignored, found.late) == (expected(), 20, 2, 0)
    assert expected() == 18 * 17 // 2 - 5, "five events end from 5 to 9, none of them before the twelfth starts"
    assert found.ignored_events == (FIRST, SECOND_ONE)
    assert found[:3].ignored == found.sorted().ignored == 2


def test_starts_given_in_python() -> None:
    events = [(0, graph(0)), (7, 5, graph(1)), (4, 6, graph(2)), (9, 9, graph(3))]
    with pytest.warns(IgnoredWarning, match="is 1970-01-01T00:00:00.000007Z, but an event cannot start after its time"):
        found = oxiseq.run(QUERY, {STREAM: events}, language="epsparql")
    assert [(m.start_us, m.end_us) for m in found] == [(0, 6), (0, 9), (4, 9)]
    store = oxiseq.Store()
    query = store.register(QUERY, language="epsparql")
    store.stream(STREAM).push(graph(0), 0)
    with pytest.warns(IgnoredWarning):
        store.stream(STREAM).push(graph(1), 5, start=7)
    store.stream(STREAM).push(graph(2), 6, start=4)
    query.close()
    assert ([(m.start_us, m.end_us) for m in query.poll("0s")], query.ignored_count) == ([(0, 6)], 1)


WORDS = {
    '"noon"': "not a time: ",
    '"1970-02-30T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>': "not a valid time: ",
    f'"{"9" * 39}"^^<http://www.w3.org/2001/XMLSchema#integer>': "a time outside of the years 1 to 9999: ",
    f'"{"9" * 100_000}"^^<http://www.w3.org/2001/XMLSchema#integer>': "not a time: ",
    f"<urn:{'x' * 100_000}>": "not a time: <urn:xxx",
    "_:b": "not a time: _:",
}


@pytest.mark.parametrize("term", WORDS, ids=lambda term: term[:12])
def test_what_is_no_time_is_told_in_few_words(term: str) -> None:
    with pytest.warns(IgnoredWarning):
        events = [*pairs(10, 11), (10**8, f"<{EX}e> <{STARTED}> {term} .")]
        found = oxiseq.run(QUERY, {STREAM: events}, language="epsparql")
    assert (len(found), found.ignored) == (expected(), 1)
    (why,) = found.ignored_events
    assert f"its prov:startedAtTime is {WORDS[term]}" in why
    assert len(why) < 400


def test_a_start_is_cut_off_to_microseconds_as_every_time_is() -> None:
    start = '"1970-01-01T00:00:00.0000019Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    with warnings.catch_warnings():
        warnings.simplefilter("error", IgnoredWarning)
        events = [(0, graph(0)), (3, graph(1) + f"<{EX}e> <{STARTED}> {start} .")]
        found = oxiseq.run(QUERY, {STREAM: events}, language="epsparql")
    assert (found.events, found.ignored) == (2, 0)
    assert found[0].end_us == 3


def test_ten_are_named_and_all_are_counted() -> None:
    many = [(number, graph(10)) for number in range(10_000)]
    with pytest.warns(IgnoredWarning, match="and 9,997 more"):
        found = oxiseq.run(QUERY, {STREAM: many}, language="epsparql")
    assert (found.ignored, len(found.ignored_events), len(found)) == (10_000, 10, 0)


@pytest.mark.filterwarnings("ignore::oxiseq.sources.warned.IgnoredWarning")
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), max_size=12), st.integers(0, 2**32))
def test_what_is_no_interval_costs_nothing_else(events: list[tuple[int, int]], seed: int) -> None:
    """The answers are those of the other events, lateness included, however all are pushed together."""
    dice = random.Random(seed)
    whole: list[tuple[int, str]] = []
    clean: list[tuple[int, str]] = []
    for number, (end, length) in enumerate(events):
        if dice.random() < 0.4:
            whole.append((end + 3, _lasting(100 + number, end + 4)))
        whole.append((end, _lasting(number, end - length)))
        clean.append(whole[-1])
    queries = []
    for mine in (whole, clean):
        store = oxiseq.Store()
        queries.append(store.register(QUERY, language="epsparql", lateness="2us"))
        for part in _parts(mine, dice):
            store.stream(STREAM).extend(part)
        queries[-1].close()
    told = [[(m.start_us, m.end_us, str(dict(m))) for m in q.poll("0s")] for q in queries]
    assert told[0] == told[1]
    assert (queries[0].late_count, queries[0].ignored_count) == (queries[1].late_count, len(whole) - len(clean))
    assert queries[0].events == len(whole)


def _lasting(number: int, start: int) -> str:
    return f"<{EX}e> <{EX}p> {number} . <{EX}e> <{STARTED}> {start} ."


def _parts(events: list[tuple[int, str]], dice: random.Random) -> Iterator[list[tuple[int, str]]]:
    while events:
        size = dice.randrange(1, 6)
        yield events[:size]
        events = events[size:]


def test_counts_are_no_records_and_are_saved() -> None:
    terms, kb = TermDictionary(), StoreKb(pyoxigraph.Store())
    plan = compile_intervals(load(QUERY, "epsparql"))
    run = IntervalRun(plan, terms, kb)
    run.push(STREAM, encode_events([(10, graph(10))] * 50, terms))
    run.advance()
    again = restore(save(run, terms), plan, TermDictionary(), kb)
    for each in (run, again):
        assert (each.events, each.faults.count, each.records, each.state) == (50, 50, 0, {"rows": 0, "ignored": 50})
    assert again.faults == run.faults


def test_the_command_line_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pairs.epsparql").write_text(QUERY, encoding="utf-8")
    Path("events.nq").write_text(quads(), encoding="utf-8")
    result = command("run", "pairs.epsparql", "--stream", f"{STREAM}=events.nq", "-f", "json")
    assert result.exit_code == 0, result.stderr
    assert f"20 events · {expected()} matches · 0 late · 2 ignored" in result.stderr
    assert f"ignored: {FIRST}\nignored: {SECOND_ONE}" in result.stderr


def test_why_tells_and_counts_the_others() -> None:
    told = oxiseq.Query(QUERY, "epsparql").why({STREAM: pairs()})
    assert told.found == expected()
    assert told.notes == (f"ignored: {FIRST}", f"ignored: {SECOND_ONE}")
    assert FIRST in str(told)
    assert told.gpms[0].saw == 18


def test_compare_tells_of_both() -> None:
    draft = QUERY.replace("SEQ", "EQUALS")
    told = oxiseq.Query(QUERY, "epsparql").compare(draft, {STREAM: pairs()})
    assert (told.kept, len(told.lost)) == (0, expected())
    lines = [f"ignored: {FIRST}", f"ignored: {SECOND_ONE}"]
    assert told.notes == (*(f"the draft: {line}" for line in lines), *(f"the other: {line}" for line in lines))
    assert "\n".join(told.notes) in str(told)
    assert told.to_json()["notes"] == list(told.notes)


def test_the_server_tells_in_the_answer_the_state_and_the_metrics(tmp_path: Path) -> None:
    with live(tmp_path) as service:
        service.queries.register("pairs", QUERY, "epsparql")
        pushed = push(service, Batch(STREAM, "1", quads().encode()))
        assert (pushed.accepted, pushed.rejected, pushed.ignored) == (20, 0, 2)
        assert [each.reason for each in pushed.reasons] == [
            f"skipped by the query pairs: {FIRST}",
            f"skipped by the query pairs: {SECOND_ONE}",
        ]
        rest(service)
        status = service.queries.get("pairs")
        assert (status.faults.count, status.faults.first) == (2, (FIRST, SECOND_ONE))
        assert (status.events, status.error, status.doing) == (20, "", "running")
        assert b'oxiseq_query_ignored_events_total{query="pairs"} 2.0' in service.metrics.text()
        count = len(rows(service, "pairs"))
        assert count == expected() - 17, "the newest instant is open"
    with live(tmp_path) as service:
        assert service.queries.get("pairs").faults.count == 2
