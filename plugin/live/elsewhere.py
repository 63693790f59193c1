"""Standing queries over a remote knowledge base.

    registered ─▶ sent to the endpoint, once ─▶ answer, kept in the journal ─▶ oxiseq.api.standing ─▶ changes
    refresh ─▶ sent again ─▶ another answer: the difference of the rows is one change

So there is one question per text and refresh, whoever follows it. Where it fails the answer stays, the query says so
(`reason`), and the next refresh tries again: one query's failure is not another's. A restart continues with the answers
that are kept, also while the endpoint is away. Blank nodes are of one answer only: with another answer they are others.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from threading import RLock
from typing import Protocol

from oxiseq.api.standing import StandingQuery, Standings
from oxiseq.changes import Listeners
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.standing import Limits, Question, Solutions
from oxiseq.sparql.upstream import read_rows


class Kept(Protocol):
    """Answers of the endpoint, as they are kept."""

    def kept(self, text: str) -> bytes | None:
        """The answer to a text."""
        ...

    def renew(self, text: str) -> tuple[bytes, bool]:
        """Ask, and keep the answer; whether it is another one. Raises KbError, FullError."""
        ...


class StandingElsewhere:
    """What `Store.register` and its queries are over a store here. Safe for many threads."""

    def __init__(self, answers: Kept) -> None:
        lock = RLock()
        self._answers = answers
        self._standings = Standings(None, lock, Listeners(lock), self._answer)
        self._restored = False

    def restored(self) -> None:
        """All earlier queries are at work again: who registers one now is answered again."""
        self._restored = True

    def register(
        self, text: str, *, name: str, keep: int, most_rows: int, most_asking: timedelta | None
    ) -> StandingQuery:
        """As `Store.register`. Raises QueryError, KbError, LimitError."""
        seconds = None if most_asking is None else most_asking.total_seconds()
        return self._standings.register(text, name, keep, Limits(most_rows=most_rows, most_seconds=seconds))

    @property
    def texts(self) -> set[str]:
        """What queries at work ask."""
        return {query.asks for query in self._standings.queries}

    def refresh(self) -> None:
        """Ask all again, each by itself; the answers are taken in when this returns. Raises the first failure."""
        errors: list[OxiseqError] = []
        queries = self._standings.queries
        for text in dict.fromkeys(query.asks for query in queries):
            asking = [query for query in queries if query.asks == text]
            try:
                _, is_new = self._answers.renew(text)
            except OxiseqError as error:
                errors.append(error)
                for query in asking:
                    query.asked_in_vain(str(error))
                continue
            for query in asking:
                query.asked_in_vain("")
                if is_new:
                    with suppress(OxiseqError):  # it has been closed
                        query.restart()
        if errors:
            raise errors[0]

    def _answer(self, question: Question) -> Solutions:
        """Raises KbError, LimitError."""
        text = question.asks
        body = self._answers.kept(text)
        if body is None or (self._restored and text not in self.texts):  # it may be old: it has not been sent again
            body, _ = self._answers.renew(text)
        return read_rows(text, body, question)
