"""`oxiseq check`: findings with their places."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_files import GPMS, oxiseq, query, write

WRONG = query(seq="A; Bb")
UNUSED = query(gpms=GPMS + "  DEFINE GPM C ON S { ?x :paid ?y }\n")


def test_a_right_query_has_no_findings(folder: Path) -> None:
    result = oxiseq("check", folder / "jumps.spaseq")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "1 query, 0 errors, 0 lints\n"


def test_an_error_is_shown_with_file_line_column_and_caret(folder: Path) -> None:
    path = write(folder, "wrong.spaseq", WRONG)
    result = oxiseq("check", path)
    assert result.exit_code == 1
    assert f"{path}:5:10: error: there is no GPM Bb [gpm]\n  5 |   SEQ(A; Bb)\n    |          ^^\n" in result.stdout
    assert "hint: did you mean B?" in result.stdout


def test_a_lint_alone_leaves_the_status_at_0(folder: Path) -> None:
    path = write(folder, "unused.spaseq", UNUSED)
    result = oxiseq("check", path)
    assert result.exit_code == 0
    assert f"{path}:9:14: lint: the GPM C is not in SEQ" in result.stdout
    assert "0 errors, 1 lint" in result.stderr


def test_json_has_the_place_of_every_finding(folder: Path) -> None:
    wrong, unused = write(folder, "wrong.spaseq", WRONG), write(folder, "unused.spaseq", UNUSED)
    result = oxiseq("check", wrong, unused, folder / "jumps.spaseq", "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert {f["file"] for f in found} == {wrong, unused}
    keys = {"file", "line", "column", "start", "end", "end_line", "end_column", "severity", "code", "message", "hint"}
    for finding in found:
        assert keys <= finding.keys()
        text = Path(finding["file"]).read_text()
        line = text.split("\n")[finding["line"] - 1]
        assert text[finding["start"] : finding["end"]][:1] == line[finding["column"] - 1]
    missing = next(f for f in found if f["code"] == "gpm")
    assert WRONG[missing["start"] : missing["end"]] == "Bb"
    assert (missing["line"], missing["column"]) == (5, 10)
    assert (missing["end_line"], missing["end_column"]) == (5, 12)
    assert missing["severity"] == "error"


def test_json_of_a_right_query_is_an_empty_list(folder: Path) -> None:
    result = oxiseq("check", folder / "jumps.spaseq", "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, [])


def test_a_syntax_error_is_a_finding_too(folder: Path) -> None:
    path = write(folder, "syntax.spaseq", query(seq="A; ; B"))
    result = oxiseq("check", path, "--json")
    assert result.exit_code == 1
    (found,) = json.loads(result.stdout)
    assert (found["line"], found["column"], found["severity"]) == (5, 10, "error")
    assert f"{path}:5:10: error: " in oxiseq("check", path).stdout


def test_stdin(folder: Path) -> None:
    result = oxiseq("check", "-", stdin=WRONG)
    assert result.exit_code == 1
    assert result.stdout.startswith("<stdin>:")


@pytest.mark.parametrize("content", [None, b"\xff\xfe"], ids=["missing", "not text"])
def test_a_file_that_cannot_be_read_is_a_usage_error(folder: Path, content: bytes | None) -> None:
    path = folder / "unreadable.spaseq"
    if content is not None:
        path.write_bytes(content)
    assert oxiseq("check", path).exit_code == 2


def test_no_file_is_a_usage_error() -> None:
    assert oxiseq("check").exit_code == 2


CEQL = """VOCAB <http://example.org/stock#>
SELECT * FROM Stock
WHERE BUY AS b; SELL AS s FILTER {}[price > 1]
WITHIN 1 MINUTE
"""


def test_the_ending_ceql_means_ceql(folder: Path) -> None:
    right, wrong = write(folder, "right.ceql", CEQL.format("b")), write(folder, "wrong.ceql", CEQL.format("c"))
    assert oxiseq("check", right).exit_code == 0
    result = oxiseq("check", wrong)
    assert result.exit_code == 1
    assert f"{wrong}:3:34: error: the formula before FILTER has no variable c [filter]" in result.stdout


def test_clauses_that_the_engine_does_not_have_yet_are_read(folder: Path) -> None:
    text = query("SELECT NEXT ?who", "WITHIN 1 HOUR PARTITION BY ?who")
    assert oxiseq("check", write(folder, "clauses.spaseq", text)).exit_code == 0


def test_sparql_over_the_store_is_told_of_products(folder: Path) -> None:
    product = write(folder, "product.rq", "SELECT * { ?x <urn:p> ?y . ?v <urn:q> ?w }")
    window = write(folder, "window.txt", "SELECT * FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE 5] { ?x ?y ?z }")
    result = oxiseq("check", product)
    assert result.exit_code == 0
    assert "lint: " in result.stdout and "[cross-product]" in result.stdout
    result = oxiseq("check", window, "--language", "sparql")
    assert result.exit_code == 1
    assert "a query over the store reads no stream [stream]" in result.stdout
    result = oxiseq("run", product, "--stream", f"S={product}")
    assert "SPARQL over the store reads no stream" in result.stderr
