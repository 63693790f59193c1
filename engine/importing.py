"""Loading the engine: Numba, hundreds of modules, the tables of a grammar: most of a second.

Python looks through all objects for garbage again and again while many are made. Loading makes much and no garbage: a
fifth of its time would go there.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Collect no garbage meanwhile. If modules were loaded, all objects are of the oldest generation then, as if they
    had been looked through: else the next collections would walk all that was loaded, three times.

    If none were, the collector is left alone: it counts frozen objects one by one, and who calls this again and again
    would have garbage grow old before it is seen.
    """
    enabled, known = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if enabled and len(sys.modules) != known and not gc.get_freeze_count():  # who has frozen objects keeps them so
            gc.freeze()
            gc.unfreeze()
        if enabled:
            gc.enable()
