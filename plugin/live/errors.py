"""What the live service refuses.

OxiseqError
├── QueryError            a query text that is not accepted (grammar/errors.py)
├── JournalError...       unknown, conflicting, full, too old (journal/errors.py)
├── RejectedError         a body of which nothing could be read (intake.py)
├── BusyError             a queue or a cap is full: try again later
└── BoundError            more streams or queries than the service keeps, more events than it reads
"""

from __future__ import annotations

from oxiseq.engine.errors import OxiseqError


class BusyError(OxiseqError):
    """A queue or a cap is full; `retry`: seconds after which to try again; `status`: HTTP's, 429 where the client is
    too fast, 503 where there are too many of them."""

    def __init__(self, message: str, retry: int = 1, status: int = 429) -> None:
        super().__init__(message)
        self.retry = retry
        self.status = status


class BoundError(OxiseqError):
    """More streams or queries than the service keeps, or more events than it reads."""
