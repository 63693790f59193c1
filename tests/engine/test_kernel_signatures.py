"""How kernels are compiled: once, and apart from other compiled code of the same process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LAYOUTS = Path(__file__).with_name("kernel_layouts.py")


@pytest.mark.slow
def test_no_kernel_is_compiled_twice_for_different_arrays() -> None:
    """Each signature costs seconds of a first run."""
    result = subprocess.run([sys.executable, LAYOUTS], capture_output=True, text=True, timeout=900, check=False)
    assert result.returncode == 0, result.stderr
    twice, kernels = result.stdout.rsplit(maxsplit=1)
    assert twice == "{}"
    assert int(kernels) > 10
