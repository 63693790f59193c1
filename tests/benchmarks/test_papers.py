"""`benchmarks.papers`: published values, pages, worked examples; each paper's cheapest figure, measured on little."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.papers import conformance
from benchmarks.papers.__main__ import every, main
from benchmarks.papers.figures import Curve, Panel, PaperFigure, Scale, all_published, published
from benchmarks.papers.page import TITLES, page

FIGURES = {figure.name: figure for figure in every()}


def test_figures_have_names_of_their_papers() -> None:
    assert {figure.paper for figure in FIGURES.values()} == set(TITLES)
    assert len(FIGURES) == len(every())


def test_what_is_published_belongs_to_a_figure_and_says_where_it_is_from() -> None:
    for series in all_published():
        assert series["figure"] in FIGURES
        if series["provenance"] == "band":
            assert "high" in series and "x" not in series
        else:
            assert series["provenance"] in ("table", "text", "vector")
            assert len(series["x"]) == len(series["y"])


def test_a_band_is_drawn_and_has_no_growth() -> None:
    (band,) = published("core-7", "stocks")
    assert band.y == (1e5, 1e6) and band.growth is None
    (below,) = published("core-7-primed", "taxis")
    assert below.y == (None, 1e4)
    assert published("spaseq-15", "SMD, V-shape") == ()


def _made(scale: Scale) -> list[Panel]:
    return [Panel("Q5", (Curve("ours", (100, 1_000), (2e6, 1e6)),), {"rows": ("7", "8")})]


def test_a_page_has_ours_and_what_was_published_with_the_growth_of_both(tmp_path: Path) -> None:
    figure = PaperFigure("spectra-6", "Figure 6", "triples", "triples/s", _made, "Asked.", "Differs.", log="xy")
    made = page("spectra", [(figure, figure.panels(Scale()))], "Setting.", tmp_path)
    text = made.read_text(encoding="utf-8")
    assert (tmp_path / "spectra-6.svg").stat().st_size > 1_000
    assert "| ours | 2,000,000 | 1,000,000 |  |  |  |  |  | 0.50 |" in text
    assert "| *S-Inc, published (vector)* | 2,800,000 | 2,700,000 | 2,500,000 |" in text
    assert "| rows | 7 | 8 |  |" in text  # under ours, not under the published sizes
    assert text.index("Asked.") < text.index("Differs.")


def test_every_worked_example_has_the_expected_rows() -> None:
    text, differ = conformance.page()
    assert differ == []
    assert text.count("oxiseq: the same.") > 60
    for paper in conformance.PAPERS.values():
        assert f"## {paper}" in text


def test_the_command_fails_where_a_second_count_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.papers.rsepql.by_epsparql", lambda policy: ("e4", ""))
    assert main(["--only", "rsepql-table-1", "--output", str(tmp_path)]) == 1


@pytest.mark.parametrize("name", ["rsepql-table-1", "core-9", "epsparql-1b", "spaseq-22"])
def test_a_figure_is_measured(name: str, tmp_path: Path) -> None:
    assert main(["--only", name, "--quick", "--output", str(tmp_path)]) == 0
    assert (tmp_path / f"{FIGURES[name].paper}.md").exists()


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(FIGURES.keys() - {"rsepql-table-1", "core-9", "epsparql-1b", "spaseq-22"}))
def test_every_other_figure_is_measured(name: str, tmp_path: Path) -> None:
    assert main(["--only", name, "--quick", "--output", str(tmp_path)]) == 0
