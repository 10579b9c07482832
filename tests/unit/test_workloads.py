"""Models from the files of others, and what the commands on models and hosts print."""

from __future__ import annotations

import io
import json
import struct
import tomllib
import zipfile
from importlib import import_module

import pytest

from sim import command, run, workloads
from sim.base.errors import RunFailed, WrongSetting, printable
from sim.model import workload
from sim.model.files.safetensors import MOST_HEADER_BYTES
from sim.model.model_files import read
from sim.platform import catalogue

TENSORS = {
    "h.0.weight": ("F32", [3, 4]),
    "h.0.bn.running_mean": ("F32", [4]),
    "h.0.bn.num_batches_tracked": ("I64", []),
    'a "quoted" \u540d\U0001f600': ("BF16", [5]),
    "scale": ("F16", []),
}
FOUND = [
    {"name": "h.0.weight", "shape": [3, 4]},
    {"name": "h.0.bn.running_mean", "shape": [4], "trained": False},
    {"name": 'a "quoted" \u540d\U0001f600', "shape": [5]},
    {"name": "scale", "shape": [1]},
]


def safetensors(tensors=TENSORS, **more) -> bytes:
    """A whole file, every tensor of 8 bytes."""
    table = {
        name: {"dtype": dtype, "shape": shape, "data_offsets": [8 * i, 8 * i + 8]}
        for i, (name, (dtype, shape)) in enumerate(tensors.items())
    }
    header = json.dumps({"__metadata__": {"format": "pt"}} | table | more).encode()
    return struct.pack("<Q", len(header)) + header + bytes(8 * len(tensors))


LAYERS = {
    "conv2d": ("norm_last", [("f4", (3, 3, 1, 8)), ("f4", (8,))]),
    "batch_normalization": ("norm", [("f4", (8,)), ("f4", (8,)), ("f4", (8,)), ("f4", (8,))]),
    "dense": ("first", [("f4", (9, 2)), ("f4", (2,))]),
    "dropout": ("drop", [("u4", (2,))]),
}


def keras(order=("first", "drop", "norm", "norm_last"), kept=zipfile.ZIP_STORED) -> bytes:
    """A file as Keras 3 writes it; the configuration has the order of layers."""
    h5py = pytest.importorskip("h5py")
    weights, packed = io.BytesIO(), io.BytesIO()
    with h5py.File(weights, "w") as tree:
        for key, (name, arrays) in LAYERS.items():
            group = tree.create_group(f"layers/{key}/vars")
            group.attrs["name"] = name
            for i, (dtype, shape) in enumerate(arrays):
                group.create_dataset(str(i), shape, dtype)
        tree.create_dataset("optimizer/vars/0", (99,), "f4")
    config = {"config": {"layers": [{"class_name": "x", "config": {"name": name}} for name in order]}}
    with zipfile.ZipFile(packed, "w", kept) as file:
        file.writestr("config.json", json.dumps(config))
        file.writestr("model.weights.h5", weights.getvalue())
    return packed.getvalue()


OF_KERAS = [
    *({"name": "first/0", "shape": [9, 2]}, {"name": "first/1", "shape": [2]}),
    *({"name": "norm/0", "shape": [8]}, {"name": "norm/1", "shape": [8]}),
    {"name": "norm/moving_mean", "shape": [8], "trained": False},
    {"name": "norm/moving_variance", "shape": [8], "trained": False},
    *({"name": "norm_last/0", "shape": [3, 3, 1, 8]}, {"name": "norm_last/1", "shape": [8]}),
]


def variables(path: str) -> list[dict]:
    return read(path).variables


