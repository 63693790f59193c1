"""The page's files."""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from oxiseq.grammar.records import dataclass

INDEX: Final = "index.html"
MEDIA_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
    ".spaseq": "text/plain; charset=utf-8",
    ".ttl": "text/turtle; charset=utf-8",
}
"""Endings of files that are served; others are not."""
SECURITY: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of each file: pages load nothing from another host, and run no script but our files."""


@dataclass(frozen=True, slots=True)
class Asset:
    """A file: its bytes, the same by gzip, its media type, and an ETag that changes with it."""

    body: bytes
    packed: bytes
    media_type: str
    etag: str


@cache
def asset(path: str) -> Asset | None:
    """The file at a path such as `js/main.js`; None where there is none."""
    found = _all().get(path)
    if found is None:
        return None
    body = found.read_bytes()
    media_type = MEDIA_TYPES[_ending(path)]
    return Asset(body, gzip.compress(body, mtime=0), media_type, hashlib.sha256(body).hexdigest()[:20])


@cache
def _all() -> dict[str, Traversable]:
    """Paths and files: only listed files are served, whatever the path contains."""
    return dict(_below(files("oxiseq.page").joinpath("static"), ""))


def _below(folder: Traversable, prefix: str) -> list[tuple[str, Traversable]]:
    found: list[tuple[str, Traversable]] = []
    for each in folder.iterdir():
        if each.is_dir():
            found += _below(each, f"{prefix}{each.name}/")
        elif _ending(each.name) in MEDIA_TYPES:
            found.append((prefix + each.name, each))
    return found


def _ending(name: str) -> str:
    return name[name.rfind(".") :] if "." in name else ""
