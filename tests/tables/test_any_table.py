"""A table of whatever library, whose time column is found, is a stream of each language over graphs."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import oxiseq
from oxiseq.engine.errors import ArgumentTypeError, EventError

EX = "http://example.org/"
BEGIN = datetime(2025, 3, 2, 10, tzinfo=UTC)
TIMES = [BEGIN + timedelta(minutes=minute) for minute in range(3)]
HOTTER = f"""PREFIX : <{EX}>
SELECT ?machine ?second WITHIN 10 MINUTES SLIDING
FROM STREAM S <{EX}readings>
WHERE {{
  SEQ(Hot; Hotter)
  DEFINE GPM Hot ON S {{ [ :machine ?machine ; :temp ?first ] FILTER(?first > 90) }}
  DEFINE GPM Hotter ON S {{ [ :machine ?machine ; :temp ?second ] FILTER(?second > ?first) }}
}}"""
MEANS = f"""PREFIX : <{EX}>
SELECT ?machine (AVG(?t) AS ?mean) FROM STREAM <{EX}readings> [RANGE 2 MINUTES SLIDE 1 MINUTES]
WHERE {{ ?e :machine ?machine ; :temp ?t }} GROUP BY ?machine"""
BOTH = f"PREFIX : <{EX}> SELECT ?m ?t FROM STREAM <{EX}readings> WHERE {{ ?e :machine ?m . ?e :temp ?t }}"


class Foreign:
    """A table of a library that oxiseq does not know, as Polars and DuckDB have them."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __len__(self) -> int:
        return self._table.num_rows

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def table(name: str = "time", times: Any = TIMES, **more: list[Any]) -> pa.Table:
    return pa.table({name: times, "machine": ["a"] * 3, "temp": [91.0, 92.5, 95.0], **more})


def second_of(found: oxiseq.Matches) -> list[str]:
    return [match["second"].value for match in found]


@pytest.mark.parametrize("name", ["time", "timestamp", "ts", "at", "measured"])
def test_the_time_column_is_found(name: str) -> None:
    found = oxiseq.run(HOTTER, table(name))
    assert second_of(found) == ["92.5", "95"]
    assert found.time_columns == {f"{EX}readings": name}


def test_the_first_usual_name_is_the_time() -> None:
    found = oxiseq.run(HOTTER, table("at", at_first=[1, 2, 3], ts=[time - timedelta(days=1) for time in TIMES]))
    assert [match.at for match in found] == [time - timedelta(days=1) for time in TIMES[1:]]


def test_two_columns_of_times_are_refused_with_what_to_write() -> None:
    with pytest.raises(EventError, match=r"no column 'time' for the time; it has begun.*: say .*--time-column"):
        oxiseq.run(HOTTER, table("begun", ended=TIMES))
    assert len(oxiseq.run(HOTTER, table("begun", ended=TIMES), time_column="ended")) == 2


@pytest.mark.parametrize(
    "times",
    [
        [time.isoformat() for time in TIMES],
        [time.isoformat(" ").removesuffix("+00:00") for time in TIMES],
        [TIMES[0].isoformat(), TIMES[1].isoformat().replace("+00:00", "Z"), "2025-03-02T11:02:00.123456789+01:00"],
        [TIMES[0].isoformat(), "2025-03-02T10:01:00", "2025-03-02T10:02:00"],
    ],
    ids=["zone", "plain", "fine", "mixed"],
)
def test_texts_of_iso_8601_are_times(times: list[str]) -> None:
    found = oxiseq.run(HOTTER, {"S": table(times=times)})
    assert [match.at.replace(microsecond=0) for match in found] == TIMES[1:]


def test_dates_are_their_first_instants() -> None:
    days = [date(2025, 3, day) for day in (1, 2, 3)]
    found = oxiseq.run(HOTTER.replace("10 MINUTES", "10 DAYS"), table(times=days))
    assert [match.at.date() for match in found] == days[1:]


def test_a_text_that_is_no_time_is_refused_with_the_forms_that_are() -> None:
    with pytest.raises(EventError, match=r"the column 'time': .*2024-05-01T10:00:00Z, 2024-05-01 or integer"):
        oxiseq.run(HOTTER, table(times=["yesterday", "today", "tomorrow"]))


