"""What the baseline's server is given: queries of every language, a knowledge base, a sink, a bridge, and events in two
halves.

Only HTTP and the command line are used, under the names of the present version. The fixtures were made by these steps
under the names of their own version (CHANGELOG has the tables).
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "live"))
from query_forms import QUERIES as FORMS
from serve_process import ServeProcess

E = "http://e/"
S, FOLLOWED, PAIRS = f"{E}S", f"{E}followed", f"{E}pairs"
BEGIN = 1_714_557_600_000_000
"""2024-05-01T10:00:00Z in microseconds."""
HALF = 30
"""Events of each half..."""
LINES = 10
"""...and lines of the followed file."""
_XSD = "http://www.w3.org/2001/XMLSchema#"
_PROV = "<http://www.w3.org/ns/prov#generatedAtTime>"


def _spaseq(head: str, sequence: str, more: str = "", a: str = "") -> str:
    return (
        f"PREFIX : <{E}> {head} FROM STREAM S <{S}> WHERE {{ SEQ({sequence}) DEFINE GPM A ON S {{ ?x :p ?a {a} }} "
        "DEFINE GPM B ON S { ?x :p ?b FILTER(?b > ?a) } DEFINE GPM N ON S { ?x :stop ?n } "
        f"DEFINE GPM K ON S {{ ?x :p ?k }} }} {more}"
    )


_SHOWN = "SELECT ?x ?a ?b"
QUERIES: dict[str, tuple[str, str]] = {
    **{name.lower().replace(", ", "-").replace(" ", "-"): form for name, form in FORMS.items()},
    "sliding": ("spaseq", _spaseq(f"{_SHOWN} WITHIN 9 SECONDS SLIDING", "A; B")),
    "tumbling": ("spaseq", _spaseq(f"{_SHOWN} WITHIN 20 SECONDS", "A; K{2}; B")),
    "events": ("spaseq", _spaseq(f"{_SHOWN} WITHIN 12 EVENTS SLIDING", "A : K:+ : B")),
    "partitions": ("spaseq", _spaseq(f"{_SHOWN} PARTITION BY ?x WITHIN 30 SECONDS SLIDING", "A, B")),
    "next": ("spaseq", _spaseq("SELECT NEXT ?x ?a ?b WITHIN 15 SECONDS SLIDING", "A : B")),
    "absence": ("spaseq", _spaseq(f"{_SHOWN} WITHIN 20 SECONDS SLIDING", "A; B; N! WITHIN 2 SECONDS")),
    "negation": ("spaseq", _spaseq(f"{_SHOWN} WITHIN 20 SECONDS SLIDING", "A; N!; B")),
    "knowledge": (
        "spaseq",
        _spaseq("SELECT ?x ?a ?b ?name WITHIN 9 SECONDS SLIDING", "A; B", a=f"GRAPH <{E}kb> {{ ?x :name ?name }}"),
    ),
    "sums": ("spaseq", _spaseq("SELECT ?x (SUM(?a) AS ?s) WITHIN 9 SECONDS SLIDING", "A; B", "GROUP BY ?x")),
    "pairs": (
        "spaseq",
        _spaseq(f"CONSTRUCT {{ ?x :to ?b }} INTO STREAM <{PAIRS}> WITHIN 9 SECONDS SLIDING", "A; B"),
    ),
    "of-pairs": (
        "spaseq",
        f"PREFIX : <{E}> SELECT ?x ?b ?c WITHIN 30 SECONDS SLIDING FROM STREAM P <{PAIRS}> WHERE {{ SEQ(A; B) "
        "DEFINE GPM A ON P { ?x :to ?b } DEFINE GPM B ON P { ?x :to ?c FILTER(?c < ?b) } }",
    ),
    "graph": (
        "spectra",
        f"PREFIX : <{E}> SELECT ?x ?a ?b FROM STREAM <{S}> [RANGE 5 SECONDS SLIDE 1 SECONDS] "
        "WHERE { ?x :p ?a ; :q ?b }",
    ),
    "lines": (
        "spaseq",
        f"PREFIX : <{E}> SELECT ?x ?a ?b WITHIN 30 SECONDS SLIDING FROM STREAM F <{FOLLOWED}> WHERE {{ SEQ(A; B) "
        "DEFINE GPM A ON F { ?x :p ?a } DEFINE GPM B ON F { ?x :p ?b FILTER(?b > ?a) } }",
    ),
}
"""By name: the language, and the text."""
STANDING = ("known", f"PREFIX : <{E}> SELECT ?x ?name WHERE {{ GRAPH :kb {{ ?x :name ?name }} }}")
KB = "".join(f'<{E}x{i}> <{E}name> "name {i}" <{E}kb> .\n' for i in range(3))


def _event(number: int, at: int, triples: list[tuple[str, int]], x: int) -> list[str]:
    graph = f"<urn:event:{number}>"
    dated = f'{graph} {_PROV} "{at}"^^<{_XSD}integer> .'
    typed = f"<{E}x{x}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{E}T> {graph} ."
    return [dated, typed, *(f'<{E}x{x}> <{E}{name}> "{value}"^^<{_XSD}integer> {graph} .' for name, value in triples)]


def events(half: int) -> str:
    """N-Quads of one half (0 or 1), one second from event to event."""
    dice, lines = random.Random(half), list[str]()
    for number in range(HALF * half, HALF * (half + 1)):
        triples = [("p", dice.randint(1, 9))]
        triples += [("q", dice.randint(1, 3))] if dice.random() < 0.4 else []
        triples += [("stop", 1)] if dice.random() < 0.1 else []
        lines += _event(number, BEGIN + number * 1_000_000, triples, dice.randint(0, 2))
    return "\n".join(lines) + "\n"


def followed(half: int) -> str:
    """Lines of the followed file, each event's one after the other."""
    dice, lines = random.Random(f"followed {half}"), list[str]()
    for number in range(LINES * half, LINES * (half + 1)):
        lines += _event(10_000 + number, BEGIN + number * 1_000_000, [("p", dice.randint(1, 9))], dice.randint(0, 2))
    return "\n".join(lines) + "\n"


