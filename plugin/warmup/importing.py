"""Loading the engine: Numba and hundreds of modules, about a second.

Python looks through all objects for garbage again and again while many are made. Imports make much and no garbage: a
fifth of their time would go there.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Collect no garbage meanwhile."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