def test_any_table_is_a_stream(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    mine = table()
    for given in (mine, Foreign(mine), mine.to_pandas(), mine.to_batches(), pandas.DataFrame(mine.to_pydict())):
        assert second_of(oxiseq.run(HOTTER, given)) == ["92.5", "95"]
    mine.to_pandas().to_csv(tmp_path / "readings.csv", index=False)
    assert second_of(oxiseq.run(HOTTER, tmp_path / "readings.csv")) == ["92.5", "95"]


def test_the_only_stream_needs_no_name() -> None:
    query = oxiseq.Query(HOTTER)
    assert second_of(query.run(table())) == ["92.5", "95"]
    assert query.why(table()).stopped == oxiseq.Query(HOTTER).why({"S": table()}).stopped
    assert query.matches_at(table(), TIMES[2]).total == 1
    assert not query.compare(HOTTER, table()).gained


def test_two_streams_need_names() -> None:
    two = HOTTER.replace("WHERE", f"FROM STREAM T <{EX}other> WHERE").replace("Hotter ON S", "Hotter ON T")
    with pytest.raises(ArgumentTypeError, match="reads 2 streams: give a mapping"):
        oxiseq.run(two, table())
    with pytest.raises(ArgumentTypeError, match="names no stream: give a mapping"):
        oxiseq.run(BOTH.replace(f"FROM STREAM <{EX}readings> ", ""), table(), language="epsparql")


def test_rows_are_graphs_in_every_language_over_graphs() -> None:
    means = oxiseq.run(MEANS, table(), language="rspql")
    assert [match["mean"].value for match in means] == ["91", "91.75", "93.75"]
    both = oxiseq.run(BOTH, table(), language="epsparql")
    assert [(match["m"].value, match["t"].value) for match in both] == [("a", "91"), ("a", "92.5"), ("a", "95")]
    with pytest.raises(oxiseq.OxiseqError, match=r"no PREFIX : <\.\.\.>"):
        oxiseq.run(MEANS.replace("PREFIX :", "PREFIX e:").replace(" :", " e:"), table(), language="rspql")


ROWS = [{"time": time, "machine": "a", "temp": temp} for time, temp in zip(TIMES, (91.0, 92.5, 95.0), strict=True)]


def test_dicts_are_rows_without_a_mapping() -> None:
    assert second_of(oxiseq.run(HOTTER, ROWS)) == ["92.5", "95"]
    assert second_of(oxiseq.run(HOTTER, [{**row, "time": row["time"].isoformat()} for row in ROWS])) == ["92.5", "95"]
    renamed = [{"when": row["time"], "machine": row["machine"], "temp": row["temp"]} for row in reversed(ROWS)]
    assert second_of(oxiseq.run(HOTTER, renamed)) == ["92.5", "95"]
    with pytest.raises(EventError, match="no column 'time' for the time; they have machine, temp"):
        oxiseq.run(HOTTER, [{"machine": "a", "temp": 91}])


KINDS = """time,machine,temp,count,name,day,type
2025-03-02T10:00:00Z,a,91,1,007,2025-03-01,Reading
2025-03-02T10:01:00Z,a,92.5,2,008,2025-03-02,Reading
2025-03-02T10:02:00Z,,1e2,,x,2025-03-03,
"""
EVERYTHING = f"""PREFIX : <{EX}> SELECT ?p ?o WITHIN 1 HOUR FROM STREAM S <{EX}s>
WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?e ?p ?o }} }}"""


def test_csv_without_pyarrow_means_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "kinds.csv"
    file.write_text(KINDS, encoding="utf-8")
    usual = [sorted((str(match["p"]), str(match["o"])) for match in oxiseq.run(EVERYTHING, file))]
    monkeypatch.setattr("oxiseq.languages.tables.installed", lambda name: False)
    with pytest.warns(UserWarning, match="read without pyarrow"):
        plain = [sorted((str(match["p"]), str(match["o"])) for match in oxiseq.run(EVERYTHING, file))]
    assert plain == usual
