"""Bigrams: each word depends on the one before it alone."""

from __future__ import annotations

from real.models.operations import Operations


def next_word(nn: Operations, variables: list, x):
    """Reads numbers of words (samples, words) and predicts the next by the last; the only variable has a row of logits for each."""
    (table,) = variables
    return nn.rows(table, x[:, -1])
