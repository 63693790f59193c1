"""A live service behind its HTTP routes, without sockets, for attacks on it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from werkzeug.test import TestResponse

from oxiseq.api.store import Store
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.server import ServerSettings, create_app
from oxiseq.sparql import SparqlEndpoint

EX = "http://example.org/"
STREAM = f"{EX}power"
PATH = f"/streams/{quote(STREAM, safe='')}"
NQUADS = {"Content-Type": "application/n-quads"}
TURTLE = {"Content-Type": "text/turtle"}
BEGIN = 1_714_557_600_000_000
"""2024-05-01T10:00:00Z in microseconds."""
SPASEQ = f"""PREFIX : <{EX}>
SELECT ?house ?before ?after WITHIN 30 SECONDS SLIDING FROM STREAM S <{STREAM}>
WHERE {{
  SEQ(A; B)
  DEFINE GPM A ON S {{ ?house :watts ?before }}
  DEFINE GPM B ON S {{ ?house :watts ?after FILTER(?after > 2 * ?before) }}
}}"""
RSPQL = f"""PREFIX : <{EX}>
REGISTER ISTREAM :busy AS SELECT ?house ?watts FROM NAMED WINDOW :w ON <{STREAM}> [RANGE PT20S STEP PT5S]
WHERE {{ WINDOW :w {{ ?house :watts ?watts }} }}"""
SPECTRA = f"""PREFIX : <{EX}>
SELECT ?house ?watts FROM STREAM <{STREAM}> [RANGE 5 SECONDS SLIDE 1 SECONDS] WHERE {{ ?house :watts ?watts }}"""
RSEPQL = f"""PREFIX : <{EX}>
REGISTER ISTREAM :left AS SELECT ?house ?watts
FROM NAMED <{STREAM}> WIN [RANGE 20 SECONDS SLIDE 1 SECONDS] AS :w
EVENT ON :w {{ ?house :watts ?watts FILTER(?watts > 7) }} AS High
WHERE {{ MATCH {{ High }} }}"""
EPSPARQL = f"""PREFIX : <{EX}>
SELECT ?house ?before ?after FROM STREAM <{STREAM}>
WHERE {{
  {{ ?house :watts ?before }} SEQ {{ ?house :watts ?after }}
  FILTER(?after > 2 * ?before && getDURATION() < "PT20S"^^<http://www.w3.org/2001/XMLSchema#duration>)
}}"""
LANGUAGES = {"spaseq": SPASEQ, "rspql": RSPQL, "spectra": SPECTRA, "rsepql": RSEPQL, "epsparql": EPSPARQL}


class Asked:
    """Requests to a service; `service` is there to be looked into."""

    def __init__(self, service: LiveService) -> None:
        self.service = service
        endpoint = SparqlEndpoint(service.store)  # type: ignore[arg-type]  # a Store: see `asked`
        self._client = create_app(endpoint, ServerSettings(), LiveRoutes(service, endpoint.evaluations)).test_client()

    def ask(
        self, method: str, target: str, body: bytes | None = None, headers: Mapping[str, str] = {}
    ) -> tuple[int, Any]:
        """The status and the body, as JSON where it is."""
        answer = self.raw(method, target, body, headers)
        kind = answer.content_type or ""
        return answer.status_code, json.loads(answer.data) if "json" in kind else answer.data

    def raw(self, method: str, target: str, body: bytes | None = None, headers: Mapping[str, str] = {}) -> TestResponse:
        """The response as it is."""
        return self._client.open(target, method=method, data=body, headers=dict(headers))

    def push(self, second: float, watts: int) -> int:
        """An event of a house; the status."""
        at = BEGIN + int(second * 1_000_000)
        return self.ask("POST", f"{PATH}?time={at}", f"<{EX}h> <{EX}watts> {watts} .".encode(), TURTLE)[0]

    def query(self, name: str) -> dict[str, Any]:
        """How a query is doing."""
        status, told = self.ask("GET", f"/queries/{name}")
        assert status == 200
        found: dict[str, Any] = told
        return found

    def matches(self, name: str) -> int:
        """How many there are."""
        return int(self.query(name)["matches"]["next"]) - 1


@contextmanager
def asked(folder: Path, settings: LiveSettings | None = None, store: Store | None = None) -> Iterator[Asked]:
    """A service that has caught up, with every language's query if the folder is new."""
    chosen = settings if settings is not None else LiveSettings(idle=None)
    given = store if store is not None else Store()
    with LiveService(given, folder, chosen, "normal") as service:
        here = Asked(service)
        known = {record.name for record in service.journal.queries.all()}
        for language, text in LANGUAGES.items():
            if language not in known:
                service.queries.register(language, text, language)
        eventually(lambda: service.ready)
        yield here


def eventually(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it does not come to that"
        time.sleep(0.005)


def settled(here: Asked) -> None:
    """Wait until all of the log has been worked through."""
    eventually(lambda: here.service.worker.position >= here.service.journal.log.position())
    with here.service.worker.lock:
        here.service.worker.flush()
