"""Pictures are made, of each kind, and refused with reasons."""

from dataclasses import replace

import event
import pytest

from sim import plot, protocols
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model import workload
from sim.recording import panels
from sim.recording.traces import ACTIVITIES, Trace
from sim.version import VERSION


def test_picture_names_ranks_and_activities(trace, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("matplotlib").rcParams, "svg.fonttype", "none")
    plot.side_by_side([trace], tmp_path / "run.svg")
    picture = (tmp_path / "run.svg").read_text()
    for text in ("master", "worker 1", "compute", "2 of 2 measured steps", "mean 3500 ms"):
        assert text in picture


def test_every_activity_has_a_colour_of_its_own():
    assert set(plot.COLOURS) == set(ACTIVITIES)
    assert len(set(plot.COLOURS.values())) == len(ACTIVITIES)


@pytest.mark.parametrize("name", ["run.gif", "run"])
def test_unknown_ending_is_refused(trace, tmp_path, name):
    with pytest.raises(WrongSetting, match=r"--output.*\.png, \.pdf or \.svg"):
        plot.side_by_side([trace], tmp_path / name)


def test_runs_side_by_side_show_equal_times(trace, tmp_path, monkeypatch):
    """The shorter run's panel goes on as long as the longer one's."""
    monkeypatch.setitem(__import__("matplotlib").rcParams, "svg.fonttype", "none")
    drawn = []
    monkeypatch.setattr(plot, "save", lambda figure, path, told: drawn.append(figure))
    short = Trace(replace(trace.header, steps=1), trace.rows[trace.rows.end_s <= 4.0])
    plot.side_by_side([trace, short], tmp_path / "both.svg")
    above = drawn[0].axes[:2]
    assert [axes.get_xlim() for axes in above] == [(2.0, 9.0), (2.0, 9.0)]
    assert "1 of 1 measured steps" in above[1].get_title(loc="left")


def test_a_panel_has_the_computing_of_measured_steps(trace):
    assert panels.computed_s(trace) == pytest.approx([4.8])


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--panels", "samples"], []], ids=["samples", "ranks"])
def test_several_traces_make_one_picture(words, trace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trace = Trace(replace(trace.header, batch=18), trace.rows)
    trace.write("a.jsonl")
    trace.write("b.parquet")
    assert plot.main(["a.jsonl", "b.parquet", *words, "-o", "both.png"]) == 0
    assert (tmp_path / "both.png").read_bytes().startswith(b"\x89PNG")


def test_every_run_has_a_style_of_its_own():
    assert len(set(panels.STYLES)) == len(panels.STYLES) == plot.MOST_TRACES


def test_more_runs_than_styles_are_refused(tmp_path):
    with pytest.raises(WrongSetting, match="at most 8"):
        plot.main([f"{i}.jsonl" for i in range(9)] + ["-o", str(tmp_path / "x.png")])


@pytest.mark.parametrize(
    ("ending", "magic", "key"),
    [("png", b"\x89PNG", b"Description"), ("pdf", b"%PDF", b"/Subject"), ("svg", b"<?xml", b"description")],
)
def test_a_picture_is_of_its_format_and_says_its_command_its_seeds_and_the_version(tmp_path, ending, magic, key):
    """Letters of a .pdf are of Type 42, because publishers refuse Type 3."""
    event.trace(Scenario(protocols.make("fmb"), workload.read("mlp"), steps=3, seed=71)).write(tmp_path / "run.jsonl")
    assert plot.main([str(tmp_path / "run.jsonl"), "-o", str(tmp_path / f"run.{ending}")]) == 0
    found = (tmp_path / f"run.{ending}").read_bytes()
    assert found.startswith(magic)
    assert key in found
    assert b"sim.plot" in found
    assert b"random seed 71" in found
    assert f"anytime-trainsim {VERSION}".encode() in found
    assert b"/Type3" not in found
