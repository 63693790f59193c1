"""`oxiseq declare`."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_files import oxiseq, write

from oxiseq.grammar.declare import REFUSED, TEMPLATES


def test_without_a_template_all_are_listed() -> None:
    listed = oxiseq("declare")
    assert listed.exit_code == 0
    assert [line.split()[0] for line in listed.stdout.splitlines()] == [*(t.name for t in TEMPLATES), *REFUSED]


def test_the_text_is_a_query(tmp_path: Path) -> None:
    shown = oxiseq("declare", "response", "send invoice", "<http://e/pay>", "--within", "1h30m", "--stream", "urn:log")
    assert shown.exit_code == 0
    assert "SEQ(A; B! WITHIN 90 MINUTES)" in shown.stdout and '"send invoice"' in shown.stdout
    assert oxiseq("check", write(tmp_path, "response.spaseq", shown.stdout)).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("response", "A", "B"), 1, "response wants either --within or --end"),
        (("succession", "A", "B"), 1, "succession cannot be one query: it is broken in two ways"),
        (("precedence", "A", "B", "C"), 1, "3 given"),
        (("precedence", "A", "B", "--case", "urn:c> ?x . ?y <urn:d"), 1, "is not an IRI"),
        (("precedence", "A", "B", "--stream", ""), 1, "is not an IRI"),
        (("response", "A", "B", "--within", "0s"), 2, "--within"),
        (("response", "A", "B", "--within", "5"), 2, "--within"),
        (("response", "A", "B", "--within", "5s; X"), 2, "--within"),
        (("absence", "A", "--times", "0"), 1, "--times is 1 to 1000, not 0"),
        (("absence", "A", "--times", "many"), 2, "--times"),
    ],
)
def test_what_is_refused(arguments: tuple[str, ...], status: int, message: str) -> None:
    refused = oxiseq("declare", *arguments)
    assert (refused.exit_code, refused.stdout) == (status, "")
    assert message in refused.stderr
