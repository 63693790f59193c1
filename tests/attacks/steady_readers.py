"""A process of its own: readers of Server-Sent Events that read on, each a little at a time.

    python steady_readers.py HOST PORT PATH READERS MATCHES SECONDS

prints JSON: how many matches each has read in order, and what else it was told.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import sys
import time

TOLD = re.compile(rb"(?:^|\n)(?:id: (\d+)\nevent: match|event: ([a-z-]+))\n")


class Reader:
    """One of them: counts what it is told."""

    def __init__(self, host: str, port: int, path: str) -> None:
        self.seen, self.other, self.rest = 0, list[str](), b""
        self.socket = socket.create_connection((host, port))
        request = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAccept: text/event-stream\r\nLast-Event-ID: 0\r\n\r\n"
        self.socket.sendall(request.encode())
        self.socket.setblocking(False)

    def read(self) -> bool:
        """Take some; False at the end."""
        data = self.socket.recv(1 << 16)
        self.rest += data
        end = self.rest.rfind(b"\n\n") + 1
        if end > 0:
            for number, kind in TOLD.findall(self.rest[:end]):
                if number and int(number) == self.seen + 1:
                    self.seen += 1
                elif number:
                    self.other.append(f"{int(number)} behind {self.seen}")
                elif kind != b"match":
                    self.other.append(kind.decode())
            self.rest = self.rest[end:]
        return bool(data)


def main(host: str, port: int, path: str, readers: int, matches: int, seconds: float) -> None:
    chosen = selectors.DefaultSelector()
    every = [Reader(host, port, path) for _ in range(readers)]
    for reader in every:
        chosen.register(reader.socket, selectors.EVENT_READ, reader)
    print("listening", flush=True)
    left, deadline = set(every), time.monotonic() + seconds
    while left and time.monotonic() < deadline:
        for key, _ in chosen.select(0.5):
            if not key.data.read():
                key.data.other.append("closed")
            if key.data.seen >= matches or key.data.other:
                chosen.unregister(key.data.socket)
                left.discard(key.data)
    print(json.dumps({"seen": [reader.seen for reader in every], "other": [reader.other for reader in every]}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), float(sys.argv[6]))
