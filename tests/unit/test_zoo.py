"""The zoo: every workload is whole, and the well-known models have their known sizes."""

from __future__ import annotations

import pytest

from sim import placement, protocols, workload
from sim.scenario import Scenario

# Trainable numbers: Keras's documentation, less the moving averages of batch normalisation; AlexNet as in tf_cnn_benchmarks;
# captioning: Inception V3 without its classifier, and im2txt's LSTM.
KNOWN = {
    "toy_fc": 1_057_010,
    "mnist": 3_274_634,
    "cifar10": 4_605_450,
    "mlp": 79_510,
    "inception_v3": 23_817_352,
    "resnet50": 25_583_592,
    "resnet101": 44_601_832,
    "resnet152": 60_268_520,
    "vgg16": 138_357_544,
    "alexnet": 61_838_248,
    "captioning": 23_817_352 - 2049 * 1000 + 2048 * 512 + 12_000 * 512 + 1024 * 2048 + 2048 + 512 * 12_000 + 12_000,
    "lstm_classifier": 156 * 512 + 512 + 128 * 10 + 10,
    "lm1b": 2 * 793_470 * 512 + 793_470 + 1024 * 8192 + 8192 + 2048 * 512,
}
# Multiply-adds of a forward pass, from the models' papers and Keras's documentation.
MULTIPLY_ADDS = {"inception_v3": 5.7e9, "resnet50": 3.9e9, "resnet101": 7.6e9, "resnet152": 11.3e9, "vgg16": 15.5e9}


@pytest.mark.parametrize("name", workload.NAMED)
def test_every_workload_is_whole(name):
    found = workload.read(name)
    assert found.name == name
    assert found.costs.compute(found.batch) > 0
    assert len({v.name for v in found.variables}) == len(found.variables)


@pytest.mark.parametrize("name", KNOWN)
def test_known_sizes(name):
    assert workload.read(name).parameters == KNOWN[name]


@pytest.mark.parametrize("name", ["inception_v3", "resnet50", "resnet101", "resnet152", "captioning"])
def test_statistics_follow_the_layer_that_they_are_of(name):
    """As TensorFlow makes a layer's variables: gamma if there is one, beta, moving mean, moving variance."""
    kinds = [variable.name.rpartition("/")[2] for variable in workload.read(name).created]
    places = [place for place, kind in enumerate(kinds) if kind == "beta"]
    assert len(places) > 50
    assert all(kinds[place + 1 : place + 3] == ["moving_mean", "moving_variance"] for place in places)
    assert kinds.count("gamma") in (0, len(places))


@pytest.mark.parametrize("name", workload.NAMED)
def test_statistics_would_be_few_bytes(name):
    """Why they are not modelled: see sim.placement."""
    found = workload.read(name)
    assert sum(v.size for v in found.created if not v.trained) <= 0.003 * found.parameters


@pytest.mark.parametrize(("name", "share"), [("resnet50", 0.586), ("resnet101", 0.56), ("inception_v3", 0.999)])
def test_the_largest_of_four_servers_by_round_robin(name, share):
    """TensorFlow places them so: tests/tensorflow/test_device_setter.py. Without a turn for statistics ResNet-50's would have 0.997."""
    found = Scenario(protocols.make("ps-sync"), workload.read(name), servers=4)
    assert max(found.server_bytes) / found.workload.message_bytes == pytest.approx(share, abs=0.001)


@pytest.mark.parametrize("name", MULTIPLY_ADDS)
def test_known_work(name):
    assert workload.read(name).flops_per_sample == pytest.approx(2 * MULTIPLY_ADDS[name], rel=0.05)


def test_fc6_of_vgg_lies_on_one_server():
    """411 MB, three quarters of the model: why VGG collapses on parameter servers (Horovod's README, 2017)."""
    vgg = workload.read("vgg16")
    assert max(v.size for v in vgg.variables) == 25_088 * 4096
    assert max(placement.server_bytes(vgg.variables, 4)) > 0.74 * vgg.message_bytes
    assert max(placement.server_bytes(vgg.variables, 4, parts=4)) < 0.3 * vgg.message_bytes


def test_a_workload_of_ones_own(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('name = "mine"\nbatch = 8\nflops_per_sample = 1e9\nvariables = [{ name = "w", shape = [10, 3] }]\n')
    mine = workload.read(str(file))
    assert (mine.parameters, mine.batch) == (30, 8)
    assert mine.costs.compute(8) == pytest.approx(1e-3 + 8 * 0.03)
