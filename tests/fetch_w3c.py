"""Fetch the W3C's test suites, which are not part of this repository: `python tests/fetch_w3c.py [--archive FILE]`.

They come from the W3C's repository w3c/rdf-tests into tests/w3c, where tests/w3c_suites.py looks for them.
`--archive`: a `.tar.gz` of that repository that is here already.
"""

from __future__ import annotations

import argparse
import io
import shutil
import tarfile
import urllib.request
from pathlib import Path, PurePosixPath
from typing import Final

SOURCE: Final = "https://github.com/w3c/rdf-tests/archive/refs/heads/main.tar.gz"
TARGET: Final = Path(__file__).parent / "w3c"
WANTED: Final = {"sparql/sparql11": "sparql11", "rdf/rdf11": "rdf11"}
"""Folders of that repository, and their names here."""


def unpack(archive: bytes, target: Path) -> int:
    """How many files are there then; those of before are gone. Raises ValueError for an archive without any suite."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        found = {where: member for member in packed if member.isfile() and (where := place(member.name))}
        if not found:
            raise ValueError("no suite is in this archive")
        shutil.rmtree(target, ignore_errors=True)
        for where, member in found.items():
            data = packed.extractfile(member)
            assert data is not None  # it is a file
            (target / where).parent.mkdir(parents=True, exist_ok=True)
            (target / where).write_bytes(data.read())
    return len(found)


def place(name: str) -> PurePosixPath | None:
    """Where a file of the archive goes; None for what is no part of a suite, or points out of the folder."""
    inside = PurePosixPath(*PurePosixPath(name).parts[1:])
    if ".." in inside.parts or inside.is_absolute():
        return None
    for folder, here in WANTED.items():
        if inside.is_relative_to(folder):
            return PurePosixPath(here) / inside.relative_to(folder)
    return None


def main() -> None:
    """Fetch, unpack, say how many."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--archive", type=Path)
    given = parser.parse_args()
    if given.archive is not None:
        archive = given.archive.read_bytes()
    else:
        with urllib.request.urlopen(SOURCE, timeout=120) as answer:
            archive = answer.read()
    print(f"{unpack(archive, TARGET)} files in {TARGET}")


if __name__ == "__main__":
    main()
