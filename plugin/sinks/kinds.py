"""The kinds of sinks: one line each.

Sinks of the server's settings: a table each, [serve.sinks.NAME].

TOML file ─▶ **DeclaredSink** ─ when its query is registered ─▶ a sink at work
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from oxiseq.grammar.records import dataclass
from oxiseq.sinks.allowed import SinkError
from oxiseq.sinks.files import File
from oxiseq.sinks.kafka import Kafka
from oxiseq.sinks.mail import Mail
from oxiseq.sinks.mqtt import Mqtt
from oxiseq.sinks.settings import NAME, SinkSettings, after_of
from oxiseq.sinks.webhook import Webhook

# --- kinds -----------------------------------------------------------------------------------------------

KINDS: Final[Mapping[str, type[SinkSettings]]] = {each.kind: each for each in (Webhook, File, Mqtt, Kafka, Mail)}


def settings_of(given: Mapping[str, Any]) -> SinkSettings:
    """Of JSON values, whose member `kind` says which. Raises SinkError."""
    kind = given.get("kind")
    found = KINDS.get(kind) if isinstance(kind, str) else None
    if found is None:
        raise SinkError(f"kind is one of {', '.join(KINDS)}" + ("" if kind is None else f", not {str(kind)[:40]!r}"))
    return found.of({name: value for name, value in given.items() if name != "kind"})


# --- declared --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeclaredSink:
    """`after`: behind which match it begins when it is new; None: the query's last one."""

    query: str
    name: str
    settings: SinkSettings
    after: int | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any], name: str) -> DeclaredSink:
        """From a table. Raises SinkError, ExtraError."""
        values = dict(given)
        query, after = values.pop("query", None), values.pop("after", None)
        try:
            if not NAME.fullmatch(name):
                raise SinkError("its name has letters, digits and . _ ~ -, at most 100")
            if not isinstance(query, str) or not query:
                raise SinkError("it needs query, the name of the query whose matches it delivers")
            return cls(query, name, settings_of(values), after_of(after))
        except SinkError as error:
            raise SinkError(f"[serve.sinks.{name}]: {error}") from error
