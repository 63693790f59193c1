"""Mappings that have a name, for formats that many use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_SENML: Final = "urn:ietf:params:senml#"
_ECS: Final = "https://www.elastic.co/guide/en/ecs/current/"
_HASS: Final = "https://www.home-assistant.io/ns#"

READY: Final[Mapping[str, Mapping[str, Any]]] = {
    "sosa": {  # SOSA/SSN observations: {"sensor": "t1", "property": "temperature", "feature": "room1", "result": 21.5}
        "prefixes": {"sosa": "http://www.w3.org/ns/sosa/"},
        "type": "sosa:Observation",
        "predicates": {
            "sosa:madeBySensor": "<urn:sensor:{sensor}>",
            "sosa:observedProperty": "<urn:property:{property}>",
            "sosa:hasFeatureOfInterest": "<urn:feature:{feature}>",
            "sosa:hasSimpleResult": "result",
        },
        "time": "time",
    },
    "senml": {  # RFC 8428; as application/senml+json the base values are resolved
        "prefixes": {"senml": _SENML},
        "type": "senml:Record",
        "predicates": {
            "senml:name": "n",
            "senml:unit": "u",
            "senml:value": "value",
            "senml:sum": "s",
        },
        "time": "t",
        "unit": "s",
    },
    "ecs": {  # Elastic Common Schema: log lines of Beats, Fluent Bit, Vector
        "prefixes": {"ecs": _ECS},
        "type": "ecs:Event",
        "predicates": {
            f"ecs:{name}": name
            for name in (
                "message",
                "log.level",
                "log.logger",
                "service.name",
                "host.name",
                "process.name",
                "process.pid",
                "event.action",
                "event.category",
                "event.outcome",
                "event.code",
                "event.dataset",
                "user.name",
                "source.ip",
                "source.port",
                "destination.ip",
                "destination.port",
                "client.ip",
                "url.path",
                "http.request.method",
                "http.response.status_code",
                "trace.id",
                "error.message",
            )
        },
        "time": "@timestamp",
    },
    "home-assistant": {  # state_changed events, as its WebSocket and event stream send them
        "prefixes": {"hass": _HASS},
        "type": "hass:StateChanged",
        "predicates": {
            "hass:entity": "<urn:home-assistant:{data.entity_id}>",
            "hass:from": "data.old_state.state",
            "hass:state": "data.new_state.state",
            "hass:unit": "data.new_state.attributes.unit_of_measurement",
            "hass:name": "data.new_state.attributes.friendly_name",
        },
        "time": "time_fired",
    },
}
"""By name; each is written as in declared.py."""
