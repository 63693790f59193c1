"""A run that sees a knowledge base and finds its matches up to a time: stretch by stretch, one KB for each."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from oxiseq.engine.errors import KbError
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.kb_in_time import KbInTime
from oxiseq.engine.omissions import Streak
from oxiseq.engine.order.arrivals import Arrivals
from oxiseq.engine.order.watermarks import AFTER_ALL
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.run.alone import AloneRun
from oxiseq.engine.run.run import Run
from oxiseq.engine.terms.blanks import KbBlanks
from oxiseq.engine.terms.dictionary import AnyIds, TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, MadeOf, SavedTerms, State, part, spread


class KbRun(AloneRun):
    """Its events wait in `Arrivals`. Counter: `matches` returned."""

    made_of: ClassVar[MadeOf] = (part("_arrivals"), *Run.made_of, spread("_streak"), part("_blanks"))

    def __init__(
        self, terms: TermDictionary, kb: KnowledgeBase, streams: Sequence[str], start: int | None, lateness: int
    ) -> None:
        super().__init__()
        self._terms = terms
        self._arrivals = Arrivals(len(streams), lateness, start)
        self._kb = KbInTime(kb)
        self._blanks = KbBlanks(terms)
        self._streak = Streak(terms.bounds)
        self._left: Sequence[MatchBatch] = ()
        """What had been found before an error of the KB, when the streams had ended: the next call returns it."""

    @property
    def order(self) -> Arrivals:
        return self._arrivals

    @property
    def kb_in_time(self) -> KbInTime:
        """The KB as it sees it."""
        return self._kb

    def save(self, terms: SavedTerms) -> State:
        state = super().save(terms)
        state["kept"] = self._kb.save(terms)
        state["arrivals"] |= {"events": self.order.events + self._elsewhere[0], "late": self.late}
        return state

    def restore(self, state: State, terms: KnownTerms) -> None:
        super().restore(state, terms)
        self._kb.restore(state["kept"], terms)

    # --- matches --------------------------------------------------------------------------------------

    def advance(self) -> list[MatchBatch]:
        """Work through all that is complete by now: what is found, in order. Raises LimitError, KbError. An error of
        the KB loses nothing: the next call returns what this one did not."""
        found, self._left = [*self._left], ()
        for passed in self._kb.stretches(self._arrivals.passed):
            if self._kb.is_read and self._asks(passed) and not self._asked(found):
                break
            found += self._through(passed)
        return self.counted(found)

    def counted(self, found: list[MatchBatch]) -> list[MatchBatch]:
        """What has been found, as one batch, for whoever is given it."""
        if not found:
            return found
        whole = self.put_together(found)
        self.matches += sum(map(len, whole))
        return whole

    def put_together(self, found: list[MatchBatch]) -> list[MatchBatch]:
        """As one batch, whose terms are held; none for none."""
        if not found:
            return found
        if len(found) > 1:
            found = [MatchBatch.concat(found, found[0].values.shape[1])]
        self._terms.hold(found[0].values)
        return found

    def _asks(self, passed: int) -> bool:
        """Whether there is something to work on before a time, for which the KB is queried."""
        return self._arrivals.complete(passed)

    @abstractmethod
    def _through(self, passed: int) -> Iterable[MatchBatch]:
        """Take in what is complete before a time, and what is found then; one KB holds for all of it."""

    def _asked(self, found: list[MatchBatch]) -> bool:
        """Queries the KB before events are taken in, so that an error loses none of them. False: it fails, and
        what has been found is returned first, since there will be another call. Raises KbError."""
        try:
            self._kb.ask()
        except KbError:
            if found and self.order.passed != AFTER_ALL:
                return False
            self._left = found
            raise
        return True

    def keep_answers(self) -> bool:
        return self._kb.keep(self._arrivals.unfinished)

    @property
    def kb_texts(self) -> tuple[str, ...]:
        return self._kb.texts

    def held_ids(self) -> Iterator[AnyIds]:
        """The terms of all that it may still look at (see `TermDictionary`)."""
        yield from super().held_ids()
        for batch in self._left:
            yield batch.values