def written(folder, name: str, content: bytes) -> str:
    (folder / name).write_bytes(content)
    return str(folder / name)


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("m.safetensors", safetensors, FOUND),
        ("m.keras", keras, OF_KERAS),
        ("packed.keras", lambda: keras(kept=zipfile.ZIP_DEFLATED), OF_KERAS),
    ],
)
def test_names_shapes_and_order_are_kept(name, content, found, tmp_path):
    """Through the text and back."""
    path = written(tmp_path, name, content())
    assert variables(path) == found
    table = tomllib.loads(workloads.made_of(path)[0])
    assert table["variables"] == found
    model = workload.Workload.model_validate(table)
    assert [variable.trained for variable in model.created] == [one.get("trained", True) for one in found]


def test_an_onnx_graph_s_initializers_are_its_variables(tmp_path):
    onnx = pytest.importorskip("onnx")
    make, kinds = onnx.helper.make_tensor, onnx.TensorProto
    held = [
        make("fc.weight", kinds.FLOAT, [3, 4], [0.0] * 12),
        make("bn.running_var", kinds.FLOAT, [4], [0.0] * 4),
        make("shape", kinds.INT64, [2], [1, 2]),
    ]
    path = str(tmp_path / "m.onnx")
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph([], "g", [], [], held)), path)
    assert [(one["name"], one["shape"]) for one in variables(path)] == [("fc.weight", [3, 4]), ("bn.running_var", [4])]
    assert variables(path)[1]["trained"] is False


