"""Whether the page stutters: `python -m benchmarks.page_load [--queries 200] [--matches 100000] [--seconds 10]`.

It serves a store in memory, registers the queries, pushes events until the first of them has that many matches, and
opens the page in a real browser. While one more event (and match) comes every 20 ms it measures, for each thing that a
user does: milliseconds until it is done, how long the browser's main thread was busy at a stretch (its longest task),
and the gaps between frames. A frame is due each 16.7 ms; a gap of more than 50 ms is seen as stutter.

The main thread's busy time hangs least on what else runs on the machine; the gaps hang on it most.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote, urlsplit

from selenium.webdriver.chrome.webdriver import WebDriver

from benchmarks.browser import browser, missing, open_page, show, until, value
from benchmarks.page import serving

EX = "http://example.org/"
STREAM = f"{EX}readings"
EACH = f"""PREFIX : <{EX}>
SELECT ?sensor ?value WITHIN 1 HOUR SLIDING FROM STREAM S <{STREAM}>
WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?sensor :value ?value FILTER(?value >= %d) }} }}"""
TYPE = {"content-type": "application/n-quads"}
BATCH, PAUSE, SETTLE = 5000, 0.02, 2000
TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"
XSD = "http://www.w3.org/2001/XMLSchema#"
WATCH = """
window.seen = { gaps: [], tasks: [] };
let last = performance.now();
(function frame(now) { window.seen.gaps.push(now - last); last = now; requestAnimationFrame(frame); })(last);
new PerformanceObserver((list) => window.seen.tasks.push(...list.getEntries().map((each) => each.duration)))
  .observe({ type: "longtask" });
"""
ACTIONS = {
    "choose the query with all matches": (
        "document.querySelector('[data-query=q0]').click()",
        "document.querySelectorAll('#matches tbody tr').length === 100 && "
        "document.querySelectorAll('#timeline .dense').length > 0",
    ),
    "100 matches back": (
        "document.getElementById('older').click()",
        "!document.getElementById('newer').disabled",
    ),
    "to match 50,000": (
        "{ const box = document.getElementById('go-to'); box.value = '50000'; "
        "box.dispatchEvent(new Event('change')); }",
        "document.querySelector('#matches .chosen')?.dataset.id === '50000'",
    ),
    "to the newest": (
        "document.getElementById('newest').click()",
        "document.getElementById('newer').disabled",
    ),
    "zoom into the timeline": (
        "document.getElementById('zoom-in').click()",
        "!document.getElementById('whole').disabled",
    ),
    "another query and back": (
        "document.querySelector('[data-query=q7]').click(); document.querySelector('[data-query=q0]').click()",
        "document.querySelectorAll('#matches tbody tr').length === 100",
    ),
}


class Pusher:
    """Registers queries and pushes numbered readings, a second of stream time apart."""

    def __init__(self, address: str) -> None:
        self._host = urlsplit(address).netloc
        self._client = http.client.HTTPConnection(self._host)
        self._next = 0

    def register(self, queries: int) -> None:
        """`queries` texts: the first matches every reading, each other one a reading in a thousand at most."""
        for number in range(queries):
            text = EACH % (0 if number == 0 else 10_000_000 - 1000 * number)
            self._post(
                "/queries",
                {"content-type": "application/json"},
                json.dumps({"name": f"q{number}", "language": "spaseq", "text": text}),
            )

    def push(self, events: int) -> None:
        """That many more readings, in one request."""
        numbers = range(self._next, self._next + events)
        self._next += events
        self._post(f"/streams/{quote(STREAM, safe='')}", TYPE, "".join(map(_reading, numbers)))

    @contextmanager
    def steadily(self) -> Iterator[None]:
        """A reading every 20 ms, meanwhile."""
        stop = threading.Event()

        def run() -> None:
            while not stop.wait(PAUSE):
                self.push(1)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _post(self, path: str, headers: dict[str, str], body: str) -> None:
        self._client.request("POST", path, body.encode(), headers)
        answer = self._client.getresponse()
        text = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"{path}: {answer.status} {text[:300]!r}")


def _reading(number: int) -> str:
    days, seconds = divmod(number, 86_400)
    at = f"2026-01-{days + 1:02}T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}Z"
    event = f"<urn:e{number}>"
    return (
        f"<urn:s{number % 50}> <{EX}value> {_typed(number, 'integer')} {event} .\n"
        f"{event} {TIME} {_typed(at, 'dateTime')} .\n"
    )


def _typed(value: object, name: str) -> str:
    return f'"{value}"^^<{XSD}{name}>'


def _line(driver: WebDriver, name: str, took: float) -> str:
    """What was seen since the last call."""
    seen = value(driver, "(() => { const all = window.seen; window.seen = { gaps: [], tasks: [] }; return all; })()")
    gaps = sorted(seen["gaps"]) or [0]
    slow = sum(gap > 50 for gap in gaps)
    longest = max(seen["tasks"], default=0)
    return (
        f"| {name} | {took:,.0f} | {longest:.0f} | {gaps[len(gaps) // 2]:.0f} / {gaps[int(len(gaps) * 0.99)]:.0f} /"
        f" {gaps[-1]:.0f} | {slow} of {len(gaps)} |"
    )


def _busy(driver: WebDriver) -> dict[str, float]:
    """Counters of the page's process: seconds of tasks and of script, bytes of JavaScript's heap, elements."""
    return {each["name"]: each["value"] for each in driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]}


def act(driver: WebDriver, script: str, done: str) -> float:
    """Milliseconds from a user's action to the frame after which an expression is true."""
    return float(
        driver.execute_async_script(
            "const done = arguments[0], began = performance.now();"
            f"{script};"
            f"(function look() {{ if ({done}) setTimeout(() => done(performance.now() - began));"
            " else requestAnimationFrame(look); })()"
        )
    )


