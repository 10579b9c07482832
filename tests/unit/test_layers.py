"""Servers on the workers' hosts, GPUs that share a port, port credit, and variables that travel one by one: closed forms."""

from dataclasses import replace

import event
import numpy as np
import pytest

from sim import protocols
from sim.answers.outcome import of_trace
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.model.workload import HEADER_BYTES, Variable, Workload
from sim.platform.cluster import Cluster, Host, Link, read
from sim.recording.traces import Trace

BANDWIDTH = 1e6  # bytes a second
FAST = Link(latency_s=0, overhead_s=0, bandwidth_bytes_per_s=float("inf"))
LAYER_S = 1.0  # that a layer of 1 MB takes a port


def model(*seconds: float) -> Workload:
    """Variables by the seconds that each takes a port, header included."""
    sizes = [int((s * BANDWIDTH - HEADER_BYTES) / 4) for s in seconds]
    return Workload(name="layers", variables=tuple(Variable(name=f"v{i}", shape=(n,)) for i, n in enumerate(sizes)))


def job(
    *settings: str, layers=(LAYER_S,), hosts=2, gpus=1, compute_s=0.0, sustained=None, protocol="ps-layers", **options
) -> Scenario:
    """Hosts with one port each, over which alone bytes take time; the server's own host comes first if it has one."""
    own = options.get("servers_on", "own") == "own"
    machines = (Host(name="server", count=options.get("servers", 1)),) * own + (Host(count=hosts, gpus=gpus),)
    network = Link(latency_s=0, overhead_s=0, bandwidth_bytes_per_s=BANDWIDTH, sustained_bytes_per_s=sustained)
    costs = {"layers": Costs(compute=Line(base_s=compute_s))}
    cluster = Cluster(hosts=machines, network=network, local=FAST, costs=costs)
    options = {"workers": hosts * gpus, "steps": 8, "warmup": 2, "batch": 10, **options}
    return Scenario(protocols.make(protocol, list(settings)), model(*layers), cluster=cluster, **options)


def step_s(scenario: Scenario) -> np.ndarray:
    return of_trace(event.trace(scenario)).step_s[0]


def port_bytes(scenario: Scenario, host: int, way: str = "send") -> float:
    """Bytes that leave a host, or come to it, in a step."""
    rows, where = event.trace(scenario).rows, np.array(scenario.hosts)
    rows = rows[rows["activity"] == way]
    crosses = (where[rows["rank"]] == host) & (where[rows["peer"]] != host)
    return rows[crosses]["bytes"].sum() / scenario.rounds


@pytest.mark.parametrize("gpus", [1, 4])
@pytest.mark.parametrize("added_up", [False, True])
@pytest.mark.parametrize("servers_on", ["own", "workers"])
def test_a_shared_port_saturates_at_its_closed_form(gpus, added_up, servers_on):
    """One server, no computation: a copy for every sender on another host, and the last sender's gradient back."""
    scenario = job("barrier=true", f"local_aggregation={added_up}", hosts=3, gpus=gpus, servers_on=servers_on)
    others = 3 - (servers_on == "workers")
    copies = others * (1 if added_up else gpus)
    np.testing.assert_allclose(step_s(scenario), (copies + 1) * LAYER_S, rtol=1e-4)


@pytest.mark.parametrize("added_up", [False, True])
def test_bytes_of_a_port_are_divided_by_the_gpus_of_a_host(added_up):
    """Of a server's host that has workers too, and of a host of workers alone; each step, both ways."""
    scenario = job(f"local_aggregation={added_up}", hosts=3, gpus=4, servers_on="workers")
    copies, size = (1 if added_up else 4), scenario.traffic.server_bytes[0]
    assert port_bytes(scenario, 0, "receive") == 2 * copies * size
    assert port_bytes(scenario, 1) == copies * size
    assert port_bytes(scenario, 0) == 2 * copies * size


def test_a_plain_protocol_shares_the_port_too():
    """ps-sync, 3 hosts of 4 GPUs: 12 answers leave one after another, and each gradient follows its answer."""
    scenario = job("barrier=true", protocol="ps-sync", hosts=3, gpus=4)
    np.testing.assert_allclose(step_s(scenario), 13 * LAYER_S, rtol=1e-4)


def test_gradients_leave_while_the_rest_computes():
    """One worker, two variables: parameters come in order and forward waits; gradients leave last first."""
    small, large, compute_s = 1.0, 3.0, 12.0
    forward_s, backward_s = compute_s / 3 / 2, compute_s * 2 / 3 / 2
    begins_s = max(small + forward_s, small + large)  # the second variable's forward pass
    made_s = begins_s + forward_s + backward_s  # its gradient
    gone_s = max(made_s + backward_s, made_s + large) + small
    scenario = job("barrier=true", layers=(small, large), hosts=1, compute_s=compute_s)
    np.testing.assert_allclose(step_s(scenario), gone_s, rtol=1e-4)
    serial = job("barrier=true", layers=(small, large), hosts=1, compute_s=compute_s, protocol="ps-sync")
    np.testing.assert_allclose(step_s(serial), compute_s + 2 * (small + large), rtol=1e-4)


