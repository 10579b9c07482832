"""A real MPI run and a simulated one leave the same record: who did what in which step, with whom, and how many bytes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from alike import record, simulated

from sim import protocols
from sim.answers.outcome import staleness_of
from sim.job.scenario import Scenario
from sim.model import workload
from sim.model.workload import HEADER_BYTES
from sim.recording.traces import Trace, read

pytestmark = pytest.mark.mpi

# With no limit every partition is done, with limit 0 only the first: the real run's samples are then certain.
CELLS = [
    ("fmb", []),
    ("amb", ["time_limit_s=3600", "partitions=4"]),
    ("amb", ["time_limit_s=0", "partitions=4"]),
    ("ps-sync", ["barrier=true"]),
    ("ps-ssp", ["staleness=0"]),
]
WORKERS, STEPS, WARMUP = (1, 2, 4), 6, 2
CLOCKS_S = 1e-3  # by which the clocks of two ranks may differ
# Workers that wait for nobody. Beside one worker's sleeps all else is short, however busy the machine is, so that the
# simulator knows what comes when; of several only the protocol's own rules are certain.
SLEEPS = "[[components]]\nmean_s = {0}\nstd_s = 0.004\nweight = 1\n"
SLEEPS_S = {1: 0.15, 2: 0.03, 3: 0.03}  # by workers
ALONE = [
    ("kbatch-async", ["gradients=2"]),
    ("amb-dg", ["time_limit_s=0", "partitions=4", "window_s=0.01"]),
    ("amb-dg", ["time_limit_s=3600", "partitions=4", "window_s=0.01"]),
]
TOGETHER = [
    ("kbatch-async", ["gradients=3"], 3),
    ("kbatch-async", ["gradients=2", "delay_std_s=0.05"], 3),
    ("amb-dg", ["time_limit_s=0.06", "partitions=4", "window_s=0.1"], 3),
    ("amb-dg", ["time_limit_s=0.05", "partitions=4", "window_s=0.05", "delay_std_s=0.05"], 2),
]
# Here the order of arrival decides who does how much, so that only laws hold.
TOKENS = ("ps-sync", "ps-backup", "ps-backup barrier=true")
SERVED = [
    *[("ps-async", 3, servers, 0) for servers in (1, 2, 3)],
    ("ps-ssp", 3, 2, 0),
    *[(protocol, workers, 2, seed) for protocol in TOKENS for workers, seed in ((2, 1), (4, 3))],
    *[(protocol, 2, 3, 4) for protocol in TOKENS],
    ("ps-sync", 1, 3, 5),
]


def order(trace: Trace) -> dict[int, list[str]]:
    """The activities of each rank but rank 0, one after another; rank 0's depend on the order of arrival."""
    rows = trace.rows[trace.rows["rank"] > 0].sort_values(["start_s", "end_s"], kind="stable")
    return {rank: list(of["activity"]) for rank, of in rows.groupby("rank")}


def name(protocol: str, settings: list[str], workers: int) -> str:
    return "-".join([protocol, *settings, str(workers)]).replace("=", "_")


def file_of(protocol: str, workers: int, servers: int, seed: int) -> str:
    return f"{protocol}-{workers}-{servers}-{seed}".replace(" ", "-").replace("=", "_")


@pytest.fixture(scope="module")
def real_traces(tmp_path_factory, campaign):
    folder, cells = tmp_path_factory.mktemp("conformance"), {}
    usual = ["--engine", "numpy", "--runtime", "mpi", "--workload", "mlp", "--batch", 32, "--warmup", 2]
    luck = ["--stragglers", "niagara*0.002", "--steps", 6]
    for workers in WORKERS:
        for protocol, settings in CELLS:
            evaluated = ["--test-size", 10, "--evaluate-every", 3]
            cells[name(protocol, settings, workers)] = [*usual, *luck, *evaluated, *asked(protocol, settings, workers)]
    for served in SERVED:
        protocol, workers, servers, seed = served
        of, *settings = protocol.split()
        cells[file_of(*served)] = [*usual, *luck, "--servers", servers, "--seed", seed, *asked(of, settings, workers)]
    for workers, seconds in SLEEPS_S.items():
        (folder / f"sleeps-{workers}.toml").write_text(SLEEPS.format(seconds))
    for protocol, settings, workers, steps in asynchronous():
        sleeps = ["--stragglers", folder / f"sleeps-{workers}.toml", "--steps", steps]
        cells[name(protocol, settings, workers)] = [*usual, *sleeps, *asked(protocol, settings, workers)]
    return campaign(cells, folder=folder)


