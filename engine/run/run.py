"""What every run can do, of whatever language: events in, matches out, saved and restored, its counters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.faults import NO_FAULTS, Faults, Unfit
from oxiseq.engine.omissions import NO_OMISSIONS, Omissions
from oxiseq.engine.order.waiting import Order
from oxiseq.engine.order.watermarks import BEFORE_ALL, Passed
from oxiseq.engine.run.concern import Concern
from oxiseq.engine.run.resets import Resets
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import MadeOf, Stateful, record


class Plan(Protocol):
    """A compiled query of any language. It never changes."""

    @property
    def query(self) -> Any:
        """The query's algebra, checked."""

    @property
    def streams(self) -> tuple[str, ...]:
        """The IRIs of the streams that the query reads."""


class Run(Stateful, ABC):
    """The running state of a query. It gives batches of matches; each knows its length."""

    made_of: ClassVar[MadeOf] = record("resets", Resets), record("omitted", Omissions, missing=None)

    resets: Resets = Resets()
    origin: bytes | None = b""
    """The digest of the snapshot that it continues from, empty for none: equal runs of one origin are in the same
    state. None: of no use any more, since it has got something."""
    faults: Faults = NO_FAULTS
    """Events that were left out because the query's language cannot take them, as if they had not come."""
    omitted: Omissions = NO_OMISSIONS
    """The instants that were left out, since the query was beyond a bound there (bounds.py)."""
    paged: int = 0
    """How many matches end at the instant of which it finds a page, if it was compiled for one."""
    fits: Hashable = None
    """What events the language can take: equal for runs that can take the same. None: any."""

    @property
    @abstractmethod
    def plan(self) -> Plan:
        """Its plan."""

    @property
    @abstractmethod
    def order(self) -> Order[Any]:
        """What puts its events in order."""

    def push(self, stream: str, batch: Any) -> Any:
        """Take events of a stream in order of arrival; returns the late ones, None for none. Call `advance` for
        matches."""
        late = self.order.take_in(self.plan.streams.index(stream), batch)
        return None if late is None else batch.take(late)

    def unfit(self, stream: str, batch: EventBatch, terms: TermDictionary) -> Unfit | None:
        """The events of a batch, coded in any dictionary, that the language cannot take; None: there are none. For
        other threads, too."""
        return None

    @property
    def concern(self) -> Concern | None:
        """Which events may have it find something, as long as the KB does not change; None: any may."""
        return None

    def take_over(self, passed: Mapping[str, Passed]) -> None:
        """For one that has not seen anything: how far its streams had come when it was registered."""
        self.order.take_over([passed.get(stream, Passed()) for stream in self.plan.streams])

    def punctuate(self, stream: str, time: int) -> None:
        """No event of `stream` before `time` (µs) will come."""
        self.order.advance(self.plan.streams.index(stream), time)

    def settle(self) -> None:
        """Take everything seen so far as complete: later events of it are late."""
        self.order.settle()

    def close(self) -> None:
        """The streams have ended."""
        self.order.close()

    def reserve(self) -> None:
        """Allocates the memory that the first event needs, so that `bytes` includes it."""

    @abstractmethod
    def advance(self) -> Sequence[Any]:
        """Work through all that is complete by now; the batches of matches found."""

    def left(self) -> Sequence[Any]:
        """What `advance` had found when it raised an error, once; nothing where that is found again."""
        return ()

    def keep_answers(self) -> bool:
        """The KB is about to change: instants up to the newest one so far keep the present answers. Whether some do
        that did not before. Raises KbError."""
        return False

    @property
    def reads_kb(self) -> bool:
        """Whether its matches depend on the KB."""
        return False

    @property
    def kb_texts(self) -> tuple[str, ...]:
        """Its queries to the knowledge base, as SPARQL."""
        return ()

    @abstractmethod
    def forget(self, at: int) -> None:
        """Between batches: drops all partial matches and continue as if registered now (`at`, µs since 1970).
        Counters continue; `resets` records it."""

    def collect(self) -> None:
        """Frees dead memory, so that `records` counts what lives."""
        return

    # --- its state and counters ---------------------------------------------------------------------

    @property
    def events(self) -> int:
        """How many events it has received, those left out included."""
        return self.order.events + self.faults.count

    @property
    def late(self) -> int:
        """How many of them were late."""
        return self.order.late

    @property
    def notes(self) -> tuple[str, ...]:
        """Faults of the events that it has got."""
        return ()

    @property
    def behind(self) -> int:
        """At how many events matches that end there may be missing."""
        return 0

    @property
    @abstractmethod
    def state(self) -> dict[str, int]:
        """Numbers of live records, by kind."""

    @property
    def records(self) -> int:
        """How many records its state has; some may be dead by now (`collect`)."""
        return sum(number for kind, number in self.state.items() if kind != "bytes")

    @property
    def deadline(self) -> int | None:
        """Something may be complete, or a report due, without a later event, when time has passed this (µs); None:
        nothing waits for time alone."""
        return None

    @property
    def waits(self) -> bool:
        """Whether time alone may let it report something."""
        return self.deadline is not None

    @property
    def newest(self) -> int:
        """The time (µs) of the newest event that it has seen, before it was restored too; before the first, of the
        newest that there was when it was registered."""
        order = self.order
        return order.accepted if order.accepted > BEFORE_ALL else order.newest

    @property
    def silence(self) -> int | None:
        """How long (µs) nothing may come, behind the newest event, until `deadline` has passed; None without one."""
        deadline = self.deadline
        return None if deadline is None else deadline + 1 - self.newest

    @property
    def lateness(self) -> int:
        """How much a stream may be out of order, in microseconds."""
        return self.order.lateness

    @property
    def open(self) -> bool:
        """Whether events wait for their instant to be complete."""
        return self.order.open
