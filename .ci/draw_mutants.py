"""Draws the mutants that `mutation.py` repeats: `python .ci/draw_mutants.py` (pip install --group mutation).

Cosmic Ray says what can be changed; mutmut is no choice here: it wraps functions, and Numba cannot compile what it
makes. Of each area as many are drawn, files by their length. The list is not drawn anew when sources change.
"""

from __future__ import annotations

import ast
import json
import os
import random
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB
from cosmic_ray.work_item import MutationSpec
from mutation import AREAS, EACH, HERE, LIST, Mutant, functions

SEED: Final = 43
NOT_DRAWN: Final = ("core/RemoveDecorator", "core/Variable", "core/ExceptionReplacer")
"""Operators that change how code is compiled or declared, or that tests cannot be expected to see."""
NOT_KERNELS: Final = ("archive.py", "signatures.py", "ahead.py", "compiling")
"""Of `engine/kernels`, what compiles them."""


def draw() -> None:
    """Writes the list: of each area as many, files drawn by their length."""
    drawing = random.Random(SEED)
    mutants = [mutant for area in AREAS for mutant in _drawn(area, drawing)]
    LIST.write_text("[\n" + ",\n".join(json.dumps(mutant, ensure_ascii=False) for mutant in mutants) + "\n]\n", "utf-8")


def _drawn(area: str, drawing: random.Random) -> list[Mutant]:
    files = [path for path in sorted(Path(AREAS[area]).rglob("*.py")) if not set(path.parts) & set(NOT_KERNELS)]
    lengths = [len(path.read_text("utf-8").splitlines()) for path in files]
    found: list[Mutant] = []
    while len(found) < EACH:
        path = drawing.choices(files, lengths)[0]
        if (possible := _possible(path)) and (mutant := _mutant(area, path, drawing.choice(possible))):
            found += [mutant] if mutant not in found else []
    return found


@cache
def _possible(path: Path) -> list[MutationSpec]:
    """Returns what Cosmic Ray can change in a file, in the order of its lines."""
    with tempfile.TemporaryDirectory() as folder:
        work = WorkDB(str(Path(folder) / "work.sqlite"), WorkDB.Mode.create)
        init([path], work, {})
        items = [item.mutations[0] for item in work.work_items]
    return sorted(
        (each for each in items if not each.operator_name.startswith(NOT_DRAWN) and not _is_annotation(path, each)),
        key=lambda each: (each.start_pos, each.operator_name, each.occurrence),
    )


def _mutant(area: str, path: Path, item: MutationSpec) -> Mutant | None:
    """Returns the mutant where it changes one line of a function, and can be compiled."""
    source = path.read_text("utf-8")
    mutated = mutate_code(source, get_operator(item.operator_name)(**item.operator_args), item.occurrence) or ""
    with suppress(SyntaxError):  # `**` before a keyword argument is no operator
        ast.parse(mutated)
        return _of_one_line(area, path, source, mutated)
    return None


def _of_one_line(area: str, path: Path, source: str, mutated: str) -> Mutant | None:
    before, after = source.splitlines(), mutated.splitlines()
    changed = [at for at, (old, new) in enumerate(zip(before, after, strict=False)) if old != new]
    if len(before) != len(after) or len(changed) != 1:
        return None
    at, line = changed[0], before[changed[0]].strip()
    for function, first, last in functions(source):
        if first <= at < last:
            nth = [each.strip() for each in before[first:at]].count(line)
            return Mutant(area, str(path), function, line, nth, after[at].strip())
    return None


@cache
def _annotations(path: Path) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Returns where each begins and ends."""
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    found = (getattr(node, name, None) for node in nodes for name in ("annotation", "returns"))
    return [
        ((each.lineno, each.col_offset), (each.end_lineno or 0, each.end_col_offset or 0))
        for each in found
        if isinstance(each, ast.expr)
    ]


def _is_annotation(path: Path, item: MutationSpec) -> bool:
    return any(begin <= item.start_pos < end for begin, end in _annotations(path))


if __name__ == "__main__":
    os.chdir(HERE)
    draw()
