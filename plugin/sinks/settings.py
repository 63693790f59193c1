"""Settings of a sink, as JSON values: each declared once, as a field of its kind.

declaration → what PUT takes, what GET shows (without secrets), the schema in OpenAPI → **settings** → `open`
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, Field, field, fields
from typing import Any, ClassVar, Final, Protocol, Self

from oxiseq.engine.extras import loaded
from oxiseq.grammar.records import dataclass
from oxiseq.options.kinds import UNITS, data_duration, duration_text
from oxiseq.sinks.allowed import REFERENCE, Allowed, Secret, SinkError, line_of
from oxiseq.sinks.delivery import Delivery, checked

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,99}")
"""Of a sink."""
Read = Callable[[Any, str], Any]
_LONGEST: Final = 2000
"""Characters of a text."""


class Receiver(Protocol):
    """An open way to where matches go. Used by one thread."""

    def deliver(self, delivery: Delivery) -> str:
        """Returns when the receiver has confirmed all of them, with a note of how far it has come, which it is given
        when it is opened again. Raises DeliveryError, SinkError, OSError."""
        ...

    def close(self) -> None:
        """Release it."""
        ...


def setting(
    read: Read,
    help: str,
    default: Any = MISSING,
    *,
    schema: Mapping[str, Any] | None = None,
    secret: bool = False,
    write: Callable[[Any], Any] | None = None,
) -> Any:
    """A field that `read` makes of the JSON value given; `write` shows it again. `secret`: it is a `Secret`."""
    shown = dict(schema or {"type": "string"})
    told = {
        "read": read,
        "help": help,
        "schema": {"oneOf": [shown, REFERENCE]} if secret else shown,
        "hidden": secret and write is None,
        "write": write or (_shown_secret if secret else lambda value: value),
    }
    return field(default=default, metadata=told) if default is not MISSING else field(metadata=told)


def _shown_secret(value: Secret | None) -> Any:
    return None if value is None else value.shown()


def text(given: Any, name: str) -> str:
    """A text of one line that is not empty. Raises SinkError."""
    return line_of(given, name, _LONGEST)


def whole(least: int, most: int) -> Read:
    """A whole number in this range."""

    def read(given: Any, name: str) -> int:
        if isinstance(given, int) and not isinstance(given, bool) and least <= given <= most:
            return given
        raise SinkError(f"{name} is a whole number from {least} to {most}, not {str(given)[:40]!r}")

    return read


def after_of(given: Any) -> int | None:
    """Behind which match a sink begins; None: behind the query's last one. Raises SinkError."""
    if given is None or (isinstance(given, int) and not isinstance(given, bool) and 0 <= given < 1 << 62):
        return given
    raise SinkError(f"after is the id of a match, behind which the sink begins, not {str(given)[:40]!r}")


def port_number(given: Any, name: str) -> int:
    """Of a host. Raises SinkError."""
    return int(whole(1, 65_535)(given, name))


def word(*known: str) -> Read:
    """One of these."""

    def read(given: Any, name: str) -> str:
        if given in known:
            return str(given)
        raise SinkError(f"{name} is one of {', '.join(known)}, not {str(given)[:40]!r}")

    return read


def truth(given: Any, name: str) -> bool:
    """true or false. Raises SinkError."""
    if isinstance(given, bool):
        return given
    raise SinkError(f"{name} is true or false, not {str(given)[:40]!r}")


def texts(given: Any, name: str) -> tuple[str, ...]:
    """A list of 1 to 50 texts, or one. Raises SinkError."""
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list) or not 1 <= len(listed) <= 50:
        raise SinkError(f"{name} is a list of 1 to 50 texts")
    return tuple(text(each, name) for each in listed)


def time(least: int = 0, most: int = 30 * UNITS["d"]) -> Read:
    """A duration in µs."""
    return lambda given, name: data_duration(given, name, least=least, most=most)


def template_setting(help: str) -> Any:
    """A field for any JSON value; its places are checked with the query at hand."""
    return setting(lambda given, name: given, help, None, schema={})


