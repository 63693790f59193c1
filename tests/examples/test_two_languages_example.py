"""One question in two languages has one answer, and it is the one that its page tells."""

from __future__ import annotations

from example_loading import EXAMPLES, load

import oxiseq

FOLDER = EXAMPLES / "09-two-languages"


def test_both_languages_find_the_same() -> None:
    spaseq, ceql = load("09-two-languages").main()
    assert sorted(spaseq) == sorted(ceql)
    assert f"the same {len(ceql)} matches" in (FOLDER / "README.md").read_text(encoding="utf-8")


def test_the_page_shows_the_queries() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    for name in ("query.ceql", "query.spaseq"):
        assert (FOLDER / name).read_text(encoding="utf-8") in page
    assert oxiseq.Query(FOLDER / "query.spaseq").algebra
