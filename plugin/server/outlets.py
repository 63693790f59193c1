"""waitress's tasks, which let others go on writing a response that its own thread has begun."""

from __future__ import annotations

from typing import Any, Final

from waitress.channel import ClientDisconnected
from waitress.task import WSGITask

from oxiseq.server.connections import Timed

OUTLET: Final = "oxiseq.outlet"
"""Key of a request's Outlet in the WSGI environment."""


class _Outlet:
    """See oxiseq.live.sending.Outlet. The task's thread must not write meanwhile."""

    def __init__(self, task: WSGITask) -> None:
        self._task = task

    @property
    def open(self) -> bool:
        """Whether the client is still there."""
        return bool(self._task.channel.connected)

    @property
    def pending(self) -> int:
        """Bytes that it has not taken yet."""
        return int(self._task.channel.total_outbufs_len)

    def write(self, data: bytes) -> bool:
        """Send a piece; it waits only when more is pending than waitress allows."""
        try:
            self._task.write(data)
        except ClientDisconnected:
            return False
        return True


class _Task(WSGITask):  # type: ignore[misc]  # waitress has no types: its classes are Any
    """A request that is answered."""

    def get_environment(self) -> dict[str, Any]:
        """waitress's own, with the outlet."""
        environ: dict[str, Any] = super().get_environment()
        environ[OUTLET] = _Outlet(self)
        return environ


class Channel(Timed):
    """A connection."""

    task_class = _Task
