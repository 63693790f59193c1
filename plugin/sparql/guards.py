"""What is refused before the store sees it: calls to other servers, and texts that would exhaust the stack.

pyoxigraph (0.5) fetches for SERVICE and LOAD and has no switch for that. LOAD is carried out by us (`loading`) or not
at all. Whether a text has such a call is decided by pyoxigraph's own parser: if the word occurs at all, every
occurrence is changed to a word of no meaning and the result is run on an empty store. It is still SPARQL exactly when
the word was a name, a comment or part of a literal. No tokenizer can be led astray here, for none decides; keywords
cannot be written with escapes.

LOAD in an update: fetched and read here, and written into the update's text as INSERT DATA.

    update ─▶ its LOADs ─▶ fetch (bounded) ─▶ `engine.rdf`'s parser ─▶ the update without LOAD, one transaction

pyoxigraph would fetch and parse by itself, without bounds and with RDF/XML's entities. So it never sees a LOAD. Where
one is follows from tokens, which can be misled; so pyoxigraph's parser decides, too: without all that was
found no LOAD may be left (`guards`), and each of them must be a keyword, for the text is malformed when it is changed
to a word of no meaning. An update of which tokens and parser think differently is refused.

All is fetched before the first operation. A document's relative IRIs are resolved against the IRI that LOAD names. What
cannot be loaded refuses the whole update, unless LOAD says SILENT: then nothing comes of it.
"""

from __future__ import annotations

import re
import string
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pyoxigraph import DefaultGraph, NamedNode, RdfFormat
from pyoxigraph import Store as RdfStore

from oxiseq.changes.operations import Token, depth, tokens
from oxiseq.engine.attended import check, looking
from oxiseq.engine.bodies import whole_body
from oxiseq.engine.errors import LimitError
from oxiseq.engine.extras import needed
from oxiseq.engine.rdf import parse
from oxiseq.grammar.records import dataclass
from oxiseq.options.addresses import AddressError, Network, addresses_of
from oxiseq.sparql.messages import Problem, rdf_format, sparql_problem, syntax_problem
from oxiseq.sparql.settings import SparqlSettings

if TYPE_CHECKING:
    import httpx
else:
    httpx = needed("httpx")


# --- loading ---------------------------------------------------------------------------------------------

NOTHING: Final = "INSERT DATA {}"
MOST: Final = 10
"""LOADs of one update: its text is parsed again for each."""
SECONDS: Final = 300.0
"""For all documents of an update, where requests have no time limit."""
_SILENCE: Final = 30.0
"""Seconds that a server may say nothing."""
_REDIRECTS: Final = 5
_PORTS: Final = {"http": 80, "https": 443}
_HEADERS: Final = {
    "accept": "application/n-triples, text/turtle;q=0.9, application/rdf+xml;q=0.8",
    "accept-encoding": "identity",  # what is packed could grow
}


@dataclass(frozen=True, slots=True)
class Loading:
    """A LOAD, which is `start` : `end` of the text; `graph`: where to, None for the default graph."""

    start: int
    end: int
    source: str
    graph: str | None
    silent: bool


def loadings(text: str, base: str) -> tuple[Loading, ...]:
    """The LOADs of an update in their order, as its tokens have them. Raises Problem 400."""
    if "load" not in text.lower():
        return ()
    found: list[Loading] = []
    prologue: list[str] = []
    outside = list(_outside(text))
    for number, token in enumerate(outside):
        if token.is_word("PREFIX", "BASE"):
            prologue.append(_words(outside, number, 3 if token.is_word("PREFIX") else 2))
        elif token.is_word("LOAD") and (loading := _loading(outside[number : number + 6], " ".join(prologue), base)):
            found.append(loading)
    if len(found) > MOST:
        raise Problem(400, "too many LOADs", f"{len(found)} in one update, at most {MOST}: send several updates")
    return tuple(found)


def replaced(text: str, found: Sequence[Loading], instead: Sequence[str]) -> str:
    """The text with something else for each LOAD."""
    parts: list[str] = []
    done = 0
    for loading, other in zip(found, instead, strict=True):
        parts += [text[done : loading.start], other]
        done = loading.end
    return "".join([*parts, text[done:]])


