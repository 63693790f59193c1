"""Members of a Linked Data Event Stream as messages, in the order of time as far as its pages state it.

One reading goes over all pages that may have something new, the earliest first; a member waits until no page is left
that may have an earlier one. What a relation without a bound of time leads to is taken for not earlier than the page
that links to it. Between two readings there is a pause.
"""

from __future__ import annotations

import heapq
import logging
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from oxiseq.bridges.ldes.fetching import MOST_QUADS, Fetched, Fetching, Open, State, without_user
from oxiseq.bridges.ldes.page import MOST_MEMBERS, Link, Member, Page, Quads, Stream, read_page, root_of, stream_of
from oxiseq.bridges.source import BridgeError, BridgeSettings, Message, Source, digest
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.extras import loaded
from oxiseq.options.kinds import UNITS, duration

if TYPE_CHECKING:
    import httpx

LOG: Final = logging.getLogger("oxiseq.bridges")
_WITH_TIME: Final = "application/n-quads"
_WITHOUT: Final = "application/n-triples"
_WAITING: Final = 100_000
"""Members that wait for earlier ones; if there are more, the earliest continue..."""
_HELD: Final = 256 << 20
"""...or if their messages have more bytes."""
_PAUSE: Final = 1.0
"""Seconds between two savings of the state while much is read: it is written as a whole."""
_PAGES: Final = 1_000_000
"""That may change, or have not been read yet."""
_POLL: Final = (1, 10, 86_400)
"""Seconds between two readings: at least, where nobody says, at most."""
_BEFORE_ALL: Final = -(1 << 63)
_OPTIONS: Final = frozenset(("hosts", "members", "missing", "poll", "quads", "versions"))
_MOST: Final = 10_000_000
"""Members or quads of a page, at most, that an option may allow."""
_TOLD: Final = 500
"""Characters of an error."""


