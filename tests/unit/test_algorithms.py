"""Which algorithm sums, where nobody said: what is known of the library, little data tell little, and the mixture follows the weights."""

import numpy as np
import pytest
from nccl_texts import text

from calibration import nccl_links
from sim import protocols
from sim.answers import candidates
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model import workload
from sim.platform import other_sizes
from sim.platform.cluster import Cluster, Host
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
    assert (found.network.latency_s, found.network.bandwidth_bytes_per_s) == pytest.approx(
        (LATENCY_S, BANDWIDTH), rel=0.05
    )


def test_the_mixture_follows_the_weights():
    place = other_sizes.on_hosts(Cluster(hosts=(Host(cores=4, gpus=4),)), 8)
    job = Scenario(protocols.make("allreduce", ["algorithm=unknown"]), RESNET, 32, 2, 1, cluster=place)
    found, shares = simulate(job), candidates.weights(job)
    assert set(found.speeds) == set(shares) == {"ring", "hierarchical"}
    assert len(found.step_s) == candidates.RUNS
    assert f"to use ring {shares['ring']:.2f}" in found.notes[-1]


def test_several_texts_are_of_other_ranks(tmp_path):
    paths = texts(tmp_path, (2, 4))
    with pytest.raises(WrongSetting, match="one text for each number of ranks"):
        nccl_links.profile([paths[0], paths[0]], "x")
    (tmp_path / "b.txt").write_text(text(lambda size: 1e-5 + size / BANDWIDTH, collective="broadcast"))
    with pytest.raises(WrongSetting, match="all_reduce, where there are several texts"):
        nccl_links.profile([paths[0], str(tmp_path / "b.txt")], "x")
