"""The garbage collector leaves alone what a Python worker has loaded.

In the flow: the end of a task's work → **collect and freeze** → Spark's daemon collects. That does so after each task,
and the engine with its kernels is some 270,000 objects: 0.12 to 0.2 s of CPU each time, as much as the work of a task
with 100,000 events.
"""

from __future__ import annotations

import gc
from typing import Final

_MANY: Final = 5_000
"""Objects that a collection is soon through."""
_TIMES: Final = 20
_left = _TIMES


def freeze_loaded() -> None:
    """Call it at the end of a task's work. Freezes a limited number of times, since what is frozen is never collected:
    tasks load less each time."""
    global _left
    if _left and len(gc.get_objects()) > _MANY:
        _left -= 1
        gc.collect()
        gc.freeze()


def unfreeze() -> None:
    """Let the next collection look at everything again: what was loaded for a query may have gone."""
    global _left
    _left = _TIMES
    gc.unfreeze()
