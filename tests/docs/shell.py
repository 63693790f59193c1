"""A page's shell blocks as one script, in a folder of its own beside a copy of the examples.

What differs from what a reader types: `pip install` and `apt install` are left out, /tmp is the folder, each port 78xx
is a free one, a server (`oxiseq serve`) runs in the background and is waited for, and readers that never end
(`curl -N`, `oxiseq watch`) are stopped after some seconds.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

from blocks import ROOT, Block

_PORT = re.compile(r"\b78[0-9]{2}\b")
_INSTALL = re.compile(r"^(python -m )?(pip|apt|apt-get) install [^&\n]*(&& )?", re.MULTILINE)
_SERVE = re.compile(r"^([A-Z_]+=\S+ )*oxiseq serve((?:[^\\\n]|\\\n)*)$", re.MULTILINE)
_ENDLESS = re.compile(r"^(curl -N|oxiseq watch)\b", re.MULTILINE)
_HEAD = """set -euo pipefail
cd "$1"
ready() { for i in $(seq 200); do command curl -sf "$1/ready" >ready.log && return; sleep 0.2; done; return 1; }
few() { timeout 4 "$@" || test $? = 124; }
curl() { command curl --silent --show-error --fail-with-body "$@"; }
"""


def script(found: list[Block]) -> str:
    """The blocks, one after the other."""
    text = "\n".join(block.text for block in found)
    text = _INSTALL.sub("", text)
    if "oxiseq serve" not in text and "localhost:7878" in text:
        text = "oxiseq serve --location data\n" + text
    text = _SERVE.sub(_in_background, text)
    text = _ENDLESS.sub(lambda m: f"few {m[1]}" if m[1].startswith("oxiseq") else "few curl -sSN", text)
    ports = {port: str(_free()) for port in sorted(set(_PORT.findall(text)))}
    text = _PORT.sub(lambda m: ports[m[0]], text)
    return _HEAD + re.sub(r"(?<![\w.])/tmp\b", '"$1"/tmp', text)


def run(found: list[Block], folder: Path) -> None:
    """All of them; raises AssertionError with what was written when one fails, or after five minutes."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    (folder / "tmp").mkdir()
    text = script(found)
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    with (folder / "output.log").open("w+b") as output:
        started = subprocess.Popen(
            ["bash", "-c", text, "page", str(folder)],
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = started.wait(300)
        finally:
            _end(started)
        output.seek(0)
        assert code == 0, f"{text}\n--- exit {code}\n{output.read().decode()[-4000:]}"


def _in_background(found: re.Match[str]) -> str:
    port = re.search(r"--bind \S*?:(78[0-9]{2})", found[2])
    address = port[1] if port else "7878"
    bind = "" if port else f" --bind 127.0.0.1:{address}"
    return f"{found[1] or ''}oxiseq serve{found[2]}{bind} >serve-{address}.log 2>&1 &\nready http://127.0.0.1:{address}"


def _free() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
    return port


def _end(started: subprocess.Popen[bytes]) -> None:
    """The script and the servers that it began: a session of their own."""
    try:
        os.killpg(started.pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    started.wait(30)
