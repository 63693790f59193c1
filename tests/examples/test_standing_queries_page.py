"""Every block of docs/standing-queries.md: Python as a doctest, curl against a server."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "live"))

from serve_process import ServeProcess

PAGE = Path(__file__).parents[2] / "docs" / "standing-queries.md"
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
COMMANDS = [line for kind, text in BLOCKS if kind == "bash" for line in re.split(r"\n(?=curl)", text.strip())]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    found = ServeProcess(tmp_path_factory.mktemp("docs") / "people")
    found.start()
    yield found
    found.close()


def test_python() -> None:
    result = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert (result.failed, result.attempted) == (0, 8)


def test_curl(server: ServeProcess) -> None:
    """In the order of the page; live answers are read for a second."""
    told = [run(command.replace("http://localhost:7878", server.address)) for command in COMMANDS]
    update, registered, answer, changes, live, unnamed = told
    assert (update, '"state": "running"' in registered) == ("", True)
    assert answer.split() == ["who,whom", "http://example.org/ann,http://example.org/bob"]
    assert '"changes": []' in changes
    for events, members in ((live, ('"rows"', '"variables"')), (unnamed, ('"answer": true',))):
        assert "event: snapshot\n" in events
        assert all(member in events for member in ("id: ", '"part": 0', '"more": false', *members))


def test_what_the_page_shows_is_what_is_sent() -> None:
    shown = next(text for kind, text in BLOCKS if kind == "text")
    names = set(re.findall(r'"(\w+)":', shown))
    assert names == {"id", "at", "variables", "part", "rows", "more", "removed", "added"}
    assert {kind for kind, _ in BLOCKS} == {"python", "bash", "text", "javascript"}


def run(command: str) -> str:
    live = "curl -N" in command
    done = subprocess.run(
        ["bash", "-c", command.replace("curl", "curl -sS" + (" -m 2" if live else ""), 1)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == (28 if live else 0), done.stderr  # 28: its time was over
    return done.stdout
