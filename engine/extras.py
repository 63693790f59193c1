"""Packages that only some features need: loaded when such a feature is first used, named where they are missing.

    arrow     pyarrow     event tables (.arrow, .parquet), CSV tables of CEQL, tables of matches, Parquet for the loader
    client    httpx...    a store in a folder with its journal (`oxiseq.open`), a server that is elsewhere
    jelly     pyjelly     event files in Jelly
    kafka     confluent-kafka  sinks to Kafka, bridges from it
    mqtt      paho-mqtt   sinks to MQTT brokers, bridges from them
    nats      nats-py     bridges from NATS JetStream
    pandas    pandas      matches as a DataFrame, a DataFrame as a stream
    redis     redis       bridges from Redis streams
    shacl     pyshacl     validation of what is loaded
    spark     pyspark     loading and streaming on Spark
    websockets  websockets  bridges from WebSockets

A module that needs one of them says so at its top, as an import that waits:

    if TYPE_CHECKING:
        import pyarrow as pa
    else:
        pa = needed("pyarrow")

A module of oxiseq itself that most runs do without, and that loads many others, is imported in the same way, so that a
new process has its first result sooner (`python -m benchmarks.start`; tests/plugin/test_light.py says what it loads).
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from threading import RLock
from typing import Any, Final

from oxiseq.engine.errors import ExtraError
from oxiseq.engine.importing import loading

EXTRAS: Final = {
    "httpx": "client",
    "httpcore": "client",
    "httpx_sse": "client",
    "msgspec": "client",
    "prometheus_client": "client",
    "werkzeug": "client",
    "confluent_kafka": "kafka",
    "nats": "nats",
    "paho": "mqtt",
    "pyarrow": "arrow",
    "pandas": "pandas",
    "pyjelly": "jelly",
    "pyshacl": "shacl",
    "pyspark": "spark",
    "rdflib": "shacl",
    "redis": "redis",
    "websockets": "websockets",
}
"""Package → the extra that brings it."""

_ONE_AT_A_TIME: Final = RLock()
"""Threads that first import parts of one package at once have failed with a KeyError inside Python's import; no module
uses a `needed` one while it is itself imported, so nobody waits for this with an import of its own."""


class Needed:
    """A module that is imported at the first access to one of its names; from then on its names are the module's, also
    those that are set later."""

    __slots__ = ("__dict__", "__name")

    def __init__(self, name: str) -> None:
        self.__name = name

    def __getattr__(self, attribute: str) -> Any:
        """The module's attribute of this name. Raises ExtraError where it is not installed."""
        if attribute.startswith("__"):  # doctest, pickle and others ask every object for these
            raise AttributeError(attribute)
        module = loaded(self.__name)
        self.__dict__ = vars(module)
        return getattr(module, attribute)


def needed(name: str) -> Any:
    """The module of this name, to be imported when it is first used; one of a package in `EXTRAS`, or of oxiseq."""
    return Needed(name)


def installed(name: str) -> bool:
    """Whether a package is there, without importing it."""
    return find_spec(name) is not None


def loaded(name: str) -> Any:
    """Import a module of a package in `EXTRAS`, or of oxiseq. Raises ExtraError where the package is not installed."""
    package = name.partition(".")[0]
    try:
        with _ONE_AT_A_TIME, loading():
            return import_module(name)
    except ModuleNotFoundError as error:
        if package not in EXTRAS or (error.name or "").partition(".")[0] != package:
            raise
        raise ExtraError(package, EXTRAS[package]) from error
