"""A kernel's copies of inner functions are its own: other compiled code with the same functions does not find them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BOTH = """
import numpy as np
from machine_calls import truth
from test_facts import CASES, OUTCOMES, parsed
from oxiseq.engine.expressions.program import compile_program
from oxiseq.engine.kernels.expressions.machine import UNDECIDED, truth_column
from oxiseq.engine.terms.dictionary import TermDictionary

for text, outcome in CASES:
    terms = TermDictionary()
    code = compile_program(parsed(text), {}, terms).code
    nothing = np.zeros(1, np.int64)
    kernel = truth_column(code, 0, len(code), nothing[None], *terms.columns)[0]
    other = truth(code, 0, len(code), nothing, *terms.columns)
    assert kernel == other and other in (UNDECIDED, OUTCOMES[outcome]), (text, kernel, other)
"""


@pytest.mark.slow
def test_a_kernel_and_other_code_with_the_same_functions_in_one_process(tmp_path: Path) -> None:
    """Both compiled here, the kernel first; LLVM has changed how the copies in the kernel are called."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run(
        [sys.executable, "-c", BOTH], env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert result.returncode == 0, result.stderr