def asked(protocol: str, settings: list[str], workers: int) -> list:
    return ["--protocol", protocol, "--workers", workers, *(f"--set={setting}" for setting in settings)]


def asynchronous() -> list[tuple[str, list[str], int, int]]:
    """Protocol, settings, workers and steps of the runs in which nobody waits."""
    return [(*cell, 1, 4) for cell in ALONE] + [(*cell, 15) for cell in TOGETHER]


def scenario_of(folder, protocol, settings, workers, steps) -> Scenario:
    """Of a real run of `asynchronous`."""
    from sim import stragglers

    luck = {"stragglers": stragglers.read(str(folder / f"sleeps-{workers}.toml"))}
    size = {"workers": workers, "batch": 32, "steps": steps, "warmup": 2}
    return Scenario(protocols.make(protocol, settings), workload.read("mlp"), **size, **luck)


@pytest.mark.parametrize(("protocol", "settings"), ALONE)
def test_one_worker_that_waits_for_nobody_leaves_the_simulated_record(real_traces, protocol, settings):
    """But for parameters that come as a step begins: the worker sees them in that step or in the next."""
    real = read(real_traces / f"{name(protocol, settings, 1)}.parquet")
    alike = simulated(scenario_of(real_traces, protocol, settings, 1, 4))
    assert whenever(real) == whenever(alike)
    assert staleness_of(real).max() <= staleness_of(alike).max() == 1


@pytest.mark.parametrize("world", ["mpi", "event"])
@pytest.mark.parametrize(("protocol", "settings", "workers"), TOGETHER)
def test_workers_that_wait_for_nobody_keep_the_rules(real_traces, protocol, settings, workers, world):
    """Those of the protocol, whoever is fast; how fast and how stale is for experiments to say."""
    scenario = scenario_of(real_traces, protocol, settings, workers, 15)
    real = real_traces / f"{name(protocol, settings, workers)}.parquet"
    trace = read(real) if world == "mpi" else simulated(scenario)
    rows = trace.rows
    made = rows[(rows["rank"] == 0) & (rows["activity"] == "update")].sort_values("start_s")
    added = rows[(rows["rank"] == 0) & (rows["activity"] == "reduce")].sort_values("start_s")
    assert list(made["version"]) == list(range(1, 18))
    adds = np.searchsorted(made["start_s"], added["start_s"])  # of which update each is
    each = np.bincount(adds, minlength=17)
    if protocol == "kbatch-async":
        assert set(each) == {scenario.protocol.gradients}
    else:
        assert each.min() >= 1
        between_s = made["start_s"].to_numpy()[1:] - made["end_s"].to_numpy()[:-1]
        assert between_s.min() > scenario.protocol.window_s - CLOCKS_S
    assert list(np.bincount(adds, added["samples"])) == list(made["samples"])
    _check_gradients(trace)
    if world == "mpi":  # the simulated one records a message when it is handed over
        _check_delays(trace, scenario)


def _check_gradients(trace) -> None:
    """What a server adds is what a worker computed, once, of the version that it had, which had been made before."""
    rows = trace.rows
    computed = rows[(rows["rank"] > 0) & (rows["activity"] == "compute")].sort_values("start_s")
    begun = computed.groupby(["rank", "step"]).agg({"samples": "sum", "version": "first", "start_s": "first"})
    known = Counter(
        (rank, of.samples, of.version) for (rank, _), of in zip(begun.index, begun.itertuples(), strict=True)
    )
    added = rows[(rows["rank"] == 0) & (rows["activity"] == "reduce")]
    assert len(added)
    assert Counter(added[["peer", "samples", "version"]].itertuples(index=False, name=None)) <= known
    made = rows[(rows["rank"] == 0) & (rows["activity"] == "update")]
    made_s = made.set_index("version")["end_s"]
    assert all(of.start_s > made_s.get(of.version, 0.0) - CLOCKS_S for of in begun.itertuples())
    assert staleness_of(trace).min() >= 0
    sent = rows[(rows["rank"] > 0) & (rows["activity"] == "send") & (rows["bytes"] > HEADER_BYTES)]
    for _, mine in sent.sort_values("start_s").groupby("rank"):  # one is on its way at most
        assert (mine["start_s"].to_numpy()[1:] >= mine["end_s"].to_numpy()[:-1] - CLOCKS_S).all()