def measure(driver: WebDriver, seconds: float) -> None:
    """All actions, then the page left alone."""
    print("| what a user does | done after, ms | longest task, ms | gaps of frames: median / p99 / most | over 50 ms |")
    print("|---|---:|---:|---:|---:|")
    driver.execute_script(WATCH)
    for name, (script, done) in ACTIONS.items():
        took = act(driver, script, done)
        act(driver, f"const until = performance.now() + {SETTLE}", "performance.now() > until")
        print(_line(driver, name, took), flush=True)
    before = _busy(driver)
    act(driver, f"const until = performance.now() + {seconds * 1000}", "performance.now() > until")
    after = _busy(driver)
    print(_line(driver, f"look on for {seconds:.0f} s", seconds * 1000))
    passed = after["Timestamp"] - before["Timestamp"]
    busy, script = ((after[name] - before[name]) / passed for name in ("TaskDuration", "ScriptDuration"))
    print(
        f"main thread busy {busy:.1%} (script {script:.1%}), heap {after['JSHeapUsedSize'] / 2**20:.0f} MiB,"
        f" {after['Nodes']:,.0f} nodes; load {os.getloadavg()[0]:.1f}"
    )


def main(arguments: list[str] | None = None) -> int:
    """Measure; the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--matches", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=10)
    given = parser.parse_args(arguments)
    if (reason := missing()) is not None:
        print(reason, file=sys.stderr)
        return 1
    with serving() as address, browser() as driver:
        pusher = Pusher(address)
        pusher.register(given.queries)
        for _ in range(given.matches // BATCH):
            pusher.push(BATCH)
        show(driver, 1400, 900)
        driver.execute_cdp_cmd("Performance.enable", {})
        driver.set_script_timeout(120)
        with pusher.steadily():
            open_page(driver, address)
            until(driver, f"document.querySelectorAll('#queries li').length === {given.queries}")
            measure(driver, given.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
