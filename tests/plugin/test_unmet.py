"""What a run says when it has read names that no event has, numbers that are texts, or times that are too coarse."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pandas
import pytest
from click.testing import CliRunner

import oxiseq
from oxiseq.cli import main
from oxiseq.sources.unmet import UnmetWarning

E, S = "http://e/", "http://e/s"
HEAD = f"PREFIX : <{E}> SELECT ?a WITHIN 30 SECONDS SLIDING FROM STREAM S <{S}> "
SECOND = 1_000_000


def query(*gpms: str, seq: str = "A; B") -> str:
    return f"{HEAD} WHERE {{ SEQ({seq}) {' '.join(f'DEFINE GPM {gpm}' for gpm in gpms)} }}"


RISING = query("A ON S { ?t :temp ?a }", "B ON S { ?t :temp ?b FILTER(?b > ?a) }")
MISSPELT = RISING.replace(":temp", ":temperature")


def events(value: str = "%d", step: int = SECOND, count: int = 20) -> list[tuple[int, str]]:
    return [(i * step, f"<{E}x> <{E}temp> {value % i} .") for i in range(count)]


def table(value: type, **columns: Any) -> pandas.DataFrame:
    return pandas.DataFrame({"time": range(9), "type": ["T"] * 9, "temp": [value(i) for i in range(9)], **columns})


def told(text: str, given: Any, language: str = "spaseq", **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        oxiseq.run(text, {S: given}, language=language, **options)  # type: ignore[call-overload]
    assert {each.filename for each in caught} <= {__file__}
    return [str(each.message) for each in caught if each.category is UnmetWarning]


def test_a_property_that_no_event_has() -> None:
    (note,) = told(MISSPELT, events())
    assert note == f"no event of <{S}> has the property temperature: did you mean temp? (events have the property temp)"
    assert told(RISING, events()) == []
    assert told(MISSPELT, []) == []


def test_a_column_that_the_table_does_not_have() -> None:
    (note,) = told(MISSPELT, table(int, room=["r"] * 9))
    assert (
        note
        == f"no event of <{S}> has the column temperature: did you mean temp? (events have the columns room and temp)"
    )
    assert told(RISING, table(int)) == []


def test_a_type_that_no_event_has() -> None:
    text = query("A ON S { ?e a :Reeding ; :temp ?a }", seq="A")
    readings = [(i, f"[] a <{E}Reading> ; <{E}temp> {i} .") for i in range(3)]
    assert told(text, readings) == [
        f"no event of <{S}> has the type Reeding: did you mean Reading? (events have the type Reading)"
    ]
    assert told(text.replace("Reeding", "Reading"), readings) == []


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("spectra", f"PREFIX : <{E}> SELECT ?a FROM STREAM <{S}> [RANGE 3 SLIDE 1] WHERE {{ ?t :temprature ?a }}"),
        (
            "rspql",
            f"PREFIX : <{E}> SELECT ?a FROM NAMED WINDOW :w ON <{S}> [RANGE 3] "
            "WHERE { WINDOW :w { ?t :temprature ?a } ?x :kb ?y }",
        ),
        (
            "rsepql",
            f"PREFIX : <{E}> SELECT ?a FROM NAMED <{S}> WIN [RANGE 3 SLIDE 1] AS :w "
            "EVENT ON :w { ?t :temprature ?a } AS A WHERE { MATCH { A } }",
        ),
        ("epsparql", f"PREFIX : <{E}> SELECT ?a FROM STREAM <{S}> WHERE {{ ?t :temprature ?a }}"),
    ],
)
def test_in_every_language(language: str, text: str) -> None:
    (note,) = told(text, events(), language)
    assert f"has the property <{E}temprature>: did you mean <{E}temp>?" in note
    assert told(text.replace("temprature", "temp"), events(), language) == []


def test_a_name_of_the_knowledge_base_is_none_of_the_events() -> None:
    text = f"PREFIX : <{E}> SELECT ?a FROM STREAM <{S}> WHERE {{ ?t :temprature ?a }}"
    below = "<http://www.w3.org/2000/01/rdf-schema#subPropertyOf>"
    assert told(text, events(), "epsparql", kb=f"<{E}temp> {below} <{E}temprature> .") == []
    inside = query("A ON S { ?t :temp ?a GRAPH :g { ?t :owner ?o } }", seq="A")
    assert told(inside, events(), kb=f"<{E}x> <{E}owner> <{E}ann> <{E}g> .") == []


def test_what_rules_derive_is_known_and_what_they_read_is_not() -> None:
    text = f"PREFIX : <{E}> SELECT ?a FROM STREAM <{S}> WHERE {{ ?t :hot ?a }}"
    rule = f"PREFIX : <{E}> CONSTRUCT {{ ?t :hot ?a }} FROM STREAM <{S}> WHERE {{ ?t :temp ?a FILTER(?a > 99) }}"
    assert told(text, events(), "epsparql", rules=[rule]) == []
    (note,) = told(text, events(), "epsparql", rules=[rule.replace(":temp", ":temprature")])
    assert f"has the property <{E}temprature>: did you mean <{E}temp>?" in note


def test_names_of_ceql() -> None:
    text = f"VOCAB <{E}> SELECT * FROM S WHERE T AS a; T AS b FILTER %s WITHIN 5 MINUTES"
    (note,) = told(text % "a[temperature > 3]", table(int), "ceql", stream_names={"S": S})
    assert "has the column temperature: did you mean temp? (events have the column temp)" in note
    (note,) = told((text % "a[temp > 3]").replace("T AS b", "Tt AS b"), table(int), "ceql", stream_names={"S": S})
    assert "has the type Tt: did you mean T?" in note
    assert told(text % "b[temp > a.temp]", table(int), "ceql", stream_names={"S": S}) == []
    (note,) = told(text % "b[temp > a.temp]", table(str), "ceql", stream_names={"S": S})
    assert note.startswith("the values of temp are texts that look like numbers (such as '0')")


def test_a_name_that_is_meant_to_be_absent() -> None:
    """Where there are matches, only a name that comes close is told."""
    text = query("A ON S { ?t :temp ?a }", "N ON S { ?t :alarm ?n }", "B ON S { ?t :temp ?b }", seq="A; N!; B")
    assert told(text, events()) == []
    assert len(told(text.replace(":alarm", ":tempe"), events())) == 1


@pytest.mark.parametrize("value", ['"%d"', '"-%d.5"', '"%de3"'])
def test_texts_that_look_like_numbers(value: str) -> None:
    (note,) = told(RISING, events(value))
    assert note.startswith("the values of temp are texts that look like numbers (such as ")
    assert "xsd:decimal(?v)" in note


@pytest.mark.parametrize(
    "value", ['"00%d"', '"n%d"', "%d", '"%d"^^<http://www.w3.org/2001/XMLSchema#decimal>', '"%d"@en']
)
def test_other_texts(value: str) -> None:
    assert told(RISING, events(value)) == []


def test_texts_that_are_only_compared_with_texts() -> None:
    assert told(query("A ON S { ?t :temp ?a FILTER(?a = '5') }", seq="A"), events('"%d"')) == []


def test_times_in_whole_seconds() -> None:
    twice = [(i // 2 * SECOND, graph) for i, (_, graph) in enumerate(events())]
    (note,) = told(RISING, twice)
    assert note.startswith(
        f"10 of 20 events of <{S}> have the time of the event before, and all times are whole seconds"
    )
    assert told(RISING, [(time + 1, graph) for time, graph in twice]) == []
    assert told(query("A ON S { ?t :temp ?a }", seq="A"), twice) == []
    several = [(time, graph.replace("/x>", f"/x{i % 2}>")) for i, (time, graph) in enumerate(twice)]
    assert told(RISING, several) == []  # of several sensors, each once a second


def test_the_command_line_says_it(tmp_path: Path) -> None:
    (tmp_path / "q.spaseq").write_text(MISSPELT.replace("WITHIN 30 SECONDS SLIDING", ""))
    (tmp_path / "s.csv").write_text("time,temp\n1,5\n2,6\n")
    run = CliRunner().invoke(main, ["run", str(tmp_path / "q.spaseq"), "-s", str(tmp_path / "s.csv")])
    assert run.exit_code == 0
    assert f"warning: no event of <{S}> has the column temperature: did you mean temp?" in run.stderr
    assert "without WITHIN a match may take for ever" in run.stderr


def test_who_registers_is_warned_of_lints(tmp_path: Path) -> None:
    text = RISING.replace("WITHIN 30 SECONDS SLIDING", "")
    with oxiseq.open() as store, pytest.warns(oxiseq.LintWarning, match="without WITHIN") as caught:
        store.register(text)
    assert caught[0].filename == __file__
    with oxiseq.open(tmp_path / "folder") as served, pytest.warns(oxiseq.LintWarning, match="without WITHIN"):
        served.register(text, name="q")


@pytest.mark.parametrize("served", [False, True])
def test_a_property_that_the_mapping_of_a_stream_does_not_make(served: bool, tmp_path: Path) -> None:
    mapping = {"subject": E + "{id}", "predicates": {f"{E}temp": "temp"}, "time": "ts"}
    with oxiseq.open(tmp_path / "folder") if served else oxiseq.open() as store:
        store.stream(S, mapping=mapping)
        with pytest.warns(oxiseq.LintWarning, match=f"no property <{E}temperature> .*did you mean <{E}temp>"):
            store.register(MISSPELT)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            store.register(RISING)


def test_run_shows_what_check_shows() -> None:
    text = (
        RISING.replace("WITHIN 30 SECONDS SLIDING", "")
        .replace(":temp ?b", ":temp ?b ; :kind ?k")
        .replace("?b > ?a", "?k > '60'")
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        oxiseq.run(text, {S: events()})
    lints = [str(each.message) for each in caught if each.category is oxiseq.LintWarning]
    assert [lint.partition(": ")[2].partition(":")[0] for lint in lints] == [
        each.message.partition(":")[0] for each in oxiseq.Query(text).check()
    ]
    assert len(lints) == 2
