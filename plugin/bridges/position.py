"""How far a source is confirmed, beyond what the source itself remembers: in a file, or in memory where none is set.

A broker forgets a group of readers whose stream is deleted. The position tells a group that is gone from one that never
was: what is there when the bridge comes back is then new, and read from where the bridge was.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Final

from oxiseq.bridges.settings import BridgeError
from oxiseq.engine.events.write import replacing

_PAUSE: Final = 1.0
"""Seconds between two writings that need not be at once."""


class SourcePosition:
    """A JSON value that outlives the source, which is opened again and again. `of`: what the value is about; that of
    another source does not count."""

    def __init__(self, path: Path | None, of: str = "") -> None:
        self._path, self._of = path, of
        self._value: Any = None
        self._read = False
        self._written = 0.0
        self._behind = False

    @property
    def value(self) -> Any:
        """What was saved last; None: nothing. Raises BridgeError for a file that is no position."""
        if not self._read and self._path is not None and self._path.exists():
            try:
                self._value = json.loads(self._path.read_text())
            except ValueError as error:
                raise BridgeError(f"{self._path} is no position: {error}") from error
        self._read = True
        if isinstance(self._value, dict) and self._value.get("of") != self._of:
            return None
        return self._value

    def save(self, value: dict[str, Any], *, at_once: bool = True) -> None:
        """Replace the value. Unless `at_once`, the file is written once a second. Raises OSError."""
        self._value, self._read, self._behind = {"of": self._of, **value}, True, True
        if at_once or time.monotonic() >= self._written + _PAUSE:
            self.flush()

    def flush(self) -> None:
        """Write what is not written yet. Raises OSError."""
        if self._path is not None and self._behind:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(self._path) as part:
                part.write_text(json.dumps(self._value))
            self._written = time.monotonic()
        self._behind = False
