"""The events of auth.log: what sshd says of logins, each line that tells of one as a typed event."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

SSH: Final = "http://host.example/ssh#"
STREAM: Final = f"{SSH}Log"
_LINE: Final = re.compile(
    r"(?P<time>\S+) \S+ sshd\[\d+\]: (?P<type>Failed|Accepted) \w+ for (?:invalid user )?(?P<user>\S+)"
    r" from (?P<address>[0-9a-fA-F.:]+) port \d+ ssh2.*"
)


def logins() -> Iterator[tuple[int, str, str, str]]:
    """Time (µs), Failed or Accepted, user, address; in the order of the log."""
    for line in (Path(__file__).parent / "auth.log").read_text(encoding="utf-8").splitlines():
        if found := _LINE.fullmatch(line):
            at = datetime.fromisoformat(found["time"])
            yield round(at.timestamp() * 1_000_000), found["type"], found["user"], found["address"]


def streams() -> dict[str, list[tuple[int, str]]]:
    """The log as a stream."""
    return {STREAM: [(time, _event(*login)) for time, *login in logins()]}


def _event(kind: str, user: str, address: str) -> str:
    return f'[] a <{SSH}{kind}> ; <{SSH}user> "{user}" ; <{SSH}address> "{address}" .'
