"""Files of tests: what they mean, what failures say, the command and the pytest plugin."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from oxiseq.cli import main
from oxiseq.testing import run_file
from oxiseq.testing.run import failure_text
from oxiseq.testing.words import TestFileError

pytest_plugins = ["pytester"]

QUERY = """
PREFIX : <http://example.org/>
SELECT ?who ?first ?second WITHIN 10 MINUTES SLIDING
FROM STREAM S <http://example.org/payments>
WHERE {
  SEQ(A; B)
  DEFINE GPM A ON S { ?who :paid ?first }
  DEFINE GPM B ON S { ?who :paid ?second FILTER(?second >= 10 * ?first) }
}
"""
HEAD = f"text = '''{QUERY}'''\n"
EVENTS = """
events = '''
0m { :ann :paid 3 }
1m { :bob :paid 50 . :bob :paid 51 }
2m { :ann :paid 40.0 }
'''
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "some.oxitest.toml"
    path.write_text(text, encoding="utf-8")
    return path


def command(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["test", *map(str, arguments)])


def passes(folder: Path, body: str) -> bool:
    return all(result.passed for result in run_file(written(folder, HEAD + "[[case]]\n" + body)))


def test_rows_are_compared_over_the_columns_named(tmp_path: Path) -> None:
    assert passes(tmp_path, EVENTS + "expect = '''\nat | who | second | @A\n2m | :ann | 40.0 | 0m\n'''")
    assert passes(tmp_path, EVENTS + "expect = '''\nwho\n:ann\n'''")
    assert passes(tmp_path, EVENTS + "expect = 1")
    assert not passes(tmp_path, EVENTS + "expect = 2")
    assert not passes(tmp_path, EVENTS + "expect = '''\nwho\n:ann\n:ann\n'''")
    assert not passes(tmp_path, EVENTS + "expect = '''\nwho\n'''")


def test_a_table_and_trig_give_the_same_events(tmp_path: Path) -> None:
    table = "table = '''\n| time | subject | paid |\n|---|---|---|\n| 0m | :ann | 3 |\n| 2m | :ann | 40.0 |\n'''\n"
    assert passes(tmp_path, table + "expect = '''\nat | second\n2m | 40.0\n'''")
    trig = (
        "[case.trig]\nS = '''\n@prefix prov: <http://www.w3.org/ns/prov#> .\n"
        "GRAPH :e { :e prov:generatedAtTime 0 . :ann :paid 3 }\n"
        "GRAPH :f { :f prov:generatedAtTime 120000000 . :ann :paid 40.0 }\n'''\n"
    )
    assert passes(tmp_path, "expect = '''\nat | second\n2m | 40.0\n'''\n" + trig)


def test_the_clock_stands_where_it_is_told_to(tmp_path: Path) -> None:
    at = "[[case.after]]\ntime = {}\nexpect = {}\n"
    assert passes(tmp_path, EVENTS + at.format("'119s'", 0) + at.format("'2m'", 1))
    assert not passes(tmp_path, EVENTS + at.format("'2m'", 0))
    assert not passes(tmp_path, EVENTS + at.format("'119s'", 1))
    assert passes(tmp_path, EVENTS + "[[case.after]]\ntime='2m'\nnew=1\n[[case.after]]\ntime='3m'\nnew=0")


GROUP_AT_THE_END = """
text = '''
PREFIX : <http://example.org/>
SELECT ?who FROM STREAM S <http://example.org/payments>
WHERE {
  SEQ(A; (B; C)! WITHIN 10 MINUTES)
  DEFINE GPM A ON S { ?who :paid 3 }
  DEFINE GPM B ON S { ?who :paid 50 }
  DEFINE GPM C ON S { ?who :paid 7 }
}
'''
[[case]]
events = '''
0m { :ann :paid 3 }
1m { :ann :paid 50 }
2m { :bob :paid 3 }
3m { :bob :paid 50 }
4m { :bob :paid 7 }
'''
[[case.after]]
time = '599s'
expect = 0
[[case.after]]
time = '10m'
expect = 1
[[case.after]]
time = '40m'
new = 0
"""


def test_the_bound_of_a_negated_group_passes_by_the_clock(tmp_path: Path) -> None:
    assert all(result.passed for result in run_file(written(tmp_path, GROUP_AT_THE_END)))


