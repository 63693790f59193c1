"""`oxiseq why` and `oxiseq compare`, over files and over a server's folder."""

from __future__ import annotations

import json
from pathlib import Path

from cli_files import BEGIN_MICROSECONDS, KB, STREAM, oxiseq, query, write

from oxiseq.api.query import Query
from oxiseq.engine.events.open import open_events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.journal import FILE_NAME, Journal

INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def log(folder: Path) -> Path:
    location, terms = folder / "data", TermDictionary()
    location.mkdir()
    with Journal(location / FILE_NAME) as journal:
        journal.streams.create(STREAM)
        for batch in open_events(folder / "payments.nq", terms):
            journal.log.append_batch(STREAM, batch, terms)
    return location


def test_why_tells_of_files_and_of_a_log(folder: Path) -> None:
    arguments = ["why", folder / "jumps.spaseq", "--json"]
    files = oxiseq(*arguments, "-s", folder / "payments.nq")
    logged = oxiseq(*arguments, "-l", log(folder))
    assert files.exit_code == 0 and files.stdout == logged.stdout
    told = json.loads(files.stdout)
    assert told["found"] == 2 and [s["matches"] for s in told["stages"]] == [5, 2]
    later = oxiseq(*arguments, "-s", folder / "payments.nq", "--since", BEGIN_MICROSECONDS + 1)
    assert json.loads(later.stdout)["found"] == 1


def test_why_writes_text_and_provenance(folder: Path) -> None:
    text = oxiseq("why", folder / "named.spaseq", "-s", folder / "payments.nq")
    assert text.exit_code == 0 and "0 matches" in text.stdout and "without the knowledge base, B" in text.stdout
    kb = write(folder, "names.nq", KB)
    prov = oxiseq("why", folder / "named.spaseq", "-s", folder / "payments.nq", "-k", kb, "--prov")
    assert "wasDerivedFrom" in prov.stdout and '"Ann"' in prov.stdout


def test_why_says_what_it_cannot_do(folder: Path) -> None:
    assert oxiseq("why", folder / "jumps.spaseq").exit_code == 2
    refused = oxiseq("why", folder / "jumps.spaseq", "-s", folder / "payments.nq", "-k", folder / "nowhere.nq")
    assert refused.exit_code == 1 and "nowhere.nq" in refused.stderr
    refused = oxiseq("why", folder / "jumps.spaseq", "-s", folder / "payments.nq", "--evaluation-times", 5)
    assert refused.exit_code == 1 and "is for RSP-QL, SPECTRA, RSEP-QL" in refused.stderr


def test_why_of_a_query_over_the_store(folder: Path) -> None:
    kb = write(folder, "ages.nq", "".join(f'<urn:p{age}> <urn:age> "{age}"^^<{INTEGER}> .\n' for age in (1, 2)))
    text = write(folder, "older.rq", "SELECT ?who { ?who <urn:age> ?age FILTER(?age > 2) }")
    told = oxiseq("why", text, "-k", kb)
    assert told.exit_code == 0, told.stderr
    assert "2 rows of ?who <urn:age> ?age" in told.stdout
    assert "without a filter, FILTER(?age > 2): 2 more" in told.stdout
    nearest = json.loads(oxiseq("why", text, "-k", kb, "--json").stdout)["reasons"][0]["nearest"][0]
    assert nearest["values"] == {"age": f'"2"^^<{INTEGER}>'}
    refused = oxiseq("why", text, "-k", kb, "-s", folder / "payments.nq", "--since", 5)
    assert refused.exit_code == 2 and "leave out --stream, --since" in refused.stderr


def test_why_of_ceql_over_a_table(folder: Path) -> None:
    ceql = "VOCAB <http://e/> SELECT * FROM S WHERE SELL AS s ; BUY AS b FILTER b[price > 5]"
    csv = write(folder, "trades.csv", "kind,when,price\nSELL,1,4\nBUY,2,3\n")
    text = write(folder, "trades.txt", ceql)
    told = oxiseq("why", text, "--language", "ceql", "-s", csv, "--type-column", "kind", "--time-column", "when")
    assert told.exit_code == 0, told.stderr
    assert "without a filter, BUY AS b[price > 5]: 1 more" in told.stdout and "with price = 3" in told.stdout


