"""Bridges of the settings' file in a server that is killed, and `oxiseq bridge` beside a server.

OXISEQ_KILLS says how often it is killed (default: 2; 30 with OXISEQ_PROFILE=nightly).
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from live_services import eventually
from profiles import NIGHTLY
from serve_process import ServeProcess
from test_bridges import S, event

KILLS = int(os.environ.get("OXISEQ_KILLS", 30 if NIGHTLY else 2))


def stored(server: ServeProcess) -> int:
    status, told = server.ask("GET", f"/streams/{quote(S, safe='')}")
    assert status == 200, told
    following: int = json.loads(told)["next"]
    return following


@pytest.mark.full
@pytest.mark.slow
def test_a_server_that_is_killed_has_each_line_once(tmp_path: Path) -> None:
    log, config = tmp_path / "heat.nq", tmp_path / "settings.toml"
    log.touch()
    config.write_text(
        f'[serve]\nstream_idle = "10ms"\n[serve.bridges.heat]\nurl = "{log}"\ninto = "{S}"\nstart = "all"\n'
    )
    server = ServeProcess(tmp_path / "store", "--config", str(config))
    drawn, written = random.Random(KILLS), 0
    try:
        server.start()
        for _ in range(KILLS + 1):
            with log.open("ab") as file:
                for _ in range(200):
                    written += 1
                    file.write(event(written) + b"\n")
                    if drawn.random() < 0.05:
                        file.flush()
                        time.sleep(0.01)
            server.kill()
            server.start()
        eventually(lambda: stored(server) >= written, 120)
        time.sleep(1)  # nothing comes twice
        assert stored(server) == written
        status, told = server.ask("GET", "/bridges")
        assert status == 200 and json.loads(told)["bridges"][0]["name"] == "heat"
        assert b'oxiseq_bridge_failing{bridge="heat"} 0.0' in server.ask("GET", "/metrics")[1]
        assert server.stop() == 0
    finally:
        server.close()


def bridge(server: ServeProcess, *options: str, given: bytes) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", "from oxiseq.cli import main; main()", "bridge", *options, "--url", server.address]
    return subprocess.run(command, input=given, capture_output=True, timeout=120, check=False)


@pytest.mark.slow
def test_stdin_is_brought_to_its_end(tmp_path: Path) -> None:
    server = ServeProcess(tmp_path / "store")
    dead = tmp_path / "dead.jsonl"
    try:
        server.start()
        lines = b"\n".join([event(1), event(2), b"nonsense", event(3)])
        done = bridge(server, "-", "--into", S, "--dead-letter", str(dead), given=lines)
        assert done.returncode == 0, done.stderr
        assert b"4 messages, 3 events, 0 known, 1 refused" in done.stderr
        assert stored(server) == 3 and json.loads(dead.read_text())["body"] == "nonsense"
        wrong = bridge(server, "gopher://x", "--into", S, given=b"")
        assert wrong.returncode == 1 and b"gopher:// is not known" in wrong.stderr
    finally:
        server.close()
