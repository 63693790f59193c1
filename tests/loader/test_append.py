"""Appending: the store is what it would be if all had been loaded at once, also after kills.

`OXISEQ_KILLS=20` kills appends twenty times.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner
from profiles import NIGHTLY
from pyoxigraph import BlankNode, Store

from oxiseq.cli import main
from oxiseq.engine.errors import KbError
from oxiseq.kb_loader import append, load, open_kb
from oxiseq.kb_loader.marker import BATCHES, MARKER, half_loaded

KILLS = int(os.environ.get("OXISEQ_KILLS", 20 if NIGHTLY else 2))
SUB = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
RUN = """
import sys
from oxiseq.kb_loader import append
append(sys.argv[1], sys.argv[2], batch=sys.argv[3], watch=lambda at: print(at.step, flush=True))
"""


def write(file: Path, low: int, high: int) -> Path:
    """Machines of classes; each file with a class tree that goes on from the last one's."""
    lines = [f"<http://e/c{low}> {SUB} <http://e/c{max(low - 1000, 0)}> .\n"]
    lines += [
        f"<http://e/m{i}> {TYPE} <http://e/c{low}> .\n<http://e/m{i}> <http://e/near> _:b{i % 10} .\n"
        for i in range(low, high)
    ]
    file.write_text("".join(lines))
    return file


def shape(store: Store) -> Counter[str]:
    """All statements, blank nodes alike."""

    def name(term: object) -> str:
        return "_:" if isinstance(term, BlankNode) else str(term)

    return Counter(" ".join(map(name, (q.subject, q.predicate, q.object, q.graph_name))) for q in store)


def whole(folder: Path, files: list[Path], *, reasoning: bool) -> Counter[str]:
    load(files, folder, reasoning="rdfs" if reasoning else None)
    return shape(open_kb(folder))


@pytest.mark.parametrize("reasoning", [False, True])
def test_what_is_appended_is_what_is_loaded_at_once(tmp_path: Path, reasoning: bool) -> None:
    first, second = write(tmp_path / "a.nt", 0, 300), write(tmp_path / "b.nt", 1000, 1300)
    load(first, tmp_path / "kb", reasoning="rdfs" if reasoning else None)
    report = append(second, tmp_path / "kb")
    assert (report.read, report.stored, report.known) == (601, 601, False)
    wanted = whole(tmp_path / "all", [first, second], reasoning=reasoning)
    assert shape(open_kb(tmp_path / "kb")) == wanted
    assert report.inferred == sum(n for q, n in wanted.items() if q.endswith("<urn:oxiseq:inferred>"))
    assert not (tmp_path / "kb" / MARKER).exists()


def test_a_batch_is_appended_once(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a.nt", 0, 30), write(tmp_path / "b.nt", 1000, 1030)
    load(first, tmp_path / "kb")
    append(second, tmp_path / "kb", batch="monday")
    before = {str(quad) for quad in open_kb(tmp_path / "kb")}
    report = append(second, tmp_path / "kb", batch="monday")
    assert (report.known, report.read, report.batch) == (True, 0, "monday")
    assert {str(quad) for quad in open_kb(tmp_path / "kb")} == before
    report = append(second, tmp_path / "kb", batch="tuesday")  # with blank nodes of its own
    assert (report.known, report.read, report.stored) == (False, 61, 30)
    again = append(first, tmp_path / "kb")
    assert not again.known
    assert append(first, tmp_path / "kb").known
    write(first, 2000, 2030)
    assert not append(first, tmp_path / "kb").known, "the file is another one now"


def test_appends_are_killed_and_go_on(tmp_path: Path) -> None:
    """At random moments, and at the steps that take away what they write anew."""
    dice = random.Random(3)
    files = [write(tmp_path / "0.nt", 0, 500)]
    kb = tmp_path / "kb"
    load(files[0], kb, reasoning="rdfs")
    kills = 0
    while kills < KILLS:
        files.append(write(tmp_path / f"{len(files)}.nt", 1000 * len(files), 1000 * len(files) + 500))
        command = [sys.executable, "-c", RUN, str(files[-1]), str(kb), str(len(files))]
        step = dice.choice(["loading", "reasoning", "counting"])
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line.strip() == step:
                    time.sleep(dice.uniform(0, 0.05))
                    break
            process.send_signal(signal.SIGKILL)
        kills += 1
        if half_loaded(kb):
            with pytest.raises(KbError, match="an append of batch"):
                open_kb(kb)
        append(files[-1], kb, batch=str(len(files)))
    assert shape(open_kb(kb)) == whole(tmp_path / "all", files, reasoning=True)


def test_an_interrupted_append_is_ended_or_replaced(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a.nt", 0, 30), write(tmp_path / "b.nt", 1000, 1030)
    load(first, tmp_path / "kb")
    (tmp_path / "bad.nt").write_text("oops\n")
    with pytest.raises(KbError, match=r"bad\.nt:1"):
        append([second, tmp_path / "bad.nt"], tmp_path / "kb", batch="x", strict=True)
    for other in ({"batch": "y"}, {}):
        with pytest.raises(KbError, match=r"an append of batch 'x', begun at .*, has not ended"):
            append(second, tmp_path / "kb", **other)  # type: ignore[arg-type]
    with pytest.raises(KbError, match="an append of batch 'x'"):
        load(first, tmp_path / "kb")
    append([second, tmp_path / "bad.nt"], tmp_path / "kb", batch="x")
    assert not half_loaded(tmp_path / "kb")
    load(first, tmp_path / "kb", restart=True)
    assert not (tmp_path / "kb" / BATCHES).exists()
    assert shape(open_kb(tmp_path / "kb")) == whole(tmp_path / "all", [first], reasoning=False)


def test_what_cannot_be_appended_to_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "a.nt", 0, 3)
    with pytest.raises(KbError, match="holds no store to append to"):
        append(file, tmp_path / "kb")
    assert not (tmp_path / "kb").exists()
    load(file, tmp_path / "kb")
    for batch in ("", "x" * 201):
        with pytest.raises(KbError, match="a batch's id has 1 to 200 characters"):
            append(file, tmp_path / "kb", batch=batch)
    held = Store(str(tmp_path / "kb"))
    with pytest.raises(KbError, match="it is open already"):
        append(file, tmp_path / "kb")
    assert len(held) > 0
    assert not half_loaded(tmp_path / "kb")


def test_the_command_appends(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a.nt", 0, 30), write(tmp_path / "b.nt", 1000, 1030)
    common = ["--location", str(tmp_path / "kb")]
    assert CliRunner().invoke(main, ["load", str(first), *common]).exit_code == 0
    done = CliRunner().invoke(main, ["load", str(second), *common, "--append", "--batch", "b"])
    assert done.exit_code == 0
    assert "61 statements" in done.stderr
    again = CliRunner().invoke(main, ["load", str(second), *common, "--append", "--batch", "b"])
    assert again.exit_code == 0
    assert "batch b is in the store already" in again.stderr
    for wrong, message in (
        (["--append", "--restart"], "--restart cannot go with --append"),
        (["--append", "--engine", "spark"], "--engine cannot go with --append"),
        (["--batch", "b"], "--batch names an appended batch"),
    ):
        refused = CliRunner().invoke(main, ["load", str(second), *common, *wrong])
        assert refused.exit_code != 0
        assert message in refused.stderr
