"""What a master takes to send and to receive, and a worker for partitions: plans, arithmetic and tables, on planted runs."""

import re
from dataclasses import replace

import pages
import pytest

from experiments import master_bandwidth, partitions
from experiments.kit.comparison import Comparison
from experiments.kit.pages import keeping
from real.cells import Cell
from sim.recording.traces import Activity, Trace


def of_steps(header, broadcasts) -> Trace:
    """Steps of a second: parameters are with the last of two workers after so long, and gradients take 0.3 s, 0.1 s of it twice."""
    rows = [Activity(0.0, 1.0, 0, 0, "update", 8, version=1)]
    for step, took_s in enumerate(broadcasts, 1):
        rows += [Activity(step, step + 0.05, 0, step, "send", peer=rank) for rank in (1, 2)]
        rows += [Activity(step, step + took_s / rank, rank, step, "receive", peer=0) for rank in (1, 2)]
        rows += [Activity(step + start, step + start + 0.2, 0, step, "receive", peer=1) for start in (0.5, 0.6)]
        rows += [Activity(step + 0.9, step + 1.0, 0, step, "update", 8, version=step + 1)]
    return Trace.of(replace(header, workers=2, steps=len(broadcasts)), rows)


def test_a_broadcast_ends_when_the_last_worker_has_it_and_what_overlaps_of_gradients_counts_once(header):
    """A step that was disturbed does not count."""
    trace = of_steps(header, [0.2, 0.4, 0.2])
    assert master_bandwidth.broadcast_s(trace) == pytest.approx(0.2)
    assert master_bandwidth.reduce_s(trace) == pytest.approx(0.3)


def test_errors_and_floors_are_shown_and_cells_kept(header, tmp_path, capsys):
    """Of a broadcast that is said to take a tenth too long; its runs differ by 2 %."""
    said, *real = (of_steps(header, [took_s] * 3) for took_s in (0.22, 0.198, 0.202))
    rows = list(master_bandwidth.moved(Cell("fmb", 2, 16, workload="mlp"), [said] * 2, real))
    with keeping() as shown:
        master_bandwidth.show(rows, tmp_path)
    assert "broadcast: mean absolute error 10.0%, noise floor 2.0%" in " ".join(capsys.readouterr().out.split())
    assert [one["predicted_step_s"] for one in shown[0]] == pytest.approx([0.22, 0.3])


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
