"""Transformers, with PyTorch's names of their variables.

BERT: J. Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers", NAACL 2019: 110 M and 340 M parameters; names
and order as in Hugging Face's BertModel. A sample is a sequence of 384 word pieces, as for SQuAD.
GPT-2: A. Radford et al., "Language Models are Unsupervised Multitask Learners", 2019: the smallest, of 124 M; the matrix of
its last layer is that of its first, and a sample is a sequence of 1024.
ViT-B/16: A. Dosovitskiy et al., "An Image is Worth 16x16 Words", ICLR 2021: 86.6 M; names as in torchvision.

A forward pass takes two operations for each number of a kernel and each place in the sequence, and 4 x sequence^2 x width a layer for
attention (queries by keys, and weights by values).
"""

from __future__ import annotations

from collections.abc import Iterator

from sim.zoo.layers import affine, multiplied, variable

WORD_PIECES, LONGEST, SQUAD = 30_522, 512, 384
WORDS, SENTENCE = 10_000, 20
BYTE_PAIRS, CONTEXT = 50_257, 1024
PATCH, PICTURE, CLASSES = 16, 224, 1000


def bert(layers: int, width: int) -> dict:
    """BERT, without the heads of its tasks."""
    inputs = [
        variable("embeddings.word_embeddings.weight", WORD_PIECES, width),
        variable("embeddings.position_embeddings.weight", LONGEST, width),
        variable("embeddings.token_type_embeddings.weight", 2, width),
        *affine("embeddings.LayerNorm", width, out=width),
    ]
    blocks = [one for i in range(layers) for one in _bert_layer(f"encoder.layer.{i}", width)]
    pooler = list(affine("pooler.dense", width, width, out=width))
    flops = 2 * SQUAD * multiplied(blocks) + layers * _attention(SQUAD, width) + 2 * multiplied(pooler)
    return _words(SQUAD, WORD_PIECES, 8, flops, [*inputs, *blocks, *pooler])


def gpt2(layers: int, width: int) -> dict:
    """GPT-2."""
    inputs = [variable("wte.weight", BYTE_PAIRS, width), variable("wpe.weight", CONTEXT, width)]
    blocks = [one for i in range(layers) for one in _gpt2_layer(f"h.{i}", width)]
    words = multiplied(blocks) + BYTE_PAIRS * width
    flops = 2 * CONTEXT * words + layers * _attention(CONTEXT, width)
    return _words(CONTEXT, BYTE_PAIRS, 8, flops, [*inputs, *blocks, *affine("ln_f", width, out=width)])


def small(layers: int = 2, width: int = 64) -> dict:
    """GPT-2's shapes, so small that a CPU trains it: it reads 20 of 10,000 words and says the next (4 heads)."""
    inputs = [variable("wte.weight", WORDS, width), variable("wpe.weight", SENTENCE, width)]
    blocks = [one for i in range(layers) for one in _gpt2_layer(f"h.{i}", width)]
    flops = 2 * (SENTENCE * multiplied(blocks) + WORDS * width) + layers * _attention(SENTENCE, width)
    return _words(SENTENCE, WORDS, 32, flops, [*inputs, *blocks, *affine("ln_f", width, out=width)])


def vit_b_16(layers: int = 12, width: int = 768) -> dict:
    """ViT-B/16 on pictures of 224 x 224."""
    patches = (PICTURE // PATCH) ** 2
    places = patches + 1  # and one for the class
    patch = list(affine("conv_proj", width, 3, PATCH, PATCH, out=width))
    blocks = [one for i in range(layers) for one in _vit_layer(f"encoder.layers.encoder_layer_{i}", width)]
    head = list(affine("heads.head", CLASSES, width, out=CLASSES))
    flops = 2 * (patches * multiplied(patch) + places * multiplied(blocks) + multiplied(head))
    variables = [
        *(variable("class_token", 1, 1, width), *patch, variable("encoder.pos_embedding", 1, places, width)),
        *(*blocks, *affine("encoder.ln", width, out=width), *head),
    ]
    return {
        "sample_shape": [PICTURE, PICTURE, 3],
        "classes": CLASSES,
        "batch": 64,
        "flops_per_sample": float(flops + layers * _attention(places, width)),
        "variables": variables,
    }


def _words(sequence: int, words: int, batch: int, flops: int, variables: list[dict]) -> dict:
    table = {"sample_shape": [sequence], "inputs": "words", "classes": words, "batch": batch}
    return table | {"flops_per_sample": float(flops), "variables": variables}


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
