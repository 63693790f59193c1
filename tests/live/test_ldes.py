"""Linked Data Event Streams: read page by page, each member once and in the order of time; and a stream published."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import pytest
from hot_service import STREAM, Doors, hot

from oxiseq.bridges import Bridge, BridgeError, BridgeSettings, DeadLetters, opener_of
from oxiseq.bridges.ldes import LdesSource, State
from oxiseq.bridges.ldes.fetching import Open
from oxiseq.live import ldes
from oxiseq.live.api import LiveRoutes
from oxiseq.live.bridges import Door, Inside
from oxiseq.server.serving import log_to_stderr
from oxiseq.sparql.evaluation import Evaluations
from oxiseq.sparql.messages import Request
from oxiseq.sparql.settings import Limits

SITE = "http://ldes.example/"
PREFIXES = """@prefix tree: <https://w3id.org/tree#> . @prefix ldes: <https://w3id.org/ldes#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix dct: <http://purl.org/dc/terms/> .
@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix ex: <http://example.org/> .
"""
ROOT = (
    "ex:S a ldes:EventStream ; tree:view <> ; ldes:timestampPath dct:created ; ldes:versionOfPath dct:isVersionOf .\n"
)


def member(number: int, more: str = "") -> str:
    """Created in the second `number`."""
    time = f'"2026-01-01T00:00:{number:02}Z"^^xsd:dateTime'
    return f"ex:S tree:member ex:m{number} . ex:m{number} dct:created {time} ; dct:isVersionOf ex:e {more} .\n"


def link(to: str, kind: str = "", second: int = 0, path: str = "dct:created") -> str:
    bound = f'; a tree:{kind} ; tree:path {path} ; tree:value "2026-01-01T00:00:{second:02}Z"^^xsd:dateTime'
    return f"<> tree:relation [ tree:node <{to}> {bound if kind else ''} ] .\n"


class Site:
    """Pages by their paths, and what was asked for."""

    def __init__(self, **pages: str) -> None:
        self.pages, self.asked = dict(pages), []
        self.headers: dict[str, dict[str, str]] = {}
        self.status: dict[str, int] = {}

    def answer(self, request: httpx.Request) -> httpx.Response:
        name = request.url.path.strip("/") or "root"
        self.asked.append(name)
        if name in self.status:
            return httpx.Response(self.status[name], headers=self.headers.get(name))
        if name not in self.pages:
            return httpx.Response(404)
        text = PREFIXES + self.pages[name]
        etag = f'"{hash(text)}"'
        if request.headers.get("if-none-match") == etag:
            return httpx.Response(304)
        headers = {"content-type": "application/trig", "etag": etag, **self.headers.get(name, {})}
        return httpx.Response(200, headers=headers, text=text)


def source(site: Site, state: State | None = None, url: str = SITE, **given: Any) -> LdesSource:
    settings = BridgeSettings(url=f"ldes+{url}", into="http://example.org/in", **{"start": "all", **given})
    return LdesSource(settings, State() if state is None else state, httpx.MockTransport(site.answer))


def read(source: LdesSource, most: int = 100) -> list[str]:
    """One reading, confirmed: the names of the members."""
    source._next = 0.0
    found: list[str] = []
    while source._queue or source._ready or source._next <= time.monotonic():
        messages = source.read(most, 0.01)
        source.acknowledge(messages)
        found += [name_of(each.body) for each in messages]
    return found


def name_of(body: bytes) -> str:
    return body.decode().partition(">")[0].rpartition("/")[2]


def test_members_come_once_and_in_the_order_of_time_whatever_the_tree() -> None:
    forward = Site(root=ROOT + member(2) + member(1) + link("p2"), p2=member(3) + link("p3"), p3=member(5) + member(4))
    backward = Site(
        root=ROOT + member(5) + link("p2", "LessThanRelation", 5),
        p2=member(4) + member(3) + link("p3", "LessThanRelation", 3),
        p3=member(1) + member(2),
    )
    search = Site(
        root=ROOT + link("late", "GreaterThanOrEqualToRelation", 3) + link("early", "LessThanRelation", 3),
        late=link("p5", "GreaterThanRelation", 4) + link("p3", "GreaterThanOrEqualToRelation", 3),
        early=member(2) + member(1),
        p3=member(4) + member(3),
        p5=member(5),
    )
    circle = Site(root=ROOT + member(1) + link("p2"), p2=member(2) + member(3) + link("") + link("p2") + link("p3"),
                  p3=member(5) + member(4) + link("p2"))  # fmt: skip
    for site in (forward, backward, search, circle):
        opened = source(site)
        assert read(opened, most=2) == ["m1", "m2", "m3", "m4", "m5"]
        assert read(opened) == []
        last = max(site.pages)
        site.pages[last] += member(6)
        assert read(opened) == ["m6"]


def test_a_later_page_goes_on_before_all_are_read() -> None:
    site = Site(root=ROOT + member(1) + link("p2", "GreaterThanRelation", 1), p2=member(2))
    site.status["p2"] = 503
    opened = source(site)
    assert [name_of(each.body) for each in opened.read(10, 30)] == ["m1"]
    with pytest.raises(BridgeError, match="503"):
        opened.read(10, 30)


def test_pages_that_cannot_change_are_read_once_also_after_a_restart(tmp_path: Path) -> None:
    site = Site(
        root=ROOT + link("p1") + link("p2") + link("p3"),
        p1="<> ldes:immutable true .\n" + member(1),
        p2=member(2),
        p3=member(3),
    )
    site.headers["p2"] = {"cache-control": "public, max-age=9, Immutable"}
    site.status["p4"] = 410
    path, url = tmp_path / "b.position", f"ldes+{SITE}"
    assert sorted(read(source(site, State.of(path, url)))) == ["m1", "m2", "m3"]
    site.asked.clear()
    site.pages["p3"] += member(4) + link("p4")
    again = State.of(path, url)
    assert read(source(site, again)) == ["m4"]
    assert site.asked == ["root", "p3", "p4"]
    site.asked.clear()
    assert read(source(site, State.of(path, url))) == []
    assert site.asked == ["root", "p3"]  # what is gone stays gone
    assert read(source(site, State.of(path, "ldes+http://other.example/"))) != []  # not this stream's
    path.write_text('{"url": 1')
    with pytest.raises(BridgeError, match="does not say how far"):
        State.of(path, url)


def test_what_was_not_confirmed_comes_again() -> None:
    site, state = Site(root=ROOT + member(1) + member(2)), State()
    first = source(site, state)
    one, two = first.read(10, 30)
    first.acknowledge([one])
    (again,) = source(site, state).read(10, 30)
    assert again.key == two.key and again.body == two.body


def test_start_new_passes_over_what_there_was(tmp_path: Path) -> None:
    site = Site(root=ROOT + member(1) + link("p2"), p2=member(2))
    path, url = tmp_path / "b.position", f"ldes+{SITE}"
    opened = source(site, State.of(path, url), start="new")
    assert read(opened) == []
    site.pages["p2"] += member(3)
    assert read(source(site, State.of(path, url), start="new")) == ["m3"]


def test_a_member_is_its_star_its_blank_nodes_and_its_graph() -> None:
    page = ROOT + member(1, "; ex:detail [ ex:is [ ex:deep 1 ] ] ; ex:other ex:m2")
    page += "ex:m1 { ex:a ex:b ex:c } ex:m2 ex:no 1 ."
    (message,) = source(Site(root=page)).read(10, 30)
    lines = message.body.decode().splitlines()
    assert lines[0] == (
        "<http://example.org/m1> <http://www.w3.org/ns/prov#generatedAtTime> "
        '"2026-01-01T00:00:01Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .'
    )
    assert len(lines) == 8 and all(line.endswith(" <http://example.org/m1> .") for line in lines[1:])
    assert "<http://example.org/a> <http://example.org/b> <http://example.org/c> <http://example.org/m1> ." in lines
    assert not any("example.org/no" in line for line in lines)


def test_versions_may_speak_of_what_they_are_versions_of() -> None:
    opened = source(Site(root=ROOT + member(1, "; ex:size 3")), options={"versions": "entity"})
    text = opened.read(10, 30)[0].body.decode()
    assert "<http://example.org/e> <http://example.org/size>" in text and "isVersionOf" not in text


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("( ex:at dct:created )", "; ex:at [ dct:created {} ]"),
        ("[ sh:alternativePath ( ex:none ex:when ) ]", "; ex:when {}"),
        ("( [ sh:inversePath ex:about ] ex:when )", ". [] ex:about ex:m1 ; ex:when {}"),
        ("( [ sh:zeroOrMorePath ex:in ] ex:when )", "; ex:in [ ex:in [ ex:when {} ] ]"),
    ],
)
def test_times_stand_at_any_shacl_path(path: str, more: str) -> None:
    root = f"ex:S tree:view <> ; ldes:timestampPath {path} .\nex:S tree:member ex:m1 . ex:m1 ex:p 1 "
    page = root + more.format('"2026-01-01T00:00:07Z"^^xsd:dateTime') + " ."
    (message,) = source(Site(root=page)).read(10, 30)
    assert b'generatedAtTime> "2026-01-01T00:00:07Z"' in message.body.splitlines()[0]


def test_members_of_one_time_stand_in_their_sequence() -> None:
    root = ROOT + "ex:S ldes:sequencePath ex:n .\n"
    same = "".join(
        f'ex:S tree:member ex:{m} . ex:{m} dct:created "2026-01-01T00:00:00Z"^^xsd:dateTime ; ex:n {n} .\n'
        for m, n in (("a", 10), ("b", 9), ("c", 2))
    )
    assert read(source(Site(root=root + same))) == ["c", "b", "a"]


def test_a_stream_without_times_is_stamped_on_arrival_if_asked() -> None:
    site = Site(root="ex:S tree:view <> ; tree:member ex:m1 . ex:m1 ex:p ex:o .")
    with pytest.raises(BridgeError, match="no timestampPath"):
        source(site).read(10, 30)
    opened = source(site, time="arrival", media_type="application/n-triples")
    (message,) = opened.read(10, 30)
    assert message.body == b"<http://example.org/m1> <http://example.org/p> <http://example.org/o> ."


def test_the_root_is_found_from_the_stream_and_over_redirects() -> None:
    site = Site(stream=f"<{SITE}stream> tree:view <{SITE}view> .", view=ROOT + member(1) + link("p2"), p3=member(2))
    for name, to in (("old", "stream"), ("p2", "p3")):
        site.status[name], site.headers[name] = 307, {"location": f"/{to}"}
    assert read(source(site, url=f"{SITE}old")) == ["m1", "m2"]


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("ex:S ex:p 1 .", "one tree:view"),
        ("ex:S tree:view <> . ex:T tree:view <> .", "view of 2 streams"),
        ("nonsense", "example/"),
        (ROOT + link("http://169.254.169.254/latest"), "hosts"),
        (ROOT + link("file:///etc/passwd"), "no address"),
        (ROOT + link("x" * 5000), "longer"),
        (ROOT + "<> tree:relation [ tree:node 1 ] .", "no page"),
        ("ex:S tree:view <> ; ldes:timestampPath [] .", "no SHACL property path"),
        ("ex:S tree:view <> ; ldes:timestampPath _:l . _:l sh:inversePath _:l .", "no SHACL property path"),
    ],
)
def test_a_page_that_is_wrong_or_leads_elsewhere_is_named(page: str, said: str) -> None:
    opened = source(Site(root=page))
    with pytest.raises(BridgeError, match=said):
        read(opened)


def test_other_hosts_are_asked_if_they_are_named() -> None:
    site = Site(root=ROOT + link("http://pages.example:81/p2"), p2=member(1))
    assert read(source(site, options={"hosts": "a.example, Pages.example:81"})) == ["m1"]
    with pytest.raises(BridgeError, match="from https no link leads to http"):
        read(source(Site(root=ROOT + link("http://ldes.example:443/p2")), url="https://ldes.example/"))


def test_a_server_that_asks_to_wait_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site()
    site.status["root"], site.headers["root"] = 429, {"retry-after": "100"}
    opened = source(site)
    for said in ("status 429", "wait for"):
        with pytest.raises(BridgeError, match=said):
            opened.read(10, 30)
    assert site.asked == ["root"]
    monkeypatch.setattr("oxiseq.bridges.ldes.fetching.LARGEST", 100)
    with pytest.raises(BridgeError, match="at most 100 bytes"):
        source(Site(root=ROOT)).read(10, 30)


@pytest.mark.parametrize(
    "given",
    [
        {"options": {"polls": "1s"}},
        {"options": {"poll": "1"}},
        {"options": {"poll": "1ms"}},
        {"options": {"versions": "all"}},
        {"media_type": "text/turtle"},
        {"time": "arrival"},
        {"media_type": "application/n-triples"},
    ],
)
def test_settings_that_cannot_be_are_refused(given: Mapping[str, Any]) -> None:
    with pytest.raises(BridgeError, match="ldes"):
        source(Site(), **given)


LIST = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
WIDE = f"@prefix rdf: <{LIST}> .\n" + "".join(
    f"_:l{n} rdf:first _:l{n + 1} ; rdf:rest [ rdf:first _:l{n + 1} ; rdf:rest rdf:nil ] .\n" for n in range(18)
)


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (WIDE + "_:l18 sh:inversePath ex:p . ex:S tree:view <> ; ldes:timestampPath _:l0 .", "100 parts"),
        ("ex:S tree:view <> ; ldes:timestampPath [ sh:inversePath [ sh:alternativePath () ] ] .", "no SHACL"),
        (ROOT + "".join(f"ex:S tree:member ex:m{n} . ex:m{n} ex:x _:b . _:b ex:p {n} .\n" for n in range(40)), "bytes"),
        (f"@prefix l: <http://e/{'x' * 3000}> . {ROOT} ex:a ex:b l:c, l:d .", "characters"),
    ],
)
def test_a_short_page_that_would_become_huge_is_refused(page: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oxiseq.bridges.ldes.page._LARGEST", 100_000)
    monkeypatch.setattr("oxiseq.bridges.ldes.fetching._LARGEST_TEXT", 5_000 if "characters" in said else 10**9)
    with pytest.raises(BridgeError, match=said):
        read(source(Site(root=page)))


def test_paths_and_relations_with_many_ways_are_followed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ways = "ex:m1 ex:p ex:m1, ex:n . ex:n ex:p ex:m1, ex:n .\n"
    many = ", ".join(f"ex:k{n}" for n in range(300))
    page = f"ex:S tree:view <> ; tree:member ex:m1 ; ldes:timestampPath ( {'ex:p ' * 60} dct:created ) .\n{ways}"
    page += 'ex:n dct:created "2026-01-01T00:00:07Z"^^xsd:dateTime .\n'
    page += f"<> tree:relation [ a {many} ; tree:path {many} ; tree:value {many} ; tree:node <p2> ] ."
    (message,) = source(Site(root=page, p2="")).read(10, 30)
    assert b'"2026-01-01T00:00:07Z"' in message.body.splitlines()[0]
    monkeypatch.setattr("oxiseq.bridges.ldes.paths._STEPS", 200)
    with pytest.raises(BridgeError, match="200 steps"):
        source(Site(root=page)).read(10, 30)


def test_a_page_that_is_not_there_is_waited_for_or_skipped(caplog: pytest.LogCaptureFixture) -> None:
    site = Site(root=ROOT + member(1) + link("p2") + link("p3"), p3=member(3))
    with pytest.raises(BridgeError, match="p2: status 404"):
        read(source(site))
    opened = source(site, options={"missing": "skip"})
    assert read(opened) == ["m1", "m3"]
    assert f"1 pages answer 404, the first is {SITE}p2" in caplog.text
    assert read(opened) == []
    site.pages["p2"] = member(2)
    assert read(opened) == ["m2"]
    del site.pages["root"]
    with pytest.raises(BridgeError, match="status 404"):
        read(opened)
    with pytest.raises(BridgeError, match="missing is wait or skip"):
        source(site, options={"missing": "fail"})


def test_what_an_address_has_in_its_query_is_hidden_in_errors(caplog: pytest.LogCaptureFixture) -> None:
    site = Site(root=ROOT.replace("<>", "<?token=s3cret&page=1>") + link("p2?token=s3cret"), p2=member(1))
    url = f"{SITE}?token=s3cret&page=1"
    for name, status in (("p2", 404), ("p2", 500), ("root", 404), ("root", 302)):
        site.status = {name: status}
        site.headers = {"root": {"location": f"https://else.example/{'x' * 5000}?token=s3cret"}}
        with pytest.raises(BridgeError) as caught:
            read(source(site, url=url))
        assert "s3cret" not in str(caught.value) and len(str(caught.value)) <= 500
        assert status == 302 or "token=***" in str(caught.value)
    site.status = {"p2": 404}
    read(source(site, url=url, options={"missing": "skip"}))
    assert "s3cret" not in caplog.text and "token=***" in caplog.text


def test_the_servers_log_has_no_addresses_of_pages(caplog: pytest.LogCaptureFixture) -> None:
    client = logging.getLogger("httpx")
    level = client.level
    try:
        client.setLevel(logging.NOTSET)
        log_to_stderr("text")
        with caplog.at_level(logging.INFO):
            site = Site(root=ROOT.replace("<>", "<?token=s3cret>") + member(1))
            assert read(source(site, url=f"{SITE}?token=s3cret")) == ["m1"]
    finally:
        client.setLevel(level)
    assert "s3cret" not in caplog.text


def test_the_password_of_an_address_comes_into_no_event_and_no_state() -> None:
    site, state = Site(root=ROOT + "ex:S tree:member <m> . <m> ex:p <#o> .\n" + link("p2"), p2=""), State()
    (message,) = source(site, state, url="http://u:secret@ldes.example/").read(10, 30)
    assert b"secret" not in message.body and list(state.opened) == [SITE, f"{SITE}p2"]


def test_blank_nodes_inside_triple_terms_are_the_members_own() -> None:
    reified = f"; ex:x [ <{LIST}reifies> <<( ex:a ex:b _:z )>> ] . _:z ex:deep 1"
    bodies = [source(Site(root=ROOT + member(1, reified))).read(10, 30)[0].body.decode() for _ in range(2)]
    assert bodies[0] == bodies[1] and "http://example.org/deep" in bodies[0] and "_:z" not in bodies[0]


def test_who_asks_to_wait_or_packs_too_closely_is_not_asked_on(tmp_path: Path) -> None:
    site, state = Site(), State()
    site.status["root"], site.headers["root"] = 503, {"retry-after": "100"}
    for said in ("status 503", "wait for"):  # a bridge opens its source again after an error
        with pytest.raises(BridgeError, match=said):
            source(site, state).read(10, 30)
    assert site.asked == ["root"]
    packed = httpx.Response(200, headers={"content-encoding": "gzip, gzip", "content-type": "text/turtle"}, content=b"")
    opened = source(site)
    opened._fetching._client = httpx.Client(transport=httpx.MockTransport(lambda request: packed))
    with pytest.raises(BridgeError, match="packed by gzip, gzip"):
        opened.read(10, 30)
    leads = source(Site(root=ROOT + link("p2") + link("http://ldes.example/{x}")))
    with pytest.raises(BridgeError):
        read(leads)


def test_members_that_wait_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oxiseq.bridges.ldes.source._HELD", 1)
    site = Site(root=ROOT + member(5) + link("p2", "LessThanRelation", 5), p2=member(1))
    assert read(source(site)) == ["m5", "m1"]


def test_a_root_that_has_moved_is_not_taken_for_the_old_one() -> None:
    site, state = Site(root=ROOT + member(1), old="ex:S ex:p 1 ."), State({f"{SITE}old": Open(), SITE: Open()})
    assert read(source(site, state)) == ["m1"]
    assert sorted(site.asked) == ["old", "root"]


# --- a stream published ---------------------------------------------------------------------------------


def get(doors: Doors, query: str, *headers: tuple[str, str], stream: str = STREAM) -> Any:
    return doors._routes.answer(Request("GET", f"/streams/{quote(stream, safe='')}/ldes", query, headers, b""))


def test_what_we_publish_we_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ldes, "PAGE", 3)
    into, asked = "http://example.org/in", []

    def answer(request: httpx.Request) -> httpx.Response:
        parts = urlsplit(str(request.url))
        asked.append(parts.query)
        found = routes.answer(Request("GET", parts.path, parts.query, tuple(request.headers.items()), b""))
        return httpx.Response(found.status, headers=list(found.headers), content=found.body)

    with hot(tmp_path) as doors:
        routes = LiveRoutes(doors.service, Evaluations(Limits()))
        doors.push(7, note='a "quoted" note')
        stamp = '<http://www.w3.org/ns/prov#generatedAtTime> "2024-05-01T11:00:00Z"'
        empty = f"<http://e> {stamp}^^<http://www.w3.org/2001/XMLSchema#dateTime> <http://e> .".encode()
        path = f"/streams/{quote(STREAM, safe='')}"
        nquads = (("content-type", "application/n-quads"),)
        assert routes.answer(Request("POST", path, "", nquads, empty)).status == 200
        doors.service.streams.create(into)
        url = f"ldes+http://here.example{path}/ldes"
        settings = BridgeSettings(url=url, into=into, start="all", options={"poll": "1s"})
        inside = Inside(doors.service.journal, Door(routes.begin_push, routes.end_push), settings)
        opened = LdesSource(settings, State(), httpx.MockTransport(answer))
        bridge = Bridge("b", lambda: opened, inside, DeadLetters(tmp_path / "dead"))
        while opened._queue or opened._ready or opened._next <= time.monotonic():
            messages = opened.read(500, 0.01)
            assert bridge._hand_on(messages) == len(messages)
            opened.acknowledge(messages)
        assert asked == ["", "page=0", "page=1", "page=2"]
        texts = [doors.service.streams.text(iri, None, 100, "nquads")[0] for iri in (STREAM, into)]
        assert texts[0] == texts[1] and bridge.counts.events == 8
        doors.push(2)
        asked.clear()
        assert len(read(opened)) == 2
        assert asked == ["", "page=2", "page=3"]


def test_complete_pages_are_kept_and_the_open_one_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ldes, "PAGE", 2)
    with hot(tmp_path) as doors:
        assert get(doors, "page=0").status == 200 and get(doors, "page=1").status == 404
        doors.push(3)
        full, part, root = get(doors, "page=0"), get(doors, "page=1"), get(doors, "")
        assert "immutable" in dict(full.headers)["cache-control"] and b"<?page=1>" in full.body
        assert dict(part.headers)["cache-control"] == "no-cache" and b"immutable" not in part.body
        etag = dict(part.headers)["etag"]
        assert get(doors, "page=1", ("if-none-match", f'"x", {etag}')).status == 304
        doors.push()
        assert get(doors, "page=1", ("if-none-match", etag)).status == 200
        assert get(doors, "page=2").status == 200  # linked from page 1, which is complete
        assert dict(get(doors, "").headers)["etag"] == dict(root.headers)["etag"]
        assert [get(doors, f"page={wrong}").status for wrong in ("-1", "x", "9" * 30, "1&page=1")] == [400] * 4
        assert get(doors, "", stream="http://example.org/none").status == 404


def test_a_page_whose_text_is_long_continues_under_another_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ldes, "PAGE", 3)
    with hot(tmp_path) as doors:
        doors.push(4)
        whole = get(doors, "page=0").body
        monkeypatch.setattr(ldes, "LARGEST", 1)
        query, asked, members = "page=0", list[str](), list[str]()
        while (found := get(doors, query)).status == 200:
            text = found.body.decode()
            asked.append(query)
            members += re.findall("<([^>]*event-[^>]*)> [.]", text)
            if "<?" not in text:
                break
            query = text.partition("<?")[2].partition(">")[0]
            assert "immutable" in text
        assert asked == ["page=0", "page=0&from=1", "page=0&from=2", "page=1"]
        assert len(members) == len(set(members)) == 4 and all(each.encode() in whole for each in members[:3])
        assert [get(doors, f"page=0&from={wrong}").status for wrong in (3, 4, 9)] == [404] * 3
        assert [get(doors, f"page=1&from={wrong}").status for wrong in (0, 2, 5)] == [404] * 3
        assert get(doors, "page=0&from=x").status == 400


def test_what_retention_deletes_leaves_the_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ldes, "PAGE", 2)
    with hot(tmp_path) as doors:
        for _ in range(5):
            doors.push()
        doors.ask("PATCH", f"/streams/{quote(STREAM, safe='')}", {"retention": {"for": "1h", "count": 1}})
        doors.service.journal.retain()
        record = doors.service.streams.get(STREAM)
        root = get(doors, "").body.decode()
        assert f"<?page={record.first // 2}>" in root and '"PT1H"' in root
        assert b"<?page=1>" in get(doors, "page=0").body  # who is on the way goes on


def test_a_page_that_retention_shortens_while_it_is_read_still_links_on(tmp_path: Path) -> None:
    with hot(tmp_path) as doors:
        doors.push(3)
        before = doors.service.streams.get(STREAM)
        doors.push(1)
        for query in doors.service.journal.queries.all():  # it would still read the events
            doors.ask("DELETE", f"/queries/{query.name}")
        doors.ask("PATCH", f"/streams/{quote(STREAM, safe='')}", {"retention": {"count": 1}})
        doors.service.journal.retain()
        assert doors.service.streams.get(STREAM).first > before.first
        found = ldes.page(doors.service.streams, before, 0)
        assert found is not None and found.text.count("tree#member") == 1


def test_the_scheme_is_known_and_shows_no_password(tmp_path: Path) -> None:
    settings = BridgeSettings.of({"url": "ldes+https://u:secret@h.example/s", "into": "http://e/s"}, tmp_path, "b")
    assert settings.shown == "ldes+https://h.example/s"
    assert isinstance(opener_of(settings)(), LdesSource)
    with pytest.raises(BridgeError, match="write ldes"):
        opener_of(BridgeSettings(url="ldes+http:///s", into="http://e/s"))()


def test_a_page_is_parsed_while_it_comes_and_what_it_may_have_is_bounded() -> None:
    """A page without end is refused by its first quads."""
    sent = 0

    class Endless(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            nonlocal sent
            yield (PREFIXES + ROOT).encode()
            while True:
                sent += 1
                yield b"".join(b"ex:x%d ex:p %d .\n" % (sent, i) for i in range(1000))

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "text/turtle"}, stream=Endless())

    settings = BridgeSettings(url=f"ldes+{SITE}", into="http://example.org/in", start="all", options={"quads": "5000"})
    opened = LdesSource(settings, State(), httpx.MockTransport(answer))
    with pytest.raises(BridgeError, match="at most 5,000 quads: see the option quads"):
        opened.read(10, 1)
    assert sent < 30
    site = Site(root=ROOT + "".join(map(member, range(6))))
    with pytest.raises(BridgeError, match="at most 5 members: see the option members"):
        source(site, options={"members": "5"}).read(10, 1)
    assert len(read(source(site, options={"members": "6"}))) == 6
    for wrong in ("0", "x", "-1", "99999999"):
        with pytest.raises(BridgeError, match="members is a number"):
            source(site, options={"members": wrong})


def test_a_page_of_json_ld_whose_contexts_multiply_is_refused() -> None:
    terms = {f"t{i}": f"http://example.org/t{i}" for i in range(2000)}
    document = {"@context": terms, "@graph": [{"@id": f"http://e/{i}", "@context": {}} for i in range(1000)]}

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "application/ld+json"}, text=json.dumps(document))

    settings = BridgeSettings(url=f"ldes+{SITE}", into="http://example.org/in", start="all")
    with pytest.raises(BridgeError, match="copies of their entries"):
        LdesSource(settings, State(), httpx.MockTransport(answer)).read(10, 1)
