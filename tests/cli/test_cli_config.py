"""Settings of `oxiseq serve`: command line before environment before file before default, and `--print-config`."""

from __future__ import annotations

import shlex
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from oxiseq.cli import main
from oxiseq.cli.server import serve_command
from oxiseq.cli.settings import ServeSettings, seconds, settings_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "11-server"


def printed(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(main, ["serve", "--print-config", *arguments], env=environment)


def settings(*arguments: str, **environment: str) -> dict[str, object]:
    result = printed(*arguments, **environment)
    assert result.exit_code == 0, result.output
    table: dict[str, object] = tomllib.loads(result.stdout)["serve"]
    return table


def test_each_source_gives_way_to_the_one_before(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text('[serve]\nthreads = 3\nmax_rows = 5\nretention = "2m"\n')
    found = settings("--config", str(file), "--threads", "9", OXISEQ_THREADS="8", OXISEQ_MAX_ROWS="6")
    assert (found["threads"], found["max_rows"], found["retention"], found["subscribers"]) == (9, 6, "2m", 64)
    assert settings(OXISEQ_CONFIG=str(file))["max_rows"] == 5
    assert settings("--retention", "1.5h")["retention"] == "90m" and settings("--retention", "0s")["retention"] == "0s"
    lines = printed("--config", str(file), OXISEQ_MAX_ROWS="6").stdout.splitlines()
    assert {"threads = 3  # file", "max_rows = 6  # environment", "subscribers = 64"} <= set(lines)


def test_what_is_printed_is_a_file_that_says_the_same(tmp_path: Path) -> None:
    arguments = (
        "--bind",
        "[::1]:0",
        "--location",
        str(tmp_path / 'a "b"'),
        "--cors",
        "--stream-idle",
        "0s",
        "--retention",
        "1.5h",
    )
    file = tmp_path / "a.toml"
    file.write_text(printed(*arguments).stdout)
    assert settings("--config", str(file)) == settings(*arguments)


def test_an_option_that_may_be_repeated_is_a_list_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text('[serve]\ncors = true\nallowed_host = ["a.example", "b.example"]\n')
    found = settings("--config", str(file))
    assert (found["cors"], found["allowed_host"]) == (["*"], ["a.example", "b.example"])
    assert settings(OXISEQ_CORS="true")["cors"] == ["*"]
    given = settings("--cors", "https://A.example/", "--cors", "http://localhost:3000", OXISEQ_ALLOWED_HOST="a b")
    assert (given["cors"], given["allowed_host"]) == (["https://a.example", "http://localhost:3000"], ["a", "b"])
    assert settings("--cors", "--read-only")["read_only"] is True
    assert printed("--cors", "elsewhere").exit_code == 2


def test_tokens_are_not_printed() -> None:
    result = printed("--read-token", "swordfish", OXISEQ_WRITE_TOKEN="sesame", OXISEQ_TOKEN_LINES="sesame")
    assert "swordfish" not in result.output
    assert "sesame" not in result.output
    assert 'read_token = "..."' in result.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[serve\n", "Expected"),
        ("[other]\n", "has no table [serve]"),
        ("[serve]\nthread = 3\nfoo = 1\n", "[serve] knows no thread, foo; it takes location, bind,"),
        ("[serve]\nbind = ['a']\n", "bind is neither a text nor a number"),
        ("[serve]\nthreads = 0\n", "0 is not in the range"),
        ("[serve]\ninstant_matches = 0\n", "0 is not in the range"),
        ("[serve]\ninstant_matches = -1\n", "-1 is not in the range"),
        (f"[serve]\ninstant_matches = {10**30}\n", "is not in the range"),  # the kernel counts in 64 bits
        ("[serve]\ninstant_matches = 'many'\n", "'many' is not a valid integer"),
        ("[serve]\nconfig = 'x'\n", "knows no config"),
    ],
)
def test_a_file_that_cannot_be_right_is_told(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "a.toml"
    file.write_text(text)
    result = printed("--config", str(file))
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())


def test_the_examples_settings_and_commands_are_accepted() -> None:
    assert settings("--config", str(EXAMPLE / "oxiseq.toml"))["retention"] == "1d"
    unit = (EXAMPLE / "oxiseq.service").read_text()
    started = [shlex.split(line.split("=", 1)[1]) for line in unit.splitlines() if line.startswith("ExecStart")]
    assert [Path(words[0]).name for words in started] == ["oxiseq", "oxiseq"]
    assert [words[1] for words in started] == ["warmup", "serve"]
    assert all(words[1] in main.commands for words in started)
    image = (EXAMPLE / "Dockerfile").read_text()
    given = dict(pair.split("=", 1) for pair in image.split("ENV ", 1)[1].splitlines()[0].split())
    assert settings(**given)["bind"] == "0.0.0.0:7878"


def test_the_server_is_told_durations_and_waits_for_ever_or_without_limit_where_they_are_nothing() -> None:
    given = (
        "--timeout=1500ms",
        "--stream-idle=PT0.3S",
        "--upstream-refresh=2 min",
        "--event-triples-for=1h",
        "--retention=1us",
    )
    told = settings_of(serve_command.make_context("serve", list(given)).params)
    waits = (told.timeout, told.stream_idle, told.upstream_refresh, told.event_triples_for)
    assert tuple(map(seconds, waits)) == (1.5, 0.3, 120.0, 3600.0)
    assert told.retention == 1
    none = settings_of(serve_command.make_context("serve", [f"{each.split('=')[0]}=0s" for each in given]).params)
    assert tuple(map(seconds, (none.timeout, none.stream_idle, none.upstream_refresh))) == (None, None, None)
    assert (none.event_triples_for, none.retention) == (0, 0)
    usual = settings_of(serve_command.make_context("serve", []).params)
    assert tuple(map(seconds, (usual.timeout, usual.stream_idle, usual.upstream_refresh))) == (300.0, 0.25, 600.0)


def test_a_setting_is_declared_once() -> None:
    names = {each.name for each in fields(ServeSettings)}
    assert {param.name for param in serve_command.params} - {"config", "print_config"} == names
    without_default = {
        "location",
        "upstream",
        "upstream_token",
        "read_token",
        "write_token",
        "tokens",
        "tls_cert",
        "tls_key",
        "max_rows",
        "sink_folder",
        "sink_secrets",
    }
    assert set(settings()) | without_default == names
