"""The work of `oxiseq test`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter

import click

from oxiseq.cli.progress import counted, lines
from oxiseq.testing.cases import ENDING
from oxiseq.testing.errors import TestFileError
from oxiseq.testing.report import failure_text
from oxiseq.testing.run import each_result


@lines(lambda: "running the cases", quiet=False)
def run_tests(given: Sequence[Path], only: str | None, *, stop: bool, why: bool, quiet: bool) -> bool:
    """Runs the cases and reports each; returns whether all passed. Raises TestFileError, QueryError, KbError."""
    begun, passed, failed, last = perf_counter(), 0, 0, None
    for path, result in each_result(list(_files(given)), lambda case: only is None or only in case.name):
        if path != last and not quiet:
            click.echo(str(path))
        last = path
        if result.passed:
            passed += 1
            if not quiet:
                click.echo(f"  {click.style('pass', fg='green')}  {result.case.name}")
            continue
        failed += 1
        name = f"{path}: {result.case.name}" if quiet else result.case.name
        click.echo(f"  {click.style('FAIL', fg='red', bold=True)}  {name}")
        click.echo("".join(f"        {line}\n" for line in failure_text(result, why=why).split("\n")), nl=False)
        if stop:
            break
    click.echo(f"{passed} passed, {failed} failed, {perf_counter() - begun:.1f} s", err=True)
    if not passed and not failed:
        raise TestFileError(f"no case was run: {counted(len(given), 'name', 'names')} given")
    return not failed


def _files(given: Sequence[Path]) -> Iterator[Path]:
    for path in given:
        if path.is_dir():
            yield from sorted(path.rglob(f"*{ENDING}"))
        else:
            yield path
