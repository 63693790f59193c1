"""How kernels are compiled.

Functions that only other kernels call need no door to Python: without it they compile in half the time.
"""

from __future__ import annotations

from typing import Final

INNER: Final = {"cache": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "error_model": "numpy"}
"""`@njit(**INNER)`: for kernels called by kernels."""
