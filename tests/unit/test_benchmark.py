"""The arithmetic of the benchmark, on traces whose steps are planted."""

import numpy as np
import pytest

from experiments import benchmark
from experiments import run as command
from experiments.benchmark import best, efficiencies, gather
from real.cells import Cell, interleaved
from sim.base.errors import WrongSetting
from sim.recording.traces import Activity, Header, Trace

BATCH, STEPS = 100, 4
CELLS = benchmark.cells(3, STEPS, 0, "digits", protocol="ps-sync", workload="mlp")
STEP_S = {  # of each repeat; a slow first one and a slow last one, which a median passes over
    "1w-1s-synthetic": (0.02, 0.01, 0.01),
    "1w-1s-real": (0.04, 0.02, 0.01),
    "2w-1s-synthetic": (0.02, 0.02, 0.08),
    "2w-1s-real": (0.02, 0.04, 0.16),
    "2w-2s-synthetic": (0.04, 0.0125, 0.0125),
    "2w-2s-real": (0.05, 0.025, 0.025),
    **{
        f"3w-{servers}s-{data}": (s, s, s)
        for servers, s in ((1, 0.03), (2, 0.02), (3, 0.03))
        for data in ("synthetic", "real")
    },
}


def planted(cell: Cell, step_s: float) -> Trace:
    """Steps of `step_s`, a quarter of it fetching data, after a warm-up that is all fetching and takes ten times as long."""
    warm_up_s, rows = 10 * step_s, []
    for step in range(cell.warmup + cell.steps):
        warm = step < cell.warmup
        start_s = warm_up_s * min(step, cell.warmup) + step_s * max(0, step - cell.warmup)
        end_s = start_s + (warm_up_s if warm else step_s)
        rows.append(Activity(start_s, end_s, 0, step, "update", cell.workers * BATCH))
        for worker in range(cell.workers):
            fetched_s = end_s if warm else start_s + step_s / 4
            rows.append(Activity(start_s, fetched_s, cell.servers + worker, step, "input", BATCH))
    about = {"workers": cell.workers, "servers": cell.servers, "steps": cell.steps, "warmup": cell.warmup}
    return Trace.of(Header("ps-sync", "tensorflow", "mlp", batch=BATCH, seed=0, **about), rows)


@pytest.fixture(scope="module")
def rows() -> list[benchmark.Row]:
    traces = {f"{name}-{i}": planted(CELLS[name], s) for name, each in STEP_S.items() for i, s in enumerate(each)}
    return gather(CELLS, traces, 3)


def test_every_number_of_servers_up_to_the_workers_is_run_on_both_kinds_of_data():
    found = benchmark.cells(3, STEPS, 7, "mine.npz", protocol="ps-async", workload="mlp")
    pairs = [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)]
    assert [(c.workers, c.servers, c.data) for c in found.values()] == [
        (*pair, data) for pair in pairs for data in ("synthetic", "mine.npz")
    ]
    assert {(c.warmup, c.steps, c.runtime, c.protocol, c.seed) for c in found.values()} == {
        (10, STEPS, "tensorflow", "ps-async", 7)
    }
    words = found["3w-2s-real"].real_words()
    for option, value in (("--servers", "2"), ("--runtime", "tensorflow"), ("--data", "mine.npz")):
        assert words[words.index(option) + 1] == value


def test_throughput_is_the_median_of_the_repeats_after_warm_up(rows):
    medians = {(r.workers, r.servers): (r.synthetic.median, r.real.median) for r in rows}
    assert medians == {
        (1, 1): pytest.approx((10_000, 5_000)),
        (2, 1): pytest.approx((10_000, 5_000)),
        (2, 2): pytest.approx((16_000, 8_000)),
        (3, 1): pytest.approx((10_000, 10_000)),
        (3, 2): pytest.approx((15_000, 15_000)),
        (3, 3): pytest.approx((10_000, 10_000)),
    }
    assert rows[0].synthetic.spread == pytest.approx((10_000 - 5_000) / 10_000)


def test_efficiency_is_against_the_best_of_one_worker_on_the_same_data(rows):
    winners = best(rows)
    assert {workers: row.servers for workers, row in winners.items()} == {1: 1, 2: 2, 3: 2}
    assert efficiencies(winners[2], winners[1]) == pytest.approx({"synthetic": 0.8, "real": 0.8})
    assert efficiencies(rows[1], winners[1]) == pytest.approx({"synthetic": 0.5, "real": 0.5})


def test_what_real_data_cost_is_worked_out_repeat_by_repeat_and_input_is_that_of_steps_after_warm_up(rows):
    assert rows[0].input_cost == pytest.approx([0.5, 0.5, 0])
    assert rows[1].input_cost == pytest.approx([0, 0.5, 0.5])
    assert rows[2].synthetic.input_s == pytest.approx(np.array([0.04, 0.0125, 0.0125]) / 4)


def test_repeats_are_apart_and_every_cell_is_in_each():
    cells = [(name, cell, 2 + (name == "1w-1s-real")) for name, cell in CELLS.items()]
    *names, last = [name for name, _ in interleaved(cells, seed=0)]
    first, second = names[: len(CELLS)], names[len(CELLS) :]
    assert last == "1w-1s-real-2"
    assert set(first) == {f"{name}-0" for name in CELLS}
    assert set(second) == {f"{name}-1" for name in CELLS}
    assert [name[:-2] for name in first] != [name[:-2] for name in second]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["benchmark", "--workers", "0"], "--workers"),
        (["benchmark", "--data", "synthetic"], "--data"),
        (["benchmark", "--data", "nothing.npz"], "--data"),
        (["benchmark", "--protocol", "nothing"], "--protocol"),
        (["benchmark", "--workload", "nothing"], "--workload"),
        (["platforms", "--workers", "0"], "--workers"),
        (["platforms", "--steps", "3"], "--steps"),
        (["platforms", "--data", "nothing.npz"], "--data"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_run(words, named, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WrongSetting, match=f"^{named}:"):
        command.main(words)
