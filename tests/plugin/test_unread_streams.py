"""A stream that the query does not read is left out, with a warning that names those that it reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import oxiseq
from oxiseq.cli import main
from oxiseq.sources.warned import UnreadStreamWarning

S, T = "http://e/S", "http://e/T"
EVENTS = {1: "<http://e/a> <http://e/p> 1 .", 2: "<http://e/a> <http://e/p> 2 ."}
SPASEQ = f"""PREFIX : <http://e/> SELECT ?x FROM STREAM N <{S}> WHERE {{ SEQ(A) DEFINE GPM A ON N {{ ?x :p ?o }} }}"""
QUERIES = {
    "spaseq": SPASEQ,
    "ceql": "VOCAB <http://e/> SELECT * FROM S WHERE p AS x",
    "epsparql": f"PREFIX : <http://e/> SELECT * FROM STREAM <{S}> {{ ?x :p ?y }}",
    "rspql": f"SELECT * FROM STREAM <{S}> [RANGE 5 SLIDE 1] WHERE {{ ?s ?p ?o }}",
    "spectra": f"SELECT * FROM STREAM <{S}> [RANGE 5 SLIDE 1] WHERE {{ ?s ?p ?o }}",
    "rsepql": f"SELECT * FROM NAMED <{S}> WIN [LND 0] AS <http://e/w> WHERE {{ WINDOW <http://e/w> {{ ?s ?p ?o }} }}",
}
WARNING = rf"the query reads no stream '{T}': its events are left out; the query reads .*<{S}>"


def streams(*names: str) -> dict[str, Any]:
    return {name: list(EVENTS.items()) for name in names}


@pytest.mark.parametrize("language", [*QUERIES])
def test_run_leaves_it_out(language: str) -> None:
    alone = oxiseq.run(QUERIES[language], streams(S), language=language)  # type: ignore[call-overload]
    with pytest.warns(UnreadStreamWarning, match=WARNING) as warned:
        both = oxiseq.run(QUERIES[language], streams(T, S), language=language)  # type: ignore[call-overload]
    assert len(both) == len(alone)
    assert [w.filename for w in warned if w.category is UnreadStreamWarning] == [__file__]


@pytest.mark.parametrize("language", [*QUERIES])
def test_why_leaves_it_out(language: str) -> None:
    alone = oxiseq.Query(QUERIES[language], language).why(streams(S))
    with pytest.warns(UnreadStreamWarning, match=WARNING):
        both = oxiseq.Query(QUERIES[language], language).why(streams(T, S))
    assert (both.found, both.gpms) == (alone.found, alone.gpms)


def test_compare_warns_of_what_neither_reads() -> None:
    other = SPASEQ.replace(S, "http://e/U")
    with pytest.warns(UnreadStreamWarning, match=f"'{T}'") as warned:
        oxiseq.Query(other).compare(SPASEQ, streams(S, T, "http://e/U"))
    assert len(warned) == 1


def test_a_query_that_names_no_stream_reads_all(recwarn: pytest.WarningsRecorder) -> None:
    text = "PREFIX : <http://e/> SELECT * { ?x :p ?y }"
    given = {S: [(1, EVENTS[1])], T: [(2, EVENTS[2])]}
    assert len(oxiseq.run(text, given, language="epsparql")) == 2
    assert not len(recwarn)


@pytest.mark.parametrize("command", ["run", "why"])
def test_the_command_line_says_so_too(tmp_path: Path, command: str) -> None:
    query, events = tmp_path / "q.spaseq", tmp_path / "e.nq"
    query.write_text(SPASEQ, encoding="utf-8")
    events.write_text("", encoding="utf-8")
    result = CliRunner().invoke(main, [command, str(query), "-s", f"{T}={events}", "-s", f"N={events}"])
    assert result.exit_code == 0
    told = f"warning: the query reads no stream '{T}': its events are left out; the query reads N <{S}>"
    assert told in result.stderr
