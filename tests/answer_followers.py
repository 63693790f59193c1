"""A client of a query over the store: it applies what it is told, and has the answer by that."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping
from http.client import HTTPConnection
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode

from oxiseq.api.store import Store
from oxiseq.live import LiveService
from oxiseq.live.answer_readers import follow

_STRING = "http://www.w3.org/2001/XMLSchema#string"


class Follower:
    """rows: the answer; last: the id to go on from; told: the kinds of events; whole: whether no part is missing."""

    def __init__(self) -> None:
        self.rows: Counter[str] = Counter()
        self.truth: bool | None = None
        self.last: int | None = None
        self.told: list[str] = []
        self.whole = True
        self.reason = ""

    def apply(self, block: str) -> None:
        """One server-sent event."""
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":") and ": " in line)
        if "event" not in lines:
            return
        kind, data = lines["event"], json.loads(lines["data"])
        self.told.append(kind)
        self.reason = data.get("reason", "")
        if "id" in lines:
            assert kind == "snapshot" or self.last is None or int(lines["id"]) > self.last
            self.last = int(lines["id"])
        if kind == "cursor-too-old":
            self.whole = False
        if kind not in ("snapshot", "change"):
            return
        self.whole = not data["more"]
        self.truth = data.get("answer", self.truth)
        if kind == "snapshot" and data["part"] == 0:
            self.rows.clear()
        self.rows.update(map(_row, data.get("rows", [])))
        self.rows.subtract(map(_row, data.get("removed", [])))
        self.rows.update(map(_row, data.get("added", [])))
        assert min(self.rows.values(), default=0) >= 0, "a row went that was not there"
        self.rows = +self.rows

    def listen(self, service: LiveService, name: str, until: int) -> Follower:
        """Listen, from where it was, until it has been told all up to an id or that there is no more."""
        reader = follow(service.subscriptions, service.standing, name, self.last)
        try:
            for number, data in enumerate(reader):
                for block in data.decode().split("\n\n"):
                    self.apply(block)
                if "end" in self.told or (number and self.whole and self.last is not None and self.last >= until):
                    break
        finally:
            reader.close()
        return self

    def read(self, connection: HTTPConnection, path: str, headers: Mapping[str, str], until: int) -> None:
        """Listen over HTTP from where it was: at least up to an id, or, where that is 0, a little."""
        resumed = {} if self.last is None else {"Last-Event-ID": str(self.last)}
        connection.request("GET", path, headers={**headers, "Accept": "text/event-stream"} | resumed)
        response = connection.getresponse()
        deadline, block = time.monotonic() + (60 if until else 0.2), ""
        while time.monotonic() < deadline and (not self.last or self.last < until or not until):
            line = response.readline().decode()
            block += line
            if line == "\n":
                self.apply(block)
                block = ""
                if not until and self.told:
                    break
            elif not line:
                break
        connection.close()


def asked(store: Store, text: str) -> Counter[str]:
    """What the store answers itself."""
    found: Any = store.query(text)
    names = [variable.value for variable in found.variables]
    return Counter(" ".join(f"{n}={row[n]}" for n in sorted(names) if row[n] is not None) for row in found)


def _row(bindings: dict[str, dict[str, str]]) -> str:
    return " ".join(f"{name}={_term(bindings[name])}" for name in sorted(bindings))


def _term(value: dict[str, str]) -> NamedNode | BlankNode | Literal:
    if value["type"] == "uri":
        return NamedNode(value["value"])
    if value["type"] == "bnode":
        return BlankNode(value["value"])
    if "xml:lang" in value:
        return Literal(value["value"], language=value["xml:lang"])
    return Literal(value["value"], datatype=NamedNode(value.get("datatype", _STRING)))
