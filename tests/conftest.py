"""Hypothesis draws as `profiles` says; kernels are compiled before tests are dealt out; two tests more than there are
cores are run at a time; the garbage collector leaves alone what stays."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest
from profiles import load_profile


def pytest_configure(config: pytest.Config) -> None:
    """Before a test is imported: each takes its settings from the profile then."""
    load_profile(exploring=config.getoption("--hypothesis-seed") is not None)
    if config.getoption("numprocesses", 0) and not hasattr(config, "workerinput"):
        _compile_once(config.args)


def _compile_once(tests: list[str]) -> None:
    """Kernels, and beside them the modules of the tests: else each worker would, and tests that wait for an answer
    would wait for that."""
    code = "from oxiseq.warmup.first_run import warm_up; warm_up()"
    with subprocess.Popen([sys.executable, "-c", code]) as compiling:
        if not sys.dont_write_bytecode:
            collecting = [sys.executable, "-m", "pytest", "-n", "0", "--collect-only", "-qq", *tests]
            subprocess.run(collecting, stdout=subprocess.DEVNULL, check=False)  # the workers say what fails
    if compiling.returncode:
        raise pytest.UsageError("the kernels could not be compiled")


def pytest_xdist_auto_num_workers() -> int:
    """Of `-n auto`: with two for the tests that wait, for Java, servers, browsers and time limits."""
    return (os.cpu_count() or 1) + 2


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Groups tests that ask for a fixture of their module, so that it is made once, in one worker: a server, a run to
    compare others with. Under xdist the longest begin first: what names its group (Spark, the page), then slow tests;
    no worker is alone with one in the end."""
    named = {item for item in items if item.get_closest_marker("xdist_group")}
    for item in items:
        if isinstance(item, pytest.Function) and _of_module(item) and item not in named:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: 0 if item in named else 1 if item.get_closest_marker("slow") else 2)


def _of_module(item: pytest.Function) -> bool:
    """Returns whether a fixture that the test asks for, or that one of these asks for, is made once for its module."""
    made, asked = item._fixtureinfo.name2fixturedefs, [*item._fixtureinfo.argnames]
    for name in asked:
        for fixture in made.get(name, ())[-1:]:
            if fixture.scope == "module":
                return True
            asked += [each for each in fixture.argnames if each not in asked]
    return False


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Modules are loaded and tests made, which leaves little garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Thousands of tests and their modules: to look through them takes a third of a second each time. What garbage
    there is among them stays, too: to find it takes longer than that in each worker."""
    gc.freeze()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What is missing here is said, loudly: a skipped suite looks like a green one."""
    why = Counter(str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", ()) if report.longrepr)
    if why:
        terminalreporter.section("NOT TESTED HERE", red=True)
        for reason, count in why.most_common():
            terminalreporter.write_line(f"{count:5} {reason.removeprefix('Skipped: ')}")
