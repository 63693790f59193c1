"""A program: what tells the plans of all examples, of the corpus and of random CEQL queries, a line for each."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from pyoxigraph import Store

sys.path.insert(0, str(Path(__file__).parents[1]))
from ceql_strategies import CeqlOptions, ceql_query
from strategies import Dice

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.run.fingerprints import fingerprint
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import LANGUAGES, language_of, load
from oxiseq.languages.registry import language_for
from oxiseq.options import Options

TESTS = Path(__file__).parents[1]
Text = tuple[str, str, str, tuple[str, ...]]
"""Name, language, text, rules."""


def texts() -> Iterator[Text]:
    """All that is compiled."""
    project = TESTS.parent
    for file in sorted([*project.glob("examples/*/*"), *project.glob("plugin/demo/*")]):
        if file.suffix.removeprefix(".") in LANGUAGES:
            name, text = str(file.relative_to(project)), file.read_text(encoding="utf-8")
            others = sorted(each for each in file.parent.glob("*.epsparql") if each != file)
            yield name, language_of(file.name), text, ()
            for other in others:
                yield f"{name} with {other.name}", "epsparql", text, (other.read_text(encoding="utf-8"),)
    for file in sorted((TESTS / "corpus").rglob("*.toml")):
        case, folder = tomllib.loads(file.read_text(encoding="utf-8")), file.parent.name
        if "query" in case:  # some are of windows alone
            language = folder if folder in LANGUAGES else "spaseq"
            yield f"{folder}/{file.name}", language, case["query"], tuple(case.get("rules", ()))
    for number in range(40):
        yield f"random {number}", "ceql", ceql_query(Dice(number), ("S", "T"), CeqlOptions()), ()


def compiled(language: str, text: str, rules: tuple[str, ...]) -> str:
    """The plan's fingerprint, or what is wrong with the query."""
    try:
        query = load(text, language)
        options = Options(rules=rules, reads=("http://example.org/S",))
        run, _ = language_for(query).compile(query, TermDictionary(), StoreKb(Store()), options)
    except OxiseqError as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return fingerprint(run.plan)


if __name__ == "__main__":
    for name, *what in texts():
        print(name, compiled(*what), sep="\t")
