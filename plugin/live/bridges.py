"""Bridges that run inside the server: each on a thread of its own, by the same way in as a POST.

settings ─▶ Bridge ─ messages ─▶ begin_push, the log's group commit, end_push ─▶ confirmed at the source
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from oxiseq.bridges import Bridge, BridgeSettings, DeadLetters, Message, Outcome, opener_of, outcome_of
from oxiseq.bridges.bridge import key_headers
from oxiseq.engine.background import Background
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.time import to_text
from oxiseq.grammar.records import dataclass
from oxiseq.journal import Appended, Appending, Journal
from oxiseq.sparql.messages import Request, Response

FOLDER: Final = "bridges"
"""In the folder of the journal: positions and dead letters."""
_END: Final = 5.0
"""Seconds for which the end of a bridge is waited for."""


@dataclass(frozen=True, slots=True)
class Door:
    """The routes' own push, in two steps, so that many share a commit."""

    begin: Callable[[Request], Any]
    """A Pushing, whose `append` is to be stored, or the Response that refuses it."""
    end: Callable[[Request, Any, Callable[[], Appended]], Response]


class Inside:
    """The intake of this process."""

    def __init__(self, journal: Journal, door: Door, settings: BridgeSettings) -> None:
        self._journal, self._door, self._into = journal, door, settings.into
        self._path = f"/streams/{quote(settings.into, safe='')}"
        self._query = "" if settings.time is None else urlencode({"time": settings.time})
        self._type = settings.media_type

    def knows(self, key: str) -> bool:
        """See Intake."""
        return self._journal.log.knows(self._into, key)

    def push(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        """See Intake: they come into the log in this order."""
        under_way: list[tuple[Request, Any, _Awaited] | Response] = []
        for message in messages:
            headers = (("content-type", self._type), *key_headers(message))
            request = Request("POST", self._path, self._query, headers, message.body)
            pushing = self._door.begin(request)
            if isinstance(pushing, Response):
                under_way.append(pushing)
                if not _settled(pushing):
                    break  # those behind it would overtake it
            else:
                stored = threading.Event()
                appending = self._journal.log.submit(pushing.append, stored.set)
                under_way.append((request, pushing, _Awaited(appending, stored)))
        return self._ended(under_way)

    def _ended(self, under_way: Sequence[tuple[Request, Any, _Awaited] | Response]) -> list[Outcome]:
        """What became of them, up to the first that is to be tried again. Raises where that is the first of all."""
        found: list[Outcome] = []
        for each in under_way:
            answer = each if isinstance(each, Response) else self._door.end(each[0], each[1], each[2].result)
            body = answer.body if isinstance(answer.body, bytes) else b""
            try:
                found.append(outcome_of(answer.status, body))
            except OxiseqError:
                if found:
                    break  # what was stored behind it comes again under its key
                raise
        return found


class _Awaited:
    """An append whose result is waited for."""

    def __init__(self, appending: Appending, stored: threading.Event) -> None:
        self._appending, self._stored = appending, stored

    def result(self) -> Appended:
        self._stored.wait()
        return self._appending.result()


def _settled(answer: Response) -> bool:
    try:
        outcome_of(answer.status, answer.body if isinstance(answer.body, bytes) else b"")
    except OxiseqError:
        return False
    return True


class Bridges:
    """Those of the settings. Begun once the service has started; ended before it."""

    def __init__(self, journal: Journal, door: Door, declared: Mapping[str, BridgeSettings]) -> None:
        """Raises BridgeError, ExtraError for what cannot be opened at all."""
        self.settings, self._journal = dict(declared), journal
        self._bridges = {
            name: Bridge(name, opener_of(each), Inside(journal, door, each), DeadLetters(each.dead_letter))
            for name, each in declared.items()
        }
        self._threads = [
            journal.threads.add(Background(f"oxiseq-bridge-{name}", bridge.run, wake=bridge.stop, again=False))
            for name, bridge in self._bridges.items()
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End: what is not confirmed comes again at the next start."""
        self._journal.threads.end(self._threads, _END)

    def values(self) -> list[dict[str, Any]]:
        """Each as JSON values, without passwords."""
        found = []
        for name, bridge in self._bridges.items():
            settings, counts = self.settings[name], bridge.counts
            found.append(
                {
                    "name": name,
                    "url": settings.shown,
                    "topic": settings.topic or None,
                    "into": settings.into,
                    "state": "reading" if counts.failing is None else "failing",
                    "messages": counts.messages,
                    "events": counts.events,
                    "duplicates": counts.duplicates,
                    "refused": counts.refused,
                    "failures": counts.failures,
                    "failing_since": None if counts.failing is None else to_text(counts.failing),
                    "error": counts.error or None,
                }
            )
        return found

    def metrics(self) -> Iterable[Metric]:
        """For Prometheus."""
        counters = {
            name: CounterMetricFamily(f"oxiseq_bridge_{name}", text, labels=("bridge",))
            for name, text in (
                ("messages", "Messages that the server accepted."),
                ("events", "Events in them."),
                ("duplicates", "Messages that were known by their key."),
                ("refused", "Messages that were refused."),
                ("failures", "Times that the source or the intake failed."),
            )
        }
        failing = GaugeMetricFamily("oxiseq_bridge_failing", "1 while it fails.", labels=("bridge",))
        for name, bridge in self._bridges.items():
            for counter, family in counters.items():
                family.add_metric([name], getattr(bridge.counts, counter))
            failing.add_metric([name], bridge.counts.failing is not None)
        return [*counters.values(), failing]
