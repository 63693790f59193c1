"""The same over a broker and to a receiver: rows are published to Mosquitto, a bridge of the server takes them, and a
webhook gets the alert. All of it runs here, on free ports, and ends with the program.

    apt-get install mosquitto; pip install 'oxiseq[server,mqtt]'
    python examples/20-cold-chain/live.py
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import paho.mqtt.client as mqtt
from run import HERE, LATER, STREAM

import oxiseq

BROKER: Final = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
NOBODY: Final = "No matching subscribers"
PATIENCE: Final = 120
"""Seconds for a program to start or a message to come."""


def main() -> dict[str, Any]:
    """The alert, as the webhook receives it."""
    if BROKER is None:
        raise SystemExit("mosquitto is not installed")
    with TemporaryDirectory() as name, receiver() as (port, alerts):
        folder, broker, door = Path(name), free_port(), free_port()
        (folder / "broker.conf").write_text(f"listener {broker} 127.0.0.1\nallow_anonymous true\n", encoding="utf-8")
        settings = f"""
[serve]
location = {json.dumps(str(folder / "store"))}
bind = "127.0.0.1:{door}"
sink_host = ["127.0.0.1"]
sink_network = ["127.0.0.0/8"]

[serve.bridges.boxes]
url = "mqtt://127.0.0.1:{broker}"
topic = "boxes/#"
into = "{STREAM}"
media_type = "text/csv"
"""
        (folder / "settings.toml").write_text(settings, encoding="utf-8")
        serve = [sys.executable, "-m", "oxiseq", "serve", "--config", str(folder / "settings.toml")]
        with (
            program(BROKER, "-c", str(folder / "broker.conf"), port=broker),
            program(*serve, port=door),
            oxiseq.open(f"http://127.0.0.1:{door}") as store,
        ):
            stream = store.stream(STREAM, mapping=json.loads((HERE / "mapping.json").read_text(encoding="utf-8")))
            query = store.register(HERE / "query.spaseq", name="warm")
            template = {"text": "{?box}: warm since {?since}, {?hottest} degrees"}
            query.sink("chat", kind="webhook", url=f"http://127.0.0.1:{port}/", template=template)
            sent = publish(broker)
            wait_for(lambda: stream.events == sent)
            stream.advance(LATER)
            return alerts.get(timeout=PATIENCE)


def publish(port: int) -> int:
    """Each row as a message, as a gateway sends it: a CSV table of a row. How many. The broker confirms each and says
    whether somebody has subscribed; as long as the bridge has not, the row is sent again."""
    heading, *rows = (HERE / "boxes.csv").read_text(encoding="utf-8").splitlines()
    confirmed: queue.Queue[str] = queue.Queue()
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
    client.on_publish = lambda client, data, number, reason, more: confirmed.put(str(reason))
    client.connect("127.0.0.1", port)
    client.loop_start()
    for row in rows:
        client.publish("boxes/readings", f"{heading}\n{row}\n", qos=1)
        while confirmed.get(timeout=PATIENCE) == NOBODY:
            time.sleep(0.05)
            client.publish("boxes/readings", f"{heading}\n{row}\n", qos=1)
    client.disconnect()
    client.loop_stop()
    return len(rows)


@contextmanager
def receiver() -> Iterator[tuple[int, queue.Queue[dict[str, Any]]]]:
    """Its port, and what it receives."""
    received: queue.Queue[dict[str, Any]] = queue.Queue()

    class Receiver(BaseHTTPRequestHandler):
        """Takes whatever is posted."""

        def do_POST(self) -> None:
            """Confirm it."""
            received.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port, received
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def program(*command: str, port: int) -> Iterator[None]:
    """A program at work, from when it listens."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(lambda: listens(port) or process.poll() is not None)
            if process.poll() is not None:
                raise SystemExit(f"{' '.join(command)} ended")
            yield
        finally:
            process.terminate()


def listens(port: int) -> bool:
    """Whether somebody does."""
    with socket.socket() as attempt:
        return attempt.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as attempt:
        attempt.bind(("127.0.0.1", 0))
        return int(attempt.getsockname()[1])


def wait_for(done: Callable[[], bool]) -> None:
    """Until it is so. Raises SystemExit after a while."""
    end = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > end:
            raise SystemExit("it does not come")
        time.sleep(0.05)


if __name__ == "__main__":
    print(main()["text"])
