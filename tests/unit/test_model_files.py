"""What a model's file has besides parameters is left out or not trained, and said with its numbers."""

from __future__ import annotations

import io
import json
import math
import struct
import tomllib
import zipfile
from itertools import accumulate

import pytest

from sim import workloads
from sim.base.errors import WrongSetting
from sim.model.model_files import read
from sim.model.workload import Workload

BITS = {"F64": 64, "F32": 32, "I32": 32, "U32": 32, "F16": 16, "BF16": 16, "I64": 64, "F8_E4M3": 8, "U8": 8, "BOOL": 8}


def safetensors(tensors: dict[str, tuple[str, list[int]]], data: bytes | None = None, **metadata: str) -> bytes:
    """A whole file with zeros, or with the data given."""
    sizes = [math.prod(shape) * BITS[kind] // 8 for kind, shape in tensors.values()]
    ends = list(accumulate(sizes))
    header = {
        name: {"dtype": kind, "shape": shape, "data_offsets": [end - size, end]}
        for (name, (kind, shape)), size, end in zip(tensors.items(), sizes, ends, strict=True)
    }
    text = json.dumps({"__metadata__": metadata} | header).encode()
    return struct.pack("<Q", len(text)) + text + (data or bytes(sum(sizes)))


def found(path) -> tuple[int, list[str]]:
    """The trained numbers of a file, and the notes, through the text of the workload and back."""
    text, notes = workloads.made_of(str(path))
    assert all(f"# note: {note}\n" in text for note in notes)
    return Workload.model_validate(tomllib.loads(text)).parameters, notes


def of_tensors(folder, tensors, **metadata: str) -> tuple[int, list[str]]:
    (folder / "model.safetensors").write_bytes(safetensors(tensors, **metadata))
    return found(folder / "model.safetensors")


def gpt(layers: int, width: int, words: int, places: int) -> dict:
    """The file of GPT-2 as Hugging Face has it, with its causal masks."""
    held = {"wte.weight": [words, width], "wpe.weight": [places, width], "ln_f.weight": [width], "ln_f.bias": [width]}
    for i in range(layers):
        held[f"h.{i}.attn.bias"] = [1, 1, places, places]
        for norm in ("ln_1", "ln_2"):
            held |= {f"h.{i}.{norm}.weight": [width], f"h.{i}.{norm}.bias": [width]}
        for name, into, out in (
            *(("attn.c_attn", 1, 3), ("attn.c_proj", 1, 1)),
            *(("mlp.c_fc", 1, 4), ("mlp.c_proj", 4, 1)),
        ):
            held |= {f"h.{i}.{name}.weight": [into * width, out * width], f"h.{i}.{name}.bias": [out * width]}
    return {name: ("F32", shape) for name, shape in held.items()}


def test_gpt2_has_its_published_size(tmp_path):
    tensors = gpt(12, 768, 50257, 1024)
    whole = safetensors(tensors, data=b"-")
    bytes_ = 4 * sum(math.prod(shape) for _, shape in tensors.values())
    with open(tmp_path / "gpt2.safetensors", "wb") as file:  # half a gigabyte of nothing
        file.write(whole[:-1])
        file.truncate(len(whole) - 1 + bytes_)
    trained, notes = found(tmp_path / "gpt2.safetensors")
    assert trained == 124_439_808
    assert notes == [
        "left out: 12,582,912 numbers in 12 tensors, masks: h.0.attn.bias, h.1.attn.bias, h.2.attn.bias, ..."
    ]


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("h.0.attn.bias", [1, 1, 8, 8]),
        ("gpt_neox.layers.0.attention.bias", [1, 1, 8, 8]),
        ("h.0.attn.masked_bias", []),
        ("blocks.0.sa.heads.1.tril", [8, 8]),
        ("layers.0.blocks.1.attn_mask", [4, 9, 9]),
        ("model.layers.0.self_attn.rotary_emb.inv_freq", [8]),
        ("model.layers.0.self_attn.rotary_emb.cos_cached", [1, 1, 8, 8]),
        ("rope.freqs", [8]),
        ("pos_encoder.pe", [8, 1, 8]),
        ("sqrt_one_minus_alphas_cumprod", [8]),
        ("model_ema.diffusion_model.weight", [8, 8]),
        ("discriminator.0.weight_u", [8]),
        ("fc.weight_mask", [8, 8]),
    ],
)
def test_a_buffer_is_left_out(name, shape, tmp_path):
    trained, notes = of_tensors(tmp_path, {name: ("F32", shape), "fc.weight": ("F32", [5, 5])})
    assert trained == 25
    assert notes[0].startswith("left out: ")
    assert name in notes[0]


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("attn.bias", [8]),
        ("vit.embeddings.mask_token", [1, 1, 8]),
        ("wav2vec2.masked_spec_embed", [8]),
        ("pos_embed", [1, 8, 8]),
        ("relative_attention_bias.weight", [8, 8]),
        ("logit_scale", []),
        ("ssm.A_log", [8]),
    ],
)
def test_a_parameter_with_a_similar_name_is_trained(name, shape, tmp_path):
    trained, notes = of_tensors(tmp_path, {name: ("F32", shape), "fc.weight": ("F32", [5, 5])})
    assert (trained, notes) == (25 + math.prod(shape), [])