def test_parameters_that_leave_when_updated_are_exposed_for_the_first_variable_only():
    """distributed_replicated: its gradient is made last, goes up and comes down; the rest is back before."""
    scenario = job(layers=(1.0, 3.0), hosts=1, compute_s=20.0)
    np.testing.assert_allclose(step_s(scenario), 20.0 + 2 * 1.0, rtol=1e-4)


def test_servers_meet_before_parameters_leave():
    """One worker, whose port carries both variables, each from a server of its own: all up, then all down."""
    scenario = job("barrier=true", layers=(1.0, 5.0), hosts=1, servers=2)
    np.testing.assert_allclose(step_s(scenario), 2 * (1.0 + 5.0), rtol=1e-4)


@pytest.mark.parametrize("gpus", [None, 4])
def test_gpus_share_no_cores(gpus):
    """Four ranks on one core take four times as long, on a GPU each as long as one."""
    hosts = (Host(name="master", speed=1), Host(name="node", cores=1, slots=4, gpus=gpus, speed=2))
    cluster = Cluster(hosts=hosts, network=FAST, local=FAST, costs={"mlp": Costs(compute=Line(base_s=0.1))})
    scenario = Scenario(protocols.make("fmb"), workload.read("mlp"), workers=4, cluster=cluster, steps=5, warmup=1)
    np.testing.assert_allclose(step_s(scenario), 0.05 if gpus else 0.2, rtol=1e-6)


def test_hosts_of_8_gpus_in_a_file(tmp_path):
    path = tmp_path / "cluster.toml"
    path.write_text('schema = "cluster/1"\nhosts = [{ name = "p2", count = 3, gpus = 8, cores = 32 }]\n')
    scenario = Scenario(
        protocols.make("ps-async"), model(1, 1), workers=20, servers=2, servers_on="workers", cluster=read(str(path))
    )
    assert scenario.hosts == [0, 1] + [0] * 8 + [1] * 8 + [2] * 4
    beside = Scenario(protocols.make("ps-async"), model(1, 1), workers=20, servers=2, cluster=read(str(path)))
    assert beside.hosts == [0] * 8 + [1] * 8 + [2] * 6


@pytest.mark.parametrize("sustained", [BANDWIDTH / 8, BANDWIDTH / 2, BANDWIDTH])
def test_credit_bounds_the_mean_rate_of_a_port(sustained):
    """Its bytes at the sustained rate, or the step at line speed if that is longer; computation saves credit."""
    options = {"hosts": 2, "compute_s": 3.0, "steps": 30}
    free_s = step_s(job("barrier=true", **options)).mean()
    found_s = step_s(job("barrier=true", sustained=sustained, **options)).mean()
    assert found_s == pytest.approx(max(free_s, 2 * LAYER_S * BANDWIDTH / sustained), rel=0.02)


@pytest.mark.parametrize("hosts", [2, 4])
@pytest.mark.parametrize("pieces", [1, 4])
def test_whole_messages_make_a_step_two_of_them_longer(hosts, pieces):
    """Parameters pass one port after the other, and gradients again; small messages pass both almost at once."""
    through = job("barrier=true", layers=(LAYER_S / pieces,) * pieces, hosts=hosts)
    network = through.cluster.network.model_copy(update={"store_and_forward": True})
    whole = replace(through, cluster=through.cluster.model_copy(update={"network": network}))
    assert step_s(whole).mean() - step_s(through).mean() == pytest.approx(2 * LAYER_S / pieces)


def test_wrong_settings_are_named():
    with pytest.raises(WrongSetting, match="own or workers"):
        job(servers_on="both")
    with pytest.raises(WrongSetting, match="at most 6 workers"):
        job(hosts=2, gpus=3, workers=7, servers_on="workers")


def test_a_real_run_refuses_what_is_only_simulated():
    from real import run as real_run
    from real.options import scenario

    with pytest.raises(WrongSetting, match=r"--workload: given 'bigram'.*simulated only"):
        scenario(real_run.parse(["--protocol", "ps-layers", "--workload", "bigram"]))


@pytest.mark.parametrize("name", ["horovod", "ps-layers"])
def test_a_fit_refuses_runs_over_mpi_whose_messages_are_hidden_by_computing(name):
    from calibration.checks import check

    trace = event.trace(Scenario(protocols.make(name), workload.read("mlp"), workers=2, steps=4, warmup=1))
    check(trace, "t.parquet")
    with pytest.raises(WrongSetting, match=f"t.parquet: given '{name} over MPI'"):
        check(Trace(replace(trace.header, world="mpi"), trace.rows), "t.parquet")
