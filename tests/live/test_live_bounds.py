"""A query beyond a bound at an instant: that instant is left out, counted and shown; three running stop it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from live_events import Batch
from live_services import live, push, rest, rows

from oxiseq.engine.bounds import SERVED, InstantBounds
from oxiseq.live import LiveService, LiveSettings

E, IRI = "http://e/", "http://e/s"
BEGIN = 1_714_557_600
RUN = f"""PREFIX : <{E}> SELECT ?c FROM STREAM S <{IRI}> WHERE {{ SEQ(A : B:+ : C)
DEFINE GPM A ON S {{ ?x :v ?a }} DEFINE GPM B ON S {{ ?x :v ?b }} DEFINE GPM C ON S {{ ?x :v ?c }} }}"""
WINDOW = RUN.replace(" FROM", " WITHIN 30 SECONDS SLIDING FROM")
CLUSTERS = ((0, 11), (100, 8), (200, 11), (300, 5))
"""Where a cluster begins, and how many of its first events are answered."""
OTHER = f"PREFIX : <{E}> SELECT ?v FROM STREAM S <{IRI}> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?x :v ?v }} }}"


def batch(seconds: Iterable[int], key: str) -> Batch:
    """An event a second, in one POST; all of one subject."""
    body = ""
    for at in seconds:
        clock = f"2024-05-01T10:{at // 60:02}:{at % 60:02}Z"
        stamp = f'"{clock}"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
        body += f'<{E}x> <{E}v> "{at}"^^<http://www.w3.org/2001/XMLSchema#integer> <urn:e{at}> .\n'
        body += f"<urn:e{at}> <http://www.w3.org/ns/prov#generatedAtTime> {stamp} .\n"
    return Batch(IRI, key, body.encode())


def worked(service: LiveService, *batches: Batch) -> float:
    """Pushes them, and waits until they have been worked through; the CPU time that the process took."""
    before = time.process_time()
    for each in batches:
        push(service, each)
    rest(service)
    return time.process_time() - before


def test_three_instants_running_set_a_query_aside_by_name(tmp_path: Path) -> None:
    """200 events a second apart, each of which fires all three GPMs: 2^198 matches end at the last one."""
    with live(tmp_path) as service:
        service.queries.register("warm", RUN)
        worked(service, batch(range(12), "warm"))
        service.queries.delete("warm")
        service.queries.register("run", RUN)
        service.queries.register("other", OTHER)
        taken = worked(service, batch(range(20, 220), "all"))
        status = service.queries.get("run")
        assert status.record.state == "failed"
        assert "matches that end at one instant (write LIMIT, or count them)" in status.error
        assert "of the query run is left out" in status.error and "stopped" in status.error
        assert f"at most {SERVED.matches} allowed" in status.error
        listed = len(rows(service, "run"))
        assert SERVED.matches < listed < 2 * SERVED.matches  # 2^n - 1 end at the n-th: all instants before are whole
        assert 'oxiseq_omitted_instants_total{query="run"} 3.0' in service.metrics.text().decode()
        assert service.queries.get("other").record.state == "running"
        assert len(rows(service, "other")) == 199  # the newest instant is not complete
        assert taken < 15


LOW = LiveSettings(idle=None, bounds=InstantBounds(matches=1 << 10))
"""A thousand matches of an instant."""


@pytest.mark.parametrize("size", [5, 100])
def test_only_the_instant_is_left_out(tmp_path: Path, size: int) -> None:
    """At the 12th event of a cluster and from there on too many matches end; all others are told, in whatever batches
    they come, and the instants in between end the row of those left out."""
    seconds = [*range(12), *range(100, 108), *range(200, 213), *range(300, 305), 400]
    with live(tmp_path, LOW) as service:
        service.queries.register("run", WINDOW)
        parts = [seconds[low : low + size] for low in range(0, len(seconds), size)]
        worked(service, *(batch(part, str(number)) for number, part in enumerate(parts)))
        status = service.queries.get("run")
        assert status.record.state == "running" and status.quarantined.entries == 0, status.error
        assert status.omitted.count == 3
        assert [each.split("instant ")[2][:19] for each in status.omitted.last] == [
            "2024-05-01T10:00:11",
            "2024-05-01T10:03:31",
            "2024-05-01T10:03:32",
        ]
        found = Counter(int(row[0].split('"')[1]) for _, row in rows(service, "run") if row[0])
        ends = {first + n - 1: 2 ** (n - 1) - n for first, last in CLUSTERS for n in range(3, last + 1)}
        assert found == ends


def test_after_a_restart_instants_left_out_go_on_counting(tmp_path: Path) -> None:
    """Two were left out before it, and the third running comes after it."""
    with live(tmp_path, LOW) as service:
        service.queries.register("run", WINDOW)
        worked(service, batch(range(14), "before"))  # the newest instant waits
        assert service.queries.get("run").omitted.count == 2
    with live(tmp_path, LOW) as service:
        rest(service)
        assert service.queries.get("run").omitted.count == 2
        worked(service, batch(range(14, 17), "after"))
        status = service.queries.get("run")
        assert status.record.state == "failed" and "10:00:13" in status.error
        assert len(rows(service, "run")) == sum(2 ** (n - 1) - n for n in range(3, 12))


def test_what_was_left_out_of_a_query_that_was_stopped_is_shown_after_a_restart(tmp_path: Path) -> None:
    with live(tmp_path, LOW) as service:
        service.queries.register("run", WINDOW)
        worked(service, batch(range(40), "too many"))
        omitted = service.queries.get("run").omitted
        assert omitted.count == 3 and len(omitted.last) == 3 and omitted.over
    for _ in range(2):
        with live(tmp_path, LOW) as service:
            rest(service)
            status = service.queries.get("run")
            assert status.record.state == "failed" and status.omitted == omitted
    with live(tmp_path, LOW) as service:
        service.queries.resume("run")
        rest(service)
        assert service.queries.get("run").omitted.count == 0
    with live(tmp_path, LOW) as service:
        rest(service)
        status = service.queries.get("run")
        assert status.record.state == "running" and status.omitted.count == 0


def test_a_query_that_was_stopped_begins_anew(tmp_path: Path) -> None:
    """Behind the instants that have stopped it, with what has come meanwhile, and with none left out yet."""
    with live(tmp_path, LOW) as service:
        service.queries.register("run", WINDOW)
        for round_ in range(2):
            first = 600 * round_
            worked(service, batch(range(first, first + 40), f"too many {round_}"))
            status = service.queries.get("run")
            assert status.record.state == "failed" and status.omitted.count == 3
            before = len(rows(service, "run"))
            worked(service, batch(range(first + 100, first + 105), f"meanwhile {round_}"))
            assert len(rows(service, "run")) == before
            status = service.queries.resume("run")
            rest(service)
            assert service.queries.get("run").record.state == "running"
            worked(service, batch(range(first + 200, first + 205), f"after {round_}"))
            status = service.queries.get("run")
            assert status.record.state == "running" and not status.error and status.omitted.count == 0
            cluster = sum(2 ** (n - 1) - n for n in range(3, 6))
            newest = 2**4 - 5  # it waits
            assert len(rows(service, "run")) == before + 2 * cluster - newest


CROSS = f"""PREFIX : <{E}> REGISTER RSTREAM :pairs AS SELECT ?a ?b
FROM NAMED WINDOW :w ON <{IRI}> [RANGE PT2H STEP PT1S] WHERE {{ WINDOW :w {{ ?x :a ?a . ?y :b ?b }} }}"""
LOOPING = f"PREFIX : <{E}> CONSTRUCT {{ ?n :v ?y }} WHERE {{ ?x :v ?y BIND(IRI(CONCAT(STR(?x), 'x')) AS ?n) }}"
MADE = f"PREFIX : <{E}> SELECT ?x FROM STREAM <{IRI}> WHERE {{ ?x :v ?y }}"


def test_the_answer_of_a_cross_product_is_bounded_at_each_instant(tmp_path: Path) -> None:
    """300 events with :a, then 300 with :b: RSTREAM has 300 rows more at each, 13.5 million in all."""
    with live(tmp_path) as service:
        service.queries.register("pairs", CROSS, "rspql")
        sent = batch(range(600), "all").body.decode().splitlines()
        named = [line.replace(f"<{E}v>", f"<{E}{'a' if place < 600 else 'b'}>") for place, line in enumerate(sent)]
        taken = worked(service, Batch(IRI, "all", "\n".join(named).encode()))
        status = service.queries.get("pairs")
        assert status.record.state == "failed"
        assert "rows emitted at one instant (write ISTREAM or LIMIT, or join by a variable): " in status.error
        most = SERVED.rows // 300
        assert service.journal.queries.get("pairs").next == 1 + 300 * most * (most + 1) // 2
        assert taken < 15


def test_rules_that_make_a_term_each_round_are_stopped(tmp_path: Path) -> None:
    with live(tmp_path) as service:
        service.queries.register("loops", MADE, "epsparql", options={"rules": [LOOPING]})
        service.queries.register("other", OTHER)
        taken = worked(service, batch(range(40), "all"))
        status = service.queries.get("loops")
        assert status.record.state == "failed" and "rounds of rules at one instant" in status.error
        assert rows(service, "loops") == []
        assert len(rows(service, "other")) == 39
        assert taken < 15


PATH = f"""PREFIX : <{E}> REGISTER RSTREAM :reached AS SELECT (COUNT(*) AS ?n)
FROM NAMED WINDOW :w ON <{IRI}> [RANGE PT1M STEP PT1S] WHERE {{ WINDOW :w {{ ?a :next+ ?b }} }}"""


def test_a_path_that_connects_too_much_leaves_its_instant_out(tmp_path: Path) -> None:
    """The n-th edge of a chain connects n pairs more, 20 of which are allowed; no entry of the log is quarantined."""

    def chain(seconds: Iterable[int], key: str) -> Batch:
        lines = batch(seconds, key).body.decode().splitlines()
        for place in range(0, len(lines), 2):
            at = lines[place].split("<urn:e")[1].split(">")[0]
            lines[place] = f"<{E}n{int(at)}> <{E}next> <{E}n{int(at) + 1}> <urn:e{at}> ."
        return Batch(IRI, key, "\n".join(lines).encode())

    with live(tmp_path, LiveSettings(idle=None, bounds=InstantBounds(made=20))) as service:
        service.queries.register("reached", PATH, "rspql")
        service.queries.register("other", OTHER.replace(":v", ":next"))
        worked(service, chain([*range(21), 200, 201], "too many, and too many that go"))
        status = service.queries.get("reached")
        assert status.record.state == "running" and status.quarantined.entries == 0 and status.omitted.count == 2
        worked(service, chain([*range(300, 330), 400], "many too many"))
        status = service.queries.get("reached")
        assert status.record.state == "failed" and "rows that an operator makes at one instant" in status.error
        assert status.quarantined.entries == 0 and status.omitted.count == 5
        assert service.queries.get("other").record.state == "running" and len(rows(service, "other")) == 21 + 2 + 30


MAPPED = f"""PREFIX : <{E}> SELECT ?b FROM STREAM S <{IRI}> WHERE {{ SEQ(A; B)
DEFINE GPM A ON S {{ ?x :a ?a }} DEFINE GPM B ON S {{ ?y :v ?b FILTER(?a + ?b = -1) }} }}"""


def test_what_tries_too_many_partial_matches_is_left_out(tmp_path: Path) -> None:
    """2,000 mappings against 2,000 that wait, at each of six instants: four million tries, of which a million is made,
    three times."""
    lines, integer = list[str](), "http://www.w3.org/2001/XMLSchema#integer"
    for at in range(8):
        name, count = "a" if at == 0 else "v", 2_000 if at < 7 else 1
        lines += [f'<{E}{n}> <{E}{name}> "{n}"^^<{integer}> <urn:e{at}> .' for n in range(count)]
        stamp = f'"2024-05-01T10:00:{at:02}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
        lines.append(f"<urn:e{at}> <http://www.w3.org/ns/prov#generatedAtTime> {stamp} .")
    with live(tmp_path, LiveSettings(idle=None, bounds=InstantBounds(reads=1 << 20))) as service:
        service.queries.register("tries", MAPPED)
        service.queries.register("other", OTHER + " LIMIT 1")
        taken = worked(service, Batch(IRI, "all", "\n".join(lines).encode()))
        status = service.queries.get("tries")
        assert status.record.state == "failed"
        assert "tries of what comes at one instant" in status.error and "stopped" in status.error
        assert f"at most {1 << 20} allowed" in status.error
        assert status.omitted.count == 3 and status.quarantined.entries == 0
        other = service.queries.get("other")
        assert other.record.state == "running" and other.omitted.count == 0
        assert len(rows(service, "other")) == 6
        assert taken < 15
