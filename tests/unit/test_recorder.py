"""What a rank keeps of itself while it runs."""

import time

import pytest

from real.recording.recorder import Recorder
from sim.recording.traces import Activity


def test_processor_time_is_of_measured_steps(monkeypatch):
    """The first step has a start's expenses, and what comes after the last row is no step's."""
    now_s = iter([0.0, 5.0, 6.0, 6.25, 6.75])
    monkeypatch.setattr(time, "process_time", lambda: next(now_s))
    recorder = Recorder(rank=1, warmup=2)
    for step in (0, 1, 2, 3):
        recorder.add(Activity(0.0, 0.0, 0, step, "update"))  # another rank's, which it knows of
        recorder.add(Activity(0.0, 0.0, 1, step, "compute"))
    assert recorder.cpu_s == pytest.approx(0.75)
