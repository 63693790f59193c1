"""A standing query over the knowledge base of a served store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, cast

from httpx_sse import ServerSentEvent
from pyoxigraph import QueryBoolean, QueryResultsFormat, RdfFormat, Triple, parse, parse_query_results

from oxiseq.api.continuous import CallbackHandle
from oxiseq.api.standing.change import Row, Snapshot, StoreChange, Weighed
from oxiseq.engine.events.time import to_microseconds
from oxiseq.grammar.arguments import faced
from oxiseq.journal import UnknownError
from oxiseq.options.durations import Duration, duration
from oxiseq.served.registered import SOON, Registered
from oxiseq.served.rows import term_of
from oxiseq.served.wire import Wire


@faced
class ServedStanding(Registered):
    """What `store.register(text, "sparql")` answers; as `StandingQuery`, over the wire. `cursor`: the number of the
    last change that has been returned."""

    def __init__(self, wire: Wire, value: Mapping[str, Any]) -> None:
        super().__init__(wire, value)
        self.text: str = value["text"]
        self.form: Any = value["form"]
        """SELECT, CONSTRUCT or ASK."""
        self.variables: tuple[str, ...] = tuple(value["variables"]) if self.form == "SELECT" else ()

    @property
    def state(self) -> str:
        """`followed`, `asked` or `failed`."""
        return str(self.status["evaluation"] or self.status["state"])

    @property
    def reason(self) -> str:
        """Why it is not followed; empty if it is."""
        return str(self.status["reason"] or "")

    def snapshot(self) -> Snapshot:
        """The answer after all updates made so far; changes up to its number count as returned. Raises
        UnknownError, UnreachableError."""
        kind = RdfFormat.N_TRIPLES if self.form == "CONSTRUCT" else QueryResultsFormat.JSON
        reply = self._wire.send("GET", "queries", self.name, "answer", accept=kind.media_type)
        number, at = int(reply.headers["oxiseq-last-id"]), to_microseconds(reply.headers["oxiseq-at"])
        self.cursor = max(self.cursor, number)
        return Snapshot(self.form, number, at, lambda: self._weighed(reply.content))

    def _weighed(self, body: bytes) -> Weighed:
        if self.form == "CONSTRUCT":
            return [(quad.triple, 1) for quad in parse(body, RdfFormat.N_TRIPLES)]
        found = parse_query_results(body, QueryResultsFormat.JSON)
        if isinstance(found, QueryBoolean):
            return [({}, 1)] if found else []
        names = self.variables
        return [({name: row[name] for name in names}, 1) for row in found]

    def changes(self, after: int | None = None, timeout: Duration | None = None) -> Iterator[StoreChange]:
        """The changes above `after` (None: those not returned yet), as they are made; waits at most `timeout` in all
        (None: for ever). A server that goes away meanwhile is waited for. Raises CursorError: take a new snapshot;
        UnreachableError."""
        if after is not None:
            self.cursor = after
        return self._handed_out(self.listened("changes", timeout), timeout is not None)

    def _handed_out(self, events: Iterator[ServerSentEvent], ends: bool) -> Iterator[StoreChange]:
        parts: list[Mapping[str, Any]] = []
        for event in events:
            if event.event == "change":
                part = event.json()
                if parts and part["id"] <= parts[-1]["id"]:  # a connection has broken off inside of a change
                    parts = []
                parts.append(part)
                if not parts[-1]["more"]:
                    change = self._change(parts)
                    parts, self.cursor = [], change.number
                    yield change
            else:
                parts = []
                self.told_of_loss(event)
        if ends and not self.over():
            with suppress(UnknownError):
                for change in self._there(self.cursor, SOON)[0]:
                    self.cursor = change.number
                    yield change

    def poll(self, timeout: Duration = "0s", *, after: int | None = None) -> list[StoreChange]:
        """Returns all changes above `after` (None: those not returned yet) that updates have made so far; if there are
        none, waits at most `timeout` for the next one. Raises CursorError."""
        seconds = duration(timeout, "timeout") / 1e6
        found, cursor = self._there(self.cursor if after is None else after, {})
        if not found and seconds:
            waiting = ServedStanding(self._wire, self._value)
            found = list(islice(waiting.changes(cursor, timeout), 1))
            cursor = waiting.cursor
        if after is None:
            self.cursor = cursor
        return found

    def _there(self, cursor: int, how: Mapping[str, Any]) -> tuple[list[StoreChange], int]:
        """The changes above a cursor, and its position behind them. `how`: the request's other parameters."""
        found: list[StoreChange] = []
        parts: list[Mapping[str, Any]] = []
        while True:
            reply = self._wire.send("GET", "queries", self.name, "changes", params={"after": cursor}, **how)
            for told in reply.json()["changes"]:
                parts.append(told)
                if not told["more"]:
                    found.append(self._change(parts))
                    parts = []
            cursor = int(reply.headers["oxiseq-last-id"])
            if "link" not in reply.headers:
                return found, cursor

    def _change(self, parts: list[Mapping[str, Any]]) -> StoreChange:
        last = parts[-1]
        number, at = int(last["id"]), to_microseconds(last["at"])
        if self.form == "ASK":
            return StoreChange("ASK", number, at, 1, lambda: [({}, 1 if last["answer"] else -1)])
        signed = [(row, sign) for part in parts for key, sign in (("removed", -1), ("added", 1)) for row in part[key]]
        return StoreChange(self.form, number, at, len(signed), lambda: [(self._row(row), sign) for row, sign in signed])

    def _row(self, told: Mapping[str, Any]) -> Row:
        if self.form == "CONSTRUCT":
            subject, predicate, object_ = (term_of(told[name]) for name in ("subject", "predicate", "object"))
            return Triple(cast(Any, subject), cast(Any, predicate), object_)
        return {name: term_of(told[name]) if name in told else None for name in self.variables}

    def on_change(self, callback: Callable[[StoreChange], object], after: int | None = None) -> CallbackHandle:
        """Call back with each change above `after` (None: from now on), in their order, on a thread of its own, until
        what this returns is closed."""
        other = ServedStanding(self._wire, self._value)
        other.cursor = int(self.status["matches"]["next"]) - 1 if after is None else after
        return other.each(other.changes, callback)

    def __repr__(self) -> str:
        return f"<ServedStanding {self.name}: {self.form}>"
