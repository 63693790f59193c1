"""One `Match` and one `Matches` for all languages: a mapping, a sequence, a table, files."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyoxigraph as ox
import pytest
from query_forms import QUERIES as FORMS
from query_forms import SPASEQ, E, S

import oxiseq
from oxiseq.engine.events.time import to_datetime
from oxiseq.matches.match import short

QUERIES = FORMS | {"SPAseq, CONSTRUCT": ("spaseq", SPASEQ.format("CONSTRUCT { ?x :then ?b . ?x :by _:n }"))}
EVERY = pytest.mark.parametrize("name", QUERIES)


def run(name: str, seconds: int = 4) -> oxiseq.Matches:
    language, text = QUERIES[name]
    graph = f"<{E}x> a <{E}T> ; <{E}p> {{}} ."
    events = [(1_000_000 * t, graph.format(t)) for t in range(1, seconds)]
    names: dict[str, Any] = {"stream_names": {"S": S}} if language == "ceql" else {}
    return oxiseq.run(text, {S: events}, language=language, **names)


@EVERY
def test_a_match_is_a_mapping_of_what_is_bound(name: str) -> None:
    found = run(name)
    assert len(found) > 0
    for match in found:
        assert type(match) is oxiseq.Match and isinstance(match, Mapping)
        row = dict(match)
        assert list(row) == list(match) == [v for v in found.variables if v in match] and len(match) == len(row)
        assert all(match[v] == term == match.get(v) and term is not None for v, term in row.items())
        assert match, "a match is true also where it binds nothing"
        assert "nobody" not in match and match.get("nobody") is None
        with pytest.raises(KeyError, match="no variable 'nobody'"):
            match["nobody"]


@EVERY
def test_matches_are_equal_hashed_and_pickled_by_what_they_say(name: str) -> None:
    found, again = run(name), run(name)
    assert list(found) == list(again) and set(found) == set(again)
    assert len({*found, *again}) == len(found), "no two of them are equal"
    for match, other in zip(found, again, strict=True):
        copy = pickle.loads(pickle.dumps(match))
        assert copy == match == other and hash(copy) == hash(match) == hash(other)
        assert copy.graph == match.graph and repr(copy) == repr(match)
        for told in ("at", "at_us", "start", "start_us", "end", "end_us", "events", "positions"):
            assert getattr(copy, told) == getattr(match, told)
        assert dict(copy) == dict(match) and all(copy[v] == match[v] for v in match)
        with pytest.raises(KeyError):
            copy["nobody"]
    assert found[0] != dict(found[0])


def test_a_pickled_match_is_read_in_another_process(tmp_path: Path) -> None:
    match = run("SPAseq")[0]
    (tmp_path / "match").write_bytes(pickle.dumps(match))
    program = f"import pickle; m = pickle.load(open({str(tmp_path / 'match')!r}, 'rb')); print(m['a'], m.events, m.at)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert told == f"{match['a']} {match.events} {match.at}\n"


@EVERY
def test_matches_are_a_sequence(name: str) -> None:
    found = run(name)
    assert type(found) is oxiseq.Matches
    assert all(hasattr(found, name) for name in ("__contains__", "__iter__", "__reversed__", "index", "count"))
    assert not isinstance(found, Sequence), "Polars would take it apart, and not as an Arrow stream"
    assert found[0] in found and found.index(found[-1]) == len(found) - 1 and found.count(found[0]) == 1
    assert list(reversed(found)) == list(found)[::-1] and list(found[1:]) == list(found)[1:]
    assert set(found.sorted()) == set(found)
    assert [m.at_us for m in found] == sorted(m.at_us for m in found)
    assert not run(name, 1) and list(run(name, 1)) == []


@EVERY
def test_a_table_says_what_the_matches_say(name: str) -> None:
    found = run(name)
    table = found.to_arrow()
    assert pa.table(found).equals(table), "the Arrow PyCapsule interface"
    assert table.column_names == run(name, 1).to_arrow().column_names
    assert table["at"].to_pylist() == [m.at for m in found]
    spans = [(m.start, m.end) for m in found]
    assert ("start" in table.column_names) == any(start is not None for start, _ in spans)
    if "start" in table.column_names:
        assert list(zip(table["start"].to_pylist(), table["end"].to_pylist(), strict=True)) == spans
    for variable in found[0]:
        told = [short(m[variable]) if variable in m else None for m in found]
        assert [None if cell is None else str(cell) for cell in table[variable].to_pylist()] == told
    for lane in found[0].events:
        times = [[to_datetime(t) for _, t in m.events.get(lane, ())] for m in found]
        assert table[f"events_{lane}"].to_pylist() == times
    if found[0].positions is not None:
        places = [m.positions for m in found]
        assert table["positions"].to_pylist() == [list(p.all) for p in places if p]
        assert table["y"].to_pylist() == [list(p.by["y"]) for p in places if p]


def test_what_one_language_has_is_in_one_place() -> None:
    assert [run(name).form for name in QUERIES] == [
        "SELECT",
        "SELECT",
        "CONSTRUCT",
        "ASK",
        "EVENTS",
        "SELECT",
        "CONSTRUCT",
        "SELECT",
        "SELECT",
        "SELECT",
    ]
    assert [name for name in QUERIES if run(name).ended] == ["RSP-QL, DSTREAM"]
    assert [name for name in QUERIES if run(name)[0].graph] == ["SPAseq, CONSTRUCT", "EP-SPARQL, CONSTRUCT"]
    assert [name for name in QUERIES if run(name)[0].positions is not None] == ["CEQL"]
    assert [name for name in QUERIES if run(name)[0].events] == ["SPAseq", "SPAseq, CONSTRUCT", "SPAseq, ASK", "CEQL"]
    assert run("SPAseq")[0].events["A"] == ((S, 1_000_000),)
    graph = run("SPAseq, CONSTRUCT")[0]
    assert graph.graph is graph.graph, "blank nodes are made once"


@EVERY
def test_files(name: str, tmp_path: Path) -> None:
    found = run(name)
    texts = {format: found.write(format=format) for format in ("json", "csv", "tsv", "table")}
    for format, ending in (("json", "json"), ("csv", "csv"), ("tsv", "tsv"), ("table", "txt")):
        found.write(tmp_path / f"found.{ending}")
        assert (tmp_path / f"found.{ending}").read_bytes() == texts[format]
        out = io.BytesIO()
        found.write(out, format=format)
        assert out.getvalue() == texts[format]
    found.write(tmp_path / "found.csv.gz")
    assert gzip.decompress((tmp_path / "found.csv.gz").read_bytes()) == texts["csv"]
    if found.form == "ASK":
        assert json.loads(texts["json"])["boolean"] is True and texts["csv"] == b"true\n"
    else:
        read = ox.parse_query_results(texts["json"], format=ox.QueryResultsFormat.JSON)
        assert isinstance(read, ox.QuerySolutions) and len(list(read)) == len(found)
        assert texts["csv"].count(b"\r\n") == len(found) + 1
    found.write(str(tmp_path / "found.parquet"))
    assert pq.read_table(tmp_path / "found.parquet").equals(found.to_arrow())
    found.write(tmp_path / "found.arrow")
    assert pa.ipc.open_file(tmp_path / "found.arrow").read_all().equals(found.to_arrow())
    if found.form == "CONSTRUCT":
        assert b"/then>" in found.write(format="nquads")
    else:
        with pytest.raises(oxiseq.OxiseqError, match="nquads needs a CONSTRUCT query"):
            found.write(tmp_path / "found.nq")
        assert not (tmp_path / "found.nq").exists()


def test_a_format_that_is_not_there() -> None:
    found = run("SPAseq")
    with pytest.raises(oxiseq.OxiseqError, match="format='xlsx' is not known; known: table, json, csv"):
        found.write(format="xlsx")
    with pytest.raises(oxiseq.OxiseqError, match=r"the ending \.xlsx does not name a format"):
        found.write("found.xlsx")
    with pytest.raises(oxiseq.OxiseqError, match="give format=: there is no file name to derive it from"):
        found.write(io.BytesIO())


@EVERY
def test_matches_of_a_registered_query_are_the_same(name: str) -> None:
    language, text = QUERIES[name]
    store = oxiseq.Store()
    names: dict[str, Any] = {"stream_names": {"S": S}} if language == "ceql" else {}
    taken, iterated, called = (store.register(text, language=language, **names) for _ in range(3))
    seen: list[oxiseq.Match] = []
    called.subscribe(seen.append)
    graph = f"<{E}x> a <{E}T> ; <{E}p> {{}} ."
    for t in range(1, 4):
        store.stream(S).push(graph.format(t), 1_000_000 * t)
    for query in (taken, iterated, called):
        query.close()
    expected = list(run(name))
    assert list(taken.matches()) == list(iterated.poll()) == seen == expected
