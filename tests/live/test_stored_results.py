"""Result streams in a folder: readers find what they find in memory, through restarts too (semantics.md 2.6a)."""

from __future__ import annotations

import json
from pathlib import Path

from live_services import live, rest
from result_chain import ALERTS, EX, ISSUE, OTHER, READ, SEEN, SOURCE, UNANSWERED, Sent, parts, seen

from oxiseq.journal.lines import match_lines
from oxiseq.live import LiveService
from oxiseq.live.intake import read_batch

SECOND = 1_000_000


def send(service: LiveService, iri: str, events: list[Sent]) -> None:
    body = "".join(_quads(time, graph) for time, graph in events).encode()
    service.streams.push(iri, lambda: read_batch(body, "nquads"), body, None)


def _quads(time: int, graph: str) -> str:
    name = f"<{EX}g{time}>"
    stamp = f'"1970-01-01T00:00:{time:02}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    lines = "".join(f"{line.strip()} {name} .\n" for line in graph.split(" .") if line.strip())
    return f"{name} <http://www.w3.org/ns/prov#generatedAtTime> {stamp} .\n{lines}"


def begin(service: LiveService, **queries: str) -> None:
    for iri in (SOURCE, OTHER, ALERTS):
        service.streams.create(iri)
    for name, text in queries.items():
        service.queries.register(name, text)


def told(service: LiveService, name: str) -> list[tuple[str, str]]:
    """The key and the second of each match that is stored."""
    found = [each for part in service.journal.matches.read(name) for each in map(json.loads, match_lines(part))]
    return [(each["bindings"]["k"]["value"][-2:], each["at"][17:19]) for each in found]


def test_a_folder_finds_what_memory_finds(tmp_path: Path) -> None:
    for number, sizes in enumerate(([1] * 13, [13], [4, 9])):
        folder = tmp_path / str(number)
        folder.mkdir()
        with live(folder) as service:
            begin(service, unanswered=UNANSWERED, read=READ)
            for part in parts(ISSUE, sizes):
                send(service, SOURCE, part)
                rest(service)
            service.streams.advance(SOURCE, 20 * SECOND)
            rest(service)
            assert told(service, "unanswered") == told(service, "read") == [("k1", "10"), ("k2", "15")]
            assert service.queries.get("read").late == 0
            line = json.loads(match_lines(service.journal.matches.read("unanswered")[0])[0])
            assert (line["start"][17:19], line["end"][17:19], line["at"][17:19]) == ("00", "09", "10")


def test_results_that_wait_for_another_writer_survive_a_restart(tmp_path: Path) -> None:
    with live(tmp_path) as service:
        begin(service, unanswered=UNANSWERED, seen=SEEN, read=READ)
        send(service, OTHER, [seen(12, "c", "k3"), seen(40, "t", "z")])
        rest(service)
        assert told(service, "seen") == [("k3", "12")] and told(service, "read") == []
    with live(tmp_path) as service:
        rest(service)
        send(service, SOURCE, ISSUE)
        rest(service)
        assert told(service, "read") == [("k1", "10"), ("k3", "12"), ("k2", "15")]
        service.streams.advance(SOURCE, 30 * SECOND)
        rest(service)
    with live(tmp_path) as service:
        rest(service)
        assert told(service, "read") == [("k1", "10"), ("k3", "12"), ("k2", "15")]
        assert service.queries.get("read").late == 0
