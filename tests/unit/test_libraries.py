"""`auto` is what the job's library takes: NCCL and Gloo a ring on any number of hosts, Open MPI its choice where MPI sums."""

from itertools import pairwise

import pytest

from sim import protocols
from sim.job.scenario import Scenario
from sim.language.library import GLOO, MPI, NCCL
from sim.model.costs import Costs, Line
from sim.model.workload import Workload
from sim.platform.cluster import TREE_S, Cluster, Host, Link, Provenance, trees_s
from sim.simulation import simulate

MODEL = Workload(name="mine", parameters="20 M", layers=4, costs=Costs(compute=Line(base_s=0.01)))
LINK = Link(latency_s=20e-6, overhead_s=5e-6, bandwidth_bytes_per_s=1.25e9)


def job(hosts, each=1, protocol="allreduce", algorithm="auto", gpus=True, model=MODEL, **known):
    place = Cluster(hosts=[Host(count=hosts, cores=2 * each, slots=each, gpus=each if gpus else None)], network=LINK)
    place = place.model_copy(update=known)
    return Scenario(protocols.make(protocol, [f"algorithm={algorithm}"]), model, hosts * each, 2, 1, cluster=place)


def step_s(*args, **kwargs):
    return float(simulate(job(*args, **kwargs), replications=1).step_s.mean())


@pytest.mark.slow
@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("protocol", ["allreduce", "horovod"])
@pytest.mark.parametrize("each", [1, 4])
@pytest.mark.parametrize("parameters", [20_000_000, 20_000])
def test_no_size_of_a_cluster_of_gpus_is_slower_than_the_next(protocol, each, parameters):
    """Powers of two or not, by bytes and by rounds; Open MPI's choice folds ranks beyond a power of two."""
    model = Workload(name="mine", parameters=parameters, layers=4, costs=MODEL.costs)
    jobs = [job(hosts, each, protocol, model=model) for hosts in range(2, 65)]
    took_s = [float(simulate(one, "engine", 1).step_s.mean()) for one in jobs]
    least = 1.05 if protocol == "horovod" else 1.02  # whose cycles of a millisecond begin where they begin
    assert all(one <= least * other for one, other in pairwise(took_s))


def test_among_gpus_auto_is_a_ring_and_where_mpi_sums_its_own_choice():
    assert step_s(3) == pytest.approx(step_s(3, algorithm="ring"))
    assert step_s(3, gpus=False) == pytest.approx(step_s(3, algorithm="halving-doubling", gpus=False))
    assert step_s(3, gpus=False) > 1.3 * step_s(3)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"gpus": True}, NCCL),
        ({"gpus": False}, MPI),
        ({"gpus": False, "provenance": Provenance(engines=("torch",))}, GLOO),
        ({"gpus": True, "provenance": Provenance(engines=("torch",))}, NCCL),
        ({"gpus": True, "provenance": Provenance(engines=("tensorflow",))}, MPI),  # real.run sums by MPI
        ({"gpus": True, "library": LINK}, MPI),
    ],
)
def test_the_library_is_told_by_gpus_and_by_what_was_fitted(given, expected):
    found = job(3, **given)
    assert found.sum_library == expected
    assert found.algorithm("auto") == ("auto" if expected == MPI else "ring")


def test_nccl_takes_trees_where_the_rounds_of_a_ring_take_longer():
    """Of 20,000 parameters bytes take next to nothing."""
    small = Workload(name="mine", parameters=20_000, layers=4, costs=Costs(compute=Line(base_s=0.01)))
    ring_s, auto_s = (step_s(64, algorithm=name, model=small) for name in ("ring", "auto"))
    assert auto_s < ring_s
    bytes_s = 2 * 63 / 64 * small.message_bytes / LINK.bandwidth_bytes_per_s
    rest_s = step_s(1, model=small)
    assert auto_s - rest_s == pytest.approx(trees_s(6, 1, TREE_S, 0.0) + bytes_s, rel=0.05)
    assert step_s(2, model=small) == pytest.approx(step_s(2, algorithm="ring", model=small))


def test_where_a_fit_tells_trees_auto_is_the_fitted_ring():
    tree = Link(latency_s=0, overhead_s=0, gap_s=3e-5, tree_s=4e-5, tree_inner_s=1e-5, bandwidth_bytes_per_s=1e9)
    for hosts, each in ((3, 1), (16, 4)):
        ring, auto = (job(hosts, each, algorithm=name, network=tree) for name in ("ring", "auto"))
        assert (auto.network, auto.local) == (ring.network, ring.local)
