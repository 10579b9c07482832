"""What a master takes to send and to receive, and a worker for partitions: plans, arithmetic and tables, on planted runs."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pages
import pytest

from experiments import master_bandwidth, partitions
from experiments.kit.comparison import Comparison
from experiments.kit.pages import keeping
from real.cells import Cell, refusal
from sim.recording.traces import Activity, Trace


def job(cell: Cell) -> Cell:
    """What is run, whatever its steps and random seed."""
    return replace(cell, steps=1, warmup=0, seed=0)


PLANS = {
    "master-bandwidth": lambda demo: (master_bandwidth.plan(demo, 0).fitted, master_bandwidth.plan(demo, 0).predicted),
    "partitions": lambda demo: (partitions.fit_cells(demo, 0), partitions.predicted_cells(demo, 0)),
}


@pytest.mark.parametrize("demo", [True, False])
@pytest.mark.parametrize("name", PLANS)
def test_what_is_predicted_is_not_fitted_and_can_be_run(name, demo):
    fits, predicted = PLANS[name](demo)
    assert not {job(cell) for cell in fits} & {job(cell) for cell in predicted}
    assert {cell.workload for cell in fits} == {cell.workload for cell in predicted}
    assert not any(refusal(cell) for cell in [*fits, *predicted])


def test_a_demo_is_smaller():
    for plan in PLANS.values():
        assert sum(map(len, plan(True))) < sum(map(len, plan(False))) / 1.5


def test_no_minibatch_has_more_partitions_than_samples():
    cells = partitions.fit_cells(False, 0) + partitions.predicted_cells(False, 0)
    assert all(cell.partitions <= cell.batch for cell in cells if cell.protocol == "amb")


def of_steps(header, broadcasts) -> Trace:
    """Steps of a second: parameters are with the last of two workers after so long, and gradients take 0.3 s, 0.1 s of it twice."""
    rows = [Activity(0.0, 1.0, 0, 0, "update", 8, version=1)]
    for step, took_s in enumerate(broadcasts, 1):
        rows += [Activity(step, step + 0.05, 0, step, "send", peer=rank) for rank in (1, 2)]
        rows += [Activity(step, step + took_s / rank, rank, step, "receive", peer=0) for rank in (1, 2)]
        rows += [Activity(step + start, step + start + 0.2, 0, step, "receive", peer=1) for start in (0.5, 0.6)]
        rows += [Activity(step + 0.9, step + 1.0, 0, step, "update", 8, version=step + 1)]
    return Trace.of(replace(header, workers=2, steps=len(broadcasts)), rows)


def test_a_broadcast_ends_when_the_last_worker_has_it(header):
    assert master_bandwidth.broadcast_s(of_steps(header, [0.2, 0.2, 0.2])) == pytest.approx(0.2)


def test_a_step_that_was_disturbed_does_not_count(header):
    assert master_bandwidth.broadcast_s(of_steps(header, [0.1, 0.4, 0.1])) == pytest.approx(0.1)


def test_what_overlaps_counts_once(header):
    assert master_bandwidth.reduce_s(of_steps(header, [0.1, 0.1])) == pytest.approx(0.3)


@pytest.fixture
def planted():
    """Of two models and one or two workers: a tenth too long."""
    rng = np.random.default_rng(0)
    cells = [Cell("fmb", workers, 16, workload=model) for model in ("mlp", "toy_fc") for workers in (1, 2)]
    return [
        master_bandwidth.Moved(cell, phase, 1.1e-3 * rng.normal(1, 1e-3, 9), np.array([0.99e-3, 1.01e-3]))
        for cell in cells
        for phase in master_bandwidth.PHASES
    ]


def test_errors_and_floors_are_shown_and_cells_kept(planted, tmp_path, capsys):
    with keeping() as shown:
        master_bandwidth.show(planted, tmp_path)
    assert "broadcast: mean absolute error 10.0%, noise floor 2.0%" in " ".join(capsys.readouterr().out.split())
    assert [one["predicted_step_s"] for one in shown[0]] == [row.said_s for row in planted]


def test_partitions_are_told_from_few_to_many(tmp_path, capsys):
    rows = [
        Comparison(
            Cell("amb", 1, 64, 3600.0, partitions=count), pages.outcome(said, 5, 64), [pages.outcome(real, 1, 64)] * 2
        )
        for count, said, real in ((16, 0.3, 0.4), (1, 0.1, 0.1))
    ]
    (of,) = partitions.by_minibatch(rows).values()
    assert [row.cell.partitions for row in of] == [1, 16]
    assert partitions.slowdown(of) == pytest.approx((3.0, 4.0), rel=0.1)
    partitions.show(rows, tmp_path)
    assert re.search(r"16 partitions take [23]\.\d\d times as long \(measured: [34]\.\d\d\)", capsys.readouterr().out)
