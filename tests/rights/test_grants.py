"""The decision, against a plain reading of it."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oxiseq.grammar.errors import OxiseqError
from oxiseq.rights import EVERYTHING, NOTHING, DeniedError, Grant, Rights, allows, grant_of
from oxiseq.rights.grants import KINDS, covers

LETTERS = st.text("ab*?[.", max_size=12)


@given(LETTERS, st.text("ab?[.\n", max_size=20))
def test_only_the_star_is_special(pattern: str, name: str) -> None:
    plain = re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
    assert covers(pattern, name) == (plain.fullmatch(name) is not None)


def test_many_stars_take_no_time_that_grows_with_their_power() -> None:
    assert not covers("*a" * 2000, "a" * 1999)
    assert covers("*a" * 2000, "a" * 2000)


@given(st.data())
def test_a_grant_gives_its_own_right_and_no_other(data: st.DataObject) -> None:
    every = [(right, kind) for right, kinds in KINDS.items() for kind in kinds]
    right, kind = data.draw(st.sampled_from(every))
    names = data.draw(LETTERS) if kind in ("stream", "query") else "*"
    if not names:
        return
    grant = grant_of(f"{right}:{kind}:{names}" if names != "*" else f"{right}:{kind}")
    assert grant == Grant(right, kind, names)
    assert grant_of(str(grant)) == grant
    name = data.draw(st.text("ab.", max_size=5))
    for other_right, other_kind in every:
        expected = (other_right, other_kind) == (right, kind) and covers(names, name)
        assert allows([grant], other_right, other_kind, name) == expected


def test_a_right_alone_is_for_all_kinds() -> None:
    grants = [grant_of("read")]
    for right, kinds in KINDS.items():
        for kind, name in product(kinds, ("", "x")):
            assert allows(grants, right, kind, name) == (right == "read")
            assert EVERYTHING.may(right, kind, name)
            assert not NOTHING.may(right, kind, name)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("write", "is no right; there are read, push, register, update"),
        ("", "is no right"),
        ("read:", "is a right on stream and query and kb and server"),
        ("push:query:a", "'push' is a right on stream, not on 'query'"),
        ("read:kb:http://e/g", "there is one kb, without a name: write read:kb"),
        ("read:kb:", "there is one kb"),
        ("push:stream:", "the name is missing; push:stream is for all of them"),
        ("READ", "is no right"),
    ],
)
def test_what_is_no_grant_is_told(text: str, said: str) -> None:
    with pytest.raises(OxiseqError, match=re.escape(said)):
        grant_of(text)


def test_who_lacks_a_right_is_told_which() -> None:
    plant = Rights((grant_of("push:stream:http://e/1/*"),), "plant1")
    plant.demand("push", "stream", "http://e/1/a")
    with pytest.raises(DeniedError, match="token 'plant1' does not have the right push:stream:http://e/2"):
        plant.demand("push", "stream", "http://e/2")
    with pytest.raises(DeniedError, match="without a token nobody has the right read:kb"):
        NOTHING.demand_reading([], kb=True)
    plant.demand_some("push", "stream")
    with pytest.raises(DeniedError, match="register:query"):
        plant.demand_some("register", "query")
