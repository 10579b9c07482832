"""A workload of somebody else's model: a module of PyTorch or Keras in a program, or the config.json of a decoder on Hugging Face."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from sim.base.errors import WrongSetting
from sim.base.files import check_size, read_json, reading, validated
from sim.model.workload import Workload
from sim.zoo import transformer
from sim.zoo.transformer import LONGEST_TRAINED

STATISTICS = ("running_mean", "running_var")  # of batch normalisation, as PyTorch names them
# Of the config.json of a decoder of Hugging Face's: the numbers that its variables follow from, by the keys and defaults of transformers.
DECODERS = ("gpt2", "llama", "mistral", "mixtral", "qwen2", "qwen3")
CUT = "sequences of {:,} words, where the model can read {:,}: sample_shape and flops_per_sample are of these"

_Width = Annotated[int, Field(ge=1, le=10**6)]
_Several = Annotated[int, Field(ge=1, le=1000)]


def model(module: Any, name: str | None = None, **further: Any) -> Workload:
    """The workload of a model: its variables, of which those are trained that the model says. Its `write` makes a file for --workload.

    Args:
        module: a torch.nn.Module, or a Keras model that is built.
        name: that of its class, or its own in Keras, if not given.
        further: what else a workload's file says, such as flops_per_sample or step.

    Raises:
        WrongSetting: no such module, one without variables, or a key or value that cannot be.
    """
    if hasattr(module, "named_parameters"):
        called, variables = type(module).__name__, _of_torch(module)
    elif hasattr(module, "trainable_weights"):
        called, variables = module.name, _of_keras(module)
    else:
        raise WrongSetting("model", type(module).__name__, "a torch.nn.Module, or a Keras model")
    return validated(Workload, {"name": name or called, "variables": list(variables), **further}, "model")


def _of_torch(module: Any) -> Iterator[dict]:
    """Parameters, of tied ones the first, and then the statistics of batch normalisation; other buffers are none."""
    for name, one in module.named_parameters():
        yield _variable(name, one.shape, one.requires_grad)
    for name, one in module.named_buffers():
        if name.endswith(STATISTICS):
            yield _variable(name, one.shape, trained=False)


def _of_keras(module: Any) -> Iterator[dict]:
    trained = set(map(id, module.trainable_weights))
    for one in module.weights:
        if "float" in str(one.dtype):
            yield _variable(getattr(one, "path", one.name), one.shape, id(one) in trained)


def _variable(name: str, shape: Any, trained: bool) -> dict:
    """As a workload's file says it; a number alone is a variable of one."""
    made = {"name": name, "shape": list(map(int, shape)) or [1]}
    return made if trained else {**made, "trained": False}


class Gpt2(BaseModel):
    """GPT-2's."""

    n_embd: _Width
    n_layer: _Several
    n_positions: _Width = 1024
    n_inner: None = None
    vocab_size: _Width


class Llama(BaseModel):
    """Those of Llama and of models like it."""

    model_type: str
    hidden_size: _Width
    intermediate_size: _Width
    num_hidden_layers: _Several
    num_attention_heads: _Several
    num_key_value_heads: _Several | None = None
    head_dim: _Width | None = None
    vocab_size: _Width
    max_position_embeddings: Annotated[int, Field(ge=1)] = LONGEST_TRAINED
    tie_word_embeddings: bool = False
    attention_bias: bool = False
    mlp_bias: Literal[False] = False
    num_local_experts: _Several = 8
    num_experts_per_tok: _Several = 2


def read(path: str) -> tuple[Workload, list[str]]:
    """The workload, by the name of the file's folder, and a note if its sequences are shorter than the model can read.

    Raises:
        WrongSetting: a file that is no such configuration, or of another kind of model.
    """
    with reading("from", path):
        check_size("from", path)
        text = Path(path).read_bytes()
    allowed = "the config.json of a model of Hugging Face's; of other models a program has trainsim.model"
    table, notes = _of_configuration(path, read_json(text, "from", path, allowed))
    name = Path(path).stem
    called = Path(path).resolve().parent.name or name if name == "config" else name
    return validated(Workload, {"name": called, **table}, path), notes


def _of_configuration(path: str, found: dict) -> tuple[dict, list[str]]:
    """As a workload's file has it, but its name."""
    if (kind := found.get("model_type")) not in DECODERS:
        raise WrongSetting(f"{path}: model_type", kind, f"{', '.join(DECODERS)}; or trainsim.model in a program")
    if kind == "gpt2":
        gpt2 = validated(Gpt2, found, path)
        return transformer.gpt2(gpt2.n_layer, gpt2.n_embd, gpt2.n_positions, gpt2.vocab_size), []
    model = validated(Llama, found, path)
    width, heads, longest = model.hidden_size, model.num_attention_heads, model.max_position_embeddings
    if not model.head_dim and width % heads:
        raise WrongSetting("num_attention_heads", heads, f"a divisor of hidden_size, {width}; or head_dim")
    sequence = min(LONGEST_TRAINED, longest)
    notes = [CUT.format(sequence, longest)] if sequence < longest else []
    return transformer.llama({**model.model_dump(), "sequence": sequence}), notes
