"""The command as a process: start-up, pipes, warm-up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_files import oxiseq, query, write

from oxiseq.cli import main

MAIN = "from oxiseq.cli import main; main(prog_name='oxiseq')"
EXTRAS_OF_SERVE = ("flask", "werkzeug", "uvicorn", "a2wsgi", "httptools", "websockets")

LIGHT = """
import sys
from oxiseq.cli import main
try:
    main({arguments!r}, prog_name="oxiseq")
except SystemExit as end:
    heavy = {{"numba", "pyarrow", "pandas", "rdflib"}} & set(sys.modules)
    sys.exit(f"loaded: {{heavy}}" if heavy else end.code)
"""


def process(*arguments: object, stdin: str | None = None, code: str = MAIN) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=600, check=False)


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["run", "--help"], ["queries", "--help"], ["check", "jumps.spaseq"]]
)
def test_help_and_check_do_not_load_the_engine(folder: Path, arguments: list[str]) -> None:
    given = [str(folder / a) if a.endswith(".spaseq") else a for a in arguments]
    result = process(code=LIGHT.format(arguments=given))
    assert result.returncode == 0, result.stderr


def test_version_and_help_of_every_command() -> None:
    assert oxiseq("--version").stdout.startswith("oxiseq, version ")
    overview = oxiseq("--help").stdout.splitlines()
    assert {"run", "why", "load", "serve", "demo"} < set(main.commands)
    for name, command in main.commands.items():
        (line,) = (line.split(maxsplit=1) for line in overview if line.startswith(f"  {name} "))
        assert line[1] == command.short_help
        assert oxiseq(name, "--help").exit_code == 0


EXTRA = f"""
import os, sys
from oxiseq.cli import main
from oxiseq.languages import registry  # and the engine, which no extra is needed for
for missing in {list(EXTRAS_OF_SERVE)!r}:
    child = os.fork()  # one start for all of them
    if child == 0:
        sys.modules[missing] = None
        main(["serve"], prog_name="oxiseq")
    print(missing, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=sys.stderr)
"""


def test_serve_without_its_extra_says_what_to_install() -> None:
    result = process(code=EXTRA)
    assert result.returncode == 0, result.stderr
    said = "error: this needs {0}, which is not installed: pip install 'oxiseq[server]'\n{0} 1\n"
    assert result.stderr == "".join(said.format(missing) for missing in EXTRAS_OF_SERVE)


def test_a_run_with_the_query_from_a_pipe(folder: Path) -> None:
    result = process("run", "-", "-s", folder / "payments.nq", "-f", "csv", stdin=query())
    assert result.returncode == 0
    assert len(result.stdout.splitlines()) == 3
    assert "4 events · 2 matches" in result.stderr


def test_statuses_of_a_process(folder: Path) -> None:
    wrong = write(folder, "wrong.spaseq", query(seq="A; Bb"))
    refused = process("run", wrong, "-s", folder / "payments.nq")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "Traceback" not in refused.stderr
    assert process("run").returncode == 2


@pytest.mark.skipif(os.name != "posix", reason="pipes of a POSIX shell")
def test_a_reader_that_stops_early_is_no_traceback(folder: Path) -> None:
    text = query("SELECT ?who ?first ?second", seq="A : B")
    path = write(folder, "any.spaseq", text)
    command = f"'{sys.executable}' -c \"{MAIN}\" run '{path}' -s '{folder}/payments.nq' -f csv -q | true"
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=600, check=False)
    assert "Traceback" not in result.stderr


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals")
@pytest.mark.slow
def test_on_a_terminal_matches_are_a_framed_table_and_binary_formats_are_refused(folder: Path) -> None:
    framed = on_terminal("run", folder / "jumps.spaseq", "-s", folder / "payments.nq")
    assert "┏" in framed
    assert ":bob" in framed
    assert "4 events · 2 matches" in framed
    refused = on_terminal("run", folder / "jumps.spaseq", "-s", folder / "payments.nq", "-f", "arrow")
    assert "not for a terminal" in " ".join(refused.split())


def on_terminal(*arguments: object) -> str:
    """All that the command writes to a terminal."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-c", MAIN, *map(str, arguments)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment):
        os.close(theirs)
        written = b""
        try:
            while part := os.read(ours, 65_536):
                written += part
        except OSError:  # how Linux tells that the other side is closed
            pass
        finally:
            os.close(ours)
    return written.decode()


def test_whether_kernels_are_compiled_is_looked_up_where_numba_keeps_them(tmp_path: Path) -> None:
    code = "from oxiseq.warmup.first_run import is_compiled; print(is_compiled())"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "OXISEQ_NATIVE": "1"}
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=True)
    assert result.stdout == "False\n"


COVERED = """
from oxiseq.warmup.first_run import is_compiled
from oxiseq.warmup.first_run import warm_up

assert warm_up() > 0
assert is_compiled()
import sys
sys.path.insert(0, TESTS)
from corpus_cases import load_cases
from oxiseq import run
for case in load_cases():
    run(case.query, streams=case.streams, kb=case.kb, origin=case.start)
sys.path.insert(0, f"{TESTS}/intervals")
import ep_first
ep_first.answer_all()
from oxiseq.engine.kernels.signatures import kernel_of, names
for name in names():
    kernel, signature = kernel_of(name)
    if kernel.stats.cache_misses or kernel.signatures not in ([], [signature]):
        print(name, kernel.signatures)
"""


@pytest.mark.full
@pytest.mark.slow
def test_warm_up_compiles_all_that_the_corpus_needs_and_nothing_twice() -> None:
    """What is compiled ahead is of the types that are called."""
    tests = str(Path(__file__).parent.parent)
    result = process(code=f"TESTS = {tests!r}\n{COVERED}")
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""


def test_the_warmup_command() -> None:
    result = oxiseq("warmup")
    assert result.exit_code == 0
    assert result.stdout.startswith("kernels ready after ")
