"""RDF messages at the command line and in Python: read and written wherever events are."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_files import AT, BIGGER, EX, STREAM, XSD, oxiseq, query, write

import oxiseq as package

NAMES = ["log.nt", "log.ttl", "log.trig", "log.nq", "log.ndjsonld"]


@pytest.mark.parametrize("name", NAMES)
def test_every_door_reads_them(folder: Path, name: str) -> None:
    """`run`, `push` into a store, `events`."""
    to = {"log.nq": "messages-nquads", "log.trig": "messages-trig"}.get(name)
    oxiseq("convert", folder / "payments.nq", folder / name, *(["--to", to] if to else []))
    text = (folder / name).read_text()
    assert name == "log.ndjsonld" or (text.startswith('VERSION "1.2-messages"\n') and text.count("MESSAGE\n") == 4)
    store = package.Store()
    found = store.register(query())
    assert store.stream(STREAM).extend(folder / name) == 4
    store.close()
    assert [m["second"].value for m in found.matches()] == ["40", "600"]
    result = oxiseq("import", folder / name, "--output", folder / "tables")
    assert result.exit_code == 0, result.stderr
    for source in (folder / name, folder / "tables"):
        matches = package.run(query(), streams={STREAM: source})
        assert [m["second"].value for m in matches] == ["40", "600"]


def test_a_time_predicate_of_ones_own(folder: Path) -> None:
    lines = [f'<{EX}p{n}> <{EX}at> "{n}"^^<{XSD}integer> ; <{EX}paid> {n} .\n' for n in range(3)]
    file = write(folder, "own.ttl", 'VERSION "1.2-messages"\n' + "MESSAGE\n".join(lines))
    result = oxiseq("convert", file, folder / "out.nq", "--time-predicate", f"{EX}at")
    assert result.exit_code == 0, result.stderr
    assert "6 triples" in result.stderr
    assert f"<{EX}p2> <{EX}at>" in (folder / "out.nq").read_text()
    refused = oxiseq("convert", file, folder / "none.nq")
    assert refused.exit_code == 1
    assert f"own.ttl:1: a message without a time; <{AT}> expected" in refused.stderr


@pytest.mark.parametrize("name", NAMES)
def test_the_graphs_of_construct_are_messages(folder: Path, name: str) -> None:
    matches = package.run(BIGGER, streams={STREAM: folder / "payments.nq"})
    format = {"log.nq": "messages-nquads", "log.trig": "messages-trig"}.get(name)
    matches.write(folder / name, format=format)
    again = package.run(
        f"SELECT ?who ?n FROM STREAM S <{EX}s> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?who <{EX}jumped> ?n }} }}",
        streams={f"{EX}s": folder / name},
    )
    assert [(m["who"].value, m["n"].value, m.at_us) for m in again] == [
        (match.graph[0].subject.value, match.graph[0].object.value, match.at_us) for match in matches
    ]
    with pytest.raises(package.OxiseqError, match="needs a CONSTRUCT query"):
        package.run(query(), streams={STREAM: folder / "payments.nq"}).write(folder / name, format=format)
