"""`oxiseq token`: new, list, revoke."""

from __future__ import annotations

import stat
from pathlib import Path

from click.testing import CliRunner, Result

from oxiseq.cli.app import main
from oxiseq.rights import TokenTable, tokens_of


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["token", *words])


def test_a_new_token_is_printed_once_and_its_hash_goes_to_the_file(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    secrets = []
    for name in ("plant1", "admin"):
        made = run("new", name, "push:stream:http://e/*", "read", "--file", str(file))
        assert made.exit_code == 0
        secrets.append(made.stdout.strip())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not any(secret in file.read_text() for secret in secrets)
    table = TokenTable(tokens_of(file.read_text(), "file"))
    assert [rights.token for each in secrets if (rights := table.rights_of(each)) is not None] == ["plant1", "admin"]
    assert run("list", str(file)).stdout == (
        "plant1  push:stream:http://e/*  read\nadmin  push:stream:http://e/*  read\n"
    )


def test_without_a_file_the_line_is_printed_too() -> None:
    secret, line = run("new", "a", "read:kb").stdout.splitlines()
    rights = TokenTable(tokens_of(line, "line")).rights_of(secret)
    assert rights is not None
    assert rights.may("read", "kb")
    assert run("new", "anonymous", "read:kb").stdout == "anonymous  -  read:kb\n"


def test_revoked_tokens_are_gone_and_the_rest_stays_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    for name in ("a", "b", "c"):
        run("new", name, "read", "--file", str(file))
    file.chmod(0o640)
    file.write_text("# of plant b\n" + file.read_text() + "\n# the end")
    assert run("revoke", str(file), "b", "c").exit_code == 0
    kept = file.read_text().splitlines()
    assert (kept[0], kept[1].split()[0], kept[2:]) == ("# of plant b", "a", ["", "# the end"])
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    made = run("new", "d", "read", "--file", str(file))  # the last line has no end
    assert made.exit_code == 0
    assert [token.name for token in tokens_of(file.read_text(), "file")] == ["a", "d"]
    assert [path.name for path in tmp_path.iterdir()] == ["tokens"]


def test_what_is_wrong_is_told_and_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    run("new", "a", "read", "--file", str(file))
    before = file.read_text()
    for words, said in (
        (("new", "a", "read", "--file", str(file)), "there is a token 'a' already"),
        (("new", "b/c", "read", "--file", str(file)), "no name for a token"),
        (("new", "b", "wread", "--file", str(file)), "'wread' is no right"),
        (("revoke", str(file), "a", "z"), "there is no token z; there are a"),
        (("list", str(tmp_path / "none")), "No such file"),
    ):
        result = run(*words)
        assert result.exit_code == 1, words
        assert said in result.stderr
        assert file.read_text() == before
