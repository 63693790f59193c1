"""How the command line shows that it works, completes itself, and is started by the module's name."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable

import click
import pytest
from cli_files import oxiseq
from click.testing import CliRunner

from oxiseq.cli import main, progress
from oxiseq.cli.installation import VARIABLE
from oxiseq.engine.events.report import ReadReport


def said(work: Callable[[], None]) -> str:
    """What a command that does this writes on stderr."""
    return CliRunner().invoke(click.command()(work), catch_exceptions=False).stderr


def until(reached: Callable[[], bool]) -> None:
    """Wait for it; a minute at most."""
    end = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines come after hundredths of seconds."""
    monkeypatch.setattr(progress, "_WAITS", (0.02, 0.02, 60))


def test_the_first_line_comes_within_two_seconds() -> None:
    assert progress._WAITS[0] <= 2


def test_work_without_a_terminal_tells_what_it_does_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(progress, "_WAITS", (0.02,))
    monkeypatch.setattr(progress.click, "echo", lambda text, err: told.append(text.partition(" (")[0]))

    def work() -> None:
        with progress.working("reading", quiet=False) as tell:
            until(lambda: "reading" in told)
            tell("writing")
            until(lambda: "writing" in told)

    work()
    assert sorted(set(told)) == ["reading", "writing"]
    assert sorted(told) == told  # what it was told last


@pytest.mark.usefixtures("soon")
def test_a_bar_without_a_terminal_is_lines() -> None:
    def work() -> None:
        with progress.progress_bar(lambda: [ReadReport("a.nq", 200, 100, events=7)], quiet=False):
            time.sleep(0.2)

    assert said(work).splitlines()[0] == "7 events read, 50% of the files (0 s)"


@pytest.mark.usefixtures("soon")
def test_quiet_is_silent() -> None:
    def work() -> None:
        with progress.working("reading", quiet=True), progress.progress_bar(list, quiet=True):
            time.sleep(0.2)

    assert said(work) == ""


@pytest.mark.usefixtures("soon")
def test_work_that_fails_ends_its_lines() -> None:
    def work() -> None:
        with pytest.raises(ValueError), progress.working("reading", quiet=False):
            raise ValueError

    assert said(work) == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_that_asks_the_program(shell: str) -> None:
    by_default = CliRunner().invoke(main, ["completion"], env={"SHELL": f"/bin/{shell}"})
    for result in (oxiseq("completion", shell), by_default):
        assert result.exit_code == 0
        assert f"{VARIABLE}={shell}_complete" in result.stdout


def test_completion_of_a_shell_that_is_not_known() -> None:
    result = CliRunner().invoke(main, ["completion"], env={"SHELL": "/bin/tcsh"})
    assert result.exit_code == 2
    assert "Give one of bash, fish, zsh" in result.stderr


def test_the_program_completes_a_command() -> None:
    environment = {**os.environ, VARIABLE: "bash_complete", "COMP_WORDS": "oxiseq expl", "COMP_CWORD": "1"}
    code = "from oxiseq.cli import main; main(prog_name='oxiseq')"
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert found.stdout == "plain,explain\n"


def test_the_module_is_the_command() -> None:
    found = subprocess.run([sys.executable, "-m", "oxiseq", "--help"], capture_output=True, text=True, check=True)
    assert found.stdout.startswith("Usage: python -m oxiseq ")
