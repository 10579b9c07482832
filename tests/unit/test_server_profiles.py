"""Profiles of TensorFlow's own servers: planted chains are found again, and background work slows who needs the cores."""

import event
import numpy as np
import pandas as pd
import pytest

from calibration import profiles, servers
from calibration.profiles import Probe, Source
from sim import protocols, stragglers
from sim.answers.outcome import of_trace
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.laws import Constant, LogNormal
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform.cluster import Cluster, Host, Link
from sim.recording.traces import Activity, Trace

PER_BYTE_S = {"receive": 0.5e-9, "send": 0.2e-9}
RESUME_S = 3e-3
FURTHER = {"serial_s": 1e-4, "processor_s": 5e-4}


PROBED = {"latency_s": 0.3e-3, "bandwidth_bytes_per_s": 50e6, "fair": True, "burst_bytes": 90e3, "eager_bytes": 65536.0}
GRPC = Link(**PROBED | {"bandwidth_bytes_per_s": 40e6, "burst_bytes": 70e3})


def planted(
    name: str,
    batch: int,
    protocol: str = "ps-async",
    steps: int = 60,
    behind_s: float = 2e-3,
    wire: Link | None = None,
    work_s: float = 0.0,
    law: str = "none",
    spread: dict[str, LogNormal] | None = None,
    **header,
) -> Trace:
    """A run of one worker and one server, of two hosts if there is a wire, whose phases are known to the nanosecond.

    After a sleep the first of them takes RESUME_S more; `spread` has factors on phases, by name; `work_s` of a push the wire does
    not hide.
    """
    model = workload.read(name)
    size = model.message_bytes
    phases = {
        "input": 0.5e-3 + 1e-6 * batch,
        "receive": 0.8e-3 + PER_BYTE_S["receive"] * size,
        "compute": 1e-3 + 20e-6 * batch,
        "send": 0.3e-3 + PER_BYTE_S["send"] * size,
        "wait": 0.6e-3,
    }
    chain_s, hosts = sum(phases.values()), ["here", "here"]
    if wire:
        travel_s, hosts = (size - wire.burst_bytes) / wire.bandwidth_bytes_per_s, ["here", "there"]
        chain_s -= phases["send"]  # the wire hides it
        phases["receive"] += 2 * wire.latency_s + travel_s
        phases["send"] = wire.latency_s + travel_s + work_s
        phases["wait"] += wire.latency_s
    job = {"workers": header.pop("workers", 1), "steps": steps, "warmup": 5, "batch": batch}
    scenario = Scenario(protocols.make(protocol), model, stragglers=stragglers.read(law), **job)
    sleeps, rows, now_s = scenario.draws.sleeps(0, 1), [], 0.0
    laws, draws = spread or {}, np.random.default_rng(0)
    factors = {name: laws.get(name, Constant(value=1)).draw(draws, scenario.rounds) for name in phases}
    for step in range(scenario.rounds):
        if sleeps[step] > 0:
            rows.append(Activity(now_s, now_s + sleeps[step], 1, step, "sleep"))
            now_s += sleeps[step]
        resumed = {"input": RESUME_S} if sleeps[step] > 0 else {}
        for activity, usual_s in phases.items():
            seconds = usual_s * factors[activity][step] + resumed.get(activity, 0.0)
            about = (batch if activity in ("input", "compute") else 0, size, 0, step)
            rows.append(Activity(now_s, now_s + seconds, 1, step, activity, *about))
            now_s += seconds
        served_s = now_s - phases["wait"]
        rows.append(Activity(served_s, served_s, 0, step, "reduce", batch, size, 1, step))
        rows.append(Activity(served_s, served_s + 1e-4, 0, step, "update", batch, size, 1, step + 1))
    used_s = (chain_s + behind_s) * steps
    details = {"cpu_s": {"0": 0.25 * used_s, "1": 0.75 * used_s}, "hosts": tuple((host, 2) for host in hosts)}
    return Trace.of(scenario.header("tensorflow", **details), rows)


