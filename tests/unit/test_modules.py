"""Workloads of other people's models: a module of PyTorch, or the header of its file. Keras is in tests/tensorflow."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from test_commands import here, refused  # noqa: F401 here is a fixture

import trainsim
from sim.base.errors import WrongSetting
from sim.model import modules

TENSORS = {
    "h.0.weight": ("float32", [3, 4]),
    "h.0.attn.bias": ("float32", [1, 1, 8, 8]),
    "h.0.bn.running_mean": ("float32", [4]),
    "h.0.bn.num_batches_tracked": ("int64", []),
    'a "quoted" \u540d\U0001f600': ("float16", [5]),
    "scale": ("float16", []),
}
FOUND = [
    ('a "quoted" \u540d\U0001f600', (5,), True),
    ("h.0.bn.running_mean", (4,), False),
    ("h.0.weight", (3, 4), True),
    ("scale", (1,), True),
]


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


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Has a file, and an index of two."""
    of_numpy = pytest.importorskip("safetensors.numpy")
    monkeypatch.chdir(tmp_path)
    whole = {name: np.zeros(shape, kind) for name, (kind, shape) in TENSORS.items()}
    places = {name: f"part-{place % 2}.safetensors" for place, name in enumerate(whole)}
    of_numpy.save_file(whole, "m.safetensors")
    for file in set(places.values()):
        of_numpy.save_file({name: one for name, one in whole.items() if places[name] == file}, file)
    (tmp_path / "m.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    return tmp_path


@pytest.mark.parametrize("name", ["m.safetensors", "m.safetensors.index.json"])
def test_names_and_shapes_of_a_file(name, folder, here):  # noqa: F811
    found, notes = modules.read(name)
    assert (found.name, len(notes), variables(found)) == ("m", 1, FOUND)
    done = here("sim.workloads", "from", name, "-o", "made.toml")
    assert done.stdout == "note: 2 tensors are left out: integers and masks\n"
    assert trainsim.read_workload("made.toml") == found
    assert here("sim.workloads", "from", name).stdout.startswith((folder / "made.toml").read_text())


def test_a_damaged_file_is_read_or_refused_in_one_line(folder, here):  # noqa: F811
    whole = (folder / "m.safetensors").read_bytes()
    cut = [whole[:size] for size in (0, 1, 8, 9, 100, len(whole) - 1)]
    wrong = [whole[:place] + bytes([whole[place] ^ 0x5A]) + whole[place + 1 :] for place in range(0, len(whole), 7)]
    for damaged in cut + wrong:
        (folder / "x.safetensors").write_bytes(damaged)
        done = here("sim.workloads", "from", "x.safetensors")
        assert done.returncode in (0, 2)
        assert len(done.stderr.splitlines()) == (done.returncode == 2)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"weight_map": 3}', '{"weight_map": {"a": 3}}', "[" * 10**5, "\0"])
def test_what_is_no_index_is_refused(text, folder):
    (folder / "x.safetensors.index.json").write_text(text)
    with pytest.raises(WrongSetting, match="from: given"):
        modules.read("x.safetensors.index.json")


@pytest.mark.parametrize("name", ["m.pt", "m.keras", "m.onnx", "m", "nowhere.safetensors", "folder.safetensors"])
def test_files_that_are_none(name, folder):
    (folder / "folder.safetensors").mkdir()
    with pytest.raises(WrongSetting, match="from: given"):
        modules.read(name)
