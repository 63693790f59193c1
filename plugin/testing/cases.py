"""The file format: a file's cases as values.

In the flow: `*.oxitest.toml` → **cases** → run.py. Whatever is above the first `[[case]]` holds for every
case that does not say otherwise.
"""

from __future__ import annotations

import re
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from pyoxigraph import BlankNode, Triple

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.encode import decode_events
from oxiseq.engine.events.open import open_events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load
from oxiseq.grammar.errors import close_name
from oxiseq.grammar.languages import USUAL, AnyQuery, language_of
from oxiseq.grammar.records import dataclass
from oxiseq.languages.registry import language_for
from oxiseq.options import QUERY, Options, options_for, said_as_data
from oxiseq.sources.knowledge import Kb
from oxiseq.testing.words import TIME_TOKEN, Table, TestFileError, Words, absolute, read_table, reader, writer

# --- events ----------------------------------------------------------------------------------------------

_OPENING = re.compile(rf"^[ \t]*({TIME_TOKEN})[ \t]+(?:([^\s{{]+)[ \t]*)?\{{", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)


class Event(NamedTuple):
    """An event: its stream's IRI, its time in microseconds, its graph."""

    stream: str
    time: int
    graph: tuple[Triple, ...]


class Reader(NamedTuple):
    """What events are read with. `streams`: name in the query → IRI."""

    words: Words
    time: Callable[[Any], int]
    streams: Mapping[str, str]

    def stream(self, name: str | None) -> str:
        """The IRI of a stream by its name, its IRI or the end of that; None where the query has only one.

        Raises TestFileError.
        """
        iris = dict.fromkeys(self.streams.values())
        if name is None:
            if len(iris) == 1:
                return next(iter(iris))
            raise TestFileError(f"of which stream? The query reads {', '.join(self.streams)}")
        plain = name.removesuffix(":").removeprefix("<").removesuffix(">")
        last = {re.split("[/#]", each)[-1]: each for each in iris}
        iri = self.streams.get(plain, last.get(plain, plain))
        if iri not in iris:
            raise TestFileError(f"the query reads no stream {plain!r}; it reads {', '.join(self.streams)}")
        return iri

    def lines(self, text: str) -> Iterator[Event]:
        """`TIME [STREAM] { TURTLE }`, one or more lines each. Raises TestFileError."""
        text = _COMMENT.sub("", text)
        found = list(_OPENING.finditer(text))
        before = text[: found[0].start()] if found else text
        if before.strip():
            raise TestFileError(f"events are written `TIME [STREAM] {{ TURTLE }}`, but here is: {before.strip()!r}")
        ends = [each.start() for each in found[1:]] + [len(text)]
        for opening, end in zip(found, ends, strict=True):
            body = text[opening.end() : end].rstrip()
            if not body.endswith("}"):
                raise TestFileError(f"the event at {opening[1]} does not end with a brace: {body!r}")
            yield Event(self.stream(opening[2]), self.time(opening[1]), self.words.triples(body[:-1]))

    def table(self, text: str) -> Iterator[Event]:
        """A row per event: `time`, perhaps `stream` and `subject`, and a column per predicate. Raises TestFileError."""
        table = read_table(text)
        if "time" not in table.header:
            raise TestFileError("a table of events needs a column `time`")
        own = {"time", "stream", "subject"}
        predicates = {name: self.words.predicate(name) for name in table.header if name not in own}
        for row in table.rows:
            cells = dict(zip(table.header, row, strict=True))
            subject = self._term(cells["subject"], False) if cells.get("subject") else BlankNode()
            graph = [
                Triple(subject, predicate, self._term(cells[name], name in ("a", "type")))
                for name, predicate in predicates.items()
                if cells[name]
            ]
            yield Event(self.stream(cells.get("stream") or None), self.time(cells["time"]), tuple(graph))

    def _term(self, text: str, word: bool) -> Any:
        if word and self.words.vocab is not None and text.isidentifier():
            text = f"<{self.words.vocab}{text}>"
        found = self.words.term(text)
        if found is None:
            raise TestFileError(f"{text!r} is not a term of Turtle")
        return found

    def file(self, name: str, path: Path) -> Iterator[Event]:
        """The events of a file of a stream. Raises EventError, OSError."""
        terms = TermDictionary()
        for batch in open_events(path, terms):
            terms.hold(*batch.ids)
            for time, graph in decode_events(batch, terms):
                yield Event(self.stream(name), time, graph)

    def trig(self, name: str, text: str) -> Iterator[Event]:
        """The same, as a text of TriG: a graph per event, with its prov:generatedAtTime."""
        head = "".join(f"@prefix {prefix}: <{iri}> .\n" for prefix, iri in self.words.prefixes.items())
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "events.trig"
            path.write_text(head + text, encoding="utf-8")
            yield from list(self.file(name, path))


