"""Pages of experiments: their tables have the numbers of their rows, their figures are valid, the command takes --report."""

import csv
import json
import re

import pages
import pytest

from experiments import run as command
from experiments.reports import validate_report
from experiments.reports.platforms_page import platforms_page
from experiments.reports.validate_page import validate_page
from sim.base.errors import WrongSetting


def kept(page: str) -> dict:
    """The data in a page."""
    return json.loads(re.findall(r'<script type="application/json" id="report">(.*?)</script>', page, re.S)[0])


def values(page: str, table: str) -> list[float]:
    """The numbers of a table in a page."""
    (body,) = re.findall(rf'<table id="{table}">(.*?)</table>', page, re.S)
    return [float(value) for value in re.findall(r'data-value="([^"]*)"', body)]


def check_figures(page: str) -> int:
    """Raise ValueError at a property of a figure that the library does not know; how many figures there are."""
    from plotly.graph_objects import Figure

    found = re.findall(r'<figure id="\w+">\s*<script type="application/json">(.*?)</script>', page, re.S)
    for text in found:
        Figure(**json.loads(text))
    return len(found)


@pytest.fixture(scope="module")
def rows():
    return pages.compared(), pages.further()


@pytest.fixture(scope="module")
def validated(rows):
    return validate_page("Predicted", *rows, "fmb", "python -m experiments.run validate")


def test_a_comparison_says_what_the_terminal_says(rows, validated, tmp_path, capsys):
    predicted, further = rows
    validate_report.show(predicted, tmp_path, "fmb", further)
    said = " ".join(capsys.readouterr().out.split())
    data = kept(validated)
    for name, of in (data["regimes"] | data["others"]).items():
        assert f"{name} {of['cells']} {of['step_error']:.2%} {of['floor']:.2%}" in said
    assert check_figures(validated) == 1


def test_a_comparison_has_the_cells_of_the_file(rows, validated, tmp_path):
    every = [*rows[0], *rows[1]]
    validate_report.write_csv(every, tmp_path / "v.csv")
    with open(tmp_path / "v.csv") as file:
        written = list(csv.DictReader(file))
    shown = values(validated, "cells")
    each = len(shown) // len(every)
    assert [shown[i] for i in range(0, len(shown), each)] == [float(row["predicted_step_s"]) for row in written]
    assert [row["cell"] for row in kept(validated)["cells"]] == [row["cell"] for row in written]


def test_all_cells_are_summed_up(rows, validated):
    every = [*rows[0], *rows[1]]
    assert kept(validated)["all"] == pytest.approx(validate_report.figures_of(every))
    assert f"hold {sum(sum(row.covered) for row in every)} of {2 * len(every)} runs" in validated


def test_platforms_are_compared():
    found, agreement, excused = pages.platforms()
    page = platforms_page("lstm", found, agreement, excused, "python -m experiments.run platforms")
    data = kept(page)
    assert check_figures(page) == 2
    assert "MPI, allreduce is the fastest" in page
    first, second = data["platforms"]
    assert values(page, "speeds") == [
        *(first["steps_per_s"], first["predicted_steps_per_s"], *first["interval"], first["error"]),
        second["steps_per_s"],
    ]
    assert second["predicted_steps_per_s"] is None
    assert "Those that must agree end with the same parameters" in page


def test_a_disagreement_is_a_note():
    found, agreement, excused = pages.platforms()
    apart = {"kernel": agreement.synchronous["MPI, allreduce"]["kernel"] * 2}
    agreement = type(agreement)(agreement.synchronous | {"other": apart}, agreement.others, agreement.control, 1e-5)
    assert '<p class="note">MPI, allreduce and other are' in platforms_page("lstm", found, agreement, excused, "")


@pytest.mark.parametrize(
    ("words", "said"),
    [(["validate", "--report", "r.pdf"], ".html"), (["seeds", "--report", "r.html"], "seeds")],
)
def test_a_report_is_refused_before_anything_is_run(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WrongSetting, match=f"--report.*{re.escape(said)}"):
        command.main(words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_validate_writes_its_page(rows, tmp_path, monkeypatch):
    """What is run and simulated is planted."""
    from experiments import validate

    (predicted, further), cell = rows, pages.comparison("fmb", 1, "none", 0.1, 0.0)
    chosen = validate.Plan([], [row.cell for row in predicted], 1, 2, tuple(row.cell for row in further))
    monkeypatch.setattr(validate, "plan", lambda *_: chosen)
    monkeypatch.setattr(validate, "order", lambda *_: [])
    names = [f"predict-{i}-{repeat}" for i in range(len(predicted) + len(further)) for repeat in range(2)]
    monkeypatch.setattr(validate, "measure", lambda *_, **__: dict.fromkeys(names))
    monkeypatch.setattr(validate, "fitted", lambda *_: None)
    monkeypatch.setattr(validate, "predict", lambda *_: cell.predicted)
    monkeypatch.setattr(validate, "of_trace", lambda _: cell.measured[0])
    command.main(["validate", "--demo", "--out", str(tmp_path), "--report", str(tmp_path / "v.html")])
    page = (tmp_path / "v.html").read_text()
    assert kept(page)["schema"] == "validate/1"
    assert len(kept(page)["cells"]) == len(predicted) + len(further)
    assert "python -m experiments.run validate --seed 0 --demo" in page


def test_platforms_writes_its_page(tmp_path, monkeypatch):
    from experiments import platforms

    found, agreement, excused = pages.platforms()
    planted = dict(zip(platforms.PLATFORMS, found, strict=False))
    monkeypatch.setattr(platforms, "available", lambda *_, **__: {platform: {} for platform in planted})
    monkeypatch.setattr(platforms, "order", lambda *_: [])
    monkeypatch.setattr(platforms, "measure", lambda *_, **__: {})
    monkeypatch.setattr(platforms, "fitted", lambda *_: None)
    monkeypatch.setattr(platforms, "row", lambda platform, *_: planted[platform])
    monkeypatch.setattr(platforms, "agreed", lambda *_: (agreement, excused))
    command.main(["platforms", "--steps", "100", "--out", str(tmp_path), "--report", str(tmp_path / "p.html")])
    page = (tmp_path / "p.html").read_text()
    assert [one["platform"] for one in kept(page)["platforms"]] == [row.name for row in found]
    assert "experiments.run platforms --workers 2 --workload lstm_classifier --steps 100 --seed 0" in page
