"""The example's Dockerfile, without Docker: what it says, what it copies, and that what it starts is healthy."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Final

import pytest

from oxiseq.cli.server import serve_command

pytest.importorskip("httpx", reason="httpx is not installed: pip install 'oxiseq[server]'")

ROOT: Final = Path(__file__).parents[2]
FILE: Final = ROOT / "examples" / "11-server" / "Dockerfile"
INSTRUCTIONS: Final = {
    "ADD",
    "ARG",
    "CMD",
    "COPY",
    "ENTRYPOINT",
    "ENV",
    "EXPOSE",
    "FROM",
    "HEALTHCHECK",
    "LABEL",
    "ONBUILD",
    "RUN",
    "SHELL",
    "STOPSIGNAL",
    "USER",
    "VOLUME",
    "WORKDIR",
}
"""Docker's Dockerfile reference; without MAINTAINER, which is deprecated."""
MAIN: Final = "from oxiseq.cli import main; main(prog_name='oxiseq')"
BUILT: Final = "pip install --no-cache-dir '/src[server]'"


def instructions() -> list[tuple[str, str]]:
    """The names and arguments of its instructions: lines are joined at a backslash, comments left out."""
    lines = [line for line in FILE.read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines()
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in joined if line.strip())]


def only(name: str) -> str:
    """The arguments of the one instruction of this name."""
    (found,) = (rest for each, rest in instructions() if each == name)
    return found


def environment() -> dict[str, str]:
    """What it sets for the server."""
    return dict(pair.split("=", 1) for pair in shlex.split(only("ENV")))


def health() -> list[str]:
    """The command of its healthcheck."""
    options, _, command = only("HEALTHCHECK").partition("CMD ")
    assert all(re.fullmatch(r"--(interval|timeout|start-period)=\d+[sm]", each) for each in options.split())
    found = json.loads(command)
    assert isinstance(found, list)
    return found


def test_it_has_instructions_that_docker_knows_in_an_order_that_works() -> None:
    names = [name for name, _ in instructions()]
    assert set(names) <= INSTRUCTIONS
    assert names[0] == "FROM"
    assert re.fullmatch(r"python:3\.\d+-slim", only("FROM"))
    assert names.index("USER") < names.index("VOLUME") < names.index("ENTRYPOINT")


def test_it_serves_as_a_user_who_owns_the_volume_and_nothing_else() -> None:
    user, volume = only("USER"), only("VOLUME")
    as_root = next(rest for name, rest in instructions() if name == "RUN")
    assert int(user) > 0  # Kubernetes' runAsNonRoot takes no name
    made = re.search(r"useradd --uid (\d+) --create-home (\w+)", as_root)
    assert made is not None
    assert made[1] == user
    assert re.findall(r"chown (\w+) (\S+)", as_root) == [(made[2], volume)]
    assert environment()["OXISEQ_LOCATION"] == volume


def test_it_copies_all_that_the_package_is_made_of_and_no_more() -> None:
    copied = [shlex.split(rest) for name, rest in instructions() if name == "COPY"]
    sources = {source: target for *given, target in copied for source in given}
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project, tool = settings["project"], settings["tool"]["setuptools"]
    files = {"pyproject.toml", project["readme"], *project["license-files"]}
    assert set(sources) == files | set(tool["package-dir"].values())
    for source, target in sources.items():
        assert (ROOT / source).exists()
        assert target == ("/src/" if source in files else f"/src/{source}")  # a folder's content goes into the target
    installed = next(rest for name, rest in instructions() if name == "RUN")
    assert installed.startswith(BUILT)
    assert "server" in project["optional-dependencies"]


def test_what_it_sets_are_options_of_the_server_at_the_port_that_it_exposes() -> None:
    names = {f"OXISEQ_{(param.name or '').upper()}" for param in serve_command.params}
    assert set(environment()) <= names
    assert environment()["OXISEQ_BIND"] == f"0.0.0.0:{only('EXPOSE')}"
    assert f"http://127.0.0.1:{only('EXPOSE')}/ready" in health()[-1]
    assert json.loads(only("ENTRYPOINT")) == ["oxiseq", "serve"]


@pytest.mark.parametrize(
    "more",
    [pytest.param({}, marks=pytest.mark.full), {"OXISEQ_WRITE_TOKEN": "secret", "OXISEQ_READ_TOKEN": "other"}],
)
def test_its_server_is_healthy_until_it_ends_by_the_signal_that_docker_sends(
    tmp_path: Path, more: dict[str, str]
) -> None:
    """Its command with its settings, at a free port and in another folder; its healthcheck with that port."""
    program, *arguments = json.loads(only("ENTRYPOINT"))
    assert program == "oxiseq"
    assert only("STOPSIGNAL") == "SIGTERM"
    placed = {"OXISEQ_LOCATION": str(tmp_path / "data"), "OXISEQ_BIND": "0.0.0.0:0"}
    assert set(placed) == set(environment())
    command = [sys.executable, "-c", MAIN, *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | placed | more) as running:
        try:
            assert running.stderr is not None
            said = (re.search(r"listening at \S+:(\d+)", line) for line in running.stderr)  # after warnings
            found = next(filter(None, said), None)
            assert found is not None
            assert healthy(found[1])
            running.terminate()
            assert running.wait(60) == 0
            assert checked(found[1]) == 1
        finally:
            running.kill()


def healthy(port: str) -> bool:
    """Whether it is within a minute: it listens before its kernels are loaded."""
    end = time.monotonic() + 60
    while checked(port):
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def checked(port: str) -> int:
    """What the healthcheck ends with at this port: Docker takes 0 for healthy and 1 for not."""
    python, *arguments = health()
    assert python == "python"
    moved = [each.replace(f":{only('EXPOSE')}/", f":{port}/") for each in arguments]
    return subprocess.run([sys.executable, *moved], stderr=subprocess.DEVNULL, timeout=60, check=False).returncode
