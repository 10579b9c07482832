"""Sparse variables: which of their rows a minibatch touches, and what travels of them."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from pydantic import model_validator

from sim.base.models import Checked
from sim.base.ranges import Amount, Count, Exponent, Share


class Rows(Checked):
    """The rows that a minibatch touches. Only they have a gradient (TensorFlow's IndexedSlices), and only they are read.

    A row that is drawn twice travels once, as in real runs here; in TensorFlow's embedding_lookup it travels twice.

    Args:
        per_sample: draws of each sample: the words that it looks up.
        per_minibatch: further different rows, drawn anew in every minibatch: the candidates of a sampled softmax.
        zipf: the k-th row is drawn in proportion to k ** -zipf; with 0 all are equally likely.
        fraction: the share of the rows that any minibatch touches, in place of draws.
        of: rows of the whole variable, if this describes a part of it. All parts are touched equally, because row r is in part r mod
            parts (partition_strategy="mod").
    """

    per_sample: Amount = 0
    per_minibatch: Amount = 0
    zipf: Exponent = 1
    fraction: Share | None = None
    of: Count | None = None

    @model_validator(mode="after")
    def _drawn_or_given(self):
        if (self.fraction is None) == (self.per_sample + self.per_minibatch == 0):
            raise ValueError("rows are drawn (per_sample, per_minibatch), or their fraction is given")
        return self

    def share(self, rows: int, samples: int, minibatches: int = 1) -> float:
        """The expected share of `rows` that so many minibatches of so many samples touch together."""
        rows = self.of or rows
        if self.fraction is not None:
            return 1 - (1 - self.fraction) ** minibatches
        draws = samples * self.per_sample + draws_of(self.per_minibatch, rows, self.zipf)
        return distinct(minibatches * draws, rows, self.zipf) / rows


@cache
def distinct(draws: float, rows: int, zipf: float) -> float:
    """The expected number of different rows in independent draws: the sum over rows of 1 - (1 - p) ** draws."""
    return float(-np.expm1(draws * _log_missed(rows, zipf)).sum())


@cache
def draws_of(different: float, rows: int, zipf: float) -> float:
    """The number of draws with so many different rows on average, fewer than there are; TensorFlow's samplers draw until they have them."""
    from scipy.optimize import brentq

    if not different:
        return 0.0
    upper = 2 * different
    while distinct(upper, rows, zipf) < different:
        upper *= 2
    return brentq(lambda draws: distinct(draws, rows, zipf) - different, 0, upper, xtol=1e-6 * different)


@cache
def _log_missed(rows: int, zipf: float) -> np.ndarray:
    """Logarithm of the chance that one draw is not each row, shape (rows,)."""
    weights = np.arange(1, rows + 1, dtype=float) ** -zipf
    with np.errstate(divide="ignore"):  # of one row, every draw is it
        return np.log1p(-weights / weights.sum())


class Load(NamedTuple):
    """The load of a message: the items of one variable, of a part of one, or of several together.

    Args:
        rows: their numbers, which the request and the gradient carry; 0 of what travels whole.
        numbers: the rows themselves.
    """

    rows: int
    numbers: int
