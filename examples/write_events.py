"""Write an example's events to files, for the command line: `python examples/write_events.py EXAMPLE [FOLDER]`.

EXAMPLE is a folder of examples/, for instance `02-fraud`; FOLDER (default: the current one) gets a file per
stream. The files' format is N-Quads; `--ending` chooses another one that `oxiseq convert` knows
(.nq, .trig, .nq.gz, .trig.gz, .arrow, .parquet). At the end it prints the command that runs the query on them.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.open import write_events
from oxiseq.engine.terms.dictionary import TermDictionary

EXAMPLES = Path(__file__).parent
Streams: TypeAlias = Mapping[str, list[tuple[int, str]]]
"""Stream IRI → events as (microseconds, RDF text)."""


def streams_of(example: str) -> Streams:
    """The streams that an example's make_events.py gives."""
    sys.path.insert(0, str(EXAMPLES / example))
    streams: Streams = import_module("make_events").streams()
    return streams


def write(streams: Streams, folder: Path, ending: str = ".nq") -> dict[str, Path]:
    """Write each stream to a file that is named after its IRI's last part; stream IRI → file."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for iri, events in streams.items():
        files[iri] = folder / (iri.replace("#", "/").rsplit("/", 1)[-1] + ending)
        terms = TermDictionary()
        write_events([encode_events(events, terms)], terms, files[iri])
    return files


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Write an example's events to files.")
    parser.add_argument("example", help="a folder of examples/, for instance 02-fraud")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), help="where to write them")
    parser.add_argument("--ending", default=".nq", help="the files' ending, which tells the format (default: .nq)")
    given = parser.parse_args()
    home = EXAMPLES / given.example
    command = ["oxiseq", "run", str(home / "query.spaseq")]
    for iri, file in write(streams_of(given.example), given.folder, given.ending).items():
        command += ["--stream", f"{iri}={file}"]
    if (home / "kb.nq").exists():
        command += ["--kb", str(home / "kb.nq")]
    print(shlex.join(command))


if __name__ == "__main__":
    main()
