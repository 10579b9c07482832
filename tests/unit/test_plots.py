"""Pictures are made, of each kind, and refused with reasons."""

from dataclasses import replace

import numpy as np
import pytest

from sim import plots
from sim.answers.outcome import Outcome, of_trace
from sim.base.errors import WrongSetting
from sim.recording.traces import ACTIVITIES, Trace


@pytest.mark.parametrize(("ending", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_each_ending_is_its_format(trace, tmp_path, ending, magic):
    plots.gantt(trace, tmp_path / f"run.{ending}")
    assert (tmp_path / f"run.{ending}").read_bytes().startswith(magic)


def test_picture_names_ranks_and_activities(trace, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("matplotlib").rcParams, "svg.fonttype", "none")
    plots.gantt(trace, tmp_path / "run.svg")
    picture = (tmp_path / "run.svg").read_text()
    for text in ("master", "worker 1", "compute", "2 of 2 measured steps", "mean 3500 ms"):
        assert text in picture


def test_only_the_first_measured_steps_are_drawn(trace):
    rows = plots._within(trace.rows, 2.0, 4.0)
    assert rows.start_s.min() == 2.0
    assert rows.end_s.max() == 4.0
    assert plots._start_s(trace) == 2.0


def test_without_warm_up_the_picture_starts_at_zero(trace):
    assert plots._start_s(Trace(replace(trace.header, warmup=0), trace.rows)) == 0.0


def test_steps_that_do_not_vary_can_be_drawn(tmp_path):
    plots.summary(Outcome(np.ones((2, 5)), np.ones((2, 5)), np.zeros((2, 2))), tmp_path / "s.png", "equal steps")
    assert (tmp_path / "s.png").stat().st_size > 1000


def test_every_activity_has_a_colour_of_its_own():
    assert set(plots.COLOURS) == set(ACTIVITIES)
    assert len(set(plots.COLOURS.values())) == len(ACTIVITIES)


@pytest.mark.parametrize("name", ["run.gif", "run"])
def test_unknown_ending_is_refused(trace, tmp_path, name):
    with pytest.raises(WrongSetting, match=r"--plot.*\.png, \.pdf or \.svg"):
        plots.gantt(trace, tmp_path / name)
    with pytest.raises(WrongSetting, match="--plot"):
        plots.summary(of_trace(trace), tmp_path / name, "")
