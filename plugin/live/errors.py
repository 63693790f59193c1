"""What the live service refuses.

    OxiseqError
    ├── QueryError            a query text that is not accepted (grammar/errors.py)
    ├── JournalError...       unknown, conflicting, full, too old (journal/errors.py)
    ├── RejectedError         a body of which nothing could be read (intake.py)
    ├── BusyError             a queue or a cap is full: try again later
    └── BoundError            more streams or queries than the service keeps
"""

from __future__ import annotations

from oxiseq.engine.errors import OxiseqError


class BusyError(OxiseqError):
    """A queue or a cap is full; `retry`: seconds after which to try again."""

    def __init__(self, message: str, retry: int = 1) -> None:
        super().__init__(message)
        self.retry = retry


class BoundError(OxiseqError):
    """More streams or queries than the service keeps."""
