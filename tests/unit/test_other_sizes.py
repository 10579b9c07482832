"""A profile on other hosts and another network: `sim.run --cluster profile.toml --hosts 16 --network "25 Gbit/s, 20 us"`."""

import json
from pathlib import Path

import pytest
from test_commands import refused
from tomli_w import dumps

from sim.base.errors import WrongSetting
from sim.platform.cluster import Cluster, Host, Link
from sim.platform.other_sizes import link, on_hosts, on_network, told

COSTS = {"mlp": {"compute": {"slope_s": 1e-5}}}
PROFILE = {"schema": "cluster/1", "name": "box", "costs": COSTS}
PROFILE["hosts"] = [{"name": "localhost", "cores": 2, "slots": 64}]
NETWORK = {"latency_s": "100 us", "bandwidth_bytes_per_s": "1 Gbit/s", "named": True}  # as --network has it


JOB = ["--protocol", "allreduce", "--workload", "mlp", "--stragglers", "none", "--steps", "20", "--json"]


def step_s(here, cluster: str, *words: str) -> float:
    done = here("sim.run", *JOB, "--cluster", cluster, *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["step_s"]["mean"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("p.toml").write_text(dumps(PROFILE))
    Path("same.toml").write_text(
        dumps(PROFILE | {"hosts": [{"name": "host", "count": 4, "cores": 2}], "network": NETWORK})
    )
    return tmp_path


@pytest.mark.slow
def test_a_profile_of_one_host_is_as_a_cluster_of_such_hosts(folder, here):
    """Four workers on four hosts of two cores, whose messages cross the network that is given."""
    given = step_s(here, "p.toml", "--hosts", "4", "--network", "1 Gbit/s, 100 us", "--workers", "4")
    assert step_s(here, "same.toml", "--workers", "4") == given
    assert step_s(here, "p.toml", "--hosts", "4", "--network", "10 Mbit/s, 100 us", "--workers", "8") > 2 * given


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--cluster", "p.toml", "--hosts", "0"], ["--hosts", "0"]),
        (["--cluster", "p.toml", "--network", "fast"], ["--network", "fast"]),
        (["--cluster", "p.toml", "--network", "inf bit/s"], ["--network", "inf bit/s"]),
        (["--cluster", "p.toml", "--hosts", "2", "--workers", "5"], ["--workers", "at most 4"]),
        (["--hosts", "4"], ["--hosts", "--cluster"]),
        (["--network", "1 Gbit/s"], ["--network", "--cluster"]),
    ],
)
def test_what_cannot_be_is_one_line(folder, here, words, said):
    line = refused(here("sim.run", *JOB, *words))
    assert all(word in line for word in said), line


def test_what_was_measured_of_the_network_besides_is_kept():
    probed = Link(latency_s=1e-3, overhead_s=7e-6, bandwidth_bytes_per_s=1e8, fair=True, eager_bytes=4096)
    found = on_network(Cluster(hosts=(Host(count=3),), network=probed, library=probed), "25 Gbit/s, 20 us")
    kept = {"latency_s", "bandwidth_bytes_per_s"}
    assert found.network == found.library
    assert found.network.model_dump(exclude=kept) == probed.model_dump(exclude=kept)
    assert (found.network.latency_s, found.network.bandwidth_bytes_per_s) == pytest.approx((20e-6, 3.125e9))


def test_a_profile_whose_links_are_free_has_no_other_network():
    """Its messages are part of what it says of updates, and would be counted twice."""
    free = Cluster(hosts=(Host(),), network=Link(latency_s=0, bandwidth_bytes_per_s=float("inf")))
    with pytest.raises(WrongSetting, match="part of its updates"):
        on_network(free, "1 Gbit/s")
    with pytest.raises(WrongSetting, match="shared-cores"):
        on_hosts(Cluster(hosts=(Host(count=2),), shared_cores=2), 4)


def test_more_hosts_are_like_all_that_there_are():
    """As fast as they are in the geometric mean, each host counted; of hosts that differ in more than speed none is like all."""
    found = on_hosts(Cluster(hosts=(Host(speed=1.0), Host(count=3, speed=16.0))), 8)
    assert (found.hosts[0].count, found.hosts[0].speed) == (8, pytest.approx(8.0))
    assert (
        on_hosts(Cluster(hosts=(Host(name="server"),)), 2).slots == 2
    )  # that of a user, no profile's for servers alone
    for others in (Host(gpu="V100"), Host(cores=2)):
        with pytest.raises(WrongSetting, match="one kind"):
            on_hosts(Cluster(hosts=(Host(gpu="A100"), others)), 4)


def test_a_link_is_a_bandwidth_and_a_latency():
    found = link("25 Gbit/s, 20 us", "--link")
    assert (found.bandwidth_bytes_per_s, found.latency_s) == pytest.approx((3.125e9, 20e-6))
    assert link("1 GB/s", "--link").bandwidth_bytes_per_s == 1e9
    assert told(found) == "25 Gbit/s, 20 us"
    for text in ("", "fast", "1 Gbit/s,", "1 Gbit/s, 2 m", "1 s, 1 s", "0 bit/s"):
        with pytest.raises(WrongSetting, match="--link"):
            link(text, "--link")
    for text in ("25", "nan", "1 Gbit/s, 20"):
        with pytest.raises(WrongSetting, match=r'bandwidth and latency, as "25 Gbit/s, 20 us"$'):
            link(text, "--link")
