"""WITHIN of a sequence as one clock: what begins before it is out of the window (semantics.md, section 2.6).

For kernels; and as Python runs it (`compiling.options.in_python`) for arrays of clocks, so that there is one formula.
"""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner


@inner
def window_start(now: int, size: int, sliding: int, origin: int) -> int:
    """The clock at which a match that ends at `now` may start at the earliest. origin: the first clock of the first
    tumbling window."""
    if sliding:
        return now - size
    return origin + (now - origin) // size * size
