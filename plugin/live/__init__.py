"""Streams and continuous queries that outlive the process: the in-memory engine joined with the journal.

    body ─ intake ─▶ log (durable, in order) ─ worker ─▶ engine ─▶ matches (durable, with ids) ─ topics
    topics ─▶ subscribers

`service.LiveService` is the face. The log is the only way in: one thread reads it, in its order, and what it finds
is a function of the log alone. So a restart does what the first run did: it continues reading the log from where each
query is, and matches that are stored already are skipped. No web framework here; `routes` answers plain requests.
"""

from oxiseq.live.service import LiveService
from oxiseq.live.settings import LiveSettings

__all__ = ["LiveService", "LiveSettings"]
