"""Write an example's events to files, for the command line: `python examples/write_events.py EXAMPLE [FOLDER]`.

EXAMPLE is a folder of examples/, for instance `02-fraud`; FOLDER (default: the current one) gets a file per
stream. The files' format is N-Quads; `--ending` chooses another one that `oxiseq convert` knows
(.nq, .trig, .nq.gz, .trig.gz, .arrow, .parquet). At the end it prints the command that runs the query on them (one for
each query where there are several, q*.rspql), and before it the one that loads the knowledge base, where there is
something to load (`LOAD` in make_events.py).
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.open import write_events
from oxiseq.engine.flow.epsparql.facts import spanned
from oxiseq.engine.terms.dictionary import TermDictionary

EXAMPLES = Path(__file__).resolve().parent

Streams: TypeAlias = Mapping[str, list[Any]]
"""Stream IRI → events as (microseconds, RDF text), or (start, end, RDF text)."""


def events_of(example: str) -> ModuleType:
    """An example's make_events.py."""
    sys.path.insert(0, str(EXAMPLES / example))
    return import_module("make_events")


def write(streams: Streams, folder: Path, ending: str = ".nq") -> dict[str, Path]:
    """Write each stream to a file that is named after its IRI's last part; stream IRI → file."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for iri, events in streams.items():
        files[iri] = folder / (iri.replace("#", "/").rsplit("/", 1)[-1] + ending)
        terms = TermDictionary()
        write_events([encode_events(spanned(events), terms)], terms, files[iri])
    return files


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Write an example's events to files.")
    parser.add_argument("example", help="a folder of examples/, for instance 02-fraud")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), help="where to write them")
    parser.add_argument("--ending", default=".nq", help="the files' ending, which tells the format (default: .nq)")
    given = parser.parse_args()
    if given.example not in (known := sorted(path.parent.name for path in EXAMPLES.glob("*/make_events.py"))):
        parser.error(f"{given.example} is none of {', '.join(known)}")
    for command in commands(given.example, given.folder, given.ending):
        print(shlex.join(command))


def commands(example: str, folder: Path, ending: str) -> list[list[str]]:
    """Write the events; the commands to run then."""
    home, made = EXAMPLES / example, events_of(example)
    files = write(made.streams(), folder, ending)
    load, kb = knowledge(home, made, folder)
    return [*load, *(_run(query, files) + ["--kb", str(kb)] * (kb is not None) for query in _queries(home))]


def _queries(home: Path) -> list[Path]:
    """query.*, but for its picture and the one in CEQL, which wants a table; else all that are numbered."""
    return [path for path in home.glob("query.*") if path.suffix not in (".ceql", ".svg")] or sorted(
        home.glob("q*.rspql")
    )


def _run(query: Path, files: Mapping[str, Path]) -> list[str]:
    several, text = query.stem != "query", query.read_text(encoding="utf-8")
    command = ["oxiseq", "run", str(query)]
    for iri, file in files.items():
        if not several or iri.rsplit("#", 1)[-1] in text:
            command += ["--stream", f"{iri}={file}"]
    if query.suffix == ".epsparql":
        rules = [rule for rule in sorted(query.parent.glob("*.epsparql")) if rule != query]
        command += [word for rule in rules for word in ("--rules", str(rule))]
    return command


def knowledge(home: Path, made: ModuleType, folder: Path) -> tuple[list[list[str]], Path | None]:
    """The commands that make the knowledge base, and where it is then; None where there is none."""
    if hasattr(made, "LOAD"):
        words = [str(home / word) if (home / word).exists() else word for word in made.LOAD]
        return [["oxiseq", "load", *words, "--location", str(folder / "kb")]], folder / "kb"
    if hasattr(made, "kb"):
        (folder / "kb.nq").write_text(made.kb(), encoding="utf-8")
        return [], folder / "kb.nq"
    return [], next((home / name for name in ("kb.nq", "kb.trig") if (home / name).exists()), None)


if __name__ == "__main__":
    main()