@pytest.mark.parametrize(
    "tensors",
    [
        {
            "q.qweight": ("I32", [4, 16]),
            "q.qzeros": ("I32", [1, 2]),
            "q.scales": ("F16", [1, 16]),
            "q.g_idx": ("I32", [32]),
        },
        {"q.weight": ("U32", [4, 16]), "q.scales": ("BF16", [4, 2]), "q.biases": ("BF16", [4, 2])},
        {"q.weight": ("U8", [64, 1]), "q.weight.absmax": ("F32", [2]), "q.weight.quant_map": ("F32", [16])},
        {"q.weight": ("U8", [64, 1]), "q.SCB": ("F32", [64])},
    ],
    ids=["GPTQ", "MLX", "bitsandbytes", "LLM.int8"],
)
def test_quantised_weights_are_left_out_with_their_scales(tensors, tmp_path):
    trained, notes = of_tensors(tmp_path, {**tensors, "norm.weight": ("F16", [7]), "q.bias": ("F16", [3])})
    assert trained == 10
    assert "left out: 64 numbers in 1 tensor, integers, weights that are quantised: q." in "\n".join(notes)
    assert sum(int(note.split()[2].replace(",", "")) for note in notes) == sum(
        math.prod(shape) for _, shape in tensors.values()
    )


def test_weights_of_eight_bits_are_parameters_without_their_scales(tmp_path):
    tensors = {"q.weight": ("F8_E4M3", [8, 8]), "q.weight_scale_inv": ("F32", [1, 1])}
    trained, notes = of_tensors(tmp_path, tensors)
    assert trained == 64
    assert notes[1] == "counted as trained: 64 numbers in 1 tensor, floating point of 8 bits: q.weight"


def test_an_adapter_is_trained_and_the_model_below_it_is_not(tmp_path):
    alone = {"base_model.l.q.lora_A.weight": ("F32", [2, 8]), "base_model.l.q.lora_B.weight": ("F32", [8, 2])}
    assert of_tensors(tmp_path, alone) == (
        32,
        ["adapters alone: the model below them, which is not trained, is in another file"],
    )
    head = {**alone, "base_model.classifier.weight": ("F32", [2, 8])}
    assert of_tensors(tmp_path, head)[0] == 48
    assert of_tensors(tmp_path, head)[1][0].startswith("adapters alone")
    trained, notes = of_tensors(
        tmp_path,
        {**alone, "base_model.l.q.base_layer.weight": ("F32", [8, 8]), "base_model.norm.weight": ("F32", [8])},
    )
    assert (trained, notes[0].partition(":")[2][:26]) == (32, " 72 numbers in 2 tensors, ")


def test_tied_weights_are_one(tmp_path):
    """Named in the metadata, as save_model of safetensors does, or written twice."""
    tensors = {"wte.weight": ("F32", [4, 2])}
    metadata = {"format": "pt", "lm_head.weight": "wte.weight"}
    assert of_tensors(tmp_path, tensors, **metadata) == (8, ["tied: lm_head.weight is wte.weight"])
    twice = {**tensors, "lm_head.weight": ("F32", [4, 2])}
    path = tmp_path / "twice.safetensors"
    path.write_bytes(safetensors(twice, data=bytes(range(32)) * 2))
    assert found(path) == (
        8,
        ["left out: 8 numbers in 1 tensor, the same numbers as wte.weight: lm_head.weight"],
    )
    t5 = {
        f"{name}.weight": ("F32", [4, 2])
        for name in ("shared", "encoder.embed_tokens", "decoder.embed_tokens", "lm_head")
    }
    path.write_bytes(safetensors(t5, data=bytes(range(32)) * 4))
    assert found(path)[0] == 8
    path.write_bytes(safetensors(twice, data=bytes(range(64))))
    assert found(path) == (16, [])


def shards(folder) -> None:
    """A model of two files, and its index."""
    files = {
        "model-00001-of-00002.safetensors": {"wte.weight": ("BF16", [8, 4])},
        "model-00002-of-00002.safetensors": {"h.0.weight": ("BF16", [4, 4]), "h.0.attn.masked_bias": ("F32", [])},
    }
    for name, tensors in files.items():
        (folder / name).write_bytes(safetensors(tensors))
    places = {tensor: name for name, tensors in files.items() for tensor in tensors}
    index = json.dumps({"metadata": {"total_size": 99}, "weight_map": places})
    (folder / "model.safetensors.index.json").write_text(index)


