"""What every run can do that shares neither clock nor matching with others: one of a language other than SPAseq."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, ClassVar, Protocol, Self

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.faults import NO_FAULTS, Faults, Unfit
from oxiseq.engine.run.concern import Concern
from oxiseq.engine.run.resets import Resets
from oxiseq.engine.run.watermarks import Watermarks
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SameTerms, SavedTerms, State


class ReadsStreams(Protocol):
    """A plan."""

    @property
    def streams(self) -> tuple[str, ...]:
        """The IRIs of the streams that the query reads."""


class AloneRun(ABC):
    """The running state of a query with an order of its own. It gives batches of matches; each tells its length."""

    resets: Resets = Resets()
    faults: Faults = NO_FAULTS
    """Events that were left out because the query's language cannot take them, as if they had not come."""
    origin: bytes | None = b""
    """The digest of the snapshot that it goes on from, empty for none: equal runs of one origin are in the same state.
    None: of no use any more, since it has been handed something."""
    leaves_out: ClassVar[bool] = False
    """Whether there are events that the language cannot take."""

    @property
    @abstractmethod
    def plan(self) -> ReadsStreams:
        """What it was compiled to."""

    @property
    @abstractmethod
    def order(self) -> Watermarks[Any]:
        """What puts its events in order."""

    @abstractmethod
    def push(self, stream: str, batch: Any) -> Any:
        """Take events of a stream in order of arrival; returns the late ones, None or an empty batch if there are none.
        Call `advance` for matches."""

    def unfit(self, stream: str, batch: EventBatch, terms: TermDictionary) -> Unfit | None:
        """The events of a batch, coded in any dictionary, that the language cannot take; None: there are none. For
        other threads, too."""
        return None

    @property
    def concern(self) -> Concern | None:
        """Which events may have it find something, as long as the KB does not change; None: any may."""
        return None

    def punctuate(self, stream: str, time: int) -> None:
        """No event of `stream` before `time` (µs) will come."""
        self.order.advance(self.plan.streams.index(stream), time)

    def settle(self) -> None:
        """Take everything seen so far as complete: what comes for it from now on is late."""
        self.order.settle()

    def close(self) -> None:
        """The streams have ended."""
        self.order.close()

    def reserve(self) -> None:  # noqa: B027  most have it from the beginning
        """Have the memory that the first event needs, so that `bytes` tells of it."""

    @abstractmethod
    def advance(self) -> Sequence[Any]:
        """Work through all that is complete by now; the batches of matches found."""

    def keep_answers(self) -> bool:
        """The KB is about to change: instants up to the newest one so far keep the answers of now. Whether some do that
        did not before. Raises KbError."""
        return False

    @property
    def reads_kb(self) -> bool:
        """Whether its matches depend on the KB."""
        return False

    @property
    def kb_texts(self) -> tuple[str, ...]:
        """What it asks the knowledge base, as SPARQL."""
        return ()

    @abstractmethod
    def save(self, terms: SavedTerms) -> State:
        """Its state between batches."""

    @abstractmethod
    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state; for a run that has not seen any event."""

    @abstractmethod
    def forget(self, at: int) -> None:
        """Between batches: give up all partial matches and go on as if registered now (`at`, µs since 1970). Counters
        go on; `resets` tells of it."""

    def collect(self) -> None:
        """Free what is dead now, so that `records` tells what lives."""
        return

    # --- equal runs in one state ------------------------------------------------------------------------

    @abstractmethod
    def another(self) -> Self:
        """One of the same plan that has not seen anything."""

    def share(self, other: Self) -> None:
        """Be in the state of an equal one, from now on: what one of them is handed, the other has seen."""
        self.__dict__ = other.__dict__

    def part(self, terms: TermDictionary) -> None:
        """Go on by itself from the state that it has shared. terms: its dictionary."""
        alone = self.another()
        alone.restore(deepcopy(self.save(SavedTerms(terms))), SameTerms(terms))
        self.share(alone)

    # --- what it tells ------------------------------------------------------------------------------

    @property
    def events(self) -> int:
        """How many events it has received, those left out included."""
        return self.order.events + self.faults.count

    @property
    def late(self) -> int:
        """How many of them were late."""
        return self.order.late

    @property
    @abstractmethod
    def state(self) -> dict[str, int]:
        """Numbers of live records, by kind."""

    @property
    def records(self) -> int:
        """How many records its state has; some may be dead by now (`collect`)."""
        return sum(number for kind, number in self.state.items() if kind != "bytes")

    @property
    def bytes(self) -> int:
        """How large its arrays are, as far as it tells."""
        return self.state.get("bytes", 0)

    @property
    def deadline(self) -> None:
        """Nothing that it tells waits for time alone (see `QueryRun.deadline`)."""
        return None

    @property
    def silence(self) -> None:
        """See `QueryRun.silence`."""
        return None

    @property
    def newest(self) -> int:
        """See `QueryRun.newest`; 0: its order does not tell."""
        return 0

    @property
    def lateness(self) -> int:
        """How much a stream may be out of order, in microseconds."""
        return self.order.lateness

    @property
    def open(self) -> bool:
        """Whether events wait for their instant to be complete."""
        return self.order.open


def faults_of(run: object) -> Faults:
    """The events that a run of any language has left out."""
    return run.faults if isinstance(run, AloneRun) else NO_FAULTS
