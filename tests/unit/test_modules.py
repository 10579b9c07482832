"""Workloads of other people's models: a module of PyTorch. Keras is in tests/tensorflow, config.json in test_config_json.py."""

from types import SimpleNamespace

import pytest

import trainsim
from sim.base.errors import WrongSetting


class Module:
    """What trainsim.model asks a torch.nn.Module."""

    def named_parameters(self):
        frozen = SimpleNamespace(shape=(2, 3), requires_grad=False)
        return [("frozen", frozen), ("w", self._of(4, 5)), ("s", self._of())]

    def named_buffers(self):
        return [("bn.running_var", self._of(7)), ("bn.num_batches_tracked", self._of()), ("mask", self._of(9, 9))]

    def _of(self, *shape: int):
        return SimpleNamespace(shape=shape, requires_grad=True)


def variables(model) -> list:
    return sorted((one.name, one.shape, one.trained) for one in model.created)


def test_a_module_says_what_is_trained():
    found = trainsim.model(Module(), flops_per_sample="1 Mflop")
    assert (found.name, found.parameters, found.flops_per_sample) == ("Module", 21, 1e6)
    said = [("bn.running_var", (7,), False), ("frozen", (2, 3), False), ("s", (1,), True), ("w", (4, 5), True)]
    assert variables(found) == said


def test_a_module_of_torch_has_its_size():
    torch = pytest.importorskip("torch")
    table = torch.nn.Embedding(100, 8)
    tied = torch.nn.Linear(8, 100, bias=False)
    tied.weight = table.weight
    found = trainsim.model(torch.nn.Sequential(table, torch.nn.BatchNorm1d(8), tied), "mine")
    assert (found.name, found.parameters, found.numbers) == ("mine", 800 + 16, 800 + 32)


@pytest.mark.parametrize("further", [{}, {"step": {"time": "20 ms", "batch": 8, "gpu": "A100"}, "optimiser": "adam"}])
def test_what_is_written_is_read_again(further, tmp_path):
    made = trainsim.model(Module(), **further)
    made.write(tmp_path / "m.toml")
    assert trainsim.read_workload(tmp_path / "m.toml") == made
    assert ("Say what computing takes" in (tmp_path / "m.toml").read_text()) == (not further)


def test_equal_layers_are_written_too(tmp_path):
    made = trainsim.Workload(name="x", parameters="1 M", layers=3, flops_per_sample=1e6)
    made.write(tmp_path / "m.toml")
    assert trainsim.read_workload(tmp_path / "m.toml") == made


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: trainsim.model(3), "torch.nn.Module, or a Keras model"),
        (lambda: trainsim.model(Module(), step=3), "step"),
        (lambda: trainsim.model(Module(), parameters=3, layers=1), "one or the other"),
        (lambda: trainsim.model(SimpleNamespace(name="m", trainable_weights=[], weights=[])), "variables"),
        (lambda: trainsim.model(Module()).write("m.txt"), "toml"),
        (lambda: trainsim.model(Module()).write("no/where/m.toml"), "no/where"),
    ],
)
def test_what_cannot_be_is_one_line(make, said):
    with pytest.raises(WrongSetting, match=said) as refusal:
        make()
    assert "\n" not in str(refusal.value)
