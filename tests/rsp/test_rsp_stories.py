"""Whatever happens to a query over windows, it tells what its definitions say."""

from __future__ import annotations

from hypothesis import event, given
from profiles import drawn
from rsp_playing import expected, in_order, played, without_labels
from rsp_stories import Story, deep, dense


def check(story: Story) -> None:
    """Compare what is told."""
    wanted = without_labels(expected(story))
    event("answers" if wanted else "no answers")
    told = played(story)
    assert without_labels(told) == wanted
    assert [at for at, _ in told] == sorted(at for at, _ in told)
    assert in_order(story.sorting, told, story.shown)


@drawn(100)
@given(dense())
def test_small_windows_of_dense_data(story: Story) -> None:
    check(story)


@drawn(60)
@given(deep())
def test_any_query(story: Story) -> None:
    check(story)
