"""How much of a change is followed quad by quad."""

from __future__ import annotations

from typing import Final

MOST: Final = 100_000
"""Quads that a change may touch, past which it is passed on as `Anew`: some 50 MB while it is made."""
MOST_COMPARED: Final = 10_000
"""Quads of a store whose content is compared as a whole, where an update cannot be followed."""
MOST_BYTES: Final = 16 << 20
"""Of a document that is read apart, and characters of an update's text."""
MOST_BLANKS: Final = 100
"""Blank nodes of a template: each is an expression within the one before."""


class TooMuchError(Exception):
    """A change touches more than MOST quads or graphs."""


class NotFollowedError(Exception):
    """An update's text does not show what it changes."""
