"""Reports as files: they have all that is printed, and its data; they are escaped, load nothing, and are refused with reasons."""

import json
import re
import shlex
from html import unescape
from urllib.parse import unquote

import pages
import pytest

from experiments.kit import kept, report
from experiments.kit.pages import keeping
from sim import report as of_answers
from sim import run


def data_of(page: str) -> dict:
    """The data in a page."""
    return json.loads(unquote(re.findall(r'href="data:application/json,([^"]*)"', page)[0]))


JOB = shlex.split("--protocol=amb --workers=2 --steps=8 --warmup=2 --replications=3 --what-if=workers=3 --explain")


def test_a_page_has_what_is_printed_and_its_data(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", of_answers.WIDTH)
    path = tmp_path / "r.html"
    run.main([*JOB, "--report", str(path)])
    said = "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())
    assert f"<pre>{said}</pre>" in unescape(path.read_text())
    assert "--what-if=workers=3" in path.read_text()
    monkeypatch.setenv("FORCE_COLOR", "1")  # of the terminal, not of a page
    run.main([*JOB, "--json", "--report", str(path)])
    assert "\x1b" not in path.read_text()
    assert data_of(path.read_text()) == json.loads(capsys.readouterr().out)


def test_nothing_is_loaded_and_what_users_write_is_text(tmp_path):
    odd, path = "</pre><script>&'\"{}", tmp_path / "r.html"
    of_answers.write(str(path), odd, lambda: print(odd), odd, {odd: [odd, float("nan")]})
    page = path.read_text()
    assert "<script" not in page
    assert not re.findall(r"https?:", page)
    assert "default-src 'none'" in page
    assert data_of(page) == {odd: [odd, None]}


@pytest.fixture(scope="module")
def rows():
    return pages.compared(), pages.further()


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
