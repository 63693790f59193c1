"""Work in a few threads, with the results in order. It pays where the work leaves Python's lock, as Oxigraph's does."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
THREADS = min(4, os.cpu_count() or 1)


def in_threads(work: Iterable[Callable[[], T]]) -> Iterator[T]:
    """Each call's result, in order; one more is begun than there are threads, so that little is held at a time."""
    running: deque[Future[T]] = deque()
    with ThreadPoolExecutor(THREADS) as threads:
        for call in work:
            running.append(threads.submit(call))
            if len(running) > THREADS:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
