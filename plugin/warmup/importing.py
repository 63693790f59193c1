"""Loading the engine: Numba, hundreds of modules, the tables of a grammar: most of a second.

Python looks through all objects for garbage again and again while many are made. Loading makes much and no garbage: a
fifth of its time would go there.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Collect no garbage meanwhile. Then all objects are of the oldest generation, as if they had been looked through:
    else the next collections would walk all that was loaded, three times."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled and not gc.get_freeze_count():  # who has frozen objects keeps them so
            gc.freeze()
            gc.unfreeze()
        if enabled:
            gc.enable()
