"""Refused messages, in a file: a JSON object a line, so that they can be read, mended and sent again."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any, Final

from oxiseq.bridges.settings import BridgeError
from oxiseq.bridges.source import Message
from oxiseq.engine.events.time import to_text
from oxiseq.journal.journal import microseconds
from oxiseq.options import room

_LARGEST: Final = 256 << 20
"""Bytes: a source that sends nothing but nonsense must not fill the disk."""


class DeadLetters:
    """Appends; each letter is on the disk before the message is confirmed."""

    def __init__(self, path: Path, largest: int = _LARGEST) -> None:
        self._path, self._largest = path, largest

    def add(self, message: Message, source: str, reason: str) -> None:
        """Raises BridgeError when the file is full, OSError."""
        try:
            body: dict[str, Any] = {"body": message.body.decode()}
        except UnicodeDecodeError:
            body = {"body_base64": base64.b64encode(message.body).decode()}
        letter = {"at": to_text(microseconds()), "source": source, "key": message.key, "reason": reason, **body}
        data = json.dumps(letter, ensure_ascii=False).encode() + b"\n"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if told := room.lacking(self._path.parent, len(data)):
            raise BridgeError(f"{self._path}: no room on the disk for a dead letter: {told}")
        with self._path.open("ab") as file:
            if file.tell() + len(data) > self._largest:
                raise BridgeError(f"{self._path} has {file.tell()} bytes, which is the limit: check it, move it away")
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
