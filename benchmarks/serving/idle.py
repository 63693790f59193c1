"""What live subscribers cost that are told nothing: resident memory and CPU of the server.

python -m benchmarks.serving.idle [--subscribers 1000] [--seconds 30]
"""

from __future__ import annotations

import argparse
import socket
import time
from contextlib import ExitStack
from urllib.parse import urlsplit

from benchmarks.serving.__main__ import EACH, ask, connect, cpu_seconds, server
from benchmarks.serving.memory import resident


def main() -> None:
    """One line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--subscribers", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=30)
    given = parser.parse_args()
    with ExitStack() as opened:
        address, pid = opened.enter_context(server("own", "normal", given.subscribers))
        control = connect(address)
        assert ask(control, "PUT", "/queries/each0", (EACH % 0).encode(), "application/spaseq-query") == 200
        parts = urlsplit(address)
        head = "GET /queries/each0/matches HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
        time.sleep(2)
        before = resident(pid)
        for _ in range(given.subscribers):
            reader = opened.enter_context(socket.create_connection((parts.hostname or "", parts.port or 0)))
            reader.sendall(head.encode())
            while b": listening" not in reader.recv(4096):
                pass
        time.sleep(2)
        used = cpu_seconds(pid)
        time.sleep(given.seconds)
        share = (cpu_seconds(pid) - used) / given.seconds
        print(f"{given.subscribers} idle subscribers: {resident(pid) - before:.0f} MB, {share:.1%} of a core")


if __name__ == "__main__":
    main()
