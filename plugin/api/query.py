"""`oxiseq.Query`: a query and all that can be done with it; `oxiseq.run`, its shorthand."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Unpack

from oxiseq.engine.errors import ArgumentTypeError
from oxiseq.engine.events.time import Time
from oxiseq.engine.extras import needed
from oxiseq.engine.importing import loading
from oxiseq.engine.matches.paging import PAGE
from oxiseq.grammar.arguments import public
from oxiseq.languages.language import Language
from oxiseq.languages.lints import lints_of, warn_of_lints
from oxiseq.languages.registry import check_kb, language_named
from oxiseq.matches.matches import Matches
from oxiseq.matches.shape import Shape
from oxiseq.options import HISTORY, QUERY, RUN, SOURCES, Options, said
from oxiseq.options.declared import AnswerKeywords, RunKeywords, WhyKeywords, documented
from oxiseq.options.query_text import QueryLike, QueryText, query_text
from oxiseq.sources.knowledge import Kb, knowledge_of, opened
from oxiseq.sources.sources import Streams, check_events

if TYPE_CHECKING:
    from oxiseq.api import comparison
    from oxiseq.api.comparison import Comparison
    from oxiseq.grammar import translating
    from oxiseq.languages.explanation import Explanation
    from oxiseq.languages.reasons import read, report
    from oxiseq.languages.reasons.report import Why
else:
    comparison, translating = needed("oxiseq.api.comparison"), needed("oxiseq.grammar.translating")
    read, report = needed("oxiseq.languages.reasons.read"), needed("oxiseq.languages.reasons.report")


_ANY: Final = ("any stream",)
"""What an EP-SPARQL query that names no stream reads, when it is not known what there is."""


def answered(query: QueryText, streams: Streams, kb: Kb, given: Mapping[str, Any]) -> Matches:
    """All matches; `given`: the caller's options. Warnings are about the caller of who calls this.

    Raises QueryError, EventError, KbError, OxiseqError.
    """
    alone = not isinstance(streams, Mapping)
    named = {} if alone else named_streams(query, streams)
    check_events(streams)
    with loading():  # of a language's first query: its grammar's tables, its modules
        language: Language[Any] = language_named(query.language)
        algebra = query.algebra
        check_kb(language, kb)
        options = said(query.language, given, (QUERY, SOURCES, RUN), _ANY if alone else tuple(named))
        if language.asks_kb:
            kb = opened(kb)
        driver = language.driver(algebra, kb, options)
        if alone:
            named = {_only(driver.streams.values()): streams}
    lints = lints_of(query, knowledge_of(kb) if language.asks_kb else None, options.rules)
    warn_of_lints(each.to_json() for each in lints)
    language.prepare()
    for name, events in named.items():
        driver.attach(name, events, options.on_error, options.time_predicate)
    return driver.matches()


def named_streams(query: QueryText, streams: Streams) -> Mapping[str, Any]:
    """By name what is given of each stream; that of a query's only stream may be given alone.

    Raises ArgumentTypeError, QueryError.
    """
    if isinstance(streams, Mapping):
        if unnamed := [name for name in streams if not isinstance(name, str)]:
            raise ArgumentTypeError(f"streams are named by texts, not {unnamed[0]!r}"[:200])
        return streams
    check_events(streams)
    return {_only(shape_of(query)[1].values()): streams}


def _only(read: Iterable[str]) -> str:
    """The IRI of a query's only stream. Raises ArgumentTypeError."""
    iris = tuple(dict.fromkeys(iri for iri in read if iri not in _ANY))
    if len(iris) != 1:
        several = f"the query reads {len(iris)} streams" if iris else "the query names no stream"
        raise ArgumentTypeError(f"{several}: give a mapping, the IRI of a stream → its file or events")
    return iris[0]


def shape_of(query: QueryText, reads: Collection[str] = ()) -> tuple[Shape, Mapping[str, str]]:
    """What its matches have in common, and the streams that it reads: its name → IRI. `reads`: those that there are,
    for an EP-SPARQL query that names none. Raises QueryError."""
    driver = language_named(query.language).driver(query.algebra, None, Options(reads=tuple(reads) or _ANY))
    return driver.shape, {name: iri for name, iri in driver.streams.items() if iri not in _ANY}


