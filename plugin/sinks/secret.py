"""A secret of a sink: a text, or where the operator keeps it.

    "whsec_..."                       is in the journal, or in the settings' file
    {"env": "OXISEQ_SECRET_CHAT"}     an environment variable of the server
    {"file": "chat"}                  a file below the operator's folder of secrets

settings → **Secret** ─ read whenever the receiver is opened, so that a new one is used then ─▶ the text
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Final

from oxiseq.grammar.records import dataclass
from oxiseq.sinks.allowed import Allowed
from oxiseq.sinks.errors import SinkError

HIDDEN: Final = "***"
"""What is shown of a secret."""
_LONGEST: Final = 8000
"""Characters."""
REFERENCE: Final = {
    "type": "object",
    "description": "Where the operator keeps it: a variable OXISEQ_SECRET_..., or a file below --sink-secrets.",
    "minProperties": 1,
    "maxProperties": 1,
    "properties": {"env": {"type": "string"}, "file": {"type": "string"}},
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Secret:
    """`given`: the text, or the reference; `check` raises SinkError for a text that cannot be."""

    name: str
    given: str | Mapping[str, str] = field(repr=False)
    check: Callable[[str, str], object] = field(repr=False, compare=False)

    def text(self, allowed: Allowed) -> str:
        """What it is now. Raises SinkError."""
        if isinstance(self.given, str):
            return self.given
        ((where, name),) = self.given.items()
        found = allowed.secret_variable(name) if where == "env" else allowed.secret_file(name)
        self.check(found, self.name)
        return found

    def shown(self, write: Callable[[str], str] = lambda _: HIDDEN) -> str | dict[str, str]:
        """Without the secret: `write` shows a text, a reference is shown as it was given."""
        return write(self.given) if isinstance(self.given, str) else dict(self.given)


def secret(check: Callable[[Any, str], object]) -> Callable[[Any, str], Secret]:
    """Reads a secret from a JSON value. Raises SinkError."""

    def read(given: Any, name: str) -> Secret:
        if isinstance(given, dict):
            if len(given) != 1 or not set(given) <= {"env", "file"} or not isinstance(next(iter(given.values())), str):
                raise SinkError(f'{name} is a text, {{"env": NAME}} or {{"file": NAME}}')
        else:
            check(given, name)
        return Secret(name, given, check)

    return read


def secret_text(given: Any, name: str) -> str:
    """A text of one line that is not what is shown in a secret's place. Raises SinkError."""
    found = line_of(given, name, _LONGEST)
    if HIDDEN in found:
        raise SinkError(f"{name}: {HIDDEN} is shown in place of a secret: give the secret itself")
    return found


def line_of(given: Any, name: str, longest: int) -> str:
    """A text of one line that is not empty. Raises SinkError."""
    if not isinstance(given, str) or not given.strip() or len(given) > longest:
        raise SinkError(f"{name} is a text of 1 to {longest} characters")
    if not given.isprintable():
        raise SinkError(f"{name} has characters that cannot be printed, or more than one line")
    return given
