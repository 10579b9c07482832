"""Horovod's background thread: without overlap it is allreduce; with it, back-propagation hides what it can."""

import math

import event
import numpy as np
import pytest
from event import by_engine

from sim import protocols
from sim.answers.outcome import of_trace
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.language import buffers
from sim.language.engine import programs
from sim.model.costs import Costs, Line
from sim.model.nominal import layer_shares
from sim.model.workload import Variable, Workload
from sim.model.workload import read as read_workload
from sim.platform.cluster import Cluster, Host, Link
from sim.platform.cluster import read as read_cluster

LINK = Link(latency_s=1e-3, overhead_s=2e-4, gap_s=3e-5, bandwidth_bytes_per_s=1e9)
SIZES = [100_000 * (i + 1) for i in range(7)] + [800_000]  # divisible by 8
LAYERS = Workload(name="layers", variables=[Variable(name=f"w{i}", shape=(size,)) for i, size in enumerate(SIZES)])
BYTES = 4 * LAYERS.parameters
COUNTED = 4 * len(SIZES)  # bytes, at most, of a message by which ranks agree: it has an item for each gradient
CYCLE_S = 1e-6  # the shortest
COSTS = Costs(compute=Line(base_s=0.3), pack=Line(slope_s=1e-10), reduce=Line(slope_s=1e-10), update=Line(base_s=1e-3))


def job(
    name: str = "horovod", *settings: str, workers: int = 4, speeds=None, cores=2, link=LINK, **options
) -> Scenario:
    """Two cores a host: one computes, one is left to the background thread."""
    costs = options.pop("costs", COSTS)
    hosts = [Host(name=f"h{i}", cores=cores, slots=1, speed=speed) for i, speed in enumerate(speeds or [1.0] * workers)]
    cluster = Cluster(hosts=hosts, network=link, costs={"layers": costs})
    options = {"steps": 2, "warmup": 1, "batch": 10, **options}
    protocol = protocols.make(name, ["algorithm=ring", *settings])
    return Scenario(protocol, LAYERS, workers, cluster=cluster, **options)


def step_s(scenario: Scenario) -> float:
    return float(of_trace(event.trace(scenario)).step_s.mean())


@pytest.mark.parametrize("workers", [1, 2, 4, 8])
def test_one_buffer_and_no_overlap_is_allreduce(workers):
    """And a negotiation, up and down a tree, and a copy out of the buffer more."""
    message_s = LINK.latency_s + 2 * LINK.overhead_s + LINK.occupancy_s(COUNTED)
    more_s = 2 * math.log2(workers) * message_s + COSTS.pack(BYTES)
    plain = job(
        "allreduce", workers=workers, warmup=0, costs=COSTS.model_copy(update={"pack": Line(base_s=COSTS.pack(BYTES))})
    )
    alike = job("horovod", "order=end", "cycle_s=0", workers=workers, warmup=0)
    # All ranks begin it together, and the last ends it.
    first_s = [event.run(one)[0].step_s[0, 0] for one in (alike, plain)]
    assert first_s[0] == pytest.approx(first_s[1] + more_s, abs=1.1 * CYCLE_S)


@pytest.mark.parametrize("workers", [2, 4, 8])
def test_negotiating_by_name_is_a_message_for_each_variable_of_each_rank(workers):
    """Rank 0 takes V + 1 of each other rank, as they come, and sends two back to each; the last rank takes the last. Two latencies."""
    link = LINK.model_copy(update={"gap_s": 0.0, "bandwidth_bytes_per_s": 1e15})

    def agreed_s(by_name: bool) -> float:  # in the first step, which all ranks begin together
        rows = event.trace(
            job("horovod", "order=end", "cycle_s=0", f"by_name={by_name}", workers=workers, link=link)
        ).rows
        rows = rows[rows["step"] == 0]
        ends_s, begins_s = rows[rows["activity"] == "compute"]["end_s"], rows[rows["activity"] == "pack"]
        return float(begins_s.groupby("rank")["start_s"].min().max() - ends_s.max())

    named_s = 2 * link.latency_s + (2 + (workers - 1) * (len(SIZES) + 3)) * link.overhead_s
    tree_s = 2 * math.log2(workers) * (link.latency_s + 2 * link.overhead_s)
    assert agreed_s(True) == pytest.approx(named_s, abs=1.1 * CYCLE_S)
    assert agreed_s(False) == pytest.approx(tree_s, abs=1.1 * CYCLE_S)


@pytest.mark.parametrize("order", ["parameters", "uniform", "end"])
@pytest.mark.parametrize("fusion_bytes", [0, 2**20, 2**27])
def test_bytes_are_conserved_however_they_are_fused(order, fusion_bytes):
    rows = event.trace(job("horovod", f"order={order}", f"fusion_bytes={fusion_bytes}")).rows
    sent = rows[(rows["activity"] == "send") & (rows["bytes"] > COUNTED)].groupby("step")["bytes"].sum()
    assert (sent == 2 * 3 * BYTES).all()


