"""Files of bridges: no bridge writes into what it, or another one, follows or keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from oxiseq.bridges import BridgeError, BridgeSettings
from oxiseq.cli.serving import _bridges

S = "http://example.org/brought"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dead_letter": "in/a.nq"}, "dead_letter is in/a.nq, which is the followed file"),
        ({"position": "in/../in/a.nq"}, "which is the followed file"),
        ({"position": "link/a.nq"}, "which is the followed file"),
        ({"position": "hard.nq"}, "which is the followed file"),
        ({"position": "in"}, "below or above it"),
        ({"position": "x", "dead_letter": "./x"}, "position and dead_letter are one file"),
        ({"url": "file:///", "position": "/x"}, "below or above it"),
    ],
)
def test_a_bridge_keeps_its_files_apart(
    given: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("in/a.nq").touch()
    Path("link").symlink_to("in")
    Path("hard.nq").hardlink_to("in/a.nq")
    BridgeSettings.of({"url": "in/a.nq", "into": S}, Path("bridges"), "b")
    with pytest.raises(BridgeError, match=said):
        BridgeSettings.of({"url": "in/a.nq", "into": S, **given}, Path("bridges"), "b")


@pytest.mark.parametrize(
    ("other", "clash"),
    [
        ({"position": "bridges/a.position"}, True),
        ({"dead_letter": "bridges/a.position"}, True),
        ({"dead_letter": "a.nq"}, True),
        ({"url": "bridges/a.dead.jsonl"}, True),
        ({"url": "bridges/a.position"}, True),
        ({"dead_letter": "bridges/a.dead.jsonl"}, False),  # letters are appended, each a line
        ({"url": "a.nq"}, False),  # both read
    ],
)
def test_two_bridges_keep_their_files_apart(
    other: dict[str, Any], clash: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = {"url": "a.nq", "into": S}, {"url": "b.nq", "into": S, **other}
    for declared in ({"a": first, "b": second}, {"b": second, "a": first}):
        if clash:
            with pytest.raises(BridgeError, match="each needs a file of its own"):
                _bridges(declared, tmp_path)
        else:
            assert list(_bridges(declared, tmp_path)) == list(declared)
