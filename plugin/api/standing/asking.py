"""Queries to the store for standing queries that are not followed, run beside everything else.

In the flow: `Standing.next_question` → a thread each, some at a time → an `Asker` → `Standing.answered`.

No lock is held while the store is queried: it answers as it was when it began, so updates need not wait, however long
that takes. Here the store is queried in this process and cannot be interrupted: who has waited for `most_seconds` waits
no more, and leaves the thread behind until the store is through. A server asks in processes, which it ends
(`oxiseq.sparql.asking`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from pyoxigraph import Store as RdfStore

from oxiseq.engine.errors import KbError
from oxiseq.engine.standing import Asker, Asking, Question, Solutions, asked, bare, check_time

AT_ONCE: Final = 4
"""Questions; the others wait for their turn."""
_LOOK: Final = 0.25
"""Seconds between looks whether the answer is still wanted."""
LOG: Final = logging.getLogger("oxiseq.standing")


def in_process(store: Callable[[], RdfStore]) -> Asker:
    """Asks the present store."""

    def ask(question: Question) -> Solutions:
        found: list[Solutions | Exception] = []
        begun = time.monotonic()
        begin = partial(asked, store(), question)
        thread = threading.Thread(
            target=lambda: found.append(_outcome(begin)), name="oxiseq-standing-asks", daemon=True
        )
        thread.start()
        while thread.is_alive():
            thread.join(_LOOK)
            if thread.is_alive():
                check_time(question, begun)
        if not found:
            raise KbError("the store has failed at a query")
        if isinstance(found[0], Exception):
            raise found[0]
        return found[0]

    return ask


class Source(Protocol):
    """The source of questions and receiver of the answers; called without any lock."""

    def next_question(self) -> tuple[Asking, Question] | None:
        """A question that is not running yet; None if there is none, or if enough are running."""
        ...

    def answered(self, asking: Asking, found: Solutions | Exception) -> None:
        """What has come of it."""
        ...


class Questions:
    """Asked by some threads. asker: how."""

    def __init__(self, asker: Asker) -> None:
        self.asker = asker

    def ask(self, source: Source) -> None:
        """Begin to ask what is due; the rest follows."""
        while (found := source.next_question()) is not None:
            threading.Thread(
                target=self._work, args=(source, *found), name="oxiseq-standing-questions", daemon=True
            ).start()

    def _work(self, source: Source, asking: Asking, question: Question) -> None:
        while True:
            try:
                source.answered(asking, _outcome(partial(self.asker, question)))
            except Exception:
                LOG.exception("an answer could not be read")
            if (found := source.next_question()) is None:
                return
            asking, question = found


def _outcome(ask: Callable[[], Solutions]) -> Solutions | Exception:
    """The answer or the failure."""
    try:
        return ask()
    except Exception as error:
        return bare(error)
