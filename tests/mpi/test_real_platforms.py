"""The comparison of platforms, for real and small: three runtimes train alike, and the simulator's answer stands beside."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments import platforms

pytestmark = [pytest.mark.mpi, pytest.mark.tensorflow]
NAMES = ("TensorFlow servers, barrier", "TensorFlow collectives", "MPI, allreduce", "MPI, master")


def test_synchronous_platforms_agree_and_are_laid_beside_the_simulator(tmp_path, monkeypatch, capfd):
    few = [platform for platform in platforms.PLATFORMS if platform.name in NAMES]
    predicted = [replace(platform, fitted=platform.fitted if platform.fitted == "mpi" else None) for platform in few]
    monkeypatch.setattr(platforms, "PLATFORMS", predicted)
    platforms.run(tmp_path, workload="mlp", steps=8)
    shown = capfd.readouterr().out
    # on a busy machine a fast worker takes both tokens of TensorFlow's servers: such a run need not agree
    assert shown.count(" agrees") == len(NAMES) - ("need not: " in shown)
    assert "DISAGREES" not in shown
    assert "is seen" in shown
