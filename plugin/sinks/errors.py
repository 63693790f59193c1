"""What goes wrong with a sink.

OxiseqError
├── SinkError        settings that are not accepted, or what the operator does not allow
└── DeliveryError    the receiver has not confirmed: it is tried again
"""

from __future__ import annotations

from oxiseq.engine.errors import OxiseqError


class SinkError(OxiseqError):
    """Settings that are not accepted, or what the operator of the server does not allow."""


class DeliveryError(OxiseqError):
    """The receiver has not confirmed a delivery: `confirmed` matches of it are, from the first on. `retry`: seconds
    after which the receiver accepts the next attempt, if it said so."""

    def __init__(self, message: str, confirmed: int = 0, retry: float | None = None) -> None:
        super().__init__(message)
        self.confirmed, self.retry = confirmed, retry
