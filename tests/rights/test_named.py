"""Lines of tokens, the table of them, and the file that changes while it is used."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

import pytest

from oxiseq.rights import (
    Grant,
    Token,
    TokenError,
    TokenFile,
    TokenTable,
    digest_of,
    grants,
    line_of,
    new_secret,
    tokens_of,
)

SECRET = new_secret()
TOKEN = Token("plant1", digest_of(SECRET), (Grant("push", "stream", "http://e/#x*"), Grant("read", "query", "p-*")))
HASH = f"sha256:{'0' * 64}"


def test_a_line_is_read_as_it_was_written_and_tells_nothing_of_the_token() -> None:
    text = f"# a comment\n\n  {line_of(TOKEN)}\nanonymous  -  read:kb\n"
    assert tokens_of(text, "f") == (TOKEN, Token("anonymous", b"", (Grant("read", "kb"),)))
    assert SECRET not in text
    assert SECRET.removeprefix("oxiseq_") not in repr(TOKEN) + line_of(TOKEN)
    assert TOKEN.digest.hex() not in repr(TOKEN)
    assert len({new_secret() for _ in range(1000)}) == 1000


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a", "the name is followed by sha256:"),
        ("a secret read", "the name is followed by sha256:"),
        (f"a {HASH[:-1]} read", "the name is followed by sha256:"),
        (f"a {HASH}", "'a' has no rights"),
        (f"a {HASH} reed", "'reed' is no right"),
        (f"a/b {HASH} read", "'a/b' is no name"),
        ("a - read", "replaces the hash for 'anonymous', and for no other"),
        (f"anonymous {HASH} read", "replaces the hash for 'anonymous'"),
        (f"b {HASH} read", "there is a token 'b' already"),
    ],
)
def test_a_wrong_line_is_told_with_its_number(line: str, said: str) -> None:
    with pytest.raises(TokenError, match=re.escape("the file, line 3: ") + ".*" + re.escape(said)):
        tokens_of(f"b {HASH} read\n\n{line}\n", "the file")


def test_a_table_finds_the_rights_of_its_tokens_and_of_no_others() -> None:
    others = [Token(f"t{i}", digest_of(f"s{i}"), (Grant("read"),)) for i in range(50)]
    found = TokenTable([*others, TOKEN, Token("anonymous", b"", (Grant("read", "kb"),))])
    assert len(found) == 51
    rights = found.rights_of(SECRET)
    assert rights is not None
    assert (rights.token, rights.grants) == ("plant1", TOKEN.grants)
    for wrong in ("", SECRET[:-1], SECRET + "a", "s50", "\udcff", TOKEN.digest.hex(), line_of(TOKEN)):
        assert found.rights_of(wrong) is None
    assert found.anonymous.grants == (Grant("read", "kb"),)


def test_a_file_is_read_again_when_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(grants, "_LOOKED_EVERY", 0.0)
    caplog.set_level(logging.ERROR)
    path = tmp_path / "tokens"
    with pytest.raises(TokenError, match="cannot be read"):
        TokenFile(path)
    path.write_text(line_of(TOKEN))
    file = TokenFile(path)
    assert file.tokens == (TOKEN,)
    assert not file.changed()
    for number, broken in enumerate(("nonsense", "é\0"), start=1):  # those of before hold
        path.write_text(broken)
        assert not file.changed()
        assert file.tokens == (TOKEN,)
        assert len(caplog.messages) == number
        assert not file.changed()
        assert len(caplog.messages) == number  # told once
    path.unlink()
    assert not file.changed()
    assert file.tokens == (TOKEN,)
    path.write_text("")
    assert file.changed()
    assert file.tokens == ()
    path.write_bytes(b"\xff")
    assert not file.changed()
    path.write_text("anonymous - read\n")
    os.utime(path, (0, 0))  # as old as one likes
    assert file.changed()


def test_a_file_is_looked_at_once_in_a_second(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("")
    file = TokenFile(path)
    path.write_text(line_of(TOKEN))
    assert not file.changed()
