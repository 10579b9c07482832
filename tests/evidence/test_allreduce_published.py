"""Allreduce as others measured it: with a bandwidth fitted on one model or network, others within stated tolerances."""

import pytest

from experiments import allreduce
from sim.laws import LogNormal

# What `python -m experiments.run allreduce` fits on VGG-16, bytes/s; fitting takes long.
FITTED = {"TCP, MPI": 5.69e9 / 8, "RDMA, MPI": 5.67e9 / 8, "RDMA, NCCL": 22.65e9 / 8}


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


@pytest.fixture(scope="module")
def shares():
    return {algorithm: allreduce.fitted_share(algorithm) for algorithm in allreduce.SECONDS}


BEYOND = {  # measurements that are missed by more than 15 %, and by how much
    ("reduce-broadcast", "10 ms, 1 Gbit/s", 1024): 0.45,  # fewer seconds than its bytes take at the nominal rate
    ("alltoall-allgather", "5 ms, 2 Gbit/s", 256): -0.18,
}


@pytest.mark.parametrize("one", allreduce.measured_sums(), ids=str)
def test_one_network_predicts_the_others(one, shares):
    """NCCL's allreduce within 10 %; servers within 15 % but for those BEYOND."""
    error = one.predicted_s(shares[one.algorithm]) / one.seconds - 1
    known = BEYOND.get((one.algorithm, one.network, one.mebibytes))
    if known is None:
        assert abs(error) < (0.10 if one.algorithm == "nccl" else 0.15)
    else:
        assert error == pytest.approx(known, abs=0.01)


def test_a_ring_in_one_go_would_not_do(shares):
    """A negative control: it pays its latencies once, and 50 ms of latency would not cost half of what they do."""
    network = "50 ms, 1 Gbit/s"
    took_s, _ = allreduce.SECONDS["nccl"][list(allreduce.NETWORKS).index(network)]
    assert allreduce.allreduce_s(allreduce.NETWORKS[network], 256, shares["nccl"], algorithm="ring") < 0.6 * took_s


def test_control_messages_by_name_slow_down_the_model_of_many_gradients_over_tcp():
    measured, bandwidth = allreduce.SIXTEEN_GPUS["TCP, MPI"], FITTED["TCP, MPI"]
    said = {model: allreduce.images_per_s(model, bandwidth, by_name=True) for model in measured}
    for model, tolerance in (("vgg16", 0.01), ("inception_v3", 0.03), ("resnet101", 0.11)):
        assert said[model] == pytest.approx(measured[model], rel=tolerance)
    assert allreduce.images_per_s("resnet101", bandwidth) > 1.12 * measured["resnet101"]  # a negative control
