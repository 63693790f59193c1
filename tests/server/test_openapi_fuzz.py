"""Every route of the OpenAPI document, with requests made from it, right ones and wrong ones: no answer is a fault of
the server's, and it is one of those that the document promises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oxiseq.api.store import Store
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.live.intake import EVENTS, GRAPHS
from oxiseq.server import ServerSettings, create_app
from oxiseq.sparql import SparqlEndpoint

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: pip install --group test")

BODIES = ("application/spaseq-query", "application/ceql-query", *EVENTS, *GRAPHS)


@schemathesis.serializer(*BODIES)
def as_bytes(context: Any, value: Any) -> bytes:
    """Bodies of media types that schemathesis does not know: strings as they are, else anything."""
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


@pytest.fixture(scope="module")
def operations(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Any]]:
    store = Store()
    endpoint = SparqlEndpoint(store)
    with LiveService(store, tmp_path_factory.mktemp("journal"), LiveSettings(heartbeat=0.05), "normal") as service:
        app = create_app(endpoint, ServerSettings(), LiveRoutes(service, endpoint.evaluations))
        schema = schemathesis.openapi.from_wsgi("/openapi.json", app)
        yield [found.ok() for found in schema.get_all_operations()]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data())
def test_any_request_is_answered_as_documented(operations: list[Any], data: st.DataObject) -> None:
    operation = data.draw(st.sampled_from(operations))
    mode = data.draw(st.sampled_from(list(schemathesis.GenerationMode)))
    case = data.draw(operation.as_strategy(generation_mode=mode))
    case.headers = {k: v for k, v in (case.headers or {}).items() if k.lower() != "accept"}  # a live answer never ends
    answer = case.call()
    assert answer.status_code < 500 or answer.status_code in (501, 503), (case.as_curl_command(), answer.text)
    documented = {str(code) for code in operation.definition.raw["responses"]}
    assert documented & {str(answer.status_code), "default"}, (case.as_curl_command(), answer.status_code)
