"""Which instants are in work: for operators over what happens at some time, which keep it as long as it is of use.

A clock is i64[2], one for all operators of a plan; these know its address. Whoever runs the plan sets it before a step.
"""

from __future__ import annotations

from typing import Final

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.memory.raw import get

SINCE, OVER = range(2)
"""What ended before SINCE has happened, and does not change; what no instant from OVER on needs is dropped."""
FEW: Final = 1 << 10
"""Rows that are not worth a look whether they are still of use."""


@inner
def is_full(clock: int, rows: int, kept: int, limit: int) -> bool:
    """Whether it is time to let go of rows. kept: how many the last look has left. Those of an instant go at once."""
    return clock != 0 and rows > 0 and (limit == 0 or rows > 2 * kept + FEW)


@inner
def of_use_from(clock: int, limit: int) -> int:
    """The time before which no row may begin that is kept for so long."""
    return get(clock, OVER) - limit
