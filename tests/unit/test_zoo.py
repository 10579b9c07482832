"""The zoo: every workload is whole, and the well-known models have their known sizes."""

from __future__ import annotations

import pytest

from sim import placement, workload

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
