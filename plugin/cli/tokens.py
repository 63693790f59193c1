"""The work of `oxiseq token`: changes of the file, each made whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from oxiseq.grammar.errors import OxiseqError
from oxiseq.rights import Token, TokenError, line_of, tokens_of


def add(file: Path, token: Token) -> None:
    """Raises TokenError where the file has one of this name, or a line that is none; OSError."""
    text = _text(file) if file.exists() else ""
    added = f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{line_of(token)}\n"
    tokens_of(added, str(file))
    _write(file, added)


def listed(file: Path) -> Iterator[tuple[str, str]]:
    """Name and rights of each. Raises TokenError, OSError."""
    for token in tokens_of(_text(file), str(file)):
        yield token.name, "  ".join(map(str, token.grants))


def revoke(file: Path, names: Iterable[str]) -> None:
    """Raises OxiseqError for a name that is not there, and then none is revoked; TokenError, OSError."""
    text, gone = _text(file), set(names)
    known = {token.name for token in tokens_of(text, str(file))}
    if missing := sorted(gone - known):
        raise OxiseqError(f"{file}: there is no token {', '.join(missing)}; there are {', '.join(sorted(known))}")
    kept = [line for line in text.splitlines(keepends=True) if not gone.intersection(line.split()[:1])]
    _write(file, "".join(kept))


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TokenError(f"{file}: {error}") from None


def _write(file: Path, text: str) -> None:
    """In the place of what was there, at one moment: a server may be reading it. For its owner's eyes only."""
    part = file.with_name(f".{file.name}.part")
    part.touch(mode=0o600)
    try:
        if file.exists():
            part.chmod(file.stat().st_mode)
        part.write_text(text, "utf-8")
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
