"""`oxiseq load`."""

from __future__ import annotations

from pathlib import Path

from cli_files import KB, oxiseq, write


def test_a_loaded_store_answers_a_query(folder: Path) -> None:
    write(folder, "more.nt", "<http://example.org/eve> <http://example.org/name> oops .\n")
    result = oxiseq("load", folder / "names.nq", folder / "more.nt", "--location", folder / "kb")
    assert result.exit_code == 0
    assert "2 files · 2 statements · 0 duplicates · 1 quarantined" in result.stderr
    assert "more.nt:1: " in result.stderr
    asked = ["run", folder / "named.spaseq", "-s", folder / "payments.nq", "-f", "csv", "-k"]
    run, direct = oxiseq(*asked, folder / "kb"), oxiseq(*asked, folder / "names.nq")
    assert "Ann" in run.stdout
    assert run.stdout == direct.stdout


def test_a_half_loaded_store_is_refused_until_loaded_again(folder: Path) -> None:
    write(folder, "bad.nt", "oops\n")
    stopped = oxiseq("load", folder / "bad.nt", "--location", folder / "kb", "--strict")
    assert stopped.exit_code == 1
    assert "bad.nt:1: " in stopped.stderr
    for more in ([], ["-k", folder / "names.nq"]):
        run = oxiseq("run", folder / "named.spaseq", "-s", folder / "payments.nq", "-k", folder / "kb", *more)
        assert run.exit_code == 1
        assert "half loaded" in run.stderr
    again = oxiseq("load", folder / "names.nq", "--location", folder / "kb")
    assert again.exit_code == 0
    assert "starting over" in again.stderr


def test_a_whole_store_needs_restart(folder: Path) -> None:
    arguments = ["load", folder / "names.nq", "--location", folder / "kb", "-q"]
    assert oxiseq(*arguments).exit_code == 0
    assert "--restart" in oxiseq(*arguments).stderr
    write(folder, "names.nq", KB + KB)
    again = oxiseq(*arguments, "--restart")
    assert (again.exit_code, again.stderr) == (0, "")


def test_reasoning_and_a_mapping(folder: Path) -> None:
    write(folder, "people.csv", "id,kind\nann,Card\n")
    write(
        folder,
        "people.rq",
        "PREFIX : <http://example.org/>\nCONSTRUCT { ?x a ?c } WHERE { "
        "BIND(IRI(CONCAT(STR(:), ?id)) AS ?x) BIND(IRI(CONCAT(STR(:), ?kind)) AS ?c) }",
    )
    write(
        folder,
        "schema.ttl",
        "@prefix : <http://example.org/> . @prefix r: <http://www.w3.org/2000/01/rdf-schema#> ."
        " :Card r:subClassOf :Thing .",
    )
    result = oxiseq(
        "load",
        folder / "people.csv",
        folder / "schema.ttl",
        "--location",
        folder / "kb",
        "--mapping",
        folder / "people.rq",
        "--reason",
        "rdfs",
    )
    assert result.exit_code == 0
    assert "2 statements inferred, in <urn:oxiseq:inferred>" in result.stderr
