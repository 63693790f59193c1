"""`oxiseq.run`: what may be given, and what is said when it is wrong."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
from live_queries import KB, NAMED, PAYMENTS, E, S, paid, query

import oxiseq

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def quads(events: list[tuple[int, str]]) -> str:
    """Events as N-Quads with the time of each graph."""
    lines = []
    for time, text in events:
        amount = text.split()[2]
        stamp = (EPOCH + timedelta(microseconds=time)).isoformat().replace("+00:00", "Z")
        graph = f"<{E}g{time}>"
        lines.append(
            f"{graph} <http://www.w3.org/ns/prov#generatedAtTime> "
            f'"{stamp}"^^<http://www.w3.org/2001/XMLSchema#dateTime> .'
        )
        lines.append(f'<{E}ann> <{E}paid> "{amount}"^^<http://www.w3.org/2001/XMLSchema#integer> {graph} .')
    return "".join(line + "\n" for line in lines)


def times(found: oxiseq.Matches) -> list[int]:
    return [m.time for m in found]


# --- streams ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["S", S])
def test_streams_by_name_or_iri(name: str) -> None:
    assert times(oxiseq.run(query(), streams={name: PAYMENTS})) == [2, 3]


def test_streams_from_files(tmp_path: Path) -> None:
    file = tmp_path / "payments.nq"
    file.write_text(quads(PAYMENTS), "utf-8")
    assert times(oxiseq.run(query(), streams={"S": file})) == [2, 3]
    assert times(oxiseq.run(query(), streams={"S": str(file)})) == [2, 3]


def test_streams_from_a_generator_and_with_datetimes() -> None:
    events = ((EPOCH + timedelta(microseconds=t), g) for t, g in PAYMENTS)
    assert times(oxiseq.run(query(), streams={"S": events})) == [2, 3]


def test_long_streams_are_read_in_parts() -> None:
    found = oxiseq.run(query("SELECT ?first", "A"), streams={"S": ((i, paid(i)) for i in range(10_000))})
    assert (len(found), found.events) == (10_000, 10_000)


def test_empty_and_missing_streams() -> None:
    assert len(oxiseq.run(query(), streams={"S": []})) == 0
    assert len(oxiseq.run(query(), streams={})) == 0
    both = query(streams=f"FROM STREAM S <{S}> FROM STREAM R <{E}r>")
    assert times(oxiseq.run(both, streams={"S": PAYMENTS})) == [2, 3]
    assert times(oxiseq.run(both, streams={"S": PAYMENTS, "R": []})) == [2, 3]


def test_an_empty_file(tmp_path: Path) -> None:
    file = tmp_path / "none.nq"
    file.write_text("", "utf-8")
    assert len(oxiseq.run(query(), streams={"S": file})) == 0


def test_one_stream_under_two_names() -> None:
    text = query(streams=f"FROM STREAM S <{S}> FROM STREAM R <{S}>").replace("GPM B ON S", "GPM B ON R")
    assert times(oxiseq.run(text, streams={"S": PAYMENTS})) == [2, 3]


def test_lateness_and_start() -> None:
    events = [(2, paid(40)), (1, paid(3)), (3, paid(50))]
    strict = oxiseq.run(query(), streams={"S": events})
    assert (times(strict), strict.late, strict.events) == ([3], 1, 3)
    assert [(each.stream, each.time) for each in strict.late_events()] == [(S, 1)]
    for lateness in (1, timedelta(microseconds=1)):
        assert times(oxiseq.run(query(), streams={"S": events}, lateness=lateness)) == [2, 3]
    for start in (2, EPOCH + timedelta(microseconds=2)):
        assert times(oxiseq.run(query(), streams={"S": PAYMENTS}, start=start)) == [3]


def test_trailing_negations_are_decided_at_the_end() -> None:
    text = query("SELECT ?who", "A; N!", window="WITHIN 1 HOUR")
    assert times(oxiseq.run(text, streams={"S": PAYMENTS})) == [1, 2, 3]


# --- the knowledge base -----------------------------------------------------------------------------


def rdf_store() -> ox.Store:
    store = ox.Store()
    store.load(KB.encode(), format=ox.RdfFormat.N_QUADS)
    return store


def with_store(_: Path) -> oxiseq.Store:
    store = oxiseq.Store()
    store.extend(list(rdf_store()))
    return store


def file_of(folder: Path, name: str = "kb.nq") -> Path:
    (folder / name).write_text(KB, "utf-8")
    return folder / name


def folder_of(folder: Path) -> Path:
    store = ox.Store(str(folder / "kb"))
    store.extend(list(rdf_store()))
    store.flush()
    return folder / "kb"


KBS: dict[str, Callable[[Path], Any]] = {
    "text": lambda _: KB,
    "path": file_of,
    "path as text": lambda folder: str(file_of(folder)),
    "folder": folder_of,
    "oxiseq.Store": with_store,
    "pyoxigraph.Store": lambda _: rdf_store(),
}


@pytest.mark.parametrize("kind", KBS)
def test_knowledge_bases(kind: str, tmp_path: Path) -> None:
    events = [(1, paid(1)), (2, paid(2, "bob")), (3, paid(3, "cat"))]
    found = oxiseq.run(NAMED, streams={"S": events}, kb=KBS[kind](tmp_path))
    assert [(m.time, m["name"]) for m in found] == [(1, ox.Literal("Ann")), (2, ox.Literal("Bob"))]


@pytest.mark.parametrize("kb", [None, ""])
def test_without_a_knowledge_base_there_is_nothing_to_join(kb: str | None) -> None:
    assert len(oxiseq.run(NAMED, streams={"S": PAYMENTS}, kb=kb)) == 0


# --- wrong arguments --------------------------------------------------------------------------------


def test_an_unknown_stream_is_told_with_those_declared() -> None:
    with pytest.raises(oxiseq.OxiseqError, match=r"no stream 'R'; it declares S <http://e/s>"):
        oxiseq.run(query(), streams={"R": []})


def test_a_stream_given_twice() -> None:
    with pytest.raises(oxiseq.OxiseqError, match="given twice"):
        oxiseq.run(query(), streams={"S": [], S: []})


def test_an_unknown_language() -> None:
    with pytest.raises(oxiseq.OxiseqError, match="'prolog' is not known; known: spaseq"):
        oxiseq.run(query(), streams={}, language="prolog")


@pytest.mark.parametrize("lateness", [-1, timedelta(microseconds=-1)])
def test_a_negative_lateness(lateness: int | timedelta) -> None:
    with pytest.raises(oxiseq.OxiseqError, match="lateness must not be negative"):
        oxiseq.run(query(), streams={}, lateness=lateness)


def test_a_wrong_query() -> None:
    with pytest.raises(oxiseq.QueryError) as error:
        oxiseq.run(query(sequence="A; B; Cc"), streams={})
    assert error.value.line == 5


def test_a_missing_file_of_events(tmp_path: Path) -> None:
    with pytest.raises(oxiseq.EventError, match=r"none\.nq"):
        oxiseq.run(query(), streams={"S": tmp_path / "none.nq"})


def test_a_malformed_file_of_events(tmp_path: Path) -> None:
    file = tmp_path / "bad.nq"
    file.write_text(quads(PAYMENTS) + "nonsense\n", "utf-8")
    with pytest.raises(oxiseq.EventError) as error:
        oxiseq.run(query(), streams={"S": file})
    assert (error.value.file, error.value.line) == (str(file), 7)
    assert times(oxiseq.run(query(), streams={"S": file}, on_error="skip")) == [2, 3]


def test_a_malformed_event() -> None:
    with pytest.raises(oxiseq.EventError):
        oxiseq.run(query(), streams={"S": [(1, "<a> nonsense")]})


def test_a_missing_knowledge_base(tmp_path: Path) -> None:
    with pytest.raises(oxiseq.KbError, match=r"none\.nq: there is no such file"):
        oxiseq.run(NAMED, streams={}, kb=tmp_path / "none.nq")
    with pytest.raises(oxiseq.KbError, match=r"none\.nq: there is no such file"):
        oxiseq.run(NAMED, streams={}, kb="none.nq")


def test_a_knowledge_base_of_an_unknown_kind(tmp_path: Path) -> None:
    with pytest.raises(oxiseq.KbError, match=r"unknown ending \.txt"):
        oxiseq.run(NAMED, streams={}, kb=file_of(tmp_path, "kb.txt"))


def test_a_malformed_knowledge_base(tmp_path: Path) -> None:
    file = file_of(tmp_path)
    file.write_text(KB + "<a> nonsense\n", "utf-8")
    with pytest.raises(oxiseq.KbError, match=r"kb\.nq:3: "):
        oxiseq.run(NAMED, streams={}, kb=file)
    with pytest.raises(oxiseq.KbError, match="KB text, line 2: "):
        oxiseq.run(NAMED, streams={}, kb=f"{KB.splitlines()[0]}\n<a> nonsense\n")


def test_a_folder_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    with pytest.raises(oxiseq.KbError, match="cannot be opened as a store"):
        oxiseq.run(NAMED, streams={}, kb=tmp_path / "kb")


@pytest.mark.parametrize("start", ["now", 1.5])
def test_a_start_that_is_no_time(start: Any) -> None:
    with pytest.raises(TypeError, match="not a time"):
        oxiseq.run(query(), streams={}, start=start)
