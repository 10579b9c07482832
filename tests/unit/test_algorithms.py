"""Which algorithm sums, where nobody said: what is known of the library, little data tell little, and the mixture follows the weights."""

import math

import numpy as np
import pytest
from nccl_texts import text

from calibration import algorithms, nccl_links
from calibration.scaling import profiled
from calibration.scaling.steps import Scaling
from calibration.scaling.table import Table
from sim import protocols
from sim.answers import candidates
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.language import library
from sim.model import workload
from sim.platform import other_sizes
from sim.simulation import simulate

LATENCY_S, BANDWIDTH = 10e-6, 12e9
RESNET = workload.NAMED["resnet50"]


def texts(tmp_path, ranks, noise=0.01):
    rng = np.random.default_rng(5)
    paths = []
    for count in ranks:

        def seconds(size, count=count):
            return 2 * (count - 1) * (LATENCY_S + size / count / BANDWIDTH) * rng.lognormal(0, noise)

        paths.append(str(tmp_path / f"{count}.txt"))
        (tmp_path / f"{count}.txt").write_text(text(seconds, count, count))
    return paths


def test_texts_of_nccl_are_of_its_ring(tmp_path):
    found = nccl_links.profile(texts(tmp_path, (2, 3, 8)), "x")
    assert not found.provenance.algorithms
    assert (found.network.latency_s, found.network.bandwidth_bytes_per_s) == pytest.approx(
        (LATENCY_S, BANDWIDTH), rel=0.05
    )


def table(tmp_path, hosts, algorithm="ring", each=4):
    """A table of hosts with so many GPUs each, and of one of them alone; the link within hosts is slow enough to show."""
    links = {"between_s": 1.2e-9, "within_s": 0.5e-9, "round_s": 3e-5}
    planted = Scaling(4.0 * RESNET.parameters, 0.05, 0.004, algorithm=algorithm, **links)
    grid = np.array([(h, each, b) for h in hosts for b in (16, 64)], float)
    rows = Table(grid[:, 0], grid[:, 0] * each, grid[:, 1], grid[:, 2], *np.ones((2, len(grid))))
    noisy = planted.step_s(rows) * np.exp(0.01 * np.random.default_rng(1).normal(size=len(grid)))
    lines = [f"{h:.0f},{each},{b:.0f},{s!r}" for h, b, s in zip(rows.hosts, rows.batch, noisy.tolist(), strict=True)]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["hosts,gpus_per_host,batch,step_s", *lines]))
    return profiled.profile(str(path), "x", "resnet50", "allreduce")


@pytest.mark.slow
def test_a_table_of_two_hosts_leaves_what_is_known_of_nccl(tmp_path):
    made = table(tmp_path, (1, 2))
    assert {name: one.weight for name, one in made.provenance.algorithms.items()} == pytest.approx(
        library.prior(library.NCCL, 1e9, apart=False)
    )
    assert any("--set algorithm=unknown" in note for note in made.provenance.notes)
    assert table(tmp_path, (1, 2), each=1).provenance.algorithms == {}  # where a hierarchy is a ring


@pytest.mark.slow
def test_the_mixture_follows_the_weights(tmp_path):
    made = table(tmp_path, (1, 2))
    place = other_sizes.on_hosts(made, 8)
    job = Scenario(protocols.make("allreduce", ["algorithm=unknown"]), RESNET, 32, 3, 1, cluster=place)
    found = simulate(job)
    shares = candidates.weights(job)
    assert set(found.speeds) == set(shares) == {"ring", "hierarchical"}
    assert len(found.step_s) == candidates.RUNS
    assert f"weigh ring {shares['ring']:.2f}" in found.notes[-1]
    other = other_sizes.on_network(place, "1 Gbit/s, 20 us")  # whose link nobody fitted
    jobs = candidates.of(Scenario(job.protocol, RESNET, 32, 3, 1, cluster=other))
    assert {one.cluster.network for one in jobs.values()} == {other.network}


def test_several_texts_are_of_other_ranks(tmp_path):
    paths = texts(tmp_path, (2, 4))
    with pytest.raises(WrongSetting, match="one text for each number of ranks"):
        nccl_links.profile([paths[0], paths[0]], "x")
    (tmp_path / "b.txt").write_text(text(lambda size: 1e-5 + size / BANDWIDTH, collective="broadcast"))
    with pytest.raises(WrongSetting, match="all_reduce, where there are several texts"):
        nccl_links.profile([paths[0], str(tmp_path / "b.txt")], "x")


def test_weights_are_likelihoods_times_what_was_known_and_nothing_is_told_by_nothing():
    assert algorithms.weights({"a": 0.0, "b": 9.0}, 0, {"a": 0.3, "b": 0.7}) == pytest.approx({"a": 0.3, "b": 0.7})
    ratio = algorithms.weights({"a": 0.0, "b": math.sqrt(3) * algorithms.FLOOR}, 3, {"a": 0.2, "b": 0.8})
    assert ratio["a"] / ratio["b"] == pytest.approx(8 / 4)