def test_an_index_is_all_of_its_files_and_one_file_says_that_it_is_not(tmp_path):
    shards(tmp_path)
    trained, notes = found(tmp_path / "model.safetensors.index.json")
    assert (trained, len(notes)) == (48, 1)
    trained, notes = found(tmp_path / "model-00001-of-00002.safetensors")
    whole = "model.safetensors.index.json names them all"
    assert (trained, notes) == (32, [f"one of 2 files of a model: the others are left out, {whole}"])


@pytest.mark.parametrize(
    "index",
    [
        b"",
        b"[]",
        b"{}",
        b'{"weight_map": {}}',
        b'{"weight_map": {"x": "../model.safetensors"}}',
        b'{"weight_map": {"x": 3}}',
        b'{"weight_map": {"x": "model-00001-of-00002.safetensors"}}',
        b'{"weight_map": {"x": "nowhere.safetensors"}}',
        b"[" * 9999,
    ],
)
def test_what_is_no_index_is_refused_in_one_line(index, tmp_path):
    shards(tmp_path)
    (tmp_path / "m.safetensors.index.json").write_bytes(index)
    with pytest.raises(WrongSetting, match="from: given") as refused:
        read(str(tmp_path / "m.safetensors.index.json"))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["m.pt", "m.pth", "pytorch_model.bin", "m.ckpt", "pytorch_model.bin.index.json"])
def test_a_pickle_is_never_opened_and_the_way_out_is_said(name):
    with pytest.raises(WrongSetting, match=r"safetensors\.torch\.save_model"):
        read(name)


