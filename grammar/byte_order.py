"""Byte order marks: some editors write one before a text in UTF-8, and every door passes over it.

Files of text are read as `utf-8-sig`; bytes and texts that are handed over lose it by `unmarked`.
"""

from __future__ import annotations

from typing import Final, TypeVar

T = TypeVar("T", bytes, str)
MARK: Final = b"\xef\xbb\xbf"


def unmarked(text: T) -> T:
    """Removes the mark at the beginning."""
    return text.removeprefix("\ufeff" if isinstance(text, str) else MARK)