@pytest.mark.parametrize(("name", "content"), [("m.safetensors", safetensors), ("m.keras", keras)])
def test_a_file_that_was_cut_is_refused_in_one_line(name, content, tmp_path):
    whole = content()
    for cut in [0, 1, 7, 8, 9, *range(20, len(whole), max(1, len(whole) // 40)), len(whole) - 1]:
        with pytest.raises(WrongSetting) as refused:
            variables(written(tmp_path, name, whole[:cut]))
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("name", "content"), [("m.safetensors", safetensors), ("m.keras", keras)])
def test_a_file_with_a_wrong_byte_is_read_or_refused(name, content, tmp_path):
    whole = content()
    for place in range(0, len(whole), max(1, len(whole) // 150)):
        damaged = whole[:place] + bytes([whole[place] ^ 0x5A]) + whole[place + 1 :]
        assert "\n" not in complaint(written(tmp_path, name, damaged))


def complaint(path: str) -> str:
    """What is wrong with a file, if anything is."""
    try:
        workloads.made_of(path)
    except WrongSetting as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a longer header than there is", struct.pack("<Q", 2**63) + b"{}"),
        ("a huge header", struct.pack("<Q", MOST_HEADER_BYTES + 1) + b"{}"),
        ("no object", struct.pack("<Q", 2) + b"[]"),
        ("nested", struct.pack("<Q", 99_999) + b"[" * 99_999),
        ("no tensors", safetensors({})),
        ("only integers", safetensors({"x": ("I64", [3])})),
        ("a shape that is none", safetensors({"x": ("F32", [3.5])})),
        ("a negative shape", safetensors({"x": ("F32", [-3])})),
        ("a shape of true", safetensors({"x": ("F32", [True])})),
        ("a shape of nothing", safetensors({"x": ("F32", [0])})),
        ("a huge shape", safetensors({"x": ("F32", [10**13])})),
        ("a long name", safetensors({"x" * 2000: ("F32", [3])})),
        ("no name", safetensors({"": ("F32", [3])})),
        ("a tensor that is none", safetensors(more=3)),
        ("offsets that are none", safetensors(more={"dtype": "F32", "shape": [1], "data_offsets": [1]})),
        ("a name that is no text", safetensors({"\ud800": ("F32", [3])})),
    ],
)
def test_what_is_no_model_is_refused_in_one_line(name, content, tmp_path):
    with pytest.raises(WrongSetting) as refused:
        workloads.made_of(written(tmp_path, "m.safetensors", content))
    assert "\n" not in str(refused.value)


@pytest.mark.slow
def test_a_model_of_too_many_variables_is_refused(tmp_path):
    many = safetensors({f"layer.{i}.{'x' * 600}": ("F32", [3]) for i in range(7_000)})
    with pytest.raises(WrongSetting, match="at most 4 MiB"):
        workloads.made_of(written(tmp_path, "m.safetensors", many))


@pytest.mark.parametrize("name", ["m.txt", "m", "nowhere.safetensors", "nowhere.keras", "folder.keras"])
def test_files_that_are_none(name, tmp_path):
    (tmp_path / "folder.keras").mkdir()
    (tmp_path / "m.txt").touch()
    with pytest.raises(WrongSetting, match="from: given"):
        variables(str(tmp_path / name))


def said(capsys, module: str, *words: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        command.run(module, lambda: import_module(module).main(list(words)))
    out, err = capsys.readouterr()
    assert not (out and err)
    return ended.value.code, out or err


def test_models_are_listed_and_shown(capsys):
    code, listed = said(capsys, "sim.workloads", "list")
    assert code == 0
    assert [line.split()[0] for line in listed.splitlines()] == list(workload.NAMED)
    code, shown = said(capsys, "sim.workloads", "show", "resnet18")
    assert "11.7 M in   62 variables" in shown
    assert "bn1.running_mean                                 64, not trained" in shown


def test_a_model_is_made_written_and_simulated(capsys, tmp_path):
    path = written(tmp_path, "m.safetensors", safetensors())
    toml = str(tmp_path / "m.toml")
    code, notes = said(capsys, "sim.workloads", "from", path, "-o", toml)
    assert (code, [line.partition(",")[0] for line in notes.splitlines()]) == (
        0,
        ["note: left out: 1 number in 1 tensor", "note: not trained: 4 numbers in 1 tensor"],
    )
    code, refused = said(capsys, "sim.run", "--workload", toml)
    assert (code, "step, flops_per_sample or costs" in refused) == (2, True)
    (tmp_path / "m.toml").write_text('step = { time = "20 ms", batch = 8 }\n' + (tmp_path / "m.toml").read_text())
    assert said(capsys, "sim.run", "--workload", toml, "--steps", "3", "--protocol", "fmb", "--json")[0] == 0


def test_hosts_gpus_and_links_are_listed_and_shown(capsys):
    code, listed = said(capsys, "sim.hosts", "list")
    names = [name for section in catalogue.SECTIONS for name in catalogue.all_of(section)]
    assert code == 0
    assert all(line.startswith(name) for name, line in zip(names, listed.splitlines(), strict=True))
    assert "on-demand: 12.24 USD/h as of 2026-07-20" in said(capsys, "sim.hosts", "show", "p3.8xlarge")[1]
    assert "of other GPUs" in said(capsys, "sim.hosts", "show", "A10G")[1]


CATALOGUE = """
schema = "catalogue/1"
[hosts."a\\u001b[31mb"]
cores = 4
gpus = 2
gpu = "G"
source = "of\\u0007 mine"
network = { bandwidth_bytes_per_s = "10 Gbit/s" }
[gpus.G]
fp32 = { peak = "10 Tflop/s", share = SHARE }
memory_bytes_per_s = "100 GB/s"
[links."l\\u009b\\u202e"]
bandwidth_bytes_per_s = "10 Gbit/s"
"""


def with_share(share: str, folder, monkeypatch) -> None:
    (folder / "c.toml").write_text(CATALOGUE.replace("SHARE", share))
    monkeypatch.setenv(catalogue.VARIABLE, str(folder / "c.toml"))


def test_control_characters_of_names_are_escaped(capsys, tmp_path, monkeypatch):
    """Where they are read, so that no page, table or complaint has them."""
    with_share("0.5", tmp_path, monkeypatch)
    name = "a\x1b[31mb"
    for words in (
        ["sim.hosts", "list"],
        *(["sim.hosts", "show", one] for one in (name, "l\x9b\u202e", "nothing")),
        *(["sim.run", "--steps", "2", "--cluster", one, "--workers", "1"] for one in (name, f"{name}*2", "nothing")),
    ):
        printed = said(capsys, *words)[1]
        assert not set(printed) & set("\x1b\x07\x9b\u202e"), words
    assert name not in catalogue.all_of("hosts")
    assert printable(name) in said(capsys, "sim.hosts", "list")[1]


def test_a_failure_is_said_without_control_characters(capsys):
    def fails():
        raise RunFailed("host a\x1b[31mb\u202e is gone")

    with pytest.raises(SystemExit):
        command.run("sim.run", fails)
    assert capsys.readouterr().err == "sim.run: host a\\x1b[31mb\\u202e is gone\n"


def test_a_share_of_a_peak_needs_no_spread_and_is_one_at_most(capsys, tmp_path, monkeypatch):
    with_share("0.5", tmp_path, monkeypatch)
    code, shown = said(capsys, "sim.hosts", "show", "G")
    assert (code, "training reaches 0.50 of the peak, spread 0.61" in shown) == (0, True)
    (tmp_path / "more").mkdir()
    for share in ("5", "1.01", "0", "-0.5", "nan"):
        with_share(share, tmp_path / "more", monkeypatch)
        catalogue._read.cache_clear()
        assert said(capsys, "sim.hosts", "show", "G")[0] == 2


@pytest.mark.parametrize("option", ["--workload", "--cluster", "--stragglers"])
def test_a_file_that_is_not_there_is_said_to_be_none(option, capsys):
    for name in ("nosuch.toml", "nosuch.TOML"):
        code, line = said(capsys, "sim.run", option, name)
        assert (code, line.partition("allowed: ")[2]) == (2, "a file that can be read (No such file or directory)\n")
    assert "or " in said(capsys, "sim.run", option, "nosuch")[1]


def test_a_wrong_key_of_a_variable_lists_the_keys_of_variables(capsys, tmp_path):
    """By the name that files have, which is not that of the program's field."""
    (tmp_path / "w.toml").write_text(
        'schema = "workload/1"\nname = "x"\nvariables = [{ name = "a", shape = [3], dtype = "f4" }]'
    )
    code, line = said(capsys, "sim.workloads", "show", str(tmp_path / "w.toml"))
    assert (code, line.endswith("allowed: the keys name, shape, rows, trained\n")) == (2, True)


@pytest.mark.parametrize(
    "words",
    [
        ["sim.hosts", "show"],
        ["sim.hosts", "show", "V1000"],
        ["sim.hosts", "list", "V100"],
        ["sim.hosts"],
        ["sim.workloads", "show", "nothing"],
        ["sim.workloads", "from"],
        ["sim.workloads", "list", "-o", "x.toml"],
        ["sim.workloads", "shew", "mlp"],
    ],
)
def test_wrong_words_are_one_line(words, capsys):
    code, line = said(capsys, *words)
    assert (code, line.count("\n")) == (2, 1)


def test_another_format_of_numbers_is_simulated_and_not_trained():
    from real.models import forward_of

    half = workload.NAMED["mlp"].model_copy(update={"precision": "fp16"})
    assert forward_of(workload.NAMED["mlp"])
    with pytest.raises(WrongSetting, match="precision: given 'fp16'; allowed: fp32"):
        forward_of(half)


@pytest.mark.parametrize(
    "text",
    [
        "step = { time = 1e-300, batch = 1000000000 }",
        'step = [{ time = "1 ms", batch = 1 }, { time = "0.9 ns", batch = 2 }]',
        "costs = { compute = { base_s = 1e-300 } }",
        "costs = { compute = { base_s = 1e-10, slope_s = 1e-300 } }",
    ],
)
def test_no_step_is_computed_within_a_nanosecond(text, tmp_path, monkeypatch):
    """The answer was some 10^13 samples/s."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.toml").write_text(
        f'schema = "workload/1"\nname = "w"\nvariables = [{{ name = "a", shape = [4] }}]\n{text}\n'
    )
    with pytest.raises(WrongSetting, match=r"1e-300|9e-10|1e-10"):
        run.main(["--workload", "w.toml", "--protocol", "fmb", "--steps", "2", "--replications", "1", "--json"])
