"""Which algorithm sums, where nobody said: planted ones are weighed most, little data tell little, and the mixture follows the weights."""

from __future__ import annotations

import math

import numpy as np
import pytest
from nccl_texts import text

from calibration import algorithms, fit, nccl_links
from calibration.scaling import profiled
from calibration.scaling.steps import Scaling
from calibration.scaling.table import Table
from sim import protocols
from sim.answers import candidates, trust
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model import workload
from sim.model.costs import Costs
from sim.platform import cluster, other_sizes
from sim.simulation import simulate

LATENCY_S, BANDWIDTH = 10e-6, 12e9
RESNET = workload.NAMED["resnet50"]


@pytest.mark.parametrize(
    ("algorithm", "hosts", "each", "expected"),
    [
        ("ring", 4, 1, (6, 1.5, 0, 0)),
        ("ring", 2, 2, (6, 1.5, 0, 0)),  # each round a message passes each port
        ("ring", 1, 4, (0, 0, 6, 1.5)),
        ("recursive-doubling", 2, 4, (1, 4, 2, 2)),  # four whole vectors pass a port
        ("halving-doubling", 4, 1, (4, 1.5, 0, 0)),
        ("tree", 4, 1, (4, 4, 0, 0)),
        ("hierarchical", 4, 4, (6, 1.5, 4, 4)),
    ],
)
def test_what_passes_a_link(algorithm, hosts, each, expected):
    assert algorithms.travel(algorithm, hosts, each) == pytest.approx(expected, abs=1e-3)


def texts(tmp_path, algorithm, ranks, noise=0.01):
    rng = np.random.default_rng(5)
    paths = []
    for count in ranks:
        of = algorithms.travel(algorithm, count, 1)

        def seconds(size, of=of):
            return (of.rounds * LATENCY_S + of.between * size / BANDWIDTH) * rng.lognormal(0, noise)

        paths.append(str(tmp_path / f"{count}.txt"))
        (tmp_path / f"{count}.txt").write_text(text(seconds, count, count))
    return paths


@pytest.mark.parametrize("planted", ["ring", "tree", "recursive-doubling", "halving-doubling"])
def test_texts_of_three_numbers_of_ranks_tell_the_algorithm(tmp_path, planted):
    """Of powers of two alone a tree is recursive doubling on another link."""
    found = nccl_links.profile(texts(tmp_path, planted, (2, 3, 8)), "x")
    weights = {name: one.weight for name, one in found.provenance.algorithms.items()}
    assert sum(weights.values()) == pytest.approx(1)
    assert weights[planted] > 0.95
    assert (found.network.latency_s, found.network.bandwidth_bytes_per_s) == pytest.approx(
        (LATENCY_S, BANDWIDTH), rel=0.05
    )
    assert found.provenance.algorithms[planted].network == found.network
    assert f"{planted} {weights[planted]:.2f}" in " ".join(found.provenance.notes)


def test_more_ranks_by_an_algorithm_that_nothing_tells_are_said_to_be(tmp_path):
    """Not of as many ranks as were fitted, nor where several numbers of ranks tell it."""

    def said(ranks, workers, algorithm="ring"):
        found = nccl_links.profile(texts(tmp_path, "ring", ranks), "x")
        text = protocols.make("allreduce", [f"algorithm={algorithm}"])
        return any(
            "one of 4 algorithms that explain 8 ranks as well" in note
            for note in trust.notes(Scenario(text, RESNET, workers, 3, 1, cluster=other_sizes.on_hosts(found, workers)))
        )

    assert said((8,), 16)
    assert not said((8,), 8)
    assert not said((2, 3, 8), 16)
    assert not said((8,), 16, "unknown")


@pytest.mark.slow
def test_one_number_of_ranks_tells_nothing_and_each_candidate_has_its_link(tmp_path, capsys):
    """All explain what was measured, and differ on other numbers of ranks."""
    (path,) = texts(tmp_path, "ring", (8,))
    assert fit.main([path, "--from", "nccl-tests", "-o", str(tmp_path / "p.toml")]) == 0
    assert "too few sizes of a cluster" in capsys.readouterr().out
    found = cluster.read(str(tmp_path / "p.toml"))
    assert [one.weight for one in found.provenance.algorithms.values()] == pytest.approx([0.25] * 4)
    free = workload.read("mlp").model_copy(update={"costs": Costs()})

    def job(hosts):
        place = other_sizes.on_hosts(found, hosts)
        return Scenario(protocols.make("allreduce", ["algorithm=unknown"]), free, hosts, 3, 1, cluster=place)

    of = algorithms.travel("ring", 8, 1)
    measured_s = of.rounds * LATENCY_S + of.between * free.message_bytes / BANDWIDTH
    speeds = {hosts: simulate(job(hosts), replications=4).speeds for hosts in (8, 32)}
    steps_s = [free.batch * 8 / speed for speed in speeds[8].values()]
    assert steps_s == pytest.approx([measured_s] * 4, rel=0.1)
    assert max(speeds[32].values()) > 1.5 * min(speeds[32].values())


