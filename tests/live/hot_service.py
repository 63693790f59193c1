"""A live service whose query finds a match for each event, and short ways to put sinks to it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from oxiseq.api.store import Store
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.live.intake import read_batch
from oxiseq.rights import EVERYTHING, Rights
from oxiseq.sinks import Allowed
from oxiseq.sparql.evaluation import Evaluations
from oxiseq.sparql.messages import Request
from oxiseq.sparql.settings import Limits

STREAM = "http://example.org/heat"
HOT = f"""PREFIX : <http://example.org/>
SELECT ?machine ?heat ?note
FROM STREAM S <{STREAM}>
WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?machine :heat ?heat OPTIONAL {{ ?machine :note ?note }} }} }}"""
LOOPBACK = Allowed.of(("localhost", "127.0.0.1"), ("127.0.0.0/8", "::1/128"))


class Doors:
    """The service's routes, asked in this process."""

    def __init__(self, service: LiveService) -> None:
        self.service = service
        self._routes = LiveRoutes(service, Evaluations(Limits()))
        self._time = next((record.next for record in service.streams.all() if record.iri == STREAM), 0)

    def ask(self, method: str, path: str, value: Any = None, rights: Rights = EVERYTHING) -> tuple[int, dict[str, Any]]:
        body = b"" if value is None else json.dumps(value).encode()
        headers = (("content-type", "application/json"),)
        answer = self._routes.answer(Request(method, path, "", headers, body, rights=rights))
        assert isinstance(answer.body, bytes)
        return answer.status, json.loads(answer.body) if answer.body else {}

    def put(self, sink: str, settings: Mapping[str, Any], query: str = "hot") -> dict[str, Any]:
        status, value = self.ask("PUT", f"/queries/{query}/sinks/{sink}", dict(settings))
        assert status == 200, value
        return value

    def sink(self, sink: str, query: str = "hot") -> dict[str, Any]:
        status, value = self.ask("GET", f"/queries/{query}/sinks/{sink}")
        assert status == 200, value
        return value

    def push(self, count: int = 1, note: str = "") -> None:
        """Events of which each is a match."""
        lines = []
        for _ in range(count):
            self._time += 1
            name = f"<http://example.org/e{self._time}>"
            lines += [
                f'{name} <http://www.w3.org/ns/prov#generatedAtTime> "2024-05-01T10:00:00.{self._time:06d}Z"^^'
                "<http://www.w3.org/2001/XMLSchema#dateTime> .",
                f'<http://example.org/m1> <http://example.org/heat> "{self._time}"^^'
                f"<http://www.w3.org/2001/XMLSchema#integer> {name} .",
            ]
            if note:
                lines.append(f"<http://example.org/m1> <http://example.org/note> {json.dumps(note)} {name} .")
        body = "\n".join(lines).encode()
        self.service.streams.push(STREAM, lambda: read_batch(body, "nquads"), body)


@contextmanager
def hot(folder: Path, allowed: Allowed = LOOPBACK, **settings: Any) -> Iterator[Doors]:
    """A service with the query `hot`, whose sinks try again at once."""
    chosen = LiveSettings(idle=0.01, sinks_allowed=allowed, sink_pauses=(0.01, 0.05), **settings)
    with LiveService(Store(), folder, chosen, "normal") as service:
        doors = Doors(service)
        if not any(each.record.name == "hot" for each in service.queries.all()):
            service.queries.register("hot", HOT)
        yield doors