def loaded(text: str, base: str, settings: SparqlSettings) -> str:
    """The update with what its LOADs name. All documents together have `limits.body` bytes, as they are sent and as
    N-Triples, and the time of a request. Raises Problem: 400, 403, 502, 504."""
    found, limits = loadings(text, base), settings.limits
    deadline = time.monotonic() + (SECONDS if limits.seconds is None else limits.seconds)
    room = limits.body
    instead: list[str] = []
    for loading in found:
        check()
        try:
            data = _data(loading, room, deadline, settings.load_networks)
        except Problem as problem:
            if not loading.silent:
                told = f"<{loading.source}>: {problem.title}" + (f": {problem.detail}" if problem.detail else "")
                raise Problem(problem.status, "LOAD cannot be carried out", told) from None
            data = NOTHING
        room -= len(data)
        instead.append(data)
    return replaced(text, found, instead)


# --- the text ---------------------------------------------------------------------------------------


def _outside(text: str) -> Iterator[Token]:
    """The tokens outside of braces."""
    level = 0
    for token in tokens(text):
        level += (token.text == "{") - (token.text == "}")
        if level == 0:
            yield token


def _words(found: Sequence[Token], first: int, count: int) -> str:
    return " ".join(token.text for token in found[first : first + count])


def _loading(found: Sequence[Token], prologue: str, base: str) -> Loading | None:
    """`LOAD SILENT? iri (INTO GRAPH iri)?` at the first of the tokens; None for what is none, which is malformed."""
    load, rest = found[0], list(found[1:])
    if silent := bool(rest) and rest[0].is_word("SILENT"):
        rest = rest[1:]
    if not rest or rest[0].kind not in ("iri", "name"):
        return None
    source, into = rest[0], rest[1:4]
    graph = into[2] if len(into) == 3 and into[0].is_word("INTO") and into[1].is_word("GRAPH") else None
    named = [source] if graph is None else [source, graph]
    iris = _resolved([token.text for token in named], prologue, base)
    return Loading(load.start, named[-1].end, iris[0], iris[1] if graph is not None else None, silent)


def _resolved(names: Sequence[str], prologue: str, base: str) -> list[str]:
    """IRIs as written in a text, or names with a prefix, as absolute IRIs. Raises Problem 400."""
    columns = " ".join(f"({name} AS ?i{number})" for number, name in enumerate(names))
    try:
        solutions: Any = RdfStore().query(f"{prologue} SELECT {columns} {{}}", base_iri=base)
    except SyntaxError as error:
        raise syntax_problem("malformed SPARQL", SyntaxError(f"LOAD {' '.join(names)}: {error}")) from None
    (solution,) = solutions
    return [solution[number].value for number in range(len(names))]


# --- the documents ----------------------------------------------------------------------------------


def _data(loading: Loading, room: int, deadline: float, networks: Sequence[Network]) -> str:
    """A document as an operation. Raises Problem."""
    content, format_ = _fetched(loading.source, room, deadline, networks)
    lines: list[str] = []
    size = 0
    try:
        quads = parse(content, format_, base_iri=loading.source, without_named_graphs=True, rename_blank_nodes=True)
        for quad in quads:
            lines.append(f"{quad.triple} .\n")
            size += len(lines[-1])
            if size > room:
                raise _too_big(room)
    except (SyntaxError, ValueError) as error:
        raise Problem(502, "malformed RDF", str(error)) from None
    triples = "".join(lines)
    return (
        f"INSERT DATA {{\n{triples}}}"
        if loading.graph is None
        else (f"INSERT DATA {{ GRAPH {NamedNode(loading.graph)} {{\n{triples}}} }}")
    )


