"""What a server in front of an endpoint sends there for a query: the work of `oxiseq explain --upstream`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from oxiseq.api.store import Store
from oxiseq.cli.options import QuerySource
from oxiseq.engine.errors import ExtraError
from oxiseq.engine.standing import compile_over_store
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.languages import STANDING
from oxiseq.grammar.over_store import load_over_store
from oxiseq.grammar.records import dataclass
from oxiseq.languages.registry import language_for
from oxiseq.options import said_as_data

try:
    from oxiseq.sparql.services import blocks, obstacle, with_values
    from oxiseq.sparql.upstream import WHOLE
except ModuleNotFoundError as error:
    raise ExtraError((error.name or "").partition(".")[0], "server") from error

_BASE: Final = "http://localhost/query"
_AT_REFRESH: Final = "when it is registered, and at each refresh"
_AT_ONCE: Final = "with the solutions of its SERVICE blocks, which are answered over the streams"


@dataclass(frozen=True, slots=True)
class Sent:
    """texts: what is sent; when: on which occasion; services: streams that SERVICE names; whole: why a long text is not
    sent in parts, empty where it may be."""

    texts: tuple[str, ...]
    when: str
    services: tuple[str, ...] = ()
    whole: str = ""

    def json(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"

    def __str__(self) -> str:
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield f"sent to the endpoint, {self.when}" if self.texts else "sent to the endpoint: nothing"
        for text in self.texts:
            yield from (f"  {line}" for line in text.strip().splitlines())
        if self.services:
            yield f"answered here: {', '.join(f'<{iri}>' for iri in self.services)}"
            most = f"of at most {WHOLE >> 20} MB: {self.whole}"
            yield f"in one request, {most}" if self.whole else "in parts where it is long"


class _AnyStream:
    """Every SERVICE is of a stream: which there are, a server knows."""

    def knows(self, _: str) -> bool:
        return True

    def ask(self, *_: object) -> list[Any]:
        raise AssertionError("explain queries nothing")


def sent(source: QuerySource, rules: Sequence[QuerySource] = ()) -> Sent:
    """What is sent for a query. Raises QueryError."""
    if source.language != STANDING:
        query = source.load()
        language = language_for(query)
        with source.named():
            given = said_as_data(language.name, {"rules": [rule.text for rule in rules]})
            run, _ = language.compile(query, TermDictionary(), Store().kb, given)
        return Sent(tuple(run.kb_texts), _AT_REFRESH)
    found = blocks(source.text, _AnyStream(), _BASE)
    if not found:
        with source.named():
            return Sent((compile_over_store(load_over_store(source.text)).asks,), _AT_REFRESH)
    whole = obstacle(source.text, found)
    text = with_values(source.text, found, ["VALUES (...) { ... }"] * len(found))
    iris = tuple(dict.fromkeys(block.iri for block in found))
    return Sent((text,), _AT_ONCE, iris, "" if whole is None else whole.reason)
