"""What `run` reads: finite inputs are sorted first, iterators are streams with late events (semantics.md 2.6a)."""

from __future__ import annotations

import gzip
import os
import random
import threading
import warnings
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from click.testing import CliRunner

import oxiseq
from oxiseq.cli import main
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.time import to_text
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.sources import sources
from oxiseq.sources.sources import in_time_order
from oxiseq.sources.warned import LateWarning

E = "http://e/"
XSD = "http://www.w3.org/2001/XMLSchema#"
STREAM = f"{E}S"
SECOND = 1_000_000
TEXTS = {
    "spaseq": f"""PREFIX : <{E}> SELECT ?x ?y WITHIN 10 SECONDS SLIDING FROM STREAM S <{STREAM}>
      WHERE {{ SEQ(A; B) DEFINE GPM A ON S {{ ?e a :A ; :k ?x }} DEFINE GPM B ON S {{ ?f a :B ; :k ?y }} }}""",
    "ceql": f"VOCAB <{E}> SELECT * FROM S WHERE A AS x; B AS y WITHIN 10 SECONDS",
    "rspql": f"PREFIX : <{E}> SELECT ?x ?y FROM STREAM <{STREAM}> [RANGE 10 SECONDS SLIDE 1 SECONDS] "
    "WHERE { ?e a :A ; :k ?x . ?f a :B ; :k ?y }",
    "rsepql": f"PREFIX : <{E}> SELECT ?x ?y FROM NAMED <{STREAM}> WIN [RANGE 10000000 SLIDE 1000000] AS :w "
    "EVENT ON :w { ?e a :A ; :k ?x } AS A EVENT ON :w { ?f a :B ; :k ?y } AS B WHERE { MATCH { A SEQ B } }",
    "epsparql": f"PREFIX : <{E}> SELECT ?x ?y FROM STREAM <{STREAM}> "
    "WHERE { { ?e a :A ; :k ?x } SEQ { ?f a :B ; :k ?y } }",
}