def in_order(given: Sequence[Sequence[Event]]) -> tuple[Event, ...]:
    """One list keeps its order of arrival; several are merged by time."""
    parts = [part for part in given if part]
    if len(parts) <= 1:
        return tuple(parts[0]) if parts else ()
    return tuple(sorted((event for part in parts for event in part), key=lambda event: event.time))


# --- cases -----------------------------------------------------------------------------------------------

ENDING: Final = ".oxitest.toml"
_OPTIONS: Final = tuple(option.name for option in options_for(doors=(QUERY,)))
_CASE_KEYS: Final = frozenset(
    {
        "name",
        "query",
        "text",
        "language",
        "kb",
        "kb_text",
        "prefixes",
        "zero",
        "events",
        "table",
        "stream",
        "files",
        "trig",
        "expect",
        "after",
        "late",
        "end",
        *_OPTIONS,
    }
)
_AFTER_KEYS: Final = frozenset({"time", "expect", "new", "late"})


@dataclass(frozen=True, slots=True)
class Expected:
    """What must have been found: a table of rows, or only their number."""

    table: Table | None
    count: int | None


@dataclass(frozen=True, slots=True)
class Stand:
    """The clock is behind `time` (µs): what must have been found by then, what of it since the are before, how
    many events were late; None if not given."""

    time: int
    expect: Expected | None
    new: Expected | None
    late: int | None


@dataclass(frozen=True, slots=True)
class Case:
    """One case. `place`: file and number, for messages; times in µs; `ends`: the streams are closed at the end."""

    name: str
    place: str
    text: str
    query: AnyQuery
    kb: Kb
    options: Options
    words: Words
    zero: int
    streams: Mapping[str, str]
    events: tuple[Event, ...]
    stands: tuple[Stand, ...]
    expect: Expected | None
    late: int | None
    ends: bool

    def written(self, time: int) -> str:
        """A time as the case would write it."""
        return writer(self.zero)(time)


def load_cases(path: Path) -> list[Case]:
    """All cases of a file. Raises TestFileError, QueryError and OSError."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TestFileError(f"{path}: {error}") from None
    shared = {key: value for key, value in data.items() if key != "case"}
    given = data.get("case")
    if not isinstance(given, list) or not given:
        raise TestFileError(f"{path}: no [[case]]")
    return [_case(path, number, shared, own) for number, own in enumerate(given, 1)]


def _case(path: Path, number: int, shared: Mapping[str, Any], own: Mapping[str, Any]) -> Case:
    place = f"{path}, case {number}"
    if "query" in own and "text" not in own:  # what is nearer wins
        shared = {key: value for key, value in shared.items() if key not in ("text", "language")}
    try:
        return _read(path.parent, place, {**shared, **own, "prefixes": _prefixes(shared, own)}, number)
    except TestFileError as error:
        raise TestFileError(f"{place}: {error}") from None


def _prefixes(*given: Mapping[str, Any]) -> dict[str, str]:
    return {name: iri for each in given for name, iri in each.get("prefixes", {}).items()}


def _read(folder: Path, place: str, data: Mapping[str, Any], number: int) -> Case:
    _known(data, _CASE_KEYS)
    text, language = _query_text(folder, data)
    query = load(text, language)
    zero = absolute(data.get("zero", 0))
    time = reader(zero)
    options = _options(language_for(query).name, _given(folder, data, time))
    streams = language_for(query).driver(query, None, options).streams
    words = _words(query, data["prefixes"])
    return Case(
        str(data.get("name", f"case {number}")),
        place,
        text,
        query,
        _kb(folder, data, words),
        options,
        words,
        zero,
        streams,
        _events(folder, data, Reader(words, time, streams)),
        tuple(_stand(each, time) for each in data.get("after", ())),
        _expected(data.get("expect")),
        data.get("late"),
        data.get("end", True),
    )


def _known(data: Mapping[str, Any], keys: frozenset[str]) -> None:
    if unknown := sorted(set(data) - keys):
        otherwise = f"known: {', '.join(sorted(keys))}"
        raise TestFileError(f"{', '.join(unknown)}: not known; {close_name(unknown[0], keys, otherwise)}")


def _query_text(folder: Path, data: Mapping[str, Any]) -> tuple[str, str]:
    """The text and its language; the nearer of `query` (a file) and `text`: a case's own wins."""
    if "text" in data:
        return data["text"], data.get("language", USUAL)
    if "query" not in data:
        raise TestFileError("which query? `query` names its file, `text` holds it")
    return (folder / data["query"]).read_text(encoding="utf-8-sig"), data.get("language", language_of(data["query"]))