def _shown_time(value: int | None) -> str | None:
    return None if value is None else duration_text(value)


_DURATION: Final = {"type": "string", "examples": ["10s", "5m"]}
BATCH: Final = {"type": "integer", "minimum": 1}
MOST: Final = 10_000
"""Matches of a delivery."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings(ABC):
    """What all kinds have."""

    kind: ClassVar[str]
    templates: ClassVar[tuple[str, ...]] = ("template",)
    """Fields whose places are checked against the query's variables."""
    together: ClassVar[bool] = False
    """Whether a delivery of several matches has one key, hence must be the same when it is tried again."""

    needs: ClassVar[str] = ""
    """The package without which it cannot deliver."""
    named: ClassVar[bool] = False
    """Whether the operator must allow each host by its name: `*` will not do."""
    usual: ClassVar[Mapping[str, Any]] = {}
    """What it has where nothing else is given."""

    batch: int = setting(whole(1, MOST), "How many matches are delivered together at most.", 1, schema=BATCH)
    every: int = setting(
        time(),
        "How long matches are collected before a smaller group is delivered.",
        0,
        schema=_DURATION,
        write=_shown_time,
    )
    give_up: int | None = setting(
        time(1),
        "After failing for so long at the same matches, the sink gives them up and counts them as lost; without it "
        "the sink tries for ever.",
        None,
        schema=_DURATION,
        write=_shown_time,
    )

    def hosts(self, allowed: Allowed) -> Iterable[tuple[str, int]]:
        """Host and port of all that it connects to. Raises SinkError."""
        return ()

    def check(self, allowed: Allowed) -> None:
        """Whether the operator allows it: its hosts, its secrets. Raises SinkError, ExtraError."""
        if self.needs:
            loaded(self.needs)
        for host, port in self.hosts(allowed):
            allowed.check_host(host, port, named=self.named)
        for value in (getattr(self, each.name) for each in fields(self)):
            for each in value.values() if isinstance(value, Mapping) else (value,):
                if isinstance(each, Secret):
                    each.text(allowed)

    @abstractmethod
    def open(self, allowed: Allowed, place: str) -> Receiver:
        """Ready to deliver, once it is checked; `place`: what `deliver` has answered last. Raises SinkError,
        DeliveryError, OSError."""

    @property
    def file(self) -> str | None:
        """The file or folder that no other sink may write to."""
        return None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """From JSON values. Raises SinkError."""
        given = {**cls.usual, **given}
        known = {each.name: each for each in fields(cls)}
        if unknown := set(given) - set(known):
            raise SinkError(f"a sink of kind {cls.kind} has no {', '.join(sorted(unknown))}; it has {', '.join(known)}")
        missing = [name for name, each in known.items() if each.default is MISSING and given.get(name) is None]
        if missing:
            raise SinkError(f"a sink of kind {cls.kind} needs {', '.join(missing)}")
        values = {name: known[name].metadata["read"](value, name) for name, value in given.items() if value is not None}
        return cls(**values)

    def check_templates(self, variables: Collection[str]) -> None:
        """Whether a query with these variables can fill them. Raises SinkError."""
        for name in self.templates:
            checked(getattr(self, name), variables, name)

    def shown(self) -> dict[str, Any]:
        """As JSON values, without secrets."""
        found = {"kind": self.kind}
        for each in fields(self):
            found[each.name] = each.metadata["write"](getattr(self, each.name))
        return found

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Its JSON Schema."""
        properties = {each.name: _described(each) for each in fields(cls)}
        required = ["kind", *(each.name for each in fields(cls) if each.default is MISSING)]
        return {
            "type": "object",
            "title": cls.kind,
            "required": required,
            "properties": {"kind": {"type": "string", "enum": [cls.kind]}, **properties},
        }


def _described(each: Field[Any]) -> dict[str, Any]:
    return {
        **each.metadata["schema"],
        "description": each.metadata["help"],
        **({"writeOnly": True} if each.metadata["hidden"] else {}),
    }
