"""Profiles of libraries that sum: planted costs of calls and messages are found again, and the simulator charges them."""

from functools import cache

import event
import numpy as np
import pytest
from event import agree

from calibration import collectives, profiles
from calibration.collectives import Amounts
from calibration.profiles import Probe, Source
from sim import protocols
from sim.answers.outcome import of_trace
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform.cluster import Cluster, Host, Link
from sim.recording.traces import Activity, Trace

CYCLE_S, CALL_S, MESSAGE_S, LATENCY_S = 0.9e-3, 0.3e-3, 0.4e-3, 0.3e-3
CALL_BYTE_S, TAKEN_BYTE_S = 0.4e-9, 1.0e-9
OWN = {"input": 0.1e-3, "pack": 0.3e-3, "update": 4e-3}  # seconds of each step


def amounts(name: str, ranks: int, fused: bool) -> Amounts:
    """By hand: two ranks take half of what is summed in each of two rounds."""
    variables = workload.read(name).variables
    size, calls = 4.0 * (sum(v.size for v in variables) + 1), 1 if fused else len(variables)
    return Amounts(calls, size, 2 * calls * (ranks - 1), size * (ranks - 1))


def planted(name: str, ranks: int, fused: bool, batch: int = 256, world: str = "horovod", steps: int = 30) -> Trace:
    """A run whose every second is known."""
    sums, compute_s = amounts(name, ranks, fused), 1e-3 + 30e-6 * batch
    elapsed_s = np.dot(sums, (CYCLE_S + CALL_S, CALL_BYTE_S, MESSAGE_S + LATENCY_S, TAKEN_BYTE_S))
    worked_s = np.dot(sums, (CALL_S, CALL_BYTE_S, MESSAGE_S, TAKEN_BYTE_S))
    settings = [f"fused={fused}", "algorithm=ring"]
    made = Scenario(
        protocols.make("allreduce", settings), workload.read(name), workers=ranks, steps=steps, warmup=5, batch=batch
    )
    rows, now_s = [], 0.0
    for step in range(made.rounds):
        phases = [("input", OWN["input"]), ("compute", compute_s), ("receive", elapsed_s)]
        for activity, seconds in [*phases, ("pack", OWN["pack"]), ("update", OWN["update"])]:
            samples = {"input": batch, "compute": batch, "update": batch * ranks}.get(activity, 0)
            size = int(sums.call_bytes) if activity in ("receive", "pack", "update") else 0
            rows += [Activity(now_s, now_s + seconds, r, step, activity, samples, size) for r in range(ranks)]
            now_s += seconds
    used_s = (sum(OWN.values()) + compute_s + worked_s) * made.steps
    details = {"cpu_s": {str(r): used_s for r in range(ranks)}, "hosts": (("here", 2),) * ranks}
    return Trace.of(made.header(world, **details), rows)


CELLS = [(name, ranks, fused) for name in ("mlp", "toy_fc") for ranks in (1, 2) for fused in (True, False)]


def fitted(world: str = "horovod"):
    traces = [planted(*cell, world=world) for cell in CELLS]
    return collectives.fit(traces, [""] * len(traces), 2, 0.0)


@pytest.mark.parametrize("world", ["horovod", "tensorflow"])
def test_planted_costs_are_found(world):
    found = fitted(world)
    calls, link = found.of_calls, found.local
    assert calls["agree_s"] == pytest.approx(CYCLE_S, rel=0.02)
    assert calls["call"].base_s == pytest.approx(CALL_S, rel=0.02)
    assert calls["call"].slope_s == pytest.approx(CALL_BYTE_S, rel=0.05)
    assert link.latency_s == pytest.approx(LATENCY_S, rel=0.02)
    assert 1 / link.bandwidth_bytes_per_s == pytest.approx(TAKEN_BYTE_S, rel=0.05)
    expected = (0.0, 2 * MESSAGE_S) if world == "horovod" else (MESSAGE_S, 0.0)  # negotiation, or the ring's messages
    assert (link.overhead_s, calls["negotiate_s"]) == pytest.approx(expected, rel=0.02)
    assert link.wakes


def test_work_that_nobody_waits_for_is_charged_behind():
    """Processor time beyond the elapsed: a TensorFlow whose threads work on while the sum is there."""
    traces = [planted(*cell, world="tensorflow") for cell in CELLS]
    more_s = 1e-3  # of each message
    for trace, cell in zip(traces, CELLS, strict=True):
        rounds = trace.header.steps
        for rank in trace.header.cpu_s:
            trace.header.cpu_s[rank] += more_s * amounts(*cell).messages * rounds
    link = collectives.fit(traces, [""] * len(traces), 2, 0.0).local
    assert link.latency_s == 0
    assert link.background_s == pytest.approx((more_s - LATENCY_S) / 2, rel=0.05)


@cache  # to fit it, all its runs are simulated
def profile(world: str):
    sources = [Source(str(i), planted(*cell, world=world)) for i, cell in enumerate(CELLS)]
    return profiles.make(sources, "here", Probe(cores=2, local={"latency_s": 0}))


@pytest.mark.slow
@pytest.mark.parametrize("world", ["horovod", "tensorflow"])
@pytest.mark.parametrize("cell", CELLS)
def test_the_simulator_repeats_what_was_planted(world, cell):
    """The profile, simulated with a core for each rank, gives the planted runs' steps."""
    name, ranks, fused = cell
    settings = [f"fused={fused}", "algorithm=ring"]
    protocol, where = protocols.make("allreduce", settings), profile(world)
    job = Scenario(protocol, workload.read(name), workers=ranks, steps=20, batch=256, cluster=where)
    real = of_trace(planted(*cell, world=world)).step_s.mean()
    assert of_trace(event.trace(job)).step_s.mean() == pytest.approx(real, rel=0.03)


