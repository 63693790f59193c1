"""What notebooks show: automata, timelines, tables; all of it well-formed."""

from __future__ import annotations

from xml.etree import ElementTree

import oxiseq
from oxiseq.pictures.drawing import Arrow, Node, draw

QUERY = """
PREFIX : <http://example.org/>
SELECT ?who ?first ?second WITHIN 10 MINUTES SLIDING
FROM STREAM S <http://example.org/payments>
WHERE {
  SEQ(A; B+, C!)
  DEFINE GPM A ON S { ?who :paid ?first }
  DEFINE GPM B ON S { ?who :paid ?second FILTER(?second >= 10 * ?first) }
  DEFINE GPM C ON S { ?who :blocked ?x }
}
"""
PAID = "<http://example.org/ann> <http://example.org/paid> {} ."
EVENTS = [(1_000_000, PAID.format(3)), (2_000_000, PAID.format(40))]
SVG = "{http://www.w3.org/2000/svg}"


def test_an_automaton_is_drawn() -> None:
    explanation = oxiseq.Query(QUERY).explain()
    root = ElementTree.fromstring(explanation.svg())
    words = [each.text or "" for each in root.iter(f"{SVG}text")]
    assert "A" in words and "B" in words and "window closed" in words
    assert any(word.startswith("no C") for word in words)
    arrows = sum(len(edge.arms) or 1 for edge in explanation.edges)
    assert len(root.findall(f"{SVG}path")) == arrows
    assert explanation.svg()._repr_svg_() in explanation._repr_html_()


def test_nodes_of_a_drawing_do_not_overlap() -> None:
    nodes = [Node("start", ""), *(Node(str(i), "x" * i) for i in range(1, 7))]
    arrows = [Arrow("start", str(i), ("<&>",)) for i in (1, 2, 3)] + [
        Arrow("1", "4", ()),
        Arrow("4", "4", ("loop",)),
        Arrow("4", "1", ("back",)),
        Arrow("2", "5", ("a" * 90,)),
    ]
    boxes = [
        tuple(float(box.attrib[k]) for k in ("x", "y", "width", "height"))
        for box in ElementTree.fromstring(draw(nodes, arrows, "t")).iter(f"{SVG}rect")
    ]
    assert len(boxes) == 6
    for i, (x, y, w, h) in enumerate(boxes):
        for x2, y2, w2, h2 in boxes[i + 1 :]:
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y


def test_a_timeline_has_a_lane_per_gpm_and_a_band_per_match() -> None:
    matches = oxiseq.run(QUERY, {"S": EVENTS})
    root = ElementTree.fromstring(matches.timeline())
    assert len(root.findall(f"{SVG}g")) == len(matches) == 1
    assert len(root.findall(f".//{SVG}circle")) == 3  # two events, and the end of the window, which decides
    assert {"A", "B", "decided", "1 matches"} <= {each.text for each in root.iter(f"{SVG}text")}
    assert "0 matches" in oxiseq.run(QUERY, {"S": []}).timeline()
    ceql = oxiseq.run(
        "VOCAB <http://e/> SELECT * FROM S WHERE BUY AS x", {"S": [(1, "_:e a <http://e/BUY> .")]}, language="ceql"
    )
    assert "x" in [each.text for each in ElementTree.fromstring(ceql.timeline()).iter(f"{SVG}text")]


def test_stores_streams_and_queries_show_themselves() -> None:
    store = oxiseq.Store()
    query = store.register(QUERY)
    stream = store.stream("http://example.org/payments")
    stream.extend(EVENTS)
    assert "2 events" in store._repr_html_() and "0 quads" in store._repr_html_()
    assert "http://example.org/payments" in stream._repr_html_()
    shown = query._repr_html_()
    assert "SEQ(A; B+, C!)" in shown and "who, first, second" in shown
    ElementTree.fromstring(f"<div>{shown}</div>")