def _sent(inner: httpx.HTTPTransport, networks: Sequence[Network], request: httpx.Request) -> httpx.Response:
    """A request to an address that is public, or of these networks, also where a redirect leads. Raises Problem, and
    what httpx raises."""
    url, told = request.url, "it has no address"
    if url.scheme not in _PORTS:
        raise httpx.UnsupportedProtocol(f"a redirect to {url.scheme}: is not followed")
    try:
        found = addresses_of(url.host, url.port or _PORTS[url.scheme], networks, "--load-network")
    except AddressError as error:
        raise Problem(403, "not allowed", str(error)) from None
    except (OSError, UnicodeError) as error:
        raise httpx.ConnectError(f"{url.host} cannot be resolved: {error}") from None
    for address in found:
        more = {**request.extensions, "sni_hostname": url.host}
        there = httpx.Request(
            request.method,
            url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions=more,
        )
        try:
            return inner.handle_request(there)
        except httpx.ConnectError as error:
            told = str(error)
    raise httpx.ConnectError(told)


def _fetched(source: str, room: int, deadline: float, networks: Sequence[Network]) -> tuple[bytes, RdfFormat]:
    """What is there. Raises Problem."""
    if not source.lower().startswith(("http://", "https://")):
        raise Problem(400, "not an http address", "LOAD fetches by http and https only")
    timeout = httpx.Timeout(min(_SILENCE, max(0.1, deadline - time.monotonic())))
    try:
        with (
            httpx.HTTPTransport(trust_env=False) as inner,
            httpx.Client(
                headers=_HEADERS,
                timeout=timeout,
                trust_env=False,
                follow_redirects=True,
                max_redirects=_REDIRECTS,
                transport=httpx.MockTransport(partial(_sent, inner, networks)),  # which calls a function of ours
            ) as client,
            client.stream("GET", source) as response,
        ):
            return _body(response, room, deadline), _format_of(response)
    except httpx.TimeoutException:
        raise Problem(504, "no answer in time") from None
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        raise Problem(502, "cannot be fetched", str(error)) from None


def _body(response: httpx.Response, room: int, deadline: float) -> bytes:
    if response.status_code != 200:
        raise Problem(502, "cannot be fetched", f"the server answers {response.status_code}")
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem(502, "cannot be read", f"it is packed by {response.headers['content-encoding']}, unasked")
    _format_of(response)
    try:
        return whole_body(iter(looking(response.iter_raw().__next__), None), room, deadline)
    except LimitError:
        raise _too_big(room) from None
    except TimeoutError:
        raise Problem(504, "no answer in time") from None


def _format_of(response: httpx.Response) -> RdfFormat:
    try:
        return rdf_format(response.headers.get("content-type"))
    except Problem as problem:
        raise Problem(502, problem.title, problem.detail) from None


def _too_big(room: int) -> Problem:
    return Problem(
        502,
        "too large",
        f"more than the {room} bytes that are left for this update's documents as "
        "N-Triples; send it in pieces to /store",
    )


# --- guards ----------------------------------------------------------------------------------------------

_APART = "send each LOAD as an update of its own, or write blanks around each < that means less-than"
_END = "\n\x00"  # never SPARQL, in no string or comment either
_LONG_BEFORE_COUNTED = 200


def check_query(text: str, settings: SparqlSettings, base: str) -> None:
    """Raises Problem: 413 (too long), 400 (too deep, malformed), 403 (SERVICE)."""
    check_size(text, settings)
    check_calls(text, settings, base, update=False)


def check_size(text: str, settings: SparqlSettings) -> None:
    """Raises Problem: 413 (too long), 400 (too deep)."""
    if len(text) > settings.limits.query:
        raise Problem(413, "the query is too long", f"{len(text)} characters, at most {settings.limits.query}")
    _check_depth(text, settings)


def check_syntax(text: str, base: str, *, update: bool = False) -> None:
    """Raises Problem 400 for a text that is no query, or no update; one with SERVICE (an update with LOAD, too) is not
    evaluated, for that would call it."""
    lower = text.lower()
    calls = "service" in lower or (update and "load" in lower)
    if not calls and (failed := _failure(text, base, update=update)) is not None:
        raise sparql_problem(text, failed, update=update) from None


def check_update(text: str, settings: SparqlSettings, base: str) -> None:
    """Raises Problem: 400 (too deep, malformed), 403 (SERVICE or LOAD)."""
    _check_depth(text, settings)
    check_calls(text, settings, base, update=True)