def profile(traces: list[Trace], contention: float = 0.0) -> Cluster:
    probe = Probe(cores=2, local={"latency_s": 0}, further_server={"asynchronous": FURTHER})
    if not contention:
        return profiles.make([Source(f"{i}", trace) for i, trace in enumerate(traces)], "here", probe)
    found = servers.fit(traces, [""] * len(traces), 2, contention, probe.further_server["asynchronous"])
    host = Host(cores=2, slots=9, contention=contention)
    return Cluster(hosts=(host,), costs=found.costs, **found.links)


FITTED = [("mlp", 100), ("toy_fc", 100), ("toy_fc", 400)]


@pytest.mark.slow
@pytest.mark.parametrize("batch", [100, 250, 400])
@pytest.mark.parametrize("contention", [0.0, 0.3])
def test_the_profile_repeats_what_was_planted(batch, contention):
    """At fitted batches and between them; contention is taken out of what is fitted and put back by the simulator."""
    made = profile([planted(*cell) for cell in FITTED], contention)
    scenario = Scenario(
        protocols.make("ps-async"), workload.read("toy_fc"), workers=1, steps=40, warmup=5, batch=batch, cluster=made
    )
    simulated_s = of_trace(event.trace(scenario)).step_s.mean()
    real = planted("toy_fc", batch)
    assert simulated_s == pytest.approx(of_trace(real).step_s.mean(), rel=0.03)


@pytest.mark.parametrize("contention", [0.0, 0.3])
@pytest.mark.parametrize("cells", [FITTED, FITTED[:1]])
def test_a_profile_of_two_hosts_has_what_grpc_makes_of_the_link(cells, contention):
    """Of models of two sizes its bandwidth and burst; of one size the probe's, and what is then left of the step is work."""
    traces = [planted(*cell, wire=GRPC) for cell in cells]
    made = servers.fit(traces, [""] * len(traces), 2, contention, servers.FurtherServer(), Link(**PROBED))
    network = made.links["network"]
    if len(cells) > 1:
        assert network.bandwidth_bytes_per_s == pytest.approx(GRPC.bandwidth_bytes_per_s, rel=1e-3)
        assert network.burst_bytes == pytest.approx(GRPC.burst_bytes, rel=0.02)
    else:
        assert (network.bandwidth_bytes_per_s, network.burst_bytes) == (
            PROBED["bandwidth_bytes_per_s"],
            PROBED["burst_bytes"],
        )
    assert network.eager_bytes is None
    name, batch = cells[-1]
    host = Host(count=2, cores=2, slots=1, contention=contention)
    cluster = Cluster(hosts=(host,), network=network, costs=made.costs)
    job = {"workers": 1, "steps": 40, "warmup": 5, "batch": batch, "cluster": cluster}
    simulated_s = of_trace(event.trace(Scenario(protocols.make("ps-async"), workload.read(name), **job))).step_s.mean()
    real_s = of_trace(planted(name, batch, wire=GRPC)).step_s.mean()
    assert simulated_s == pytest.approx(real_s, rel=0.02)


@pytest.mark.parametrize("contention", [0.0, 0.3])
def test_nothing_is_faster_than_the_link_that_was_probed(contention):
    """A small model's push has work in it that the wire does not hide: large ones then seem to travel fast, and share a port so."""
    wire = Link(**PROBED)
    traces = [planted(*cell, wire=wire, work_s=0.2e-3 if cell[0] == "mlp" else 0.0) for cell in FITTED]
    network = servers.fit(traces, [""] * len(traces), 2, contention, servers.FurtherServer(), wire).links["network"]
    assert network == wire.model_copy(update={"eager_bytes": None, "overhead_s": 0.0})


@pytest.mark.slow
def test_what_a_sleep_costs_besides_is_found_again():
    """From runs that sleep; all other costs are those of the runs that do not."""
    awake = [planted(*cell) for cell in FITTED]
    made = profile([*awake, *(planted("toy_fc", batch, law="niagara*0.02") for batch in (100, 400))])
    assert made.costs["toy_fc"].resume_s == pytest.approx(RESUME_S, rel=0.02)
    assert made.costs["mlp"].resume_s == 0
    without = profile(awake).costs["toy_fc"]
    assert made.costs["toy_fc"].model_copy(update={"resume_s": 0.0, "error": without.error}) == without