def test_runs_of_more_ranks_than_cores_are_refused():
    trace = planted("mlp", 2, True)
    with pytest.raises(WrongSetting, match="at most 1"):
        collectives.fit([trace], ["run"], 1, 0.0)


def test_two_libraries_are_refused():
    traces = [planted("mlp", 2, True, world=world) for world in ("horovod", "tensorflow")]
    with pytest.raises(WrongSetting, match="one library"):
        collectives.fit(traces, ["a", "b"], 2, 0.0)


def ring(cores: int, link: Link, workers: int = 2, **costs) -> float:
    """Mean step, seconds, of ranks on one host that compute for 10 ms and sum a model of two variables, unfused."""
    model = workload.Workload(name="two", variables=[{"name": n, "shape": [250]} for n in "ab"])
    cluster = Cluster(
        hosts=(Host(cores=cores, slots=9),), local=link, costs={"two": Costs(compute=Line(base_s=0.01), **costs)}
    )
    text = protocols.make("allreduce", ["algorithm=ring", "fused=false"])
    return of_trace(
        event.trace(Scenario(text, model, workers=workers, steps=5, warmup=0, cluster=cluster))
    ).step_s.mean()


FREE = Link(latency_s=0, overhead_s=0, bandwidth_bytes_per_s=float("inf"))


@pytest.mark.parametrize(("cores", "expected_s"), [(2, 0.01 + 2 * 1.5e-3), (1, 0.02 + 0.5e-3 + 4 * 1e-3)])
def test_agreement_sleeps_and_a_call_works(cores, expected_s):
    """Of two calls a step; on one core the work of the two ranks adds up, and most of their sleep is beside the other's work."""
    assert ring(cores, FREE, agree_s=0.5e-3, call=Line(base_s=1e-3)) == pytest.approx(expected_s, rel=1e-6)


def test_one_rank_does_not_negotiate():
    assert ring(2, FREE, workers=1, negotiate_s=1e-3) == pytest.approx(0.01)
    assert ring(2, FREE, workers=2, negotiate_s=1e-3) == pytest.approx(0.012)


@pytest.mark.parametrize(("cores", "sooner"), [(1, True), (4, False)])
def test_busy_cores_need_no_waking(cores, sooner):
    """On one core a message that leaves while another rank works arrives at once; where each has its own, none does."""
    link = FREE.model_copy(update={"latency_s": 5e-3, "overhead_s": 1e-3})
    asleep_s, woken_s = (ring(cores, link.model_copy(update={"wakes": wakes}), workers=4) for wakes in (False, True))
    assert (woken_s < 0.9 * asleep_s) == sooner
    assert sooner or woken_s == asleep_s


def test_the_engine_charges_a_call_alike():
    costs = {"agree_s": 1e-3, "negotiate_s": 2e-4, "call": Line(base_s=3e-4, slope_s=1e-9)}
    model = workload.read("mlp")
    cluster = Cluster(hosts=(Host(count=3),), costs={"mlp": Costs(compute=Line(base_s=0.01), **costs)})
    text = protocols.make("allreduce", ["algorithm=ring", "fused=false"])
    agree(Scenario(text, model, workers=3, steps=5, cluster=cluster))


def overlapping(name: str, ranks: int, tail_s: float) -> Trace:
    """A run of Horovod's own text: gradients ready in 10 ms, the sums `tail_s` later, 2 ms of work behind."""
    text = protocols.make("horovod", ["algorithm=ring", "order=end"])
    job = Scenario(text, workload.read(name), workers=ranks, steps=20, warmup=2, batch=100)
    rows, period_s = [], 0.01 + tail_s
    for step in range(job.rounds):
        for rank in range(ranks):
            begin_s = step * period_s
            rows.append(Activity(begin_s, begin_s + 0.01, rank, step, "compute", 100))
            rows.append(Activity(begin_s + 0.01, begin_s + period_s, rank, step, "receive", 0, 100))
    details = {"cpu_s": {str(r): 0.012 * job.steps for r in range(ranks)}, "hosts": (("here", 2),) * ranks}
    return Trace.of(job.header("horovod", **details), rows)


def test_what_overlaps_has_the_latency_of_its_last_call():
    """Two ranks, one call: half a cycle, 2 ms of work, and two messages each of a negotiation and of the ring."""
    tail_s = 0.5e-3 + 2e-3 + 4 * LATENCY_S
    traces = [overlapping(name, 2, tail_s) for name in ("mlp", "toy_fc")]
    found = collectives.fit(traces, ["a", "b"], 2, 0.0)
    assert found.local.latency_s == pytest.approx(LATENCY_S, rel=0.05)
    assert found.of_calls["agree_s"] == 0  # its text has cycles of its own


def test_calls_that_overlap_are_as_many_as_cycles_find_gradients():
    trace = overlapping("toy_fc", 2, 4e-3)
    assert len(collectives.pieces_of(trace)) == 1
    trace.header.settings["order"] = "uniform"  # 8 variables over 6.7 ms
    pieces = collectives.pieces_of(trace)
    assert 6 <= len(pieces) <= 8
    assert pieces[-1].start == 0


def test_apart_and_overlapping_are_refused_together():
    with pytest.raises(WrongSetting, match="one of the two"):
        collectives.fit([planted("mlp", 2, True), overlapping("mlp", 2, 4e-3)], ["a", "b"], 2, 0.0)
