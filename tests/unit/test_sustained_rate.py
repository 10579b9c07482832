"""Hosts whose ports are slower in the long run: a note says that this rate bounds the step."""

import pytest

from sim import protocols
from sim.answers.bounds import port_s
from sim.job.scenario import Scenario
from sim.model.workload import read as read_workload
from sim.platform.cluster import read as read_cluster
from sim.simulation import simulate
from sim.stragglers import read as read_stragglers

PORT = "the sustained rate of the hosts' ports, 2.5 Gbit/s, bounds the step"


def result(name: str, host: str, servers: int = 0, algorithm: str | None = None):
    settings = [f"algorithm={algorithm}"] if algorithm else []
    scenario = Scenario(
        protocols.make(name, settings),
        read_workload("resnet50"),
        workers=4,
        **({"servers": servers, "servers_on": "workers"} if servers else {}),
        batch=32,
        cluster=read_cluster(f"{host}*5"),
        stragglers=read_stragglers("none"),
        steps=20,
    )
    return simulate(scenario, replications=1)


@pytest.mark.parametrize(
    ("name", "servers", "algorithm"),
    [("allreduce", 0, "ring"), *((name, 4, None) for name in ("ps-sync", "ps-async")), ("fmb", 0, None)],
)
def test_a_port_that_bounds_the_step_is_named_whatever_the_protocol(name, servers, algorithm):
    found = result(name, "p3.2xlarge", servers, algorithm)
    (note,) = [note for note in found.notes if note.startswith(PORT)]
    assert float(note.split()[-2]) / 1e3 == pytest.approx(found.step_s.mean(), rel=0.03)


def test_a_port_without_such_a_rate_or_with_time_to_spare_is_not():
    assert not any("sustained" in note for note in result("allreduce", "p3.16xlarge").notes)
    assert not any(
        "sustained" in note for note in result("allreduce", "p3.2xlarge", algorithm="reduce-broadcast").notes
    )


def test_a_port_sends_parameters_of_its_servers_and_gradients_of_its_workers():
    """Each of 4 hosts holds a quarter, which it sends to 3 others, and pushes 3 quarters: 6 quarters leave it."""
    found = result("ps-sync", "p3.2xlarge", 4).scenario
    whole, largest = sum(found.traffic.server_bytes), max(found.traffic.server_bytes)
    sent_bytes = largest * 3 + (whole - largest)
    assert port_s(found) == pytest.approx(sent_bytes / found.network.sustained_bytes_per_s)