@pytest.mark.slow
def test_input_and_computation_vary_each_by_itself():
    """What is neither computation nor the model's travels is charged as input, and varies as it did."""
    spread = {"input": LogNormal(cv=0.4), "wait": LogNormal(cv=0.4), "compute": LogNormal(cv=0.1)}
    costs = profile([planted("mlp", 100, steps=400, spread=spread)]).costs["mlp"]
    assert costs.input_noise.cv == pytest.approx(0.4 / 2**0.5, rel=0.15)  # of two that take equally long
    assert costs.noise.cv == pytest.approx(0.1, rel=0.15)


def test_a_phase_shorter_than_the_clocks_that_time_it():
    """One step's computation seems to end as its parameters come: the profile is that of the others."""
    trace = planted("mlp", 100)
    rows = trace.rows.copy()
    came, computed = ((rows["step"] == 30) & (rows["activity"] == name) for name in ("receive", "compute"))
    rows.loc[came, "end_s"] = rows.loc[computed, "start_s"] = rows.loc[computed, "end_s"].item()
    costs = profile([Trace(trace.header, rows)]).costs["mlp"]
    assert costs.compute.base_s == pytest.approx(3e-3, rel=0.03)
    assert 0 < costs.noise.quantile(0.01) <= costs.noise.quantile(0.99) < 2


@pytest.mark.slow
def test_many_workers_are_bound_by_processor_time():
    """Four workers on two cores: each gradient takes half of the processor seconds that one takes alone, and what cores idle."""
    made = profile([planted(*cell) for cell in FITTED])
    scenario = Scenario(
        protocols.make("ps-async"), workload.read("toy_fc"), workers=4, steps=40, warmup=5, batch=400, cluster=made
    )
    real = planted("toy_fc", 400)
    processor_s = sum(real.header.cpu_s.values()) / 60
    assert 0.99 < of_trace(event.trace(scenario)).step_s.mean() / 4 / (processor_s / 2) < 1.06


@pytest.mark.slow
def test_a_second_server_costs_what_was_probed():
    made = profile([planted(*cell) for cell in FITTED])
    job = {"workers": 1, "steps": 40, "batch": 400, "cluster": made}
    jobs = (Scenario(protocols.make("ps-async"), workload.read("toy_fc"), servers=s, **job) for s in (1, 2))
    step_s = [of_trace(event.trace(one)).step_s.mean() for one in jobs]
    assert made.local.overhead_s == pytest.approx(FURTHER["serial_s"] / 4)
    assert made.local.background_s == pytest.approx((FURTHER["processor_s"] - FURTHER["serial_s"]) / 8)
    assert -0.3e-3 < step_s[1] - step_s[0] < 0.3e-3  # halves travel beside one another


def of_two_workers(trace: Trace) -> Trace:
    """The second did what the first did."""
    rows = trace.rows
    return Trace(trace.header, pd.concat([rows, rows[rows["rank"] == 1].assign(rank=2)], ignore_index=True))


@pytest.mark.parametrize(
    ("traces", "complaint"),
    [
        ([planted("mlp", 100), of_two_workers(planted("mlp", 100, workers=2))], "1 worker and 1 server"),
        ([planted("mlp", 100), planted("mlp", 100, protocol="ps-sync")], "one of the two"),
        ([planted("mlp", 100), planted("mlp", 100, wire=GRPC)], "one host, or one for each, in all"),
        ([planted("mlp", 100, law="niagara*0.02")], "runs of mlp without stragglers too"),
        ([planted("mlp", 100, wire=GRPC)], "--probe: missing; needed: a probe of the link"),
    ],
)
def test_what_cannot_be_fitted_together_is_refused(traces, complaint):
    with pytest.raises(WrongSetting, match=complaint):
        profile(traces)


def alone(cores: int, background_s: float, **job) -> Trace:
    """A process that takes 1 ms for a step's input and computes for 9 ms, with work behind it."""
    costs = Costs(input=Line(base_s=0.001), compute=Line(base_s=0.009), background=Line(base_s=background_s))
    cluster = Cluster(hosts=(Host(cores=cores),), costs={"mlp": costs})
    job = {"workers": 0, "steps": 50, "warmup": 2} | job
    return event.trace(Scenario(protocols.make("fmb"), workload.read("mlp"), cluster=cluster, **job))