def test_back_propagation_hides_communication_but_for_what_is_ready_last():
    """Not slower than one after the other, not faster than the longer; a third of compute is before the first gradient."""
    fast, slow = (LINK.model_copy(update={"bandwidth_bytes_per_s": b}) for b in (1e8, 2e7))
    for link in (fast, slow):
        apart_s, together_s = (
            step_s(job("horovod", f"order={o}", "fusion_bytes=0", link=link)) for o in ("end", "uniform")
        )
        communication_s = apart_s - 0.3
        assert max(0.3, communication_s + 0.1) < together_s < apart_s
    hidden_s = step_s(job("horovod", "order=end", link=fast)) - step_s(job("horovod", "order=uniform", link=fast))
    assert hidden_s > 0.05


def test_one_core_has_nothing_to_hide_what_it_does_itself():
    """Copies and sums take the core from the computing: in all they take what they take."""
    busy = COSTS.model_copy(update={"reduce": Line(slope_s=1e-8)})
    one, two = (step_s(job(cores=cores, costs=busy)) for cores in (1, 2))
    assert one > two + 0.05


def test_nothing_is_sent_before_it_is_ready():
    """The slow rank's first variable is ready when all is computed: its bytes leave after that."""
    trace = event.trace(job("horovod", "order=uniform", "fusion_bytes=0", workers=2, speeds=[1, 0.25]))
    rows = trace.rows[(trace.rows["rank"] == 1) & (trace.rows["step"] == 0)]
    computed_s = rows[rows["activity"] == "compute"]["end_s"].max()
    sent = rows[(rows["activity"] == "send") & (rows["bytes"] > COUNTED)]
    assert sent[sent["start_s"] >= computed_s]["bytes"].sum() == pytest.approx(4 * SIZES[0], abs=4)
    assert sent[sent["start_s"] < computed_s]["bytes"].sum() == pytest.approx(BYTES - 4 * SIZES[0], abs=4)


def test_a_longer_cycle_fuses_more_in_fewer_calls():
    def calls(cycle_s: float) -> int:
        rows = event.trace(job("horovod", f"cycle_s={cycle_s}", "order=uniform")).rows
        return int((rows["activity"] == "send").sum())

    assert calls(1e-3) > calls(0.06) > calls(0.5)


def test_all_wait_for_the_slowest_and_only_when_they_have_computed():
    trace = event.trace(job(speeds=[1, 1, 1, 0.25], link=LINK.model_copy(update={"bandwidth_bytes_per_s": 1e12})))
    assert of_trace(trace).step_s.mean() == pytest.approx(1.2, rel=0.05)
    idle = of_trace(trace).idle_fraction[0]
    np.testing.assert_allclose(idle, [0.75, 0.75, 0.75, 0], atol=0.03)


def test_gradients_are_ready_in_proportion():
    assert layer_shares([1, 3], "parameters") == pytest.approx([1 / 6, 1 / 2])
    assert layer_shares([1, 3], "uniform") == pytest.approx([1 / 3, 1 / 3])
    assert layer_shares([1, 3], "end") == [0, 0]


@pytest.mark.parametrize(("is_here", "runtime"), [(True, "horovod"), (False, "mpi")])
def test_horovod_runs_for_real_by_itself_where_it_is_installed(monkeypatch, is_here, runtime):
    from real.run import parse
    from real.runtimes import runtime_of

    monkeypatch.setattr("real.libraries.entries.find_spec", lambda module: is_here)
    assert runtime_of(parse(["--protocol", "horovod"])).world == runtime


@pytest.mark.parametrize("setting", ["algorithm=best", "fusion_bytes=-1", "cycle_s=-1", "order=first"])
def test_wrong_settings(setting):
    with pytest.raises(WrongSetting, match=setting.split("=")[0]):
        protocols.make("horovod", [setting])


@pytest.mark.parametrize("name", ["resnet50", "bert_large"])
def test_gradients_that_count_as_ready_together_change_a_step_by_less_than_a_percent(name, monkeypatch):
    def step_of() -> float:
        where = read_cluster("p3.16xlarge*2")
        described = Scenario(protocols.make("horovod"), read_workload(name), 16, steps=4, cluster=where, batch=8)
        return float(by_engine(described).step_s.mean())

    together_s = step_of()
    monkeypatch.setattr(buffers, "AT_ONCE", 0.0)
    monkeypatch.setattr(programs, "_kept", [])  # of the constant before
    assert 0 < abs(step_of() / together_s - 1) < 0.01
