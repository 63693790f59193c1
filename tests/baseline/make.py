"""Makes the fixtures of the baseline, in an environment of the version that they come from: python make.py DIR.

DIR/stopped: a folder whose server was stopped after the first half of the events, hence with checkpoints of queries.
DIR/backup: a backup of it. DIR/killed: the same after the second half, whose server was killed. DIR/expected.json: the
matches of the first half, and those of both.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from baseline_steps import Baseline

OXISEQ = [sys.executable, "-c", "from oxiseq.cli import main; main()"]
REST = 10.0
"""Seconds after which all has been worked through."""


def make(out: Path) -> None:
    """Two lives of one folder: what is there after the first half, and what the second half adds."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        grants = ["read", "push", "register", "update"]
        made = subprocess.run(
            [*OXISEQ, "token", "new", "admin", *grants, "--file", str(folder / "tokens")],
            capture_output=True,
            text=True,
            check=True,
        )
        baseline = Baseline(folder, made.stdout.split()[0])
        baseline.configure()
        try:
            baseline.server.start()
            baseline.set_up()
            baseline.push(0)
            time.sleep(REST)
            first = baseline.matches()
            subprocess.run(
                [*OXISEQ, "backup", "--location", str(folder / "data"), str(out / "backup") + "/"], check=True
            )
            assert baseline.server.stop() == 0
            _keep(folder, out / "stopped")
            baseline.server.start()
            baseline.push(1)
            time.sleep(REST)
            second = baseline.matches()
            baseline.server.kill()
            _keep(folder, out / "killed")
        finally:
            baseline.server.close()
        expected = {"token": baseline.token, "first": first, "second": second}
        (out / "expected.json").write_text(json.dumps(expected, indent=None, separators=(",", ":")))


def _keep(folder: Path, to: Path) -> None:
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns("serve.log", "settings.toml", "LOCK", "LOG*"))


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True)
    make(target)
