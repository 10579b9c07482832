"""Allreduce for real: every algorithm leaves the simulator's record, and equal parameters on every rank."""

from __future__ import annotations

import pytest
from alike import ends_alike, record, simulated
from processes import under_mpirun

from sim import protocols, stragglers
from sim.job.scenario import Scenario
from sim.language.collectives import NAMES
from sim.model import workload
from sim.platform.cluster import Cluster, Host
from sim.recording.traces import NOBODY, read

pytestmark = pytest.mark.mpi
WORKERS = (2, 3, 4)
CELLS = [(name, True) for name in NAMES] + [("ring", False), ("auto", False)]
RUNS = [(name, fused, workers) for name, fused in CELLS for workers in WORKERS if fused or workers == 3]
LUCK = "niagara*0.002"
JOB = ["--engine", "numpy", "--workload", "mlp", "--batch", "32", "--steps", "6", "--warmup", "2", "--optimiser", "sgd"]
JOB += ["--stragglers", LUCK, "--test-size", "40", "--evaluate-every", "1"]


@pytest.fixture(scope="module")
def real_traces(campaign):
    cells = {"fmb": ["--protocol", "fmb", "--workers", 3, *JOB]}
    for algorithm, fused, workers in RUNS:
        settings = ["--set", f"algorithm={algorithm}", "--set", f"fused={fused}"]
        cells[f"{algorithm}-{fused}-{workers}"] = ["--protocol", "allreduce", "--workers", workers, *JOB, *settings]
    return campaign(cells)


@pytest.mark.parametrize(("algorithm", "fused", "workers"), RUNS)
def test_parameters_stay_equal_on_all_ranks(real_traces, algorithm, fused, workers):
    trace = read(real_traces / f"{algorithm}-{fused}-{workers}.parquet")
    assert len(trace.header.details["parameters_crc32"]) == trace.header.ranks == workers
    assert ends_alike(trace)
    updates = trace.rows[trace.rows["activity"] == "update"]
    assert len(updates) == 8 * workers
    assert (updates["samples"] == 32 * workers).all()


@pytest.mark.parametrize(("algorithm", "fused"), CELLS)
def test_it_learns_what_a_master_learns(real_traces, algorithm, fused):
    """The same minibatches and stochastic gradient descent: the same losses, but for the order of sums."""
    master, own = (read(real_traces / f"{name}.parquet") for name in ("fmb", f"{algorithm}-{fused}-3"))
    losses = [[loss for _, loss, _ in trace.header.evaluations] for trace in (master, own)]
    assert len(losses[0]) == 8
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)


@pytest.mark.parametrize("fused", [True, False])
def test_auto_is_one_call_of_mpi_which_has_no_peers(real_traces, fused):
    """As calibration takes its runs: a wait at the barrier, then one `receive` of all that is summed, for each call."""
    trace = read(real_traces / f"auto-{fused}-3.parquet")
    rows, variables = trace.rows, len(workload.read("mlp").variables)
    assert not set(rows["activity"]) & {"send", "reduce"}
    calls = rows[rows["activity"] == "receive"]
    assert (calls["peer"] == NOBODY).all()
    each = calls.groupby(["rank", "step"])["bytes"].agg(["size", "sum"])
    assert (each["size"] == (1 if fused else variables)).all()
    assert (each["sum"] == 4 * workload.read("mlp").parameters).all()


@pytest.mark.parametrize(("algorithm", "fused", "workers"), [run for run in RUNS if run[0] != "auto"])
def test_real_and_simulated_records_are_equal(real_traces, algorithm, fused, workers):
    scenario = Scenario(
        protocols.make("allreduce", [f"algorithm={algorithm}", f"fused={fused}"]),
        workload.read("mlp"),
        workers=workers,
        batch=32,
        steps=6,
        warmup=2,
        cluster=Cluster(hosts=[Host(slots=8)]),
        stragglers=stragglers.read(LUCK),
        test_size=40,
        evaluate_every=1,
    )
    assert record(read(real_traces / f"{algorithm}-{fused}-{workers}.parquet")) == record(simulated(scenario))


def test_sums_are_right_however_many_chunks_and_ranks():
    """And nobody waits for a rank that waits for it."""
    under_mpirun(5, "tests/mpi/sum_for_real.py")