@pytest.mark.parametrize("name", ["m.safetensors", "m.keras", "m.h5", "m.onnx", "m.safetensors.index.json"])
def test_a_pointer_of_git_lfs_is_said_to_be_one(name, tmp_path):
    (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")
    with pytest.raises(WrongSetting, match="git lfs pull"):
        read(str(tmp_path / name))


def layer(name: str, kind: str = "Dense", **config) -> dict:
    return {"class_name": kind, "config": {"name": name, **config}}


def keras(folder, config: dict, weights: dict[str, tuple[str, list[list[int]]]]):
    """A file as Keras 3 writes it: by group, the layer's name and the shapes of its variables."""
    h5py = pytest.importorskip("h5py")
    inner, path = io.BytesIO(), folder / "m.keras"
    with h5py.File(inner, "w") as tree:
        for key, (name, shapes) in weights.items():
            group = tree.create_group(f"{key}/vars")
            group.attrs["name"] = name
            for i, shape in enumerate(shapes):
                group.create_dataset(str(i), shape, "f4")
        tree.create_dataset("optimizer/vars/0", (99,), "f4")
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("config.json", json.dumps({"config": config}))
        file.writestr("model.weights.h5", inner.getvalue())
    return found(path)


def test_layers_of_keras_that_are_not_trainable_are_not_trained(tmp_path):
    """Whatever is below them: a model within a model, and one within a wrapper."""
    base = layer("base", "Sequential", trainable=False, layers=[layer("inner", trainable=True)])
    wrapped = layer(
        "each",
        "TimeDistributed",
        layer=layer("deep", "Sequential", layers=[layer("last", trainable=False), layer("norm")]),
    )
    trained, notes = keras(
        tmp_path,
        {"layers": [base, wrapped, layer("head", trainable=True)]},
        {
            "layers/sequential/layers/dense": ("inner", [[8, 8], [8]]),
            "layers/time_distributed/layer/layers/dense": ("last", [[2, 2]]),
            "layers/time_distributed/layer/layers/batch_normalization": ("norm", [[3]] * 4),
            "layers/dense": ("head", [[8, 5], [5]]),
        },
    )
    assert trained == 45 + 6
    assert notes == [
        "not trained: 6 numbers in 2 tensors, moving means and variances: each/layer/norm/moving_mean, each/layer/norm/moving_variance",
        "not trained: 76 numbers in 3 tensors, of layers that are not trainable: base/inner/0, base/inner/1, each/layer/last/0",
    ]


def test_a_model_of_keras_that_is_a_class_of_its_own_has_variables(tmp_path):
    weights = {
        "": ("own", [[9]]),
        "a": ("dense", [[4, 8], [8]]),
        "blocks/dense": ("dense_1", [[8, 3], [3]]),
        "bn": ("batch_normalization", [[3]] * 4),
    }
    trained, notes = keras(tmp_path, {"trainable": True}, weights)
    assert trained == 9 + 40 + 27 + 6
    assert notes[0] == "the file does not say which layers are trainable: all are taken as trained"


@pytest.mark.parametrize("name", ["m.h5", "m.keras", "m.hdf5"])
def test_a_file_of_keras_2_is_read(name, tmp_path):
    """Whatever its name, as users gave it."""
    h5py = pytest.importorskip("h5py")
    config = {"config": {"layers": [layer("base", "Model", layers=[layer("d", trainable=False)]), layer("head")]}}
    held = {
        "base": {"d/kernel:0": [4, 4], "bn/moving_mean:0": [3], "bn/gamma:0": [3]},
        "head": {"head/kernel:0": [4, 2]},
    }
    with h5py.File(tmp_path / name, "w") as tree:
        tree.attrs["model_config"] = json.dumps(config)
        weights = tree.create_group("model_weights")
        weights.attrs["layer_names0"], weights.attrs["layer_names1"] = [b"base"], [b"head"]
        for key, variables in held.items():
            group = weights.create_group(key)
            group.attrs["weight_names"] = [one.encode() for one in variables]
            for one, shape in variables.items():
                group.create_dataset(one, shape, "f4")
    trained, notes = found(tmp_path / name)
    assert (trained, len(notes)) == (11, 2)


def onnx_of(folder, nodes, held=(), into=(), **more):
    onnx = pytest.importorskip("onnx")
    h = onnx.helper
    graph = h.make_graph(
        nodes, "g", [h.make_tensor_value_info("x", 1, [1, 64])], [h.make_tensor_value_info("y", 1, None)], held, **more
    )
    onnx.save(h.make_model(graph), folder / "m.onnx")
    return found(folder / "m.onnx")


def zeros(name: str, shape: list[int], kind: str = "FLOAT"):
    """A tensor whose numbers are in another file, as those of large models are."""
    onnx = pytest.importorskip("onnx")
    one = onnx.TensorProto(name=name, data_type=getattr(onnx.TensorProto, kind), dims=shape, data_location=1)
    one.external_data.add(key="location", value="weights.bin")
    return one


def test_constants_of_an_onnx_graph_are_its_weights(tmp_path):
    """Those of nodes, in branches too; some are made of a shape alone."""
    node = pytest.importorskip("onnx").helper.make_node
    from onnx import helper as h

    branch = h.make_graph(
        [node("Constant", [], ["v"], value=zeros("v", [8, 8])), node("MatMul", ["a", "v"], ["b"])],
        "branch",
        [],
        [h.make_tensor_value_info("b", 1, None)],
    )
    shape = h.make_tensor("shape", 7, [2], [4, 8])
    trained, notes = onnx_of(
        tmp_path,
        [
            node("Constant", [], ["w"], value=zeros("w", [64, 8], "FLOAT16")),
            node("MatMul", ["x", "w"], ["a"]),
            node("ConstantOfShape", ["shape"], ["s"]),
            node("Gemm", ["a", "s", "bias"], ["g"]),
            node("ConstantOfShape", ["shape"], ["state"]),
            node("Where", ["g", "state", "a"], ["z"]),
            node("If", ["x"], ["y"], then_branch=branch, else_branch=branch),
        ],
        [zeros("bias", [8], "BFLOAT16"), zeros("queue", [1, 1]), shape],
    )
    assert trained == 512 + 64 + 64 + 32 + 8
    assert notes == [
        "left out: 2 numbers in 1 tensor, integers: shape",
        "left out: 32 numbers in 1 tensor, of ConstantOfShape nodes that no layer reads as weights: state",
        "left out: 1 number in 1 tensor, read by no operator: queue",
        "counted as trained: 640 numbers in 3 tensors, of Constant nodes: w, v, v#2",
        "counted as trained: 32 numbers in 1 tensor, of ConstantOfShape nodes: s",
    ]


def test_what_operators_of_onnx_do_with_a_tensor_says_what_it_is(tmp_path):
    """Statistics of batch normalisation by any name; quantised weights and their scales."""
    node = pytest.importorskip("onnx").helper.make_node
    trained, notes = onnx_of(
        tmp_path,
        [
            node("BatchNormalization", ["x", "g", "b", "m", "v"], ["n"]),
            node("DequantizeLinear", ["q", "s", "z"], ["w"]),
            node("Resize", ["x", "", "up"], ["larger"]),
            node("MatMul", ["n", "w"], ["y"]),
        ],
        [
            *(zeros(name, [64]) for name in "gbmv"),
            zeros("up", [4]),
            zeros("q", [64, 8], "INT8"),
            zeros("s", [8]),
            zeros("z", [8], "INT8"),
        ],
    )
    assert trained == 128
    assert notes == [
        "left out: 8 numbers in 1 tensor, integers: z",
        "left out: 512 numbers in 1 tensor, integers, weights that are quantised: q",
        "left out: 8 numbers in 1 tensor, scales of quantised weights: s",
        "left out: 4 numbers in 1 tensor, sizes and limits of operators: up",
        "not trained: 128 numbers in 2 tensors, moving means and variances: m, v",
    ]