def table(tmp_path, hosts, algorithm="ring"):
    planted = Scaling(4.0 * RESNET.parameters, 0.05, 0.004, between_s=1.2e-9, round_s=3e-5, algorithm=algorithm)
    grid = np.array([(h, 1, b) for h in hosts for b in (16, 64)], float)
    rows = Table(grid[:, 0], grid[:, 0], grid[:, 1], grid[:, 2], *np.ones((2, len(grid))))
    noisy = planted.step_s(rows) * np.exp(0.01 * np.random.default_rng(1).normal(size=len(grid)))
    lines = [f"{h:.0f},1,{b:.0f},{s!r}" for h, b, s in zip(rows.hosts, rows.batch, noisy.tolist(), strict=True)]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["hosts,gpus_per_host,batch,step_s", *lines]))
    return profiled.profile(str(path), "x", "resnet50", "allreduce")


@pytest.mark.slow
@pytest.mark.parametrize("planted", ["ring", "tree"])
def test_a_table_of_many_hosts_tells_the_algorithm_and_one_of_two_does_not(tmp_path, planted):
    few, many = (table(tmp_path, hosts, planted) for hosts in ((1, 2), (1, 2, 3, 4, 6, 8, 12, 16)))
    weights = [{name: one.weight for name, one in made.provenance.algorithms.items()} for made in (few, many)]
    assert list(weights[0].values()) == pytest.approx([1 / len(weights[0])] * len(weights[0]))
    assert weights[1][planted] > (0.5 if planted == "ring" else 0.9)  # halving-doubling sends as many bytes as a ring
    assert weights[1].get("recursive-doubling") < 0.05
    assert any(f"--set algorithm={planted}" in note for note in many.provenance.notes)


@pytest.mark.slow
def test_the_mixture_follows_the_weights(tmp_path):
    made = table(tmp_path, (1, 2, 3, 4, 6, 8, 12, 16), "tree")
    place = other_sizes.on_hosts(made, 8)
    job = Scenario(protocols.make("allreduce", ["algorithm=unknown"]), RESNET, 8, 3, 1, cluster=place)
    found = simulate(job)
    shares = candidates.weights(job)
    assert max(shares, key=shares.get) == "tree"
    assert set(found.speeds) == set(shares)
    assert len(found.step_s) == pytest.approx(candidates.RUNS * len(candidates.CANDIDATES), abs=len(shares))
    assert f"weigh tree {shares['tree']:.2f}" in found.notes[-1]
    assert found.samples_per_s == pytest.approx(found.speeds["tree"], rel=0.15)
    other = other_sizes.on_network(place, "1 Gbit/s, 20 us")  # whose link nobody fitted
    jobs = candidates.of(Scenario(job.protocol, RESNET, 8, 3, 1, cluster=other))
    assert {one.cluster.network for one in jobs.values()} == {other.network}


def test_several_texts_are_of_other_ranks(tmp_path):
    paths = texts(tmp_path, "ring", (2, 4))
    with pytest.raises(WrongSetting, match="one text for each number of ranks"):
        nccl_links.profile([paths[0], paths[0]], "x")
    (tmp_path / "b.txt").write_text(text(lambda size: 1e-5 + size / BANDWIDTH, collective="broadcast"))
    with pytest.raises(WrongSetting, match="all_reduce, where there are several texts"):
        nccl_links.profile([paths[0], str(tmp_path / "b.txt")], "x")


def test_weights_are_likelihoods_and_nothing_is_told_by_nothing():
    assert algorithms.weights({"a": 0.0, "b": 9.0}, 0) == {"a": 0.5, "b": 0.5}
    ratio = algorithms.weights({"a": 0.0, "b": math.sqrt(3) * algorithms.FLOOR}, 3)
    assert ratio["a"] / ratio["b"] == pytest.approx(8)
