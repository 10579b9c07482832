"""Transformers, with PyTorch's names of their variables.

BERT: J. Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers", NAACL 2019: 110 M and 340 M parameters; names
and order as in Hugging Face's BertModel. A sample is a sequence of 384 word pieces, as for SQuAD.
GPT-2: A. Radford et al., "Language Models are Unsupervised Multitask Learners", 2019: the smallest, of 124 M; the matrix of
its last layer is that of its first, and a sample is a sequence of 1024.
GPT-3: T. Brown et al., "Language Models are Few-Shot Learners", 2020, table 2.1: GPT-2 with sequences of 2048.
Llama, Mistral and Qwen: `llama` has the numbers and the names of Hugging Face's config.json and files; sequences of 4096.
ViT-B/16 and L/16: A. Dosovitskiy et al., "An Image is Worth 16x16 Words", ICLR 2021: 86.6 M, 304 M; names as in torchvision.

A forward pass takes two operations for each number of a kernel and each place in the sequence, and 4 x sequence^2 x width a layer for
attention (queries by keys, and weights by values).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sim.zoo.layers import affine, begins, multiplied, variable

WORD_PIECES, LONGEST, SQUAD = 30_522, 512, 384
WORDS, SENTENCE = 10_000, 20
BYTE_PAIRS, CONTEXT = 50_257, 1024
LONGEST_TRAINED = 4096  # of a sequence, where a decoder could read more
PATCH, PICTURE, CLASSES = 16, 224, 1000


def bert(layers: int, width: int) -> dict:
    """BERT, without the heads of its tasks."""
    inputs = [
        variable("embeddings.word_embeddings.weight", WORD_PIECES, width),
        variable("embeddings.position_embeddings.weight", LONGEST, width),
        variable("embeddings.token_type_embeddings.weight", 2, width),
        *affine("embeddings.LayerNorm", width, out=width),
    ]
    blocks = _stack(_bert_layer, "encoder.layer.{}", layers, width, SQUAD * width)
    pooler = list(affine("pooler.dense", width, width, out=width))
    flops = 2 * SQUAD * multiplied(blocks) + layers * _attention(SQUAD, width) + 2 * multiplied(pooler)
    return _words(SQUAD, WORD_PIECES, 8, flops, [*inputs, *blocks, *pooler], "encoder")


def gpt2(layers: int, width: int, sequence: int = CONTEXT, words: int = BYTE_PAIRS) -> dict:
    """GPT-2, and GPT-3's smaller models."""
    inputs = [variable("wte.weight", words, width), variable("wpe.weight", sequence, width)]
    blocks = _stack(_gpt2_layer, "h.{}", layers, width, sequence * width)
    flops = 2 * sequence * (multiplied(blocks) + words * width) + layers * _attention(sequence, width)
    variables = [*inputs, *blocks, *begins(affine("ln_f", width, out=width), sequence * width)]
    return _words(sequence, words, 8, flops, variables, "decoder")


def llama(config: Mapping[str, Any]) -> dict:
    """A decoder of Llama's kind, by the keys of its config.json; all experts are variables, and those of a word are computed."""
    asked = "model_type", "hidden_size", "intermediate_size", "vocab_size", "num_hidden_layers", "num_attention_heads"
    kind, width, inner, words, layers, heads = (config[key] for key in asked)
    sequence = config.get("sequence", LONGEST_TRAINED)
    head = config.get("head_dim") or width // heads
    groups = config.get("num_key_value_heads") or heads
    biased = "qkv" if kind == "qwen2" else "qkvo" if config.get("attention_bias") else ""
    experts = config["num_local_experts"] if kind == "mixtral" else 0
    idle = max(0, experts - config["num_experts_per_tok"]) * 3 * inner * width if experts else 0
    projections = {"q": (heads * head, width), "k": (groups * head, width), "v": (groups * head, width)}
    projections["o"] = (width, heads * head)
    dense = {"gate": (inner, width), "up": (inner, width), "down": (width, inner)}
    blocks: list[dict] = []
    for name in (f"model.layers.{i}" for i in range(layers)):
        begin = len(blocks)
        for part, shape in projections.items():
            blocks += list(affine(f"{name}.self_attn.{part}_proj", *shape, out=shape[0]))[: 1 + (part in biased)]
        blocks += [variable(f"{name}.self_attn.{part}_norm.weight", head) for part in "qk" if kind == "qwen3"]
        for expert in [f".experts.{i}" for i in range(experts)] or [""]:
            blocks += [variable(f"{name}.mlp{expert}.{part}_proj.weight", *shape) for part, shape in dense.items()]
        blocks += [variable(f"{name}.mlp.gate.weight", experts, width)] if experts else []
        blocks += [variable(f"{name}.{part}_layernorm.weight", width) for part in ("input", "post_attention")]
        blocks[begin:] = begins(blocks[begin:], sequence * width)
    last = begins([variable("model.norm.weight", width)], sequence * width)
    if not config.get("tie_word_embeddings"):
        last += [variable("lm_head.weight", words, width)]
    used = multiplied(blocks) - layers * idle + words * width
    flops = 2 * sequence * used + layers * _attention(sequence, heads * head)
    variables = [variable("model.embed_tokens.weight", words, width), *blocks, *last]
    return _words(sequence, words, 8, flops, variables, "decoder")


