"""Allreduce as others measured it: with a bandwidth fitted on one model or network, others within stated tolerances."""

import pytest

from experiments import allreduce

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


def test_a_ring_of_hosts_stands_for_a_ring_of_gpus():
    """Where the hops within hosts are the faster ones."""
    share = allreduce.scaling("vgg16", 1e9, 16)
    assert share == pytest.approx(allreduce.images_per_s("vgg16", 1e9) / 16 / allreduce.ONE_GPU["vgg16"], rel=0.03)


def test_scaling_to_128_gpus_is_within_5_percent_of_the_documented():
    said = allreduce.scaling("vgg16", FITTED["RDMA, NCCL"], 128)
    assert said == pytest.approx(allreduce.SCALING[128]["vgg16"], rel=0.05)


def test_one_network_predicts_others_up_to_10_ms():
    """Behind 50 ms TCP's window binds, which no Link has."""
    share = allreduce.fitted_share(allreduce.NETWORKS[allreduce.FITTED_NETWORK])
    for name, network in allreduce.NETWORKS.items():
        for size, took_s in network.seconds.items():
            said = allreduce.allreduce_s(network, size, share)
            if name.startswith("50 ms"):
                assert said < 0.6 * took_s
            else:
                assert said == pytest.approx(took_s, rel=0.15)
