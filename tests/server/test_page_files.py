"""The page's files over HTTP, without a browser: types, headers, caching, tokens; and that they name no other host."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from oxiseq.api.store import Store
from oxiseq.page import asset
from oxiseq.page.assets import _all
from oxiseq.server import ServerSettings, Tokens, create_app
from oxiseq.sparql import SparqlEndpoint, SparqlSettings
from oxiseq.sparql.upstream import Upstream

CLOSED = ServerSettings(tokens=Tokens(read="r", write="w"))


def test_the_page_needs_no_token_and_allows_no_other_host() -> None:
    answer = create_app(SparqlEndpoint(Store()), CLOSED).test_client().get("/")
    assert answer.status_code == 200
    assert answer.content_type == "text/html; charset=utf-8"
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"https?:", policy)


def test_what_kind_of_server_it_is_is_told_without_a_token() -> None:
    kinds = []
    for endpoint in (
        SparqlEndpoint(Store()),
        SparqlEndpoint(Store(), SparqlSettings(read_only=True)),
        Upstream("http://127.0.0.1:9", SparqlSettings(read_only=True)),
    ):
        answer = create_app(endpoint, CLOSED).test_client().get("/ui/server.json")
        assert (answer.status_code, answer.content_type) == (200, "application/json")
        kinds.append(answer.json)
    assert kinds[0] == {"live": False, "read_only": False, "upstream": False}
    assert kinds[1] == {"live": False, "read_only": True, "upstream": False}
    assert kinds[2] == {"live": False, "read_only": True, "upstream": True}


@pytest.mark.parametrize("path", sorted(_all()))
def test_each_file_is_sent_with_its_type(path: str) -> None:
    client = create_app(SparqlEndpoint(Store())).test_client()
    answer = client.get(f"/ui/{path}")
    assert answer.status_code == 200
    found = asset(path)
    assert found is not None
    assert answer.content_type == found.media_type
    assert answer.data == found.body
    again = client.get(f"/ui/{path}", headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 304
    zipped = client.get(f"/ui/{path}", headers={"Accept-Encoding": "gzip"})
    assert zipped.headers["Content-Encoding"] == "gzip"
    assert zipped.headers["ETag"] != answer.headers["ETag"]


@pytest.mark.parametrize("path", ["", "../assets.py", "js", "js/none.js", "%2e%2e/assets.py", "__init__.py"])
def test_nothing_else_is_sent(path: str) -> None:
    assert create_app(SparqlEndpoint(Store())).test_client().get(f"/ui/{path}").status_code == 404


def test_markup_and_styles_load_nothing_from_elsewhere() -> None:
    static = files("oxiseq.page").joinpath("static")
    page = static.joinpath("index.html").read_text()
    loaded = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert loaded
    assert all(re.match(r"[/#](?!/)", each) for each in loaded)
    styles = "".join(each.read_text() for each in static.joinpath("css").iterdir())
    assert not re.search(r"@import|url\(", styles)