def small(layers: int = 2, width: int = 64) -> dict:
    """GPT-2's shapes, so small that a CPU trains it: it reads 20 of 10,000 words and says the next alone (4 heads)."""
    made = gpt2(layers, width, SENTENCE, WORDS)
    flops = made["flops_per_sample"] - 2.0 * (SENTENCE - 1) * WORDS * width
    return made | {"batch": 32, "architecture": "other", "flops_per_sample": flops}


def vit_16(layers: int, width: int) -> dict:
    """ViT-B/16 or L/16 on pictures of 224 x 224."""
    patches = (PICTURE // PATCH) ** 2
    places = patches + 1  # and one for the class
    patch = list(affine("conv_proj", width, 3, PATCH, PATCH, out=width))
    blocks = _stack(_vit_layer, "encoder.layers.encoder_layer_{}", layers, width, places * width)
    head = list(affine("heads.head", CLASSES, width, out=CLASSES))
    flops = 2 * (patches * multiplied(patch) + places * multiplied(blocks) + multiplied(head))
    variables = [
        *(variable("class_token", 1, 1, width), *patch, variable("encoder.pos_embedding", 1, places, width)),
        *(*blocks, *begins(affine("encoder.ln", width, out=width), places * width), *head),
    ]
    return {
        "sample_shape": [PICTURE, PICTURE, 3],
        "architecture": "encoder",
        "classes": CLASSES,
        "batch": 64,
        "flops_per_sample": float(flops + layers * _attention(places, width)),
        "variables": variables,
    }


def _words(sequence: int, words: int, batch: int, flops: int, variables: list[dict], kind: str) -> dict:
    table = {"sample_shape": [sequence], "inputs": "words", "classes": words, "batch": batch, "architecture": kind}
    return table | {"flops_per_sample": float(flops), "variables": variables}


def _stack(layer: Callable, name: str, layers: int, width: int, items: int) -> list[dict]:
    """The variables of so many layers, each of which has an input of so many numbers for a sample."""
    return [one for i in range(layers) for one in begins(layer(name.format(i), width), items)]


def _attention(places: int, width: int) -> int:
    """Operations of one layer that no kernel has."""
    return 4 * places**2 * width


def _bert_layer(name: str, width: int) -> Iterator[dict]:
    for part in ("query", "key", "value"):
        yield from affine(f"{name}.attention.self.{part}", width, width, out=width)
    yield from affine(f"{name}.attention.output.dense", width, width, out=width)
    yield from affine(f"{name}.attention.output.LayerNorm", width, out=width)
    yield from affine(f"{name}.intermediate.dense", 4 * width, width, out=4 * width)
    yield from affine(f"{name}.output.dense", width, 4 * width, out=width)
    yield from affine(f"{name}.output.LayerNorm", width, out=width)


def _gpt2_layer(name: str, width: int) -> Iterator[dict]:
    yield from affine(f"{name}.ln_1", width, out=width)
    yield from affine(f"{name}.attn.c_attn", width, 3 * width, out=3 * width)
    yield from affine(f"{name}.attn.c_proj", width, width, out=width)
    yield from affine(f"{name}.ln_2", width, out=width)
    yield from affine(f"{name}.mlp.c_fc", width, 4 * width, out=4 * width)
    yield from affine(f"{name}.mlp.c_proj", 4 * width, width, out=width)


def _vit_layer(name: str, width: int) -> Iterator[dict]:
    yield from affine(f"{name}.ln_1", width, out=width)
    yield variable(f"{name}.self_attention.in_proj_weight", 3 * width, width)
    yield variable(f"{name}.self_attention.in_proj_bias", 3 * width)
    yield from affine(f"{name}.self_attention.out_proj", width, width, out=width)
    yield from affine(f"{name}.ln_2", width, out=width)
    yield from affine(f"{name}.mlp.0", 4 * width, width, out=4 * width)
    yield from affine(f"{name}.mlp.3", width, 4 * width, out=width)
