"""The experiment `seeds`, with a few steps: what it prints, and where the training of seed 002 starts."""

import shlex

import numpy as np
import pytest

from experiments import seeds
from experiments.kit import kept, pages
from real.training.trainee import Training
from sim.model import workload
from sim.recording.traces import read


def test_first_weights_are_normal_and_biases_zero():
    model = workload.read("mlp")
    start = seeds._NormalStart(model, 3, Training(data="synthetic", engine="numpy")).initial()
    parts = np.split(start, np.cumsum([variable.size for variable in model.variables])[:-1])
    assert start.dtype == np.float32
    for variable, values in zip(model.variables, parts, strict=True):
        assert values.std() == pytest.approx(1.0 if len(variable.shape) > 1 else 0.0, abs=0.05)


@pytest.mark.slow
def test_every_worker_makes_all_epochs(monkeypatch, tmp_path):
    monkeypatch.setattr(seeds, "EPOCH_STEPS", 1)
    with pages.keeping() as parts:
        seeds.show_schlag("synthetic", 0)
    shown = kept.part(parts[0], tmp_path)
    assert [row[:3] for row in shown.rows] == [["1", "20", "0.42"], ["2", "40", "0.58"], ["3", "60", "0.65"]]


@pytest.mark.slow
def test_panels_are_drawn_by_the_command_that_is_printed(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(seeds, "AMB_STEPS", 1)
    monkeypatch.setattr(seeds.plot, "main", drawn.append)
    with pages.keeping() as parts:
        seeds.draw_panels(tmp_path, "synthetic", 0)
    assert shlex.split(parts[-1]) == ["python", "-m", "sim.plot", *drawn[0]]
    for name in seeds.AMB:
        trace = read(tmp_path / f"{name}.jsonl")
        assert (trace.header.protocol, trace.header.workers, len(trace.header.evaluations)) == (name, 10, 1)
