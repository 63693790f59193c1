"""EP-SPARQL's applications: each example finds what plain loops over its data find."""

from __future__ import annotations

from example_loading import EXAMPLES, load

import oxiseq


def test_tsunami_warnings_are_those_of_a_plain_loop() -> None:
    data = load("14-tsunami", "make_events")
    oceans = {b: o for b, o in data.BUOYS_THERE.items() if b != "ship"}
    before: dict[str, tuple[int, float]] = {}
    rises = []
    for minute, buoy, metres in data.levels():
        if buoy in oceans and buoy in before and metres - before[buoy][1] > 0.5:
            rises.append((before[buoy][0], minute, buoy))
        before[buoy] = minute, metres
    expected = sorted(
        (q.minute, end2, q.name, one, two)
        for q in data.QUAKES
        if q.magnitude >= 6.5
        for start1, end1, one in rises
        for start2, end2, two in rises
        if q.minute < start1
        and end1 < start2
        and one != two
        and oceans[one] == oceans[two] == q.ocean
        and end2 - q.minute < 120
    )
    found = load("14-tsunami").main()
    names = [tuple(m[v].value.rpartition("#")[2] for v in ("quake", "first", "second")) for m in found]
    times = [(m.start_us // data.MINUTE, m.end_us // data.MINUTE) for m in found]
    assert sorted((*t, *n) for t, n in zip(times, names, strict=True)) == expected
    assert len(expected) == 3 and {n[0] for n in names} == {"q1", "q4"}


def test_deliveries_are_followed_from_truck_to_truck() -> None:
    hour = 3_600_000_000
    found = [
        (
            m["goods"].value.rpartition("#")[2],
            m["place"].value.rpartition("#")[2],
            m.start_us // hour,
            m.end_us // hour,
            m["late"].value,
        )
        for m in load("15-deliveries").main()
    ]
    assert found == [
        ("wine", "Part-Dieu", 0, 9, "false"),
        ("books", "Grenoble", 0, 20, "false"),
        ("cheese", "Croix-Rousse", 12, 38, "true"),
    ]


def test_their_queries_and_rules_are_valid() -> None:
    texts = sorted(EXAMPLES.glob("*/*.epsparql"))
    assert len(texts) == 5
    for path in texts:
        assert not [f for f in oxiseq.Query(path).check() if f.severity == "error"]