@pytest.mark.parametrize(("cores", "expected_s"), [(1, 0.014), (2, 0.01)])
def test_background_work_takes_a_core_from_who_needs_it(cores, expected_s):
    step_s = of_trace(alone(cores, 0.004)).step_s.mean()
    assert step_s == pytest.approx(expected_s, rel=0.02)  # what begins in one step may end in the next


def test_background_work_of_messages_takes_both_ends():
    """One core for all: a step is as much longer as the four messages' eight ends are behind."""

    def step_s(background_s: float) -> float:
        local = Link(latency_s=0, overhead_s=0, bandwidth_bytes_per_s=float("inf"), background_s=background_s)
        costs = {"mlp": Costs(compute=Line(base_s=0.01))}
        cluster = Cluster(hosts=(Host(cores=1, slots=2),), local=local, costs=costs)
        scenario = Scenario(
            protocols.make("ps-async"), workload.read("mlp"), workers=1, steps=20, warmup=2, cluster=cluster
        )
        return float(of_trace(event.trace(scenario)).step_s.mean())

    assert step_s(1e-4) - step_s(0.0) == pytest.approx(8e-4, rel=0.01)


@pytest.mark.parametrize("read_s", [1.005, 1.4])
def test_a_late_gradient_is_told_from_one_whose_clock_was_read_late(read_s):
    """An update takes one gradient of two workers, the first: even if its clock was read after the update had ended."""
    from real.servers.transcript import renumbered

    update = [Activity(t, t + 0.01, 0, 0, "update", 200, 100) for t in (1.0, 2.0)]
    on_time = Activity(read_s, read_s + 0.001, 0, 0, "reduce", 100, 100, 1, 0)
    late = Activity(1.5, 1.51, 0, 0, "reduce", 100, 100, 2, 0)
    fresh = Activity(1.6, 1.61, 0, 0, "reduce", 100, 100, 1, 1)
    header = Scenario(protocols.make("ps-backup"), workload.read("mlp"), workers=2).header("tensorflow")
    kept = renumbered(Trace.of(header, [*update, on_time, late, fresh])).rows
    added = kept[kept["activity"] == "reduce"]
    assert added["start_s"].tolist() == [read_s, 1.6]
    assert added["step"].tolist() == [0, 1]
    assert kept[kept["activity"] == "update"]["step"].tolist() == [0, 1]


@pytest.mark.slow
def test_a_chain_is_the_mean_of_runs_and_steps():
    """A mean step is what is predicted: one run in three that takes half as long again counts, as do slow steps that are not rare."""
    slow = {"compute": Constant(value=1.5)}
    costs = profile([*(planted("mlp", 100) for _ in range(2)), planted("mlp", 100, spread=slow)]).costs["mlp"]
    assert costs.compute.base_s == pytest.approx(3e-3 * (1 + 0.5 / 3))
    assert costs.update.base_s == pytest.approx(1e-4)
    uneven = planted("mlp", 100, steps=400, spread={"compute": LogNormal(cv=0.5)})
    computed = uneven.rows[(uneven.rows["activity"] == "compute") & (uneven.rows["step"] >= uneven.header.warmup)]
    mean_s = (computed["end_s"] - computed["start_s"]).mean()
    assert servers.chain_of(uneven).phase_s["compute"] == pytest.approx(mean_s)


def test_the_mean_chain_leaves_accidents_out():
    """A worker's, and a server's."""
    rows = planted("mlp", 100, steps=200)
    slow = rows.rows.copy()
    for activity in ("compute", "update"):
        slow.loc[(slow["step"] == 50) & (slow["activity"] == activity), "end_s"] += 5.0
    chain, usual = servers.chain_of(Trace(rows.header, slow)), servers.chain_of(rows)
    assert chain.phase_s == pytest.approx(usual.phase_s, rel=1e-6)
    assert chain.length_s == pytest.approx(usual.length_s, rel=1e-6)
    assert np.isfinite(chain.behind_s)
