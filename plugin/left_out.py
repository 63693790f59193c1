"""Events that a query leaves out because its language cannot take them: told as a warning (CEQL, semantics.md 3)."""

from __future__ import annotations

import warnings
from typing import Final

from oxiseq.engine.cea.faults import Faults

_TOLD: Final = 3
"""Of them a warning tells why."""


class LeftOutWarning(UserWarning):
    """Events have been left out."""


def warn_of(faults: Faults, before: int = 0, stacklevel: int = 2) -> None:
    """Warn of those that came after the first `before`, if there are some."""
    count = faults.count - before
    if count <= 0:
        return
    named = faults.first[before:][:_TOLD]
    more = [f"and {count - len(named):,} more"] * (count > len(named))
    warnings.warn(f"left out: {'; '.join([*named, *more])}", LeftOutWarning, stacklevel=stacklevel + 1)
