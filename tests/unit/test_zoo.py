"""The zoo: every workload is whole, and the well-known models have their known sizes."""

import pytest

from sim import protocols
from sim.base.errors import WrongSetting
from sim.job import replay
from sim.job.scenario import Scenario
from sim.model import workload

# Trainable numbers: Keras's documentation, less the moving averages of batch normalisation; AlexNet as in tf_cnn_benchmarks;
# captioning: Inception V3 without its classifier, and im2txt's LSTM.
KNOWN = {
    "toy_fc": 1_057_010,
    "mnist": 3_274_634,
    "cifar10": 4_605_450,
    "mlp": 79_510,
    "softmax": 784 * 10 + 10,
    "inception_v3": 23_817_352,
    "resnet50": 25_583_592,
    "resnet101": 44_601_832,
    "resnet152": 60_268_520,
    "vgg16": 138_357_544,
    "alexnet": 61_838_248,
    "captioning": 23_817_352 - 2049 * 1000 + 2048 * 512 + 12_000 * 512 + 1024 * 2048 + 2048 + 512 * 12_000 + 12_000,
    "lstm_classifier": 156 * 512 + 512 + 128 * 10 + 10,
    "bert_base": 109_482_240,  # Hugging Face's bert-base-uncased
    "bert_large": 335_141_888,
    "gpt2": 124_439_808,  # Hugging Face's gpt2
    "gpt2_medium": 354_823_168,
    "gpt2_large": 774_030_080,
    "gpt2_xl": 1_557_611_200,
    "llama3_1b": 1_235_814_400,  # meta-llama/Llama-3.2-1B, and so on: safetensors on Hugging Face
    "llama3_3b": 3_212_749_824,
    "llama3_8b": 8_030_261_248,
    "llama3_70b": 70_553_706_496,
    "mistral_7b": 7_241_732_096,
    "mixtral_8x7b": 46_702_792_704,
    "qwen2.5_0.5b": 494_032_768,
    "qwen2.5_7b": 7_615_616_512,
    "qwen3_8b": 8_190_735_360,
    "stable_diffusion": 859_520_964,  # diffusers
    "vit_b_16": 86_567_656,  # torchvision
    "vit_l_16": 304_326_632,
    "resnet18": 11_689_512,
    "resnet18_cifar": 11_173_962,  # kuangliu/pytorch-cifar
    "lm1b": 2 * 793_470 * 512 + 793_470 + 1024 * 8192 + 8192 + 2048 * 512,
}
# Multiply-adds of a forward pass, from the models' papers and Keras's documentation.
MULTIPLY_ADDS = {"inception_v3": 5.7e9, "resnet50": 3.9e9, "resnet101": 7.6e9, "resnet152": 11.3e9, "vgg16": 15.5e9}
MULTIPLY_ADDS |= {
    "resnet18": 1.81e9,
    "vit_b_16": 17.56e9,
    "vit_l_16": 61.55e9,
    "stable_diffusion": 402e9,
    "resnet18_cifar": 0.56e9,
}  # torchvision, kuangliu/pytorch-cifar
# What the paper says, in round numbers.
PUBLISHED = {"gpt3_1.3b": 1.3e9, "gpt3_2.7b": 2.7e9, "gpt3_6.7b": 6.7e9, "gpt3_13b": 13e9}
# Of the files that were there before some models were generated: no name, no order and no shape may change.
DIGESTS = {
    "captioning": "8dba9e650c1d41db",
    "inception_v3": "ff1df31550efc31a",
    "resnet50": "f5450bcd1b544fdb",
    "resnet101": "8cecf136517e48c3",
    "resnet152": "b03badae33da5a3c",
}


@pytest.mark.parametrize("name", workload.NAMED)
def test_every_workload_is_whole(name):
    found = workload.read(name)
    assert found.name == name
    assert found.costs.compute(found.batch) > 0
    assert len({v.name for v in found.variables}) == len(found.variables)


@pytest.mark.parametrize("name", KNOWN)
def test_known_sizes(name):
    assert workload.read(name).parameters == KNOWN[name]


@pytest.mark.parametrize("name", PUBLISHED)
def test_sizes_that_a_paper_publishes(name):
    assert workload.read(name).parameters == pytest.approx(PUBLISHED[name], rel=0.02)


@pytest.mark.parametrize("name", DIGESTS)
def test_models_are_what_they_were(name):
    assert replay.digest(workload.read(name)) == DIGESTS[name]


def test_work_of_a_transformer():
    """Two operations for each parameter and word, and those of attention: J. Kaplan et al., "Scaling Laws", 2020, table 1."""
    width, sequence, layers = 768, 1024, 12
    inside = 12 * layers * width**2 + 50_257 * width
    of_a_word = 2 * inside + 4 * layers * sequence * width
    assert workload.read("gpt2").flops_per_sample == pytest.approx(sequence * of_a_word, rel=1e-3)


@pytest.mark.parametrize(("name", "share"), [("resnet50", 0.586), ("resnet101", 0.56), ("inception_v3", 0.999)])
def test_the_largest_of_four_servers_by_round_robin(name, share):
    """TensorFlow places them so: tests/tensorflow/test_device_setter.py. Without a turn for statistics ResNet-50's would have 0.997."""
    found = Scenario(protocols.make("ps-sync"), workload.read(name), servers=4)
    assert max(found.traffic.server_bytes) / found.workload.message_bytes == pytest.approx(share, abs=0.001)


@pytest.mark.parametrize("name", MULTIPLY_ADDS)
def test_known_work(name):
    assert workload.read(name).flops_per_sample == pytest.approx(2 * MULTIPLY_ADDS[name], rel=0.05)


EQUAL = 'schema = "workload/1"\nname = "mine"\nparameters = "1.003 k"\nlayers = 4\n'


def test_equal_layers(tmp_path):
    """All numbers are in them, and their sizes differ by at most one."""
    file = tmp_path / "mine.toml"
    file.write_text(EQUAL + 'step = { time = "250 ms", batch = 32 }\n')
    mine = workload.read(str(file))
    assert [variable.size for variable in mine.variables] == [251, 251, 251, 250]
    assert (mine.parameters, mine.batch, mine.costs.compute(32)) == (1003, 32, pytest.approx(0.25))
    assert mine.without_untrained() == mine
    assert workload.Workload.model_validate(mine.model_dump(by_alias=True, exclude_unset=True)) == mine


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('parameters = "120 M"', "layers: missing"),
        ("layers = 4", "parameters: missing"),
        ('parameters = "120 M"\nlayers = 4\nvariables = [{ name = "w", shape = [3] }]', "variables: given 'param"),
        ('parameters = "1.2345 k"\nlayers = 4', "parameters: given '1.2345 k'; allowed: a whole number"),
        ('parameters = "120 m"\nlayers = 4', "parameters: given '120 m'"),
        ('parameters = "1e999999999"\nlayers = 4', "parameters: given '1e999999999'"),
        ('parameters = "3"\nlayers = 4', "parameters: given 3; allowed: at least as many as layers, 4"),
        ("", "variables: missing; needed: at least one; or parameters and layers"),
    ],
)
def test_models_that_are_none(more, said, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(f'schema = "workload/1"\nname = "mine"\nflops_per_sample = "1 Gflop"\n{more}\n')
    with pytest.raises(WrongSetting) as refused:
        workload.read(str(file))
    assert f"{file}: {said}" in str(refused.value)
