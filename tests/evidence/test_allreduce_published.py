"""Allreduce as others measured it: with a bandwidth fitted on one model or network, others within stated tolerances."""

import pytest

from experiments import allreduce
from sim.laws import LogNormal

# What `python -m experiments.run allreduce` fits on VGG-16, bytes/s; fitting takes long.
FITTED = {"RDMA, MPI": 5.67e9 / 8, "RDMA, NCCL": 22.65e9 / 8}


def test_one_bandwidth_predicts_other_models_on_16_gpus():
    measured, bandwidth = allreduce.SIXTEEN_GPUS["RDMA, MPI"], FITTED["RDMA, MPI"]
    for model, tolerance in (("vgg16", 0.01), ("inception_v3", 0.12), ("resnet101", 0.12)):
        assert allreduce.images_per_s(model, bandwidth) == pytest.approx(measured[model], rel=tolerance)


def test_the_bandwidth_matters():
    """A negative control: with twice the bandwidth VGG-16 is far off."""
    measured = allreduce.SIXTEEN_GPUS["RDMA, MPI"]["vgg16"]
    assert allreduce.images_per_s("vgg16", 2 * FITTED["RDMA, MPI"], steps=1) > 1.12 * measured


def test_a_ring_of_hosts_stands_for_a_ring_of_gpus(monkeypatch):
    """Where the hops within hosts are the faster ones; so many latencies as a ring of hosts alone has would be 3 % at 32."""
    monkeypatch.setattr(allreduce, "NOISE", LogNormal(cv=0))
    for gpus, bandwidth in ((16, 1e9), (32, FITTED["RDMA, NCCL"])):
        one_by_one = allreduce.images_per_s("vgg16", bandwidth, gpus // 4, steps=1) / gpus / allreduce.ONE_GPU["vgg16"]
        assert allreduce.scaling("vgg16", bandwidth, gpus) == pytest.approx(one_by_one, rel=0.005)


def test_scaling_to_128_gpus_is_within_5_percent_of_the_documented():
    said = allreduce.scaling("vgg16", FITTED["RDMA, NCCL"], 128)
    assert said == pytest.approx(allreduce.SCALING[128]["vgg16"], rel=0.05)


def test_one_network_predicts_the_others():
    """Within 15 %; with a plain ring, which pays its latencies once, 50 ms of latency would not cost half of what they do."""
    share = allreduce.fitted_share(allreduce.NETWORKS[allreduce.FITTED_NETWORK])
    for network in allreduce.NETWORKS.values():
        for size, took_s in network.seconds.items():
            assert allreduce.allreduce_s(network, size, share) == pytest.approx(took_s, rel=0.15)
    far = allreduce.NETWORKS["50 ms, 1 Gbit/s"]
    assert allreduce.allreduce_s(far, 256, share, algorithm="ring") < 0.6 * far.seconds[256]
