"""Folders and backups that commit 666c5b34 has written open now: queries, matches and their ids, tokens, a sink and a
bridge go on where they were, as docs/upgrading.md promises.

`baseline-666c5b34.tar.xz` is made by make.py, run with that commit.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from baseline_steps import QUERIES, STANDING, Baseline, eventually
from profiles import in_the_gate

OXISEQ = [sys.executable, "-c", "from oxiseq.cli import main; main()"]
FIXTURE = Path(__file__).parent / "baseline-666c5b34.tar.xz"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("baseline")
    with tarfile.open(FIXTURE) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # since 3.11.4
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def expected(made: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((made / "expected.json").read_text())
    return values


@pytest.fixture
def baseline(
    request: pytest.FixtureRequest, made: Path, expected: dict[str, Any], tmp_path: Path
) -> Iterator[Baseline]:
    """A server over what a kind of end has left."""
    folder = tmp_path / "served"
    if request.param == "backup":
        shutil.copytree(made / "stopped", folder)  # all but the journal is copied by other means
        for file in (folder / "data").glob("journal.oxiseq*"):
            file.unlink()
        restored = [*OXISEQ, "restore", str(made / "backup"), "--location", str(folder / "data")]
        subprocess.run(restored, check=True, capture_output=True)
    else:
        shutil.copytree(made / request.param, folder)
    opened = Baseline(folder, expected["token"])
    opened.configure()
    opened.server.start()
    try:
        yield opened
        assert opened.server.stop() == 0
    finally:
        opened.server.close()


def multiset(matches: list[Any]) -> Counter[str]:
    """Within an instant another order is as good."""
    return Counter(json.dumps(content, sort_keys=True) for _, *content in matches)


@pytest.mark.slow
@pytest.mark.parametrize("baseline", in_the_gate({"stopped", "killed"}, ["stopped", "killed", "backup"]), indirect=True)
def test_what_the_baseline_wrote_goes_on(
    baseline: Baseline, expected: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    killed = request.node.callspec.params["baseline"] == "killed"
    assert baseline.matches() == expected["second" if killed else "first"]
    known = {each["name"]: each["state"] for each in baseline.ask("GET", "/queries")["queries"]}
    assert known == {**dict.fromkeys(QUERIES, "running"), STANDING[0]: "running"}
    if killed:
        return
    baseline.push(1)
    for name, each in expected["second"].items():
        eventually(lambda name=name, each=each: len(baseline.matches_of(name)) >= len(each))
    found = baseline.matches()
    for name, matches in expected["second"].items():
        assert [each[0] for each in found[name]] == [each[0] for each in matches], name
        assert found[name][: len(expected["first"][name])] == expected["first"][name], name
        assert multiset(found[name]) == multiset(matches), name
    delivered = (baseline.folder / "out" / "sliding.jsonl").read_text().split()
    assert list(map(int, delivered)) == [each[0] for each in found["sliding"]]


def test_verify_passes_what_the_baseline_wrote(made: Path) -> None:
    """But for the states of queries that may ask the knowledge base, as those of EP-SPARQL: the log alone cannot make
    them again for certain."""
    verified = subprocess.run(
        [*OXISEQ, "verify", str(made / "stopped" / "data")], capture_output=True, text=True, check=False
    )
    damaged = [line for line in verified.stdout.splitlines() if "damaged" in line]
    asking = ("'knowledge'", "'ep-sparql'", "'ep-sparql-construct'")
    assert [line for line in damaged if not any(name in line for name in asking)] == []
    assert "journal: 55 events of 3 streams" in verified.stdout
