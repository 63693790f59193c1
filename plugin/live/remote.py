"""A remote knowledge base: queries' patterns are sent once, their answers kept in the journal, and refreshed at times.

    query registered ─▶ P_D sent to the endpoint ─▶ answer, in the journal ─▶ engine
    schedule, update, POST /kb/refresh ─▶ all sent again ─▶ if anything is new: a change of the KB (changes.py)

Standing queries over it are sent again then, too, each on its own.

So the endpoint may be slow or away while queries work, and a restart continues with the earlier answers. To ask is
done without locks; putting all new answers in place is one change of the KB, between two entries of the log.

Standing queries over a remote knowledge base.

    registered ─▶ sent to the endpoint, once ─▶ answer, kept in the journal ─▶ oxiseq.api.standing ─▶ changes
    refresh ─▶ sent again ─▶ another answer: the difference of the rows is one change

So there is one question per text and refresh, whoever follows it. Where it fails the answer stays, the query says so
(`reason`), and the next refresh tries again: one query's failure is not another's. A restart continues with the answers
that are kept, also while the endpoint is away. Blank nodes are of one answer only: with another answer they are others.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from threading import RLock
from typing import Protocol

from oxiseq.api.standing import StandingQuery, Standings
from oxiseq.changes import Listeners
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.kb import Solution, Versioned
from oxiseq.engine.standing import Limits, Question, Solutions
from oxiseq.grammar.records import dataclass
from oxiseq.journal.answers import KbAnswer, KbAnswers
from oxiseq.journal.journal import microseconds
from oxiseq.sparql.upstream import read_answer, read_rows

# --- elsewhere -------------------------------------------------------------------------------------------


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
        return self._standings.register(text, name, keep, Limits(most_rows=most_rows, most_seconds=seconds)).face

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


# --- remote ----------------------------------------------------------------------------------------------

LOG = logging.getLogger("oxiseq.live")


class Endpoint(Protocol):
    """See `oxiseq.sparql.upstream.RemoteKb`."""

    @property
    def version(self) -> int: ...

    def solutions(self, query_text: str) -> Iterable[Solution]: ...

    def body(self, query_text: str) -> bytes:
        """The answer of a SELECT query in JSON, well-formed. Raises KbError."""
        ...


@dataclass(frozen=True, slots=True)
class Refreshed:
    """State of the answers: their number; the last successful refresh (µs since 1970, 0: never); how
    often those of patterns have changed, and a refresh has failed, since the start; the last failure, if nothing
    followed it."""

    answers: int = 0
    asked: int = 0
    changes: int = 0
    failures: int = 0
    error: str = ""


class RemoteKnowledge:
    """The KB of a live service: what `oxiseq.Store` is where the KB is ours. Safe for many threads.

    `endpoint` queries each time; `kb` answers from what is kept.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.lock = threading.RLock()
        self.kb = KeptKb(self)
        self._guards: list[Callable[[], AbstractContextManager[object]]] = []
        self._kept: KbAnswers | None = None
        self._answers: dict[str, KbAnswer] = {}
        self._given: set[str] = set()
        """Answers since the start, also to patterns that queries do not announce."""
        self.standing = StandingElsewhere(self)
        self._asking = threading.Lock()
        self._told = Refreshed()
        self.due = threading.Event()
        """Set when the answers are to be asked for at once."""
        self._written = self._seen = 0
        """How many updates have gone to the endpoint through us; how many of them had when all was asked last."""

    def begin(self, kept: KbAnswers) -> None:
        """Continue with the earlier answers, and keep new ones there."""
        self._kept, self._answers = kept, kept.all()
        asked = max((answer.asked for answer in self._answers.values()), default=0)
        self._told = Refreshed(len(self._answers), asked)

    def guard_changes(self, guard: Callable[[], AbstractContextManager[object]]) -> None:
        """As `Store.guard_changes`."""
        self._guards.append(guard)

    @property
    def told(self) -> Refreshed:
        """How answers are."""
        return self._told

    def learn(self, texts: Iterable[str]) -> None:
        """Fetches the missing answers, for a query that is to be registered. Raises KbError, FullError."""
        new = [text for text in dict.fromkeys(texts) if text not in self._answers]
        if new:
            bodies = self._ask(new)
            with self.lock:
                self._keep(bodies)

    def written(self) -> None:
        """The endpoint's data may be others than when it was asked."""
        with self.lock:
            self._written += 1
        self.due.set()

    @property
    def behind(self) -> bool:
        """Whether an update has gone to the endpoint through us, and nothing has been asked since."""
        return self._seen < self._written

    def refresh(self, texts: Iterable[str], *, unless_seen: bool = False) -> Refreshed:
        """Ask all of `texts` again; when something is new, answers to others are released. When one fails, all stay.
        Then standing queries, each on its own. `unless_seen`: nothing is asked where no update has gone through us
        since it was.

        Raises KbError; ChangeRefusedError, FullError: the first failure, after all have been tried.
        """
        with self._asking:
            if unless_seen and not self.behind:
                return self._told
            written = self._written
            try:
                return self._refresh(texts)
            finally:
                self._seen = written  # where it has failed, too: the next time is on schedule

    def _refresh(self, texts: Iterable[str]) -> Refreshed:
        errors: list[OxiseqError] = []
        for part in (partial(self._refresh_patterns, texts), self.standing.refresh):
            try:
                part()
            except OxiseqError as error:
                errors.append(error)
        with self.lock:
            if errors:
                self._told = replace(self._told, failures=self._told.failures + 1, error=str(errors[0]))
                raise errors[0]
            self._told = replace(self._told, asked=microseconds(), error="")
        return self._told

    def _refresh_patterns(self, texts: Iterable[str]) -> None:
        wanted = set(texts) | self._given
        unused = self._answers.keys() - wanted - self.standing.texts
        bodies = self._ask(wanted)
        new = {text: body for text, body in bodies.items() if self.kept(text) != body}
        if new:
            self._change(new, unused)

    def kept(self, text: str) -> bytes | None:
        """The answer that is kept."""
        answer = self._answers.get(text)
        return None if answer is None else answer.body

    def renew(self, text: str) -> tuple[bytes, bool]:
        """Ask, and keep the answer; whether it is another one. Raises KbError, FullError."""
        body = self.endpoint.body(text)
        with self.lock:
            is_new = self.kept(text) != body
            if is_new:
                self._keep({text: body})
        return body, is_new

    def _ask(self, texts: Iterable[str]) -> dict[str, bytes]:
        return {text: self.endpoint.body(text) for text in texts}

    def _change(self, bodies: Mapping[str, bytes], unused: Iterable[str]) -> None:
        with ExitStack() as held:
            for guard in self._guards:
                held.enter_context(guard())
            held.enter_context(self.lock)
            self._keep(bodies, without=frozenset(unused))
            self._told = replace(self._told, changes=self._told.changes + 1)
            self.kb.touch()

    def _keep(self, bodies: Mapping[str, bytes], without: frozenset[str] = frozenset()) -> None:
        """In the journal first: what a query has seen, a restart has."""
        assert self._kept is not None, "begin it"
        fresh = self._kept.put(bodies, without)
        self._answers = {text: a for text, a in self._answers.items() if text not in without} | fresh
        self._told = replace(self._told, answers=len(self._answers), asked=microseconds())

    def body(self, text: str) -> bytes:
        """The answer that is kept; fetched now if there is none: for a query that does not announce its patterns."""
        answer = self._answers.get(text)
        if answer is None:
            self.learn([text])
            answer = self._answers[text]
        self._given.add(text)
        return answer.body


class KeptKb(Versioned):
    """`engine.kb.KnowledgeBase` over answers that are kept."""

    def __init__(self, knowledge: RemoteKnowledge) -> None:
        super().__init__()
        self._knowledge = knowledge

    def solutions(self, query_text: str) -> Iterable[Solution]:
        """The solutions of a SELECT query. Raises KbError."""
        return read_answer(query_text, self._knowledge.body(query_text))
