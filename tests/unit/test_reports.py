"""Reports as files, without a browser (tests/browser has one): whole, escaped, their figures valid, refused with reasons."""

import importlib.util
import json
import re
from html import unescape

import numpy as np
import pytest

from sim import reports, run
from sim.base.errors import WrongSetting
from sim.base.tables import flattened
from sim.reports import figures

JOB = ("--workers=2", "--steps=8", "--warmup=2", "--replications=3", "--stragglers=none")


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """The text of a page of sim.run."""
    path = tmp_path_factory.mktemp("report") / "r.html"
    run.main([*JOB, "--protocol=amb", "--what-if=workers=3", "--json", "--report", str(path)])
    return path.read_text()


def drawn(page: str) -> dict[str, dict]:
    """The figures of a page, by name."""
    found = re.findall(r'<figure id="(\w+)">\s*<script type="application/json">(.*?)</script>', page, re.S)
    return {name: json.loads(text) for name, text in found}


def test_figures_are_what_the_library_knows(answered):
    from plotly.graph_objects import Figure

    found = drawn(answered)
    assert set(found) == {"what_if_figure", "step_times", "samples"}
    for one in found.values():
        Figure(**one)  # raises ValueError at an unknown property


def test_a_wrong_property_would_be_seen():
    from plotly.graph_objects import Figure

    with pytest.raises(ValueError, match="colour"):
        Figure(data=[{"type": "bar", "marker": {"colour": "red"}}])


def test_figures_have_the_numbers_of_the_json(answered):
    answer = json.loads(re.findall(r'<script type="application/json" id="report">(.*?)</script>', answered, re.S)[0])
    found = drawn(answered)
    (change,) = answer["what_if"]
    (points,) = found["what_if_figure"]["data"]
    assert points["x"] == [change["throughput_ratio"]]
    marks = [line["x"][0] for line in found["step_times"]["data"][1:]]
    assert marks == [value * 1e3 for value in answer["step_s"].values()]


def test_nothing_is_loaded_from_a_network(answered):
    without_library = re.sub(r"<script>/\*\*.*?</script>", "", answered, count=1, flags=re.S)
    assert len(without_library) < 200_000
    assert not re.findall(r"https?:", without_library)
    assert "default-src 'none'" in answered


def test_what_users_write_is_text():
    odd = "</script><b>&'\""
    page = reports.page(odd, [reports.Section(odd, [reports.Text(odd), reports.Table((odd,), [(odd,)])])], {odd: odd})
    assert odd not in page
    assert "<b>&" not in page
    assert "<b>" not in figures.label(odd)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_json_lacks_are_null_in_data_and_an_error_in_figures(value):
    assert '{"a": [null]}' in reports.page("t", [], {"a": [value]})
    with pytest.raises(ValueError, match="JSON"):
        reports.page("t", [reports.Section("s", [reports.Figure([{"x": [value]}], {})])])


def test_intervals_without_ends_have_no_bars():
    figure = figures.intervals(["a", "b", "c"], [1.0, 2.0, 3.0], [(0.5, 2.0), None, (np.nan, np.nan)], "x")
    assert figure.data[0]["error_x"]["array"] == [1.0, None, None]
    assert figure.data[0]["error_x"]["arrayminus"] == [0.5, None, None]


def test_rows_are_as_high_as_their_labels_and_equal_names_are_rows_of_their_own():
    long = "protocol=horovod, algorithm=hierarchical, workers=32, network.bandwidth=100 Gbit/s"
    few, many = (figures.intervals([name, name], [1.0, 2.0], [None, None], "x") for name in ("a", long))
    assert many.data[0]["y"] == [0, 1]
    lines = many.layout["yaxis"]["ticktext"][0].count("<br>") + 1
    assert many.layout["height"] - few.layout["height"] > 3 * figures.LINE_PX * (lines - 2)


def test_the_head_says_what_was_cut_short_and_what_the_answer_rests_on(capsys, tmp_path):
    path, short = tmp_path / "r.html", ("--protocol=amb", "--steps=9", "--what-if=workers=3", "--json", "--explain")
    run.main([*short, "--within=0.001", "--report", str(path)])
    answer = json.loads(capsys.readouterr().out)
    run.main([*short[:2], "--within=0.001", "--explain"])
    first = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("measure first"))
    head = unescape(re.findall(r"<h2>The answer</h2>(.*?)<table", path.read_text(), re.S)[0])
    kinds = re.findall(r'<p class="(\w+)">(.*?)</p>', head)
    assert answer["done"] != answer["asked"]
    assert [kind for kind, _ in kinds[:2]] == ["answer", "note"]
    assert kinds[1][1] == answer["notes"][-1]
    assert "because time ran out" in kinds[1][1]
    assert first.replace("measure first", "measure first:").split() in [said.split() for _, said in kinds]
    assert [said for _, said in kinds].count(answer["notes"][-1]) == 1
    (change,) = answer["what_if"]
    cut = any("time ran out" in note for note in change["answer"]["notes"])
    assert cut == any(said.startswith("what if workers=3: ") for _, said in kinds)


def test_steps_that_do_not_vary_are_one_bar():
    for steps_ms in (np.ones(5), 22225.0 + 1e-9 * np.arange(5)):
        (bar,) = figures.histogram(steps_ms, {}, "x").data
        assert bar["y"] == [100]
        assert bar["width"] == [pytest.approx(1.0)]


@pytest.mark.parametrize("library", ["plotly", "jinja2"])
def test_a_missing_library_is_one_line(library, tmp_path, monkeypatch):
    known = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == library else known(name))
    with pytest.raises(WrongSetting, match=rf"--report: .*{library}.*pip install"):
        reports.check(str(tmp_path / "r.html"))


def test_settings_have_dotted_paths():
    assert list(flattened({"a": {"b": [1, {"c": "x"}]}, "d": None})) == [("a.b.0", "1"), ("a.b.1.c", "x")]