class LdesSource(Source):
    """ldes+http(s)://...: the stream, its root, or a page that names its root. `state` outlives this object.
    `transport`: see Fetching."""

    def __init__(self, settings: BridgeSettings, state: State, transport: httpx.BaseTransport | None = None) -> None:
        super().__init__(settings)
        self._state = state
        url = settings.url.partition("+")[2]
        self._url = without_user(url)  # the base of what the page says
        self._pause, self._entities, self._skips = self._read_options()
        self._timed = settings.media_type == _WITH_TIME
        hosts = [each.strip().lower() for each in settings.options.get("hosts", "").split(",")]
        self._members = self._number("members", MOST_MEMBERS)
        self._fetching = Fetching(url, hosts, state, transport, self._number("quads", MOST_QUADS))
        self._stream: Stream | None = None
        self._root: Fetched | None = None
        """As it has just been read."""
        self._queue: list[tuple[int, int, str]] = []
        """Pages of this reading that have not been read: the earliest member, the order in which they were found."""
        self._waiting: list[tuple[int, int, Message]] = []
        self._held = 0
        """Bytes of these."""
        self._ready: deque[Message] = deque()
        self._unconfirmed: Counter[str] = Counter()
        self._read: dict[str, tuple[str, bool]] = {}
        """Pages of which members are not confirmed: their ETag, and whether they cannot change."""
        self._missing: list[str] = []
        """Pages of this reading that were not there."""
        self._count = 0
        self._next = time.monotonic()
        self._saved = 0.0

    @classmethod
    def opener(cls, settings: BridgeSettings) -> Callable[[], Source]:
        """See Source."""
        loaded("httpx")
        state = State.of(settings.position, settings.url)
        return lambda: cls(settings, state)

    def _read_options(self) -> tuple[float | None, bool, bool]:
        """Seconds between readings; whether versions speak of what they are versions of; whether a page that is not
        there is left out of a reading. Raises BridgeError."""
        settings, options = self._settings, self._settings.options
        if unknown := set(options) - _OPTIONS:
            raise BridgeError(f"ldes: no option {', '.join(sorted(unknown))}; known: {', '.join(sorted(_OPTIONS))}")
        if settings.media_type not in (_WITH_TIME, _WITHOUT):
            raise BridgeError(f"ldes: media_type is {_WITH_TIME}, or {_WITHOUT} if the members' times do not count")
        if (settings.time is None) != (settings.media_type == _WITH_TIME):
            raise BridgeError(
                f"ldes: time and media_type {_WITHOUT} are for streams without a timestampPath: give both"
            )
        if (versions := options.get("versions", "keep")) not in ("keep", "entity"):
            raise BridgeError(f"ldes: versions is keep or entity, not {versions[:40]!r}")
        if (missing := options.get("missing", "wait")) not in ("wait", "skip"):
            raise BridgeError(f"ldes: missing is wait or skip, not {missing[:40]!r}")
        try:
            poll = options.get("poll")
            least, most = _POLL[0] * UNITS["s"], _POLL[2] * UNITS["s"]
            pause = None if poll is None else duration(poll, "poll", least=least, most=most) / UNITS["s"]
        except OxiseqError as error:
            raise BridgeError(f"ldes: {error}") from None
        return pause, versions == "entity", missing == "skip"

    def _number(self, name: str, usual: int) -> int:
        """An option that is a whole number. Raises BridgeError."""
        given = self._settings.options.get(name, str(usual))
        if not re.fullmatch("[0-9]{1,8}", given) or not 0 < int(given) <= _MOST:
            raise BridgeError(f"ldes: {name} is a number from 1 to {_MOST:,}, not {given[:40]!r}")
        return int(given)

    # --- the source ---------------------------------------------------------------------------------

    def read(self, most: int, seconds: float) -> Sequence[Message]:
        """See Source."""
        try:
            return self._read_on(most, seconds)
        except BridgeError as error:
            raise BridgeError(self._hidden(str(error))[:_TOLD]) from None

    def _hidden(self, text: str) -> str:
        """A text without what stands in the query of the bridge's own address: a token, as a rule."""
        for given in urlsplit(self._url).query.split("&"):
            name, separator, value = given.partition("=")
            if value:
                text = text.replace(given, f"{name}{separator}***")
        return text

    def _read_on(self, most: int, seconds: float) -> Sequence[Message]:
        deadline = time.monotonic() + seconds
        while not self._ready and (left := deadline - time.monotonic()) > 0:
            if self._queue:
                self._visit(heapq.heappop(self._queue)[2])
            elif (pause := self._next - time.monotonic()) > 0:
                time.sleep(min(pause, left))
            else:
                self._begin()
        return [self._ready.popleft() for _ in range(min(most, len(self._ready)))]

    def acknowledge(self, messages: Sequence[Message]) -> None:
        """See Source."""
        before = len(self._read)
        for message in messages:
            url, member = message.position
            self._state.opened[url].seen.add(member)
            self._unconfirmed[url] -= 1
            if not self._unconfirmed[url]:
                self._settle(url)
        # what is confirmed and not saved is known by its key, if it comes again
        ended = not self._read and not self._queue
        if len(self._read) < before and (ended or time.monotonic() >= self._saved + _PAUSE):
            self._save()

    def close(self) -> None:
        """See Source."""
        self._fetching.close()

    # --- a reading ----------------------------------------------------------------------------------

    def _begin(self) -> None:
        """A reading of all that may have something new."""
        if self._stream is None:
            self._find_root()
        for number, (url, page) in enumerate(self._state.opened.items()):
            heapq.heappush(self._queue, (_BEFORE_ALL if page.low is None else page.low, number, url))
        self._count = len(self._queue)

    def _find_root(self) -> None:
        """What the stream is. Raises BridgeError."""
        found = self._fetching.fetch(self._url)
        quads = _quads(found)
        if (root := root_of(quads, self._url)) is not None:
            found = self._fetching.fetch(root)
            quads = _quads(found)
        self._stream, self._root = stream_of(quads), found
        if self._timed and not self._stream.time:
            raise BridgeError(f"{self._stream.iri} has no timestampPath: set time, and media_type to {_WITHOUT}")
        if self._entities and not self._stream.version:
            raise BridgeError(f"{self._stream.iri} has no versionOfPath: versions=entity needs one")
        if self._stream.root not in self._state.opened:  # the first, whatever else is known
            self._state.opened = {self._stream.root: Open(), **self._state.opened}

    def _visit(self, url: str) -> None:
        """Read a page: its members wait, its links are to be visited."""
        assert self._stream is not None
        page = self._state.opened[url]
        if self._root is not None and url == self._stream.root:
            found, self._root = self._root, None
        else:
            found = self._fetching.fetch(url, page.etag)
        if found.missing:
            if not self._skips or url == self._stream.root:
                raise _not_there(found)
            self._missing.append(url)
        elif found.quads is not None:
            read = Page() if found.gone else read_page(Quads(found.url, found.quads), self._stream, self._members)
            self._take_in(url, page, read)
            closed = read.immutable or found.immutable or found.gone
            self._read[url] = found.etag, closed and url != self._stream.root  # with it the next reading begins
            if not self._unconfirmed[url]:
                self._settle(url)
        self._release()
        if not self._queue and not self._waiting:
            self._end()

    def _take_in(self, url: str, page: Open, read: Page) -> None:
        passed = self._settings.start == "new" and not self._state.caught_up
        for member in read.members:
            name = digest(member.iri)
            if name in page.seen:
                continue
            if passed:
                page.seen.add(name)
                continue
            self._count += 1
            at = member.at if self._timed and member.at is not None else _BEFORE_ALL
            message = self._message(url, name, member)
            heapq.heappush(self._waiting, (at, self._count, message))
            self._held += len(message.body)
            self._unconfirmed[url] += 1
        times = [member.at for member in read.members if member.at is not None]
        for link in read.links:
            if link.url not in self._state.opened and digest(link.url) not in self._state.done:
                self._add(link, page.low, max(times, default=None))

    def _add(self, link: Link, parent: int | None, last: int | None) -> None:
        """A page that was not known. `parent`: the bound of the page that links to it, whose latest member is at
        `last`. Raises BridgeError."""
        if len(self._state.opened) >= _PAGES:
            raise BridgeError(f"more than {_PAGES} pages that may change")
        known = [each for each in (parent, link.low, None if link.bounded else last) if each is not None]
        low = max(known, default=None)
        self._state.opened[link.url] = Open(low)
        self._count += 1
        heapq.heappush(self._queue, (_BEFORE_ALL if low is None else low, self._count, link.url))

    def _release(self) -> None:
        """Those members continue that no page may precede."""
        least = self._queue[0][0] if self._queue else None
        while self._waiting and (
            least is None or self._waiting[0][0] <= least or len(self._waiting) > _WAITING or self._held > _HELD
        ):
            message = heapq.heappop(self._waiting)[2]
            self._held -= len(message.body)
            self._ready.append(message)

    def _settle(self, url: str) -> None:
        """All members of a page are confirmed."""
        etag, closed = self._read.pop(url)
        del self._unconfirmed[url]
        if closed:
            del self._state.opened[url]
            self._state.done.add(digest(url))
        else:
            self._state.opened[url].etag = etag

    def _end(self) -> None:
        """Of a reading."""
        assert self._stream is not None
        if self._missing:
            first, count = self._hidden(self._missing[0])[:_TOLD], len(self._missing)
            LOG.warning("%d pages answer 404, the first is %s: they are asked for again", count, first)
            self._missing = []
        said = _POLL[1] if self._stream.poll is None else self._stream.poll
        self._next = time.monotonic() + (min(max(said, _POLL[0]), _POLL[2]) if self._pause is None else self._pause)
        if not self._state.caught_up and not self._read:
            self._state.caught_up = True
        self._save()

    def _save(self) -> None:
        self._state.save()
        self._saved = time.monotonic()

    def _message(self, url: str, name: str, member: Member) -> Message:
        assert self._stream is not None
        iri = f"<{member.iri}>"
        about = f"<{member.entity}>" if self._entities and member.entity else iri
        triples = [
            " ".join(about if term == iri else term for term in triple)
            for triple in member.triples
            if not (about != iri and triple[0] == iri and triple[2] == about)  # that it is a version of itself
        ]
        if self._timed:
            stamp = f"{iri} {GENERATED_AT} {member.time}" if member.time is not None else ""
            lines = [f"{triple} {iri} ." for triple in triples] or [f"{stamp} {iri} ."]
            body = "\n".join(([f"{stamp} ."] if stamp and triples else []) + lines)
        else:
            body = "\n".join(f"{triple} ." for triple in triples)
        return Message(body.encode(), f"ldes/{digest(self._stream.iri)}/{digest(member.iri)}", (url, name))


def _quads(found: Fetched) -> Quads:
    """Raises BridgeError."""
    if found.missing:
        raise _not_there(found)
    if found.quads is None or found.gone:
        raise BridgeError(f"{found.url} is gone")
    return Quads(found.url, found.quads)


def _not_there(found: Fetched) -> BridgeError:
    return BridgeError(f"{without_user(found.url)}: status 404")
