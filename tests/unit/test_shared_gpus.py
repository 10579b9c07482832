"""Ranks that share a GPU take time slices; a fit of such runs finds what switching between them costs."""

from dataclasses import replace

import event
import numpy as np
import pytest

from calibration.estimators import lines
from calibration.profiles import Source, make
from sim import protocols
from sim.answers.outcome import of_trace
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform.cluster import Cluster, Host, Link
from sim.recording.traces import Trace

COMPUTE_S, SWITCHING, BATCH = 0.1, 0.2, 32
FREE = Link(latency_s=0, overhead_s=0, bandwidth_bytes_per_s=float("inf"))
COSTS = Costs(compute=Line(base_s=COMPUTE_S))


def job(workers: int, gpus: int = 1, costs: Costs = COSTS, switching: float = SWITCHING, **given) -> Scenario:
    """On one host of so many GPUs, whose first rank is the master."""
    host = Host(cores=16, gpus=gpus, slots=9, switching=switching)
    where = Cluster(hosts=[host], network=FREE, local=FREE, costs={"mlp": costs})
    about = {"workers": workers, "steps": 4, "warmup": 1, "batch": BATCH, "cluster": where, **given}
    return Scenario(protocols.make("fmb"), workload.read("mlp"), **about)


def step_s(scenario: Scenario) -> float:
    return float(of_trace(event.trace(scenario)).step_s.mean())


@pytest.mark.parametrize(
    ("workers", "gpus", "switching", "takes"),
    [
        (1, 1, SWITCHING, 1),
        (2, 1, 0.0, 2),
        (2, 1, SWITCHING, 2 * (1 + SWITCHING)),
        (8, 1, SWITCHING, 8 * (1 + SWITCHING)),
        (4, 4, SWITCHING, 1),
        (8, 4, SWITCHING, 2 * (1 + SWITCHING)),
        (2, 1, -0.5, 1),
    ],
)
def test_ranks_on_one_gpu_go_at_their_share_of_its_pace(workers, gpus, switching, takes):
    assert step_s(job(workers, gpus, switching=switching)) == pytest.approx(takes * COMPUTE_S)


PLANTED = Costs(
    compute=Line(base_s=8e-3), to_host=Line(slope_s=1e-9), update=Line(base_s=1e-3), noise=LogNormal(cv=0.05)
)


def measured(workers: int, seed: int) -> Source:
    """A run as if it had been real: its header says that GPUs computed."""
    trace = event.trace(job(workers, costs=PLANTED, steps=60, seed=seed))
    hosts = (("node", 16),) * trace.header.ranks
    return Source(f"{workers}-{seed}", Trace(replace(trace.header, hosts=hosts, gpus=1), trace.rows))


@pytest.mark.slow
def test_what_was_planted_is_recovered():
    """From 1, 2 and 4 ranks on one GPU; a profile that took each for alone would be three times too slow."""
    made = make([measured(workers, seed) for workers in (1, 2, 4) for seed in range(2)], "gpu")
    (host,) = made.hosts
    assert (host.gpus, host.cores, host.contention) == (1, 16, 0.0)
    assert host.switching == pytest.approx(SWITCHING, abs=0.03)
    assert made.costs["mlp"].compute(BATCH) == pytest.approx(8e-3, rel=0.03)
    assert any("switching 0.2" in note for note in made.provenance.notes)
    known = {"mlp": made.costs["mlp"].at_the_median()}
    eight = step_s(replace(job(8, steps=30), cluster=made.model_copy(update={"local": FREE, "costs": known})))
    assert eight == pytest.approx(step_s(job(8, costs=PLANTED, steps=30)), rel=0.05)
    alone = make([measured(1, seed) for seed in range(2)], "alone")
    assert alone.hosts[0].switching == 0.0  # nothing is known of it


FLOORED = Costs(compute=Line(base_s=1e-3, slope_s=1e-5, floor_s=6e-3), noise=LogNormal(cv=0.05))


@pytest.mark.slow
def test_a_floor_is_recovered_and_none_is_invented():
    """Batches of 32 to 2,048: those below 500 take the floor. Without one, a line explains them all."""
    batches, found = (32, 128, 512, 1024, 2048), {}
    for costs in (FLOORED, FLOORED.model_copy(update={"compute": Line(base_s=1e-3, slope_s=1e-5)})):
        runs = [event.trace(job(1, costs=costs, steps=40, batch=batch)) for batch in batches]
        made = make([Source(f"{batch}", run) for batch, run in zip(batches, runs, strict=True)], "floor").costs["mlp"]
        found[costs.compute.floor_s] = made.compute.floor_s
        for batch in (32, 256, 768, 1536, 4096):
            assert made.compute(batch) == pytest.approx(costs.compute(batch), rel=0.05)
            assert made.partition(batch) == pytest.approx(max(costs.compute.floor_s, 1e-5 * batch), rel=0.05)
    assert found == {6e-3: pytest.approx(6e-3, rel=0.03), 0.0: 0.0}


def test_runs_that_drift_show_no_floor():
    """Each run is off by up to a half, two of each batch: the smallest batch looks slow by chance."""
    batches = np.array([32, 64, 128, 256])
    off = np.exp([0.5, 0.1, -0.3, -0.2, 0.4, -0.2, 0.0, -0.4])
    amounts, runs = np.repeat(batches, 2).repeat(20), np.arange(8).repeat(20)
    seconds = (1e-3 + 1e-5 * amounts) * off.repeat(20)
    assert lines.floored(amounts, seconds, runs)[2] == 0.0
    assert lines.floored(amounts, np.maximum(7e-3, 1e-3 + 5e-5 * amounts), runs)[2] == pytest.approx(7e-3)