def _check_delays(trace, scenario: Scenario) -> None:
    """Gradients are added later than they come, by a good part of the mean of the induced delays: the longest may outlast training."""
    std_s = scenario.protocol.delay_std_s
    rows = trace.rows[trace.rows["rank"] == 0]
    came = rows[(rows["activity"] == "receive") & (rows["bytes"] > HEADER_BYTES)]
    added = rows[rows["activity"] == "reduce"]
    assert len(came) == len(added)
    assert added["start_s"].mean() - came["end_s"].mean() >= std_s / 4


def whenever(trace) -> Counter:
    """The record, but for the steps in which the worker has received, and for what it took up of that.

    Nor is there what follows the last update: word of it finds the worker before its next step or in it.
    """
    rows = trace.rows
    served = rows["rank"] == 0
    came = ~served & rows["activity"].isin(["wait", "receive"])
    used = (served & (rows["activity"] == "reduce")).sum()
    end_s = rows.loc[served & (rows["activity"] == "update"), "start_s"].max()
    late = served & rows["activity"].isin(["wait", "receive"]) & (rows["start_s"] > end_s)
    late |= ~served & ~came & ((rows["step"] >= used) | (rows["activity"] == "update"))
    rows = rows.copy()
    rows.loc[came, "step"] = 0
    return record(Trace(trace.header, rows[~late]))


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize(("protocol", "settings"), CELLS)
def test_real_and_simulated_records_are_equal(real_traces, protocol, settings, workers):
    from sim import stragglers

    scenario = Scenario(
        protocols.make(protocol, settings),
        workload.read("mlp"),
        workers=workers,
        batch=32,
        steps=6,
        warmup=2,
        stragglers=stragglers.read("niagara*0.002"),
        test_size=10,
        evaluate_every=3,
    )
    real, alike = (
        in_time(read(real_traces / f"{name(protocol, settings, workers)}.parquet"), protocol),
        in_time(simulated(scenario), protocol),
    )
    assert record(real) == record(alike)
    assert order(real) == order(alike)


def in_time(trace, protocol: str) -> Trace:
    """Without rounds that workers begin before they hear that training is over, which ask a server that goes on without them."""
    rows = trace.rows[(trace.rows["rank"] == 0) | (trace.rows["step"] < STEPS + WARMUP)]
    asked = (rows["rank"] == 0) & rows["activity"].isin(["wait", "receive", "send"])
    return Trace(trace.header, rows[~asked] if protocol == "ps-ssp" else rows)


@pytest.mark.parametrize("served", SERVED, ids=lambda served: file_of(*served))
def test_servers_answer_every_gradient_once(real_traces, served):
    """A worker pushes to all servers alike what it computed on pulled parameters, but for a step that training's end cut short."""
    protocol, workers, servers, _ = served
    trace = read(real_traces / f"{file_of(*served)}.parquet")
    rows, header = trace.rows, trace.header
    assert header.ranks == servers + workers
    received = rows[(rows["rank"] >= servers) & (rows["activity"] == "receive") & (rows["bytes"] > HEADER_BYTES)]
    computed = rows[rows["activity"] == "compute"].groupby("rank").size()
    pushes = rows[(rows["activity"] == "send") & (rows["bytes"] > HEADER_BYTES)]  # others ask for parameters
    for server in range(servers):
        sent = pushes[pushes["peer"] == server].groupby("rank").size()
        sent = sent.reindex(computed.index, fill_value=0)  # a worker may come too late to send any
        assert ((computed - sent).isin([0, 1])).all()
        pulled = received[received["peer"] == server].groupby("rank").size().reindex(computed.index, fill_value=0)
        assert (pulled >= sent - 1).all()  # in a worker's last step the server may have ended
    made = rows[(rows["activity"] == "update") & (rows["rank"] < servers)].groupby("rank").size()
    assert made[0] == 8 * header.updates_per_step
    if protocol in TOKENS:
        assert set(made) == {8}


def test_staleness_is_recorded(real_traces):
    """Of asynchronous workers: a gradient that has missed updates says so."""
    trace = read(real_traces / f"{file_of('ps-async', 3, 1, 0)}.parquet")
    _check_gradients(trace)
    assert staleness_of(trace).max() >= 1
