"""Work that makes many objects and no garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No search for cyclic garbage meanwhile: it would look at all that is being made again and again."""
    if not gc.isenabled():  # within the work of a caller
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
