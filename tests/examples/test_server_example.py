"""The query and the events that README sends to a server."""

from __future__ import annotations

from example_loading import EXAMPLES

import oxiseq


def test_the_price_rises_once() -> None:
    folder = EXAMPLES / "11-server"
    text = (folder / "rises.spaseq").read_text(encoding="utf-8")
    (match,) = oxiseq.run(text, streams={"S": folder / "quotes.nq"})
    found = [match[name].value for name in ("company", "before", "after")]
    assert found == ["http://example.org/acme", "1", "2"]
