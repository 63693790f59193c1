"""What was measured on what: processor, memory, versions."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numba
import numpy as np
import pyoxigraph


def machine() -> str:
    """Versions and processor, in one phrase."""
    return (
        f"Python {platform.python_version()}, NumPy {np.__version__}, Numba {numba.__version__}, "
        f"pyoxigraph {pyoxigraph.__version__}, {platform.machine()}, {os.cpu_count()} cores{_processor()}{_memory()}"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f" ({names[0]})" if names else ""


def _memory() -> str:
    try:
        return f", {os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GB of memory"
    except (AttributeError, OSError, ValueError):
        return ""