def check_calls(text: str, settings: SparqlSettings, base: str, *, update: bool) -> None:
    """Raises Problem: 400 (malformed), 403 (SERVICE or LOAD that is not allowed). The LOADs that are (`loadings`) are
    all that there are, and are nothing else."""
    found = loadings(text, base) if update and settings.allow_load else ()
    words = ("service",) * (not settings.allow_service) + ("load",) * update
    rest = replaced(text, found, [NOTHING] * len(found))
    _refuse(rest, words, base, update=update, loads=len(found), allowed=settings.allow_load)
    for loading in found:
        _check_keyword(text, found, loading, base)


def _check_keyword(text: str, found: Sequence[Loading], looked_at: Loading, base: str) -> None:
    """Raises Problem 400 if one of an update's LOADs is none for pyoxigraph: then the update, which is SPARQL without
    them, is so with another word there, too."""
    kept = [text[each.start : each.end] if each is looked_at else NOTHING for each in found]
    if _failure(_without(replaced(text, found, kept), "load"), base, update=True) is None:
        raise Problem(400, "the place of LOAD cannot be determined", _APART)


def _check_depth(text: str, settings: SparqlSettings) -> None:
    if len(text) <= _LONG_BEFORE_COUNTED:
        return
    found = depth(text)
    if found > settings.limits.nesting:
        limit = settings.limits.nesting
        raise Problem(400, "nested too deeply", f"brackets are nested {found} deep, at most {limit}")


def _refuse(
    text: str, words: tuple[str, ...], base: str, *, update: bool, loads: int = 0, allowed: bool = False
) -> None:
    """`loads`: how many LOADs have been taken out of the text, which is then to be well-formed in any case; `allowed`:
    whether it might have had them."""
    changed = text
    for word in words:
        changed = _without(changed, word)
    if changed == text and not loads:
        return
    failed = _failure(changed, base, update=update)
    if failed is None:
        return
    used = [word for word in words if re.search(word, text, re.IGNORECASE | re.ASCII)]
    if not used or not _could_be_complete(text, base, update=update):
        failed = _failure(text + _END, base, update=update) or failed
        raise sparql_problem(text, failed, update=update) from None
    if allowed:
        used = [word for word in used if word != "load"]
    if not used:
        raise Problem(400, "the place of LOAD cannot be determined", _APART)
    called = " or ".join(word.upper() for word in used)
    options = " or ".join(f"--allow-{word}" for word in used)
    elsewhere = " outside of its streams" if "service" in used else ""
    raise Problem(
        403,
        "calls to other servers are not allowed",
        f"the text uses {called}{elsewhere}; the server was started without {options}",
    )


def _without(text: str, word: str) -> str:
    """Each occurrence with another last letter (of the same case), one that makes no word that is there."""
    stem = word[:-1]
    lower = text.lower()
    letter = next((c for c in string.ascii_lowercase if c != word[-1] and stem + c not in lower), None)
    if letter is None:
        raise Problem(403, "calls to other servers are not allowed", f"too many words beginning with {stem}")

    def changed(found: re.Match[str]) -> str:
        last = letter.upper() if found[0][-1].isupper() else letter
        return found[0][:-1] + last

    return re.sub(word, changed, text, flags=re.IGNORECASE | re.ASCII)


def _failure(text: str, base: str, *, update: bool) -> SyntaxError | None:
    """Why a text is no SPARQL. An update is carried out on an empty store, which is the only way to ask; a query is
    not: it could take for ever without any data. That its dataset is given twice is found after it has been parsed."""
    empty = RdfStore()
    try:
        if update:
            empty.update(text, base_iri=base)
        else:
            empty.query(text, base_iri=base, use_default_graph_as_union=True, default_graph=[DefaultGraph()])
    except SyntaxError as error:
        return error
    except (ValueError, OSError, RuntimeError):
        return None
    return None


def _could_be_complete(text: str, base: str, *, update: bool) -> bool:
    """Whether the parser comes to the text's end: it then stops at the sign that we put there.

    Good enough to decide between 403 and 400: the text is refused either way.
    """
    error = _failure(text + _END, base, update=update)
    lines = text.count("\n") + 2
    return error is not None and f"error at {lines}:" in str(error)
