"""Ready mappings, each with rows as the format's own documents show them: what the events hold."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from oxiseq.engine.events.encode import decode_events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.mappings.declared import READY, StreamMapping
from oxiseq.mappings.events import mapped
from oxiseq.mappings.rows import read_table

SOSA: Final = "http://www.w3.org/ns/sosa/"
ECS: Final = "https://www.elastic.co/guide/en/ecs/current/"
HASS: Final = "https://www.home-assistant.io/ns#"
SENML: Final = "urn:ietf:params:senml#"
TEN: Final = 1_714_557_600_000_000
"""2024-05-01T10:00:00Z."""

CASES: Final[dict[str, tuple[str, Any, list[tuple[int, dict[str, str]]]]]] = {
    "sosa": (
        "application/json",
        {
            "sensor": "t 1",
            "property": "temperature",
            "feature": "room/1",
            "result": 21.5,
            "time": "2024-05-01T10:00:00Z",
        },
        [
            (
                TEN,
                {
                    f"{SOSA}madeBySensor": "<urn:sensor:t%201>",
                    f"{SOSA}observedProperty": "<urn:property:temperature>",
                    f"{SOSA}hasFeatureOfInterest": "<urn:feature:room%2F1>",
                    f"{SOSA}hasSimpleResult": "21.5",
                },
            )
        ],
    ),
    "senml": (  # as RFC 8428, 5.1.2
        "application/senml+json",
        [
            {"bn": "urn:dev:ow:10e2073a01080063:", "bt": 1714557600.0, "n": "voltage", "u": "V", "v": 120.1},
            {"n": "current", "t": 1, "u": "A", "v": 1.2},
        ],
        [
            (
                TEN,
                {f"{SENML}name": "urn:dev:ow:10e2073a01080063:voltage", f"{SENML}unit": "V", f"{SENML}value": "120.1"},
            ),
            (
                TEN + 1_000_000,
                {f"{SENML}name": "urn:dev:ow:10e2073a01080063:current", f"{SENML}unit": "A", f"{SENML}value": "1.2"},
            ),
        ],
    ),
    "ecs": (
        "application/x-ndjson",
        {
            "@timestamp": "2024-05-01T10:00:00.000Z",
            "message": "Failed password",
            "event": {"outcome": "failure"},
            "source": {"ip": "203.0.113.9", "port": 40112},
            "user": {"name": "root"},
            "ecs": {"version": "8.11"},
        },
        [
            (
                TEN,
                {
                    f"{ECS}message": "Failed password",
                    f"{ECS}event.outcome": "failure",
                    f"{ECS}source.ip": "203.0.113.9",
                    f"{ECS}source.port": "40112",
                    f"{ECS}user.name": "root",
                },
            )
        ],
    ),
    "home-assistant": (
        "application/json",
        {
            "event_type": "state_changed",
            "time_fired": "2024-05-01T10:00:00.000000+00:00",
            "origin": "LOCAL",
            "data": {
                "entity_id": "light.bed_light",
                "old_state": None,
                "new_state": {
                    "entity_id": "light.bed_light",
                    "state": "on",
                    "attributes": {"friendly_name": "Bed Light"},
                },
            },
        },
        [
            (
                TEN,
                {
                    f"{HASS}entity": "<urn:home-assistant:light.bed_light>",
                    f"{HASS}state": "on",
                    f"{HASS}name": "Bed Light",
                },
            )
        ],
    ),
}


def events(name: str, media_type: str, body: bytes) -> tuple[list[tuple[int, dict[str, str]]], list[str]]:
    """Each event's time and what it says of its subject but its type, and the reasons of bad rows."""
    mapping, terms = StreamMapping(name), TermDictionary()
    found, bad = list[tuple[int, dict[str, str]]](), list[str]()
    for part in mapped(read_table(body, media_type, mapping.key, TEN / 1e6), mapping, terms):
        bad += map(str, part.bad)
        for at, graph in decode_events(part.batch, terms):
            assert len({triple.subject for triple in graph}) == 1
            said = {
                t.predicate.value: getattr(t.object, "value", "") if str(t.object)[0] == '"' else str(t.object)
                for t in graph
            }
            assert said.pop("http://www.w3.org/1999/02/22-rdf-syntax-ns#type").startswith("<")
            found.append((at, said))
    return found, bad


def test_all_have_a_case() -> None:
    assert set(CASES) == set(READY)


@pytest.mark.parametrize("name", READY)
def test_rows_of_the_format(name: str) -> None:
    media_type, rows, expected = CASES[name]
    assert events(name, media_type, json.dumps(rows).encode()) == (expected, [])


@pytest.mark.parametrize("name", ["sosa", "ecs", "home-assistant"])
def test_a_row_without_a_time_is_bad_alone(name: str) -> None:
    _, row, expected = CASES[name]
    (column,) = StreamMapping(name).time
    untimed = {key: value for key, value in row.items() if key != column}
    lines = b"\n".join(json.dumps(each).encode() for each in (untimed, row))
    assert events(name, "application/x-ndjson", lines) == (expected, [f"{column}: there is no time"])
