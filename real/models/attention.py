"""A small GPT-2 (A. Radford et al., 2019), with the variables of sim.zoo.transformer."""

from __future__ import annotations

import math
from collections.abc import Iterator

from real.models.operations import Operations

HEADS = 4


def next_word(nn: Operations, variables: list, x):
    """Reads numbers of words (samples, words) and says the next by the last place; the words' matrix is that of the logits too."""
    words, places, *others = variables
    layers, (scale, shift) = iter(others[:-2]), others[-2:]
    h = nn.rows(words, x) + places
    for _ in range(len(others) // 12):
        h = _layer(nn, layers, h)
    last = nn.normalise(h[:, -1], (-1,)) * scale + shift
    return last @ nn.transpose(words, (1, 0))


def _layer(nn: Operations, left: Iterator, h):
    """Attention, and two dense layers, each on what is normalised, and added to what was there."""
    found = _attention(nn, _normal(nn, left, h), next(left), next(left))
    h = h + found @ next(left) + next(left)
    found = _gelu(nn, _normal(nn, left, h) @ next(left) + next(left))
    return h + found @ next(left) + next(left)


def _normal(nn: Operations, left: Iterator, h):
    scale, shift = next(left), next(left)
    return nn.normalise(h, (-1,)) * scale + shift


def _attention(nn: Operations, h, weights, bias):
    """Each place reads of those before it and of itself (A. Vaswani et al., NeurIPS 2017, eq. 1)."""
    places, width = int(h.shape[1]), int(h.shape[2])
    head = width // HEADS
    parts = nn.reshape(h @ weights + bias, (-1, places, 3, HEADS, head))
    query, key, value = (nn.transpose(parts[:, :, of], (0, 2, 1, 3)) for of in range(3))
    scores = query @ nn.transpose(key, (0, 1, 3, 2)) / math.sqrt(head)
    read = nn.softmax(nn.before(scores)) @ value
    return nn.reshape(nn.transpose(read, (0, 2, 1, 3)), (-1, places, width))


def _gelu(nn: Operations, x):
    """By the hyperbolic tangent, as GPT-2 has it (D. Hendrycks and K. Gimpel, 2016)."""
    return 0.5 * x * (1 + nn.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
