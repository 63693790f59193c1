"""Warnings with the line from which oxiseq was called, however many calls lie between."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

_OURS = __name__.partition(".")[0]


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn of the line in somebody else's code that has led here."""
    frame: FrameType | None = sys._getframe()
    level = 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _OURS:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level + 1)