def drawn_rows(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Rows out of order, several of one time."""
    dice = random.Random(seed)
    times = [dice.randrange(count // 2) * SECOND for _ in range(count)]
    return [{"time": time, "type": dice.choice("AB"), "k": number} for number, time in enumerate(times)]


def graph(row: dict[str, Any]) -> str:
    return f"[] a <{E}{row['type']}> ; <{E}k> {row['k']} ."


def pairs(rows: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(graph(row), row["time"]) for row in rows]


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["time"])


def file_of(ending: str, rows: list[dict[str, Any]], folder: Path) -> Path:
    """An event file in the order of the rows."""
    lines = []
    for number, row in enumerate(rows):
        event, time = f"<urn:e{number}>", to_text(row["time"])
        lines += [
            f'{event} <http://www.w3.org/ns/prov#generatedAtTime> "{time}"^^<{XSD}dateTime> .',
            f"_:n{number} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{E}{row['type']}> {event} .",
            f'_:n{number} <{E}k> "{row["k"]}"^^<{XSD}integer> {event} .',
        ]
    text = "\n".join(lines) + "\n"
    path = folder / f"events{ending}"
    if ending == ".nq":
        path.write_text(text)
    elif ending == ".nq.gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        (folder / "plain.nq").write_text(text)
        assert CliRunner().invoke(main, ["convert", str(folder / "plain.nq"), str(path)]).exit_code == 0
    return path


def table_of(form: str, rows: list[dict[str, Any]], folder: Path) -> Any:
    table = pa.Table.from_pylist(rows)
    if form == "DataFrame":
        return pandas.DataFrame(rows)
    if form == "batches":
        return table.to_batches(max_chunksize=7)
    if form in (".csv", ".parquet", ".arrow"):
        path = folder / f"rows{form}"
        if form == ".csv":
            pa.csv.write_csv(table, path)
        elif form == ".parquet":
            pa.parquet.write_table(table, path)
        else:
            with pa.ipc.new_file(path, table.schema) as out:
                out.write_table(table, max_chunksize=7)
        return path
    return table


def answers(text: str, language: str, events: Any, **options: Any) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", oxiseq.LintWarning)
        found = oxiseq.run(text, {STREAM: events}, language=language, **options)
    assert found.late == 0
    return [(m.at_us, [str(m.get(name)) for name in ("x", "y")]) for m in found]


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("language", TEXTS)
def test_finite_inputs_are_sorted(language: str, small: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory, and where they are longer than what is read ahead."""
    if small:
        monkeypatch.setattr(sources, "AHEAD", 40)
    rows, text = drawn_rows(60), TEXTS[language]
    expected = answers(text, language, iter(pairs(in_order(rows))))
    assert expected
    given = [pairs(rows), tuple(pairs(rows)), file_of(".nq", rows, tmp_path), file_of(".nq.gz", rows, tmp_path)]
    given += [file_of(ending, rows, tmp_path) for ending in (".arrow", ".parquet", ".trig")]
    for events in given:
        assert answers(text, language, events) == expected


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("form", ["Table", "DataFrame", "batches", ".csv", ".parquet", ".arrow"])
def test_tables_are_sorted(form: str, small: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if small:
        monkeypatch.setattr(sources, "AHEAD", 40)
    rows = drawn_rows(60)
    for language in ("ceql", "spaseq"):
        expected = answers(TEXTS[language], language, table_of("Table", in_order(rows), tmp_path))
        assert expected
        assert answers(TEXTS[language], language, table_of(form, rows, tmp_path)) == expected


def test_sorting_is_stable_and_what_is_in_order_passes_unchanged() -> None:
    terms = TermDictionary()
    dice = random.Random(3)

    def batches(times: list[list[int]]) -> Iterator[Any]:
        number = iter(range(10**6))
        return iter([encode_events([(f"<urn:a> <urn:b> {next(number)} .", t) for t in part], terms) for part in times])

    for _ in range(30):
        parts = [[dice.randrange(12) for _ in range(dice.randrange(5))] for _ in range(dice.randrange(6))]
        found = [
            (int(time), str(terms.term(int(batch.object[i]))))
            for batch in in_time_order(batches(parts), lambda parts=parts: batches(parts), terms)  # type: ignore[misc]
            for i, time in enumerate(batch.time)
        ]
        arrived = [(t, f'"{n}"^^<{XSD}integer>') for n, t in enumerate(chain.from_iterable(parts))]
        assert found == sorted(arrived, key=lambda each: each[0])
    rising = list(batches([[1, 2], [2, 3]]))
    passed = list(in_time_order(iter(rising), lambda: iter(rising), terms))
    assert all(one is other for one, other in zip(passed, rising, strict=True))


def test_the_buffer_holds_the_disorder_of_a_long_source_and_not_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "AHEAD", 800)
    terms = TermDictionary()
    graphs = encode_events([("<urn:a> <urn:b> <urn:c> .", 0)] * 50, terms)
    held, most = 0, 0

    def batches(counts: bool) -> Iterator[Any]:
        nonlocal held, most
        for number in range(200):
            times = np.arange(50, dtype=np.int64) + 50 * number
            times[10:20] -= 40
            held += 50 * counts
            most = max(most, held)
            yield type(graphs)(times, graphs.offset, *graphs.ids)

    last = -1000
    for batch in in_time_order(batches(True), lambda: batches(False), terms):
        assert batch.time[0] >= last and (np.diff(batch.time) >= 0).all()
        last, held = int(batch.time[-1]), held - len(batch)
    assert held == 0 and most < 1500  # of 10,000


# --- iterators, pipes -------------------------------------------------------------------------------


LATE = [(graph({"type": "B", "k": 2}), 20 * SECOND), (graph({"type": "A", "k": 1}), 15 * SECOND)]
TOLD = (
    "1 of 2 events were late, so no match has them; the first, at 1970-01-01T00:00:15Z of <http://e/S>, "
    r"came when the watermark was 1970-01-01T00:00:20Z \(lateness 0s\)"
)


@pytest.mark.parametrize("language", TEXTS)
def test_an_iterator_is_a_stream(language: str) -> None:
    text = TEXTS[language]
    with pytest.warns(LateWarning, match=TOLD) as caught:
        found = oxiseq.run(text, {STREAM: iter(LATE)}, language=language)
    assert caught[0].filename == __file__
    assert not found and [event.time_us for event in found.late_events()] == [15 * SECOND]
    with pytest.raises(oxiseq.EventError, match=f"a late event: {TOLD.partition('; ')[2]}"):
        oxiseq.run(text, {STREAM: iter(LATE)}, language=language, late="error")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", oxiseq.LintWarning)
        assert oxiseq.run(text, {STREAM: iter(LATE)}, language=language, late="ignore").late == 1
        assert oxiseq.run(text, {STREAM: iter(LATE)}, language=language, lateness="5s", late="error").late == 0
    assert answers(text, language, LATE)


def test_each_late_event_is_judged_by_the_watermark_of_then() -> None:
    events = [(graph({"type": "A", "k": n}), time * SECOND) for n, time in enumerate([1, 9, 4, 30, 20])]
    with pytest.warns(LateWarning, match="2 of 5 .* at 1970-01-01T00:00:04Z .* was 1970-01-01T00:00:06Z .lateness 3s"):
        oxiseq.run(TEXTS["spaseq"], {STREAM: iter(events)}, lateness="3s")


def test_a_pipe_is_a_stream(tmp_path: Path) -> None:
    rows = [{"type": "B", "k": 2, "time": 20 * SECOND}, {"type": "A", "k": 1, "time": 15 * SECOND}]
    plain, pipe = file_of(".nq", rows, tmp_path), tmp_path / "pipe.nq"
    os.mkfifo(pipe)
    (tmp_path / "q.spaseq").write_text(TEXTS["spaseq"])

    def run(*more: str) -> Any:
        writer = threading.Thread(target=lambda: pipe.write_bytes(plain.read_bytes()))
        writer.start()
        result = CliRunner().invoke(main, ["run", str(tmp_path / "q.spaseq"), "-s", str(pipe), *more])
        writer.join(30)
        return result

    told = run()
    assert "the first, at 1970-01-01T00:00:15Z" in told.stderr and "watermark was 1970-01-01T00:00:20Z" in told.stderr
    assert "watermark" not in run("--late", "ignore").stderr
    failed = run("--late", "error")
    assert failed.exit_code and "a late event" in failed.stderr
    assert "\n1\t" not in failed.stdout
    late = tmp_path / "late.nq"
    assert run("--late", str(late)).exit_code == 0 and "1970-01-01T00:00:15Z" in late.read_text()
    sorted_one = CliRunner().invoke(main, ["run", str(tmp_path / "q.spaseq"), "-s", str(plain), "-f", "csv"])
    assert sorted_one.stdout.split() == ["x,y", "1,2"] and "0 late" in sorted_one.stderr


# --- the end ----------------------------------------------------------------------------------------


ENDS: dict[str, tuple[str, Callable[[], list[tuple[str, int]]]]] = {
    "spaseq": (
        f"""PREFIX : <{E}> SELECT ?x WITHIN 10 SECONDS SLIDING FROM STREAM S <{STREAM}>
      WHERE {{ SEQ(A; N!) DEFINE GPM A ON S {{ ?e a :A ; :k ?x }} DEFINE GPM N ON S {{ ?f a :B }} }}""",
        lambda: [(graph({"type": "A", "k": n}), n * SECOND) for n in range(15)],
    ),
    "rspql": (
        f"REGISTER RSTREAM <{E}o> AS SELECT ?x FROM NAMED WINDOW <{E}w> ON <{STREAM}> [RANGE PT10S STEP PT5S] "
        f"WHERE {{ WINDOW <{E}w> {{ ?e <{E}k> ?x }} }}",
        lambda: [(graph({"type": "A", "k": n}), n * SECOND) for n in range(15)],
    ),
    "rsepql": (TEXTS["rsepql"] + " REPORT ON WINDOW CLOSE", lambda: pairs(in_order(drawn_rows(30)))),
    "epsparql": (TEXTS["epsparql"], lambda: pairs([{"type": t, "k": 1, "time": n} for n, t in enumerate("AB")])),
}


@pytest.mark.parametrize("language", ENDS)
def test_open_streams_do_not_report_what_is_undecided(language: str) -> None:
    """What a store in memory has told by then, and nothing that the end decides."""
    text, events = ENDS[language][0], ENDS[language][1]()
    closed = answers(text, language, events)
    still = answers(text, language, events, end="open")
    store = oxiseq.Store()
    live = store.register(text, language)
    for stream in live.reads:
        store.stream(stream).extend(events)
    told = [(m.at_us, [str(m.get(name)) for name in ("x", "y")]) for m in live.poll("0s", idle=None)]
    assert still == told
    assert len(still) < len(closed)


def test_open_streams_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "q.spaseq").write_text(ENDS["spaseq"][0])
    rows = [{"type": "A", "k": n, "time": n * SECOND} for n in range(15)]
    path = file_of(".nq", rows, tmp_path)
    lines = {
        end: CliRunner().invoke(main, ["run", str(tmp_path / "q.spaseq"), "-s", str(path), "-f", "csv", "--end", end])
        for end in ("open", "closed")
    }
    assert [len(lines[end].stdout.split()) for end in ("open", "closed")] == [1 + 4, 1 + 15]


def test_a_stream_that_is_not_given_has_ended() -> None:
    text = f"""PREFIX : <{E}> SELECT ?x FROM STREAM S <{STREAM}> FROM STREAM T <{E}T>
      WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?e :k ?x }} }}"""
    assert len(answers(text, "spaseq", pairs([{"type": "A", "k": n, "time": n} for n in (1, 2)]), end="open")) == 1
