"""Pages of experiments: they have all that is kept, and their figures are valid; every experiment takes --report."""

import html
import json
import re
from pathlib import Path

import pages
import pytest

from experiments import run as command
from experiments.kit import kept, report
from experiments.kit.pages import keeping
from sim.base.errors import WrongSetting
from sim.platform import cluster

DATA = sorted((Path(__file__).parents[2] / "docs" / "data").glob("*.json"))


def data_of(page: str) -> dict:
    """The data in a page."""
    return json.loads(re.findall(r'<script type="application/json" id="report">(.*?)</script>', page, re.S)[0])


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


@pytest.mark.parametrize("path", DATA, ids=[path.stem for path in DATA])
def test_a_page_has_all_that_is_kept(path):
    found = kept.read(path)
    page = report.page(found, "Title")
    assert check_figures(page) == bool(found.cells)
    assert data_of(page)["experiment"] == path.stem
    shown = {html.unescape(text).strip() for text in re.findall(r">([^<]*)<", page)}
    for part in found.shown:
        texts = [part] if isinstance(part, str) else [*part.columns, *(cell for row in part.rows for cell in row)]
        assert {text.strip() for text in texts} <= shown | {""}


def test_a_table_has_the_figures_of_its_cells(rows, tmp_path):
    predicted, further = rows
    with keeping() as shown:
        report.show(predicted, tmp_path, "fmb", further)
    found = kept.of(shown, "validate", "", "fmb", tmp_path)
    cells, regimes, others = found.tables
    assert [row[0] for row in cells.rows] == [row["cell"] for row in found.cells]
    assert len(found.cells) == len(predicted) + len(further)
    every = report.figures_of([*predicted, *further])
    counts = [table.columns.index("cells") for table in (regimes, others)]
    assert every["cells"] == sum(int(row[counts[0]]) for row in regimes.rows) + int(others.rows[-1][counts[1]])
    assert others.rows[-1][2] == f"{report.mean_absolute(further):.2%}"


@pytest.mark.parametrize(
    ("words", "said"),
    [(["validate", "--report", "r.pdf"], ".html"), (["seeds", "--report", "no/r.html"], "no")],
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
    from experiments.kit import cells

    (predicted, further), cell = rows, pages.comparison("fmb", 1, "none", 0.1, 0.0)
    chosen = cells.Plan([], [row.cell for row in predicted], 1, 2, tuple(row.cell for row in further))
    monkeypatch.setattr(validate, "plan", lambda *_: chosen)
    names = [f"predict-{i}-{repeat}" for i in range(len(predicted) + len(further)) for repeat in range(2)]
    monkeypatch.setattr(validate, "measure", lambda *_, **__: dict.fromkeys(names))
    monkeypatch.setattr(validate, "fitted", lambda *_: cluster.one_rank_a_host(5))
    monkeypatch.setattr(cells, "predict", lambda *_: cell.predicted)
    monkeypatch.setattr(cells, "of_trace", lambda _: cell.measured[0])
    command.main(["validate", "--demo", "--out", str(tmp_path), "--report", str(tmp_path / "v.html")])
    page = data_of((tmp_path / "v.html").read_text())
    assert page == json.loads((tmp_path / "validate" / "validate.json").read_text())
    assert len(page["cells"]) == len(predicted) + len(further)
    assert page["command"] == "python -m experiments.run validate --demo"
