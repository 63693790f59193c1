"""Contexts of JSON-LD fetched once, when a mapping is written: what uses the mapping then fetches nothing.

In the flow: {"contexts": {IRI: null}} → **the context at IRI** → a mapping to store with a stream. The caller
allows it: no server does.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin

from oxiseq.engine.bodies import whole_body
from oxiseq.engine.errors import LimitError
from oxiseq.engine.events.contexts import MOST
from oxiseq.engine.extras import needed
from oxiseq.mappings.errors import MappingError

if TYPE_CHECKING:
    import httpx
else:
    httpx = needed("httpx")

_ACCEPT: Final = "application/ld+json, application/json;q=0.9"
_LARGEST: Final = 4 * MOST
"""Bytes of a context, which has `MOST` characters at most."""
_MOST: Final = 100
"""Contexts of a mapping that are fetched."""
_TIMEOUT: Final = 10.0
_DEADLINE: Final = 60.0
"""Seconds that a context may take in all."""
_REDIRECTS: Final = 5
_NAMES: Final = ("@context", "@import")


def fetched(given: Mapping[str, Any], transport: httpx.BaseTransport | None = None) -> dict[str, Any]:
    """A mapping whose contexts that are null are there now. `transport`: what sends the requests, where it is not the
    network. Raises MappingError."""
    contexts = given.get("contexts")
    if not isinstance(contexts, Mapping) or None not in contexts.values():
        return dict(given)
    missing = [iri for iri, context in contexts.items() if context is None]
    if len(missing) > _MOST:
        raise MappingError(f"contexts: at most {_MOST} are fetched, not {len(missing)}")
    client = httpx.Client(
        transport=transport,
        timeout=_TIMEOUT,
        follow_redirects=True,
        max_redirects=_REDIRECTS,
        headers={"accept": _ACCEPT, "accept-encoding": "identity", "user-agent": "oxiseq"},
    )
    found = dict(contexts)
    with client:
        while missing:  # what is fetched may name further ones
            if len(found) > _MOST + len(contexts):
                raise MappingError(f"contexts: at most {_MOST} are fetched, and they name more")
            named: dict[str, None] = {}
            for iri in missing:
                found[iri] = _named_in_full(_context(client, iri), iri, named)
            missing = [iri for iri in named if iri not in found]
    return {**given, "contexts": found}


def _named_in_full(value: Any, base: str, named: dict[str, None], key: str = "") -> Any:
    """A context with the names of other ones (in `@context`, also of a term, and `@import`) as absolute IRIs, which
    `named` gets."""
    if isinstance(value, dict):
        return {name: _named_in_full(each, base, named, name) for name, each in value.items()}
    if isinstance(value, list):
        return [_named_in_full(each, base, named, key) for each in value]
    if isinstance(value, str) and key in _NAMES:
        value = urljoin(base, value)
        named[value] = None
    return value


def _context(client: httpx.Client, iri: str) -> Any:
    """The content at an IRI. Raises MappingError."""
    try:
        if httpx.URL(iri).scheme not in ("http", "https"):
            raise MappingError(f"contexts: {iri[:200]!r} is no http address: write the context out")
        with client.stream("GET", iri) as answer:
            if answer.status_code != httpx.codes.OK:
                raise MappingError(f"contexts: {iri[:200]}: status {answer.status_code}")
            found = json.loads(_body(answer, iri))
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise MappingError(f"contexts: {iri[:200]}: {error or type(error).__name__}") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, MappingError):
            raise
        raise MappingError(f"contexts: {iri[:200]} is no JSON: {error}") from None
    if not isinstance(found, dict) or "@context" not in found:
        raise MappingError(f'contexts: {iri[:200]} has no "@context"')
    return {"@context": found["@context"]}


def _body(answer: httpx.Response, iri: str) -> bytes:
    if (packed := answer.headers.get("content-encoding", "identity").lower()) != "identity":
        raise MappingError(f"contexts: {iri[:200]} is packed by {packed[:40]}, unasked")  # what it holds has no bound
    try:
        return whole_body(answer.iter_raw(), _LARGEST, time.monotonic() + _DEADLINE)
    except LimitError:
        raise MappingError(f"contexts: {iri[:200]} has more than {_LARGEST:,} bytes") from None
    except TimeoutError:
        raise MappingError(f"contexts: {iri[:200]} took more than {_DEADLINE:.0f} s") from None