def test_late_events_and_open_ends(tmp_path: Path) -> None:
    events = "events = '''\n2m { :ann :paid 40 }\n0m { :ann :paid 3 }\n'''\n"
    assert passes(tmp_path, events + "lateness = '5m'\nexpect = 1\nlate = 0")
    assert not passes(tmp_path, events + "lateness = '5m'\nexpect = 1\nlate = 1")
    told = "[[case.after]]\ntime='1m'\n"  # the clock passes 1m before the event at 2m comes; then 0m is late
    assert passes(tmp_path, events + "lateness = '5m'\nexpect = 0\nlate = 1\n" + told)
    assert passes(tmp_path, EVENTS + "expect = 0\nend = false")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("events = '0m :ann :paid 3'", "TIME [STREAM]"),
        ("events = '0m { :ann :paid }'", "not Turtle"),
        ("events = '0m T { :ann :paid 3 }'", "reads no stream 'T'"),
        ("events = '0q { :ann :paid 3 }'", "not a time"),
        ("expected = 3", "expected: not known; did you mean expect?"),
        ("colour = 3", "colour: not known; known: after"),
        (EVENTS + "expect = '''\nwhom\n:ann\n'''", "no column whom"),
        (EVENTS + "expect = '''\nwho | first\n:ann\n'''", "2 cells expected"),
        (EVENTS + "expect = '''\nwho\nx y\n'''", "neither a term"),
        ("[[case.after]]\nexpect = 1", "needs a time"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_place(tmp_path: Path, body: str, message: str) -> None:
    with pytest.raises(TestFileError) as error:
        run_file(written(tmp_path, HEAD + "[[case]]\n" + body))
    assert message in str(error.value) and "case 1" in str(error.value)


def test_failures_show_missing_and_unexpected_rows(tmp_path: Path) -> None:
    body = "[[case]]\nname = 'x'\n" + EVENTS + "expect = '''\nwho | second\n:ann | 41\n'''"
    (result,) = run_file(written(tmp_path, HEAD + body))
    text = failure_text(result, why=False)
    assert text.split("\n") == [
        "at the end: 1 missing, 1 not expected",
        "    who  | second",
        "  - :ann | 41",
        "  + :ann | 40",
    ]


def test_the_command_tells_of_each_case(tmp_path: Path) -> None:
    cases = "".join(f"[[case]]\nname = '{name}'\n{EVENTS}expect = {n}\n" for name, n in (("good", 1), ("bad", 0)))
    path = written(tmp_path, HEAD + cases)
    both = command(path)
    assert both.exit_code == 1
    assert "pass  good" in both.output and "FAIL  bad" in both.output and "1 passed, 1 failed" in both.output
    assert command(tmp_path, "-k", "good").exit_code == 0
    assert command(path, "-k", "none").exit_code == 1
    assert "no [[case]]" in command(written(tmp_path, HEAD)).output


def test_pytest_collects_cases(pytester: pytest.Pytester) -> None:
    cases = "".join(f"[[case]]\nname = '{name}'\n{EVENTS}expect = {n}\n" for name, n in (("good", 1), ("bad", 0)))
    written(pytester.path, HEAD + cases)
    plugin = "oxiseq.testing.pytest_plugin"
    installed = any(each.name == plugin for each in entry_points(group="pytest11"))
    result = pytester.runpytest_inprocess(*(() if installed else ("-p", plugin)), "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*0 matches expected, but 1 found*"])


def test_failures_say_why_matches_are_missing(tmp_path: Path) -> None:
    late = EVENTS.replace("2m { :ann", "12m { :ann")
    (result,) = run_file(written(tmp_path, f"{HEAD}[[case]]\n{late}expect = 1"))
    text = failure_text(result)
    assert "why not: 0 matches" in text and "without the window, WITHIN 10 MINUTES SLIDING: 1 more" in text
    assert "A at 0s, B at 12m: spans 12 min, limit 10 min" in text
    at = "expect = 1\n[[case.after]]\ntime = '90s'\nexpect = 1\n"
    (result,) = run_file(written(tmp_path, f"{HEAD}[[case]]\n{EVENTS}{at}"))
    assert "A saw 2 events of S" in failure_text(result)  # as far as the clock had come


def test_failures_of_all_languages_say_why_not(tmp_path: Path) -> None:
    ceql = """
language = "ceql"
text = "VOCAB <http://e/> SELECT * FROM S WHERE SELL AS a ; BUY AS b WITHIN 10 SECONDS"
table = '''
time | type
0s   | SELL
1m   | BUY
'''
[[case]]
expect = 1
"""
    (result,) = run_file(written(tmp_path, ceql))
    assert "without the window, WITHIN 10 SECONDS: 1 more" in failure_text(result)
    assert "a at 0s, b at 1m: spans 1 min, limit 10 s" in failure_text(result)
    rows = """
text = "PREFIX : <http://e/> SELECT * FROM STREAM :s WINDOWWHERE { ?a :p ?b FILTER(?b > 5) }"
events = '1s { :a :p 4 }'
[[case]]
expect = 1
"""
    for language, window in (("spectra", "[RANGE 9] "), ("epsparql", "")):
        (result,) = run_file(written(tmp_path, f'language = "{language}"' + rows.replace("WINDOW", window)))
        assert "without a filter, FILTER(?b > 5): 1 more" in failure_text(result), language
