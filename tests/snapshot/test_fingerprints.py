"""A plan is known again in another process: sets have another order in each (PYTHONHASHSEED)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("fingerprints.py")
SEEDS = ("1", "2")
LANGUAGES = (".spaseq", ".ceql", ".epsparql", ".rspql", ".rsepql")
"""Of the examples."""


@pytest.mark.slow
def test_plans_are_known_again_in_another_process() -> None:
    """One process per seed compiles every example of every language, the corpus and random queries."""
    running = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        for seed in SEEDS
    ]
    first, *others = (process.communicate(timeout=300)[0].splitlines() for process in running)
    assert [process.returncode for process in running] == [0] * len(SEEDS)
    for other in others:
        assert other == first
    known = dict(line.split("\t") for line in first)
    examples = {name: told for name, told in known.items() if name.startswith("examples/")}
    assert {Path(name).suffix for name in examples} == set(LANGUAGES)
    assert all(":" not in told for name, told in examples.items() if " with " not in name)
    assert len(set(known.values())) > 130