@public
class Query(QueryText):
    """A query: its text in one of the languages, and what can be done with it.

    It is immutable, can be pickled, and equals any query with the same text and language. The text is parsed on first
    use: `check` returns what is wrong with it, everything else raises QueryError.

    >>> from oxiseq import Query
    >>> query = Query("VOCAB <http://e/> SELECT x, y FROM S WHERE Low AS x; High AS y WITHIN 1 HOUR", "ceql")
    >>> query.language, query.variables, dict(query.streams)
    ('ceql', ('x', 'y'), {'S': 'http://e/S'})
    >>> Query("VOCAB <http://e/> SELECT z FROM S WHERE Low AS x", "ceql").check()[0].hint
    'WHERE has Low, x'
    """

    @property
    def streams(self) -> Mapping[str, str]:
        """The streams that it reads: name in the query → IRI. Empty for an EP-SPARQL query that names none and reads
        any stream. Raises QueryError."""
        return MappingProxyType(dict(shape_of(self)[1]))

    @property
    def variables(self) -> tuple[str, ...]:
        """The names that its matches can have, in order. Raises QueryError."""
        return shape_of(self)[0].variables

    def explain(self, kb: Kb = None, *, rules: Sequence[QueryLike] = ()) -> Explanation:
        """What it is compiled to: `str`, `json()`, `dot()`, `svg()`; notebooks show the picture. With `kb` the GRAPH
        patterns of a SPAseq query are evaluated, so that it shows their numbers of rows; `rules` as in `run`.

        Raises QueryError, KbError.
        """
        language = language_named(self.language)
        check_kb(language, kb)
        return language.explain(self.algebra, kb, said(self.language, {"rules": rules}).rules)

    def translate(self, language: str) -> Query:
        """The query in another language; comments above its text say on which events it means the same.

        Raises QueryError, with the span, where the other language cannot express it; OxiseqError for an unknown
        language.

        >>> from oxiseq import Query
        >>> print(Query("VOCAB <http://e/> SELECT * FROM S WHERE A", "ceql").translate("spaseq"))
        # means the same where no two events have the same time, and each is one node with one type and
        # at most one value per attribute
        PREFIX : <http://e/>
        SELECT *
        FROM STREAM S <http://e/S>
        WHERE {
          SEQ(A)
          DEFINE GPM A ON S {
            ?A a :A .
          }
        }
        <BLANKLINE>
        """
        return Query.of(translating.translated_text(self.algebra, language), language)

    @documented(QUERY, SOURCES, RUN)
    def run(self, streams: Streams, kb: Kb = None, **options: Unpack[AnswerKeywords]) -> Matches:
        """Answer it over whole streams; see `oxiseq.run`."""
        return answered(self, streams, kb, options)

    @documented(QUERY, SOURCES, HISTORY)
    def why(self, streams: Streams, kb: Kb = None, **options: Unpack[WhyKeywords]) -> Why:
        """Why it matches or does not, over whole streams as `run` takes them.

        It uses only events from `since` to before `until`, as if there were no others. For a query over windows it
        explains one instant: `at`, or the one at which the query gets furthest. It runs prefixes of the query and
        variants of them: allow some ten times the query's own time, more for a long formula of CEQL.
        Raises QueryError, EventError, KbError, LimitError.
        """
        streams = named_streams(self, streams)
        language = language_named(self.language)
        query = self.algebra
        check_kb(language, kb)
        chosen = said(self.language, options, (QUERY, SOURCES, HISTORY), tuple(streams))
        return language.why(query, streams, kb, chosen, report.WhyRequest(read.reading_of(chosen), chosen.limit))

    @documented(QUERY, SOURCES)
    def matches_at(
        self,
        streams: Streams,
        time: Time,
        offset: int = 0,
        limit: int = PAGE,
        kb: Kb = None,
        **options: Unpack[RunKeywords],
    ) -> Matches:
        """Of the matches that end at `time`, `limit` from the one at `offset` on, in the order in which they are found;
        `total` of the answer says how many end there. Those before are not listed: matches 2^29 to 2^29 + 9 of 2^30
        take some milliseconds.

        Every match of the instant counts, whatever GROUP BY, HAVING, ORDER BY, LIMIT, SAMPLE and DISTINCT say. For
        SPAseq and CEQL; other languages raise OxiseqError. Raises QueryError, EventError, KbError, LimitError.

        >>> from oxiseq import Query
        >>> query = Query("VOCAB <http://e/> SELECT * FROM S WHERE Low; Low+; High", "ceql")
        >>> rows = [{"type": "Low", "time": t} for t in range(40)] + [{"type": "High", "time": 40}]
        >>> import pandas
        >>> page = query.matches_at({"S": pandas.DataFrame(rows)}, 40, offset=1_000_000_000, limit=2)
        >>> page.total, len(page)
        (1099511627735, 2)
        """
        streams = named_streams(self, streams)
        language = language_named(self.language)
        check_kb(language, kb)
        page = read.page_asked(time, offset, limit)
        chosen = said(self.language, options, (QUERY, SOURCES), tuple(streams))
        reading = read.reading_of(chosen, language.reach(self.algebra, page.at, chosen))
        return language.matches_at(self.algebra, streams, kb, chosen, report.WhyRequest(reading), page)

    @documented(QUERY, SOURCES)
    def compare(self, other: QueryLike, streams: Streams, kb: Kb = None, **options: Unpack[RunKeywords]) -> Comparison:
        """The matches that `other`, for instance a draft, gains and loses against this query over the same whole
        streams (no iterators: they are read twice). A text is in this query's language, unless its file's ending names
        another.

        A stream that neither query reads is ignored, with a warning. Raises QueryError, EventError, KbError;
        OxiseqError where the answers have no variable in common.
        """
        streams = named_streams(self, streams)
        draft = query_text(other)
        if not isinstance(other, QueryText) and not draft.name:
            draft = query_text(other, self.language)
        chosen = said(self.language, options, (QUERY, SOURCES), tuple(streams))
        return comparison.difference(draft, self, streams, kb, chosen)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"