def _words(query: AnyQuery, given: Mapping[str, str]) -> Words:
    prefixes = {**dict(getattr(query, "prefixes", ())), **given}
    vocab = getattr(query, "vocab", None) or prefixes.get("")
    return Words({"": vocab, **prefixes} if vocab else prefixes, vocab)


def _kb(folder: Path, data: Mapping[str, Any], words: Words) -> Kb:
    if "kb_text" in data:
        from pyoxigraph import RdfFormat, Store  # noqa: PLC0415  most tests have none

        store = Store()
        head = "".join(f"@prefix {name}: <{iri}> .\n" for name, iri in words.prefixes.items())
        try:
            store.load(head + data["kb_text"], format=RdfFormat.TRIG)
        except (SyntaxError, ValueError) as error:
            raise TestFileError(f"kb_text is not TriG: {error}") from None
        return store
    return folder / data["kb"] if "kb" in data else None


def _options(language: str, given: Mapping[str, Any]) -> Options:
    try:
        return said_as_data(language, given)
    except OxiseqError as error:
        raise TestFileError(str(error)) from None


def _given(folder: Path, data: Mapping[str, Any], time: Callable[[Any], int]) -> dict[str, Any]:
    """The options, times counted from the case's zero."""
    given = {name: data[name] for name in _OPTIONS if name in data}
    if "origin" in given:
        given["origin"] = time(given["origin"])
    if isinstance(given.get("evaluation_times"), list):
        if any(isinstance(each, dict) for each in given["evaluation_times"]):
            raise TestFileError(
                "evaluation_times lists times: what must have been found by then goes into [[case.after]]"
            )
        given["evaluation_times"] = [time(each) for each in given["evaluation_times"]]
    if "rules" in given:
        given["rules"] = _rules(folder, given["rules"])
    return given


def _rules(folder: Path, given: Any) -> Any:
    """Texts, or names of files that end with .epsparql."""
    if not isinstance(given, list):
        return given
    return [(folder / each).read_text(encoding="utf-8-sig") if _is_file(each) else each for each in given]


def _is_file(rule: object) -> bool:
    return isinstance(rule, str) and "\n" not in rule and rule.endswith(".epsparql")


def _events(folder: Path, data: Mapping[str, Any], read: Reader) -> tuple[Event, ...]:
    if "stream" in data:
        read = read._replace(streams={data["stream"]: read.stream(data["stream"])})
    given: list[Sequence[Event]] = []
    if "events" in data:
        given.append(list(read.lines(data["events"])))
    if "table" in data:
        given.append(list(read.table(data["table"])))
    given += [list(read.trig(name, text)) for name, text in data.get("trig", {}).items()]
    given += [list(read.file(name, folder / file)) for name, file in data.get("files", {}).items()]
    return in_order(given)


def _stand(data: Mapping[str, Any], time: Any) -> Stand:
    _known(data, _AFTER_KEYS)
    if "time" not in data:
        raise TestFileError("[[case.after]] needs a time")
    return Stand(time(data["time"]), _expected(data.get("expect")), _expected(data.get("new")), data.get("late"))


def _expected(given: Any) -> Expected | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | str):
        raise TestFileError(f"expect is a table of rows or their number, not {given!r}")
    if isinstance(given, int):
        return Expected(None, given)
    return Expected(read_table(given), None)
