"""The application under another WSGI server, with settings from the environment."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from http_client import ask

pytest.importorskip("gunicorn", reason="gunicorn is not installed: pip install 'oxiseq[gunicorn]'")

COMMAND = [
    sys.executable,
    "-m",
    "gunicorn",
    "--bind",
    "127.0.0.1:0",
    "--worker-class",
    "gthread",
    "--threads",
    "4",
    "oxiseq.cli.wsgi:application()",
]


@pytest.mark.slow
def test_it_serves_and_keeps_what_it_was_given(tmp_path: Path) -> None:
    environment = {**os.environ, "OXISEQ_LOCATION": str(tmp_path / "kb"), "OXISEQ_WRITE_TOKEN": "sesame"}
    found = []
    for turn in range(2):
        with subprocess.Popen(COMMAND, stderr=subprocess.PIPE, text=True, env=environment) as running:
            try:
                assert running.stderr is not None
                address = next(m[1] for line in running.stderr if (m := re.search(r"Listening at: (\S+)", line)))
                if turn == 0:
                    update = b"INSERT DATA { <http://e/a> <http://e/p> 1 }"
                    kind = ("Content-Type", "application/sparql-update")
                    assert ask(address, "POST", "/update", [kind], update).status == 401
                    token = ("Authorization", "Bearer sesame")
                    assert ask(address, "POST", "/update", [kind, token], update).status == 204
                found.append(ask(address, "GET", "/query?query=ASK%20%7B%20%3Fs%20%3Fp%201%20%7D").body[-5:])
                running.send_signal(signal.SIGTERM)
                running.stderr.read()
                assert running.wait(30) == 0
            finally:
                running.kill()  # else a failure would wait for it for ever
    assert found == [b"true}", b"true}"]
