"""The config.json of a decoder of Hugging Face's: the numbers that its variables follow from, by the keys and defaults of transformers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from sim.base.errors import WrongSetting
from sim.base.files import read_json, validated
from sim.zoo import transformer

LONGEST = 4096  # of a sequence that is trained on, where a model could read more
CUT = "sequences of {:,} words, where the model can read {:,}: sample_shape and flops_per_sample are of these"

KINDS = ("gpt2", "llama", "mistral", "mixtral", "qwen2", "qwen3")

_Width = Annotated[int, Field(ge=1, le=10**6)]
_Several = Annotated[int, Field(ge=1, le=1000)]


class Gpt2(BaseModel):
    """GPT-2's."""

    n_embd: _Width
    n_layer: _Several
    n_positions: _Width = 1024
    n_inner: None = None
    vocab_size: _Width

    def table(self) -> tuple[dict, int]:
        """The model as a workload's file has it, and the longest sequence that it can read."""
        return transformer.gpt2(self.n_layer, self.n_embd, self.n_positions, self.vocab_size), self.n_positions


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
    max_position_embeddings: Annotated[int, Field(ge=1)] = LONGEST
    tie_word_embeddings: bool = False
    attention_bias: bool = False
    mlp_bias: Literal[False] = False
    num_local_experts: _Several = 8
    num_experts_per_tok: _Several = 2

    def table(self) -> tuple[dict, int]:
        """The model as a workload's file has it, and the longest sequence that it can read."""
        heads = self.num_attention_heads
        if not self.head_dim and self.hidden_size % heads:
            raise WrongSetting(
                "num_attention_heads", heads, f"a divisor of hidden_size, {self.hidden_size}; or head_dim"
            )
        made = transformer.llama(
            self.num_hidden_layers,
            self.hidden_size,
            self.intermediate_size,
            heads,
            self.num_key_value_heads or heads,
            self.vocab_size,
            head=self.head_dim or 0,
            tied=self.tie_word_embeddings,
            biased="qkv" if self.model_type == "qwen2" else "qkvo" * self.attention_bias,
            normed=self.model_type == "qwen3",
            experts=self.num_local_experts * (self.model_type == "mixtral"),
            chosen=self.num_experts_per_tok,
            sequence=min(LONGEST, self.max_position_embeddings),
        )
        return made, self.max_position_embeddings


def read(path: str) -> tuple[dict, list[str]]:
    """The model as a workload's file has it, and a note if its sequences are shorter than it can read.

    Raises:
        WrongSetting: a file that is no such configuration, or of another kind of model.
    """
    found = read_json(path, "from", "the config.json of a model of Hugging Face's")
    if (kind := found.get("model_type")) not in KINDS:
        raise WrongSetting(f"{path}: model_type", kind, f"{', '.join(KINDS)}; or a .safetensors file")
    made, longest = validated(Gpt2 if kind == "gpt2" else Llama, found, path).table()
    length = made["sample_shape"][0]
    return made, [CUT.format(length, longest)] * (length < longest)