@documented(QUERY, SOURCES, RUN)
@public
def run(
    query: QueryLike,
    streams: Streams,
    kb: Kb = None,
    language: str | None = None,
    **options: Unpack[AnswerKeywords],
) -> Matches:
    """Answer a query over whole streams; when they end they are closed (trailing negations are decided).

    `query`: a text, a path or a `Query`; `language`: where neither the file's ending nor the query says it.
    `streams`: IRI (or the name that the query gives it) → file, table, or (graph, time) pairs, time in microseconds
    or as datetime; the events of a query's only stream may stand alone. A stream that the query does not read is left
    out, with a warning.

    A finite input (a list, a table, a file) is sorted by time first, stably. An iterator is a stream: its events are
    read as they come, and a late one is in no match (LateWarning; `late=`).

    A table is a CSV, Arrow or Parquet file, or one of pandas, Polars, DuckDB or pyarrow: a row is an event, with a
    column for the time (`time`, `timestamp`, `ts`, `at`, or the only one of times), and one per attribute; with CEQL
    one for the type, too. In a language over graphs the columns are predicates in the query's empty prefix.
    Queries over windows (RSP-QL, SPECTRA, RSEP-QL) answer rows at instants; those of event patterns have a `start` and
    an `end`. With EP-SPARQL an event may also be (start, end, graph), and a query that names no stream reads all that
    are given.

    Warns (MissingGraphWarning) of a GRAPH that the KB does not have.
    Raises QueryError, EventError, KbError, OxiseqError.

    >>> import oxiseq
    >>> text = '''PREFIX : <http://example.org/>
    ... SELECT ?who ?paid FROM STREAM S <http://example.org/payments>
    ... WHERE { SEQ(A) DEFINE GPM A ON S { ?who :paid ?paid } }'''
    >>> payment = "<http://example.org/ann> <http://example.org/paid> 5 ."
    >>> [(match.at_us, match["paid"].value) for match in oxiseq.run(text, {"S": [(1, payment), (2, payment)]})]
    [(1, '5'), (2, '5')]
    """
    return answered(query_text(query, language), streams, kb, options)
