"""A first mapping for a table, with the types that whole columns of texts have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import oxiseq
from oxiseq.cli import main
from oxiseq.mappings.events import text_type

ROWS = """id,temp,count,code,on,day,note,ts
7,21.5,3,007,true,2026-01-01,x,1714557600
8,1e3,,010,false,2026-01-02,5,1714557601
"""


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (["1", "-2", "+3"], "xsd:integer"),
        (["1", "2.5", ".5"], "xsd:decimal"),
        (["1", "2.5e3"], "xsd:double"),
        (["true", "false"], "xsd:boolean"),
        (["2026-01-01"], "xsd:date"),
        (["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5+01:00"], "xsd:dateTime"),
        (["1", "007"], None),
        (["00.5"], None),
        (["1", "warm"], None),
        (["1", 2], None),
        ([1, 2], None),
        ([], None),
        (["NaN"], None),
        (["\u0661"], None),
    ],
)
def test_types_of_whole_columns(values: list[object], found: str | None) -> None:
    assert text_type(values) == found


def test_the_command_and_what_it_gives(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(ROWS)
    run = CliRunner().invoke(main, ["mapping", "suggest", str(tmp_path / "rows.csv")])
    mapping = json.loads(run.output)
    assert mapping == {
        "prefixes": {"ex": "http://example.org/"},
        "subject": "ex:{id}",
        "predicates": {
            "ex:temp": {"column": "temp", "datatype": "xsd:double"},
            "ex:count": {"column": "count", "datatype": "xsd:integer"},
            "ex:code": "code",
            "ex:on": {"column": "on", "datatype": "xsd:boolean"},
            "ex:day": {"column": "day", "datatype": "xsd:date"},
            "ex:note": "note",
        },
        "time": "ts",
        "unit": "s",
    }
    with oxiseq.open() as store:
        stream = store.stream("http://e/s", mapping=mapping)
        assert stream.extend(tmp_path / "rows.csv") == 2
    (tmp_path / "rows.nq").write_text("")
    assert CliRunner().invoke(main, ["mapping", "suggest", str(tmp_path / "rows.nq")]).exit_code == 1


def test_over_http(tmp_path: Path) -> None:
    with oxiseq.open(tmp_path) as store:
        asked = {"rows": ROWS, "type": "text/csv"}
        found = store._backend.wire._client.post("/mappings/suggest", json=asked).json()
        assert found["predicates"]["ex:code"] == "code" and found["unit"] == "s"
        assert (
            store._backend.wire._client.post(
                "/mappings/suggest", json={"rows": "{", "type": "application/json"}
            ).status_code
            == 400
        )
