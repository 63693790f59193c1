"""CEQL's doors: one event that is no tuple event among many. It alone is left out, counted and named."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import oxiseq
from oxiseq.sources.warned import IgnoredWarning

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
sys.path.insert(0, str(Path(__file__).parents[1] / "live"))
from cli_files import oxiseq as command
from live_events import Batch
from live_services import live, push, rest, rows

EX = "http://example.org/"
STREAM = f"{EX}S"
QUERY = f"VOCAB <{EX}> SELECT * FROM S WHERE A AS x; B AS y WITHIN 10 SECONDS"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
TIME = "http://www.w3.org/ns/prov#generatedAtTime"
SECOND = 1_000_000


def graph(number: int) -> str:
    """Of twenty events; the tenth has two types, the eleventh two subjects."""
    line = f"_:e <{TYPE}> <{EX}{'AB'[number % 2]}> .\n"
    if number == 10:
        return line + f"_:e <{TYPE}> <{EX}C> .\n"
    return line + f"_:f <{TYPE}> <{EX}C> .\n" if number == 11 else line


def pairs(count: int = 20) -> list[tuple[int, str]]:
    return [(number * SECOND, graph(number)) for number in range(count)]


def quads() -> str:
    """The same as N-Quads."""
    lines = []
    for number in range(20):
        name = f"<urn:event:{number}>"
        lines += [line.replace(" .", f" {name} .").replace("_:", f"_:n{number}") for line in graph(number).splitlines()]
        stamp = f"1970-01-01T00:00:{number:02}Z"
        lines.append(f'{name} <{TIME}> "{stamp}"^^<http://www.w3.org/2001/XMLSchema#dateTime> .')
    return "\n".join(lines) + "\n"


FIRST = f"the event of 1970-01-01T00:00:10Z on <{STREAM}> is no tuple event: it has two types; a tuple has one of each"
SECOND_ONE = (
    f"the event of 1970-01-01T00:00:11Z on <{STREAM}> is no tuple event: its triples have several subjects; make one "
    "event of each"
)


def expected() -> int:
    """Matches of the other eighteen."""
    found = oxiseq.run(QUERY, {"S": [pair for pair in pairs() if pair[0] // SECOND not in (10, 11)]}, language="ceql")
    return len(found)


def test_run_warns_and_goes_on() -> None:
    with pytest.warns(IgnoredWarning, match="00:00:10Z.*00:00:11Z") as told:
        found = oxiseq.run(QUERY, {"S": pairs()}, language="ceql")
    assert [warning.filename for warning in told] == [__file__]
    assert (len(found), found.events, found.ignored) == (expected(), 20, 2)
    assert found.ignored_events == (FIRST, SECOND_ONE)
    assert found.sorted().ignored == 2


def test_ten_are_named_and_all_are_counted() -> None:
    many = [(number, graph(10)) for number in range(100)]
    with pytest.warns(IgnoredWarning, match="and 97 more"):
        found = oxiseq.run(QUERY, {"S": many}, language="ceql")
    assert (found.ignored, len(found.ignored_events), len(found)) == (100, 10, 0)


def test_two_values_of_an_attribute_name_it() -> None:
    text = f"VOCAB <{EX}> SELECT * FROM S WHERE A AS x FILTER x[price > 1] PARTITION BY [card]"
    graphs = [f"_:e a <{EX}A> ; <{EX}{name}> 1, 2 ." for name in ("price", "card", "other")]
    with pytest.warns(IgnoredWarning):
        found = oxiseq.run(text, {"S": list(enumerate(graphs))}, language="ceql")
    assert [each.partition("event: ")[2] for each in found.ignored_events] == [
        f"it has two values of {name}; a tuple has one of each" for name in ("price", "card")
    ]


def test_the_command_line_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pairs.ceql").write_text(QUERY, encoding="utf-8")
    Path("events.nq").write_text(quads(), encoding="utf-8")
    result = command("run", "pairs.ceql", "--stream", "S=events.nq", "-f", "json")
    assert result.exit_code == 0, result.stderr
    assert f"20 events · {expected()} matches · 0 late · 2 ignored" in result.stderr
    assert f"ignored: {FIRST}\nignored: {SECOND_ONE}" in result.stderr


def test_why_tells_and_counts_the_others() -> None:
    told = oxiseq.Query(QUERY, "ceql").why({"S": pairs()})
    assert told.found == expected()
    assert told.notes == (f"ignored: {FIRST}", f"ignored: {SECOND_ONE}")
    assert FIRST in str(told)


def test_the_server_tells_in_the_answer_the_state_and_the_metrics(tmp_path: Path) -> None:
    with live(tmp_path) as service:
        service.queries.register("pairs", QUERY, "ceql")
        pushed = push(service, Batch(STREAM, "1", quads().encode()))
        assert (pushed.accepted, pushed.rejected, pushed.ignored) == (20, 0, 2)
        assert [each.reason for each in pushed.reasons] == [
            f"skipped by the query pairs: {FIRST}",
            f"skipped by the query pairs: {SECOND_ONE}",
        ]
        assert push(service, Batch(STREAM, "1", quads().encode())).ignored is None
        rest(service)
        status = service.queries.get("pairs")
        assert (status.faults.count, status.faults.first) == (2, (FIRST, SECOND_ONE))
        assert (status.events, status.error) == (20, "")
        assert b'oxiseq_query_ignored_events_total{query="pairs"} 2.0' in service.metrics.text()
        assert len(rows(service, "pairs")) == expected()
    with live(tmp_path) as service:
        assert service.queries.get("pairs").faults.count == 2