class Baseline:
    """A server over a folder `data`, with its settings, tokens, the followed file and the sink's folder beside it."""

    def __init__(self, folder: Path, token: str) -> None:
        self.folder, self.token = folder, token
        options = ["--config", str(folder / "settings.toml"), "--tokens", str(folder / "tokens")]
        self.server = ServeProcess(folder / "data", *options, "--sink-folder", str(folder / "out"))

    def configure(self) -> None:
        """Write the settings, which name this folder."""
        (self.folder / "followed.nq").touch()
        (self.folder / "settings.toml").write_text(
            f'[serve]\nstream_idle = "0s"\nretention = "36500d"\n'
            f'[serve.bridges.lines]\nurl = "{self.folder / "followed.nq"}"\ninto = "{FOLLOWED}"\nstart = "all"\n'
        )

    def ask(
        self,
        method: str,
        target: str,
        body: str | None = None,
        kind: str = "application/json",
        accept: str = "application/json",
    ) -> Any:
        """The answer to a request that must succeed; of lines a list."""
        headers = {"Content-Type": kind, "Authorization": f"Bearer {self.token}", "Accept": accept}
        status, answer = self.server.ask(method, target, None if body is None else body.encode(), headers)
        assert status < 300, (method, target, status, answer)
        if accept.endswith("ndjson"):
            return [json.loads(line) for line in answer.splitlines()]
        return json.loads(answer) if answer else None

    def set_up(self) -> None:
        """The knowledge base, streams, queries and the sink."""
        self.ask("POST", "/store", KB, "application/n-quads")
        for stream in (S, FOLLOWED):
            self.ask("POST", "/streams", json.dumps({"iri": stream}))
        for name, (language, text) in QUERIES.items():
            self.ask("PUT", f"/queries/{name}", json.dumps({"text": text, "language": language}))
        self.ask("PUT", f"/queries/{STANDING[0]}", json.dumps({"text": STANDING[1], "language": "sparql"}))
        sink = {"kind": "file", "path": "sliding.jsonl", "template": "{id}"}
        self.ask("PUT", "/queries/sliding/sinks/file", json.dumps(sink))

    def push(self, half: int) -> None:
        """The events of a half, and the followed file's lines; then time is advanced behind them."""
        self.ask("POST", f"/streams/{quote(S, safe='')}", events(half), "application/n-quads")
        with (self.folder / "followed.nq").open("a") as file:
            file.write(followed(half))
        eventually(lambda: self._next(FOLLOWED) >= LINES * (half + 1))
        for stream, count in ((S, HALF), (FOLLOWED, LINES)):
            complete = BEGIN + count * (half + 1) * 1_000_000
            self.ask("POST", f"/streams/{quote(stream, safe='')}?watermark={complete}")

    def matches(self) -> dict[str, list[Any]]:
        """All stored matches by query: id, end and bindings."""
        return {name: self.matches_of(name) for name in QUERIES}

    def matches_of(self, name: str) -> list[Any]:
        """Those of one query."""
        lines = self.ask("GET", f"/queries/{name}/matches?after=0&limit=10000", accept="application/x-ndjson")
        time = "end" if name == "absence" and "end" in lines[0] else "at"  # which was the time of the last event
        return [[each["id"], each[time], _content(each)] for each in lines]

    def _next(self, stream: str) -> int:
        following: int = self.ask("GET", f"/streams/{quote(stream, safe='')}")["next"]
        return following


def _content(match: dict[str, Any]) -> Any:
    return match.get("bindings", match.get("graph"))


def eventually(true: Callable[[], bool], seconds: float = 180.0) -> None:
    """Wait until it is true."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "the server does not come to rest"
        time.sleep(0.1)