def test_compare_tells_gains_and_losses(folder: Path) -> None:
    draft = write(folder, "draft.spaseq", query().replace("10 * ?first", "15 * ?first"))
    arguments = ["compare", draft, "--against", folder / "jumps.spaseq"]
    told = oxiseq(*arguments, "-s", folder / "payments.nq")
    assert told.exit_code == 0 and "1 gained, 2 lost, 0 kept" in told.stdout
    as_json = json.loads(oxiseq(*arguments, "-l", log(folder), "--json").stdout)
    assert [(row["second"][1:3], len(as_json[name])) for name in ("gained",) for row in as_json[name]] == [("60", 1)]
    assert len(as_json["lost"]) == 2 and as_json["kept"] == 0
    same = oxiseq("compare", draft, "--against", draft, "-s", folder / "payments.nq")
    assert "0 gained, 0 lost, 1 kept" in same.stdout


def test_compare_of_another_language(folder: Path) -> None:
    ceql = "VOCAB <http://example.org/> SELECT * FROM S WHERE BUY AS x FILTER x[price > {}]"
    triples = "_:e a <http://example.org/BUY> ; <http://example.org/price> {} ."
    events = [(n, triples.format(n)) for n in range(5)]
    found = Query(ceql.format(2), "ceql").compare(ceql.format(1), {"S": events})
    assert (len(found.gained), len(found.lost), found.kept) == (1, 0, 2)


def test_compare_of_a_table_and_of_rules(folder: Path) -> None:
    csv = write(folder, "trades.csv", "kind,when,price\nSELL,1,4\nSELL,2,6\n")
    ceql = "VOCAB <http://e/> SELECT * FROM S WHERE SELL AS s FILTER s[price > {}]"
    draft, old = (write(folder, f"{n}.txt", ceql.format(n)) for n in (5, 1))
    columns = ["--language", "ceql", "--type-column", "kind", "--time-column", "when"]
    told = oxiseq("compare", draft, "--against", old, "-s", csv, *columns)
    assert told.exit_code == 0 and "0 gained, 1 lost, 1 kept" in told.stdout, told.stderr

    head = "PREFIX : <http://example.org/> "
    rule = write(folder, "rich.epsparql", head + "CONSTRUCT { ?who :rich ?n } WHERE { ?who :paid ?n FILTER(?n > 20) }")
    queries = (f"{head}SELECT * WHERE {{ ?who :rich ?n FILTER(?n > {bound}) }}" for bound in (0, 50))
    draft, old = (write(folder, f"{n}.epsparql", text) for n, text in enumerate(queries))
    arguments = ["compare", draft, "--against", old, "--rules", rule]
    from_file = oxiseq(*arguments, "-s", folder / "payments.nq")
    assert from_file.exit_code == 0 and "2 gained, 0 lost, 2 kept" in from_file.stdout, from_file
    assert oxiseq(*arguments, "-l", log(folder)).stdout == from_file.stdout


def test_why_of_queries_over_windows_and_of_intervals(folder: Path) -> None:
    paid = "PREFIX : <http://example.org/> SELECT * FROM STREAM <{}> {}{{ ?who :paid ?n FILTER(?n > 1000) }}"
    window = write(folder, "w.rspql", paid.format(STREAM, "[RANGE PT1H STEP PT1S] WHERE "))
    ever = write(folder, "e.epsparql", paid.format(STREAM, "WHERE "))
    for text, part in ((window, "?who :paid ?n"), (ever, "?who :paid ?n")):
        files = oxiseq("why", text, "-s", folder / "payments.nq")
        assert files.exit_code == 0, files.stderr
        assert f"  {part}: " in files.stdout and "without a filter, FILTER(?n > 1000)" in files.stdout
    at = oxiseq("why", window, "-s", folder / "payments.nq", "--evaluation-times", BEGIN_MICROSECONDS, "--json")
    assert json.loads(at.stdout)["at"] == BEGIN_MICROSECONDS
    logged = oxiseq("why", ever, "-l", log(folder), "--json")
    assert json.loads(logged.stdout)["stopped"] == "FILTER(?n > 1000)"
