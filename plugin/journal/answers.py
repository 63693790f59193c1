"""Answers of an upstream knowledge base as they were received: a restart continues with them, not with newer ones."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping

from oxiseq.grammar.records import dataclass
from oxiseq.journal.reader import Reader
from oxiseq.journal.writer import Writer


@dataclass(frozen=True, slots=True)
class KbAnswer:
    """An answer as it came, and the time of its query (µs since 1970)."""

    body: bytes
    asked: int


class KbAnswers:
    """Answers by the text of the query. Safe for many threads."""

    def __init__(self, writer: Writer, reader: Reader, clock: Callable[[], int]) -> None:
        self._writer, self._reader, self._clock = writer, reader, clock

    def all(self) -> dict[str, KbAnswer]:
        """All that are kept."""
        rows = self._reader.rows("SELECT text, body, asked FROM kb_answer")
        return {text: KbAnswer(body, asked) for text, body, asked in rows}

    def put(self, bodies: Mapping[str, bytes], without: Iterable[str] = ()) -> dict[str, KbAnswer]:
        """Keeps new answers, and drops those to the texts `without`; all or none. Raises FullError."""
        now = self._clock()

        def work(connection: sqlite3.Connection) -> None:
            for text in without:
                connection.execute("DELETE FROM kb_answer WHERE text = ?", (text,))
            for text, body in bodies.items():
                connection.execute(
                    "INSERT OR REPLACE INTO kb_answer (text, body, asked) VALUES (?, ?, ?)", (text, body, now)
                )

        self._writer.run(work)
        return {text: KbAnswer(body, now) for text, body in bodies.items()}
