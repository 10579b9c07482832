"""A real run says what it was trained on, where that is not what its model is known for."""

from types import SimpleNamespace

import pytest

from real.data import data_for
from real.run import trained_on
from sim.model.workload import read as read_workload


def said(workload: str, data: str | None = None) -> list[str]:
    found = data_for(read_workload(workload), data, 0)
    details = {"data": found.name, "synthetic_data": found.synthetic}
    return trained_on(SimpleNamespace(header=SimpleNamespace(details=details)))


@pytest.mark.parametrize(
    ("workload", "size"),
    [pytest.param("cifar10", "32x32x3", marks=pytest.mark.slow), ("mnist", "28x28"), ("mlp", "28x28")],
)
def test_digits_that_are_enlarged_are_said(workload, size):
    (line,) = said(workload)
    assert line.startswith(f"trained on digits resized to {size}")
    assert "--data takes files" in line


@pytest.mark.parametrize(("workload", "data"), [("mnist", "synthetic"), ("bigram", None)])
def test_drawn_data_are_said(workload, data):
    (line,) = said(workload, data)
    assert "drawn at random" in line


def test_nothing_is_said_of_files_or_of_a_trace_without_data():
    assert trained_on(SimpleNamespace(header=SimpleNamespace(details={"data": "mnist.npz"}))) == []
    assert trained_on(SimpleNamespace(header=SimpleNamespace(details={}))) == []
