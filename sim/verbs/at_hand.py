"""The gradient or the sum that a rank has at hand: no verb replaces it before it was sent, summed or applied."""

from __future__ import annotations

import numpy as np

from sim.base.errors import WrongText
from sim.verbs.me import Partition

GRADIENT, SUM = "a gradient", "a sum of gradients"
LOST = "me.compute would replace {}: send it, sum it or update with it first"
TWICE = "allreduce(me) would sum twice: update first"
NOT_BEGUN = "me.compute of Partition({0.index}, {0.of}), and no gradient is at hand: begin with Partition(0, {0.of})"
NOTHING_TAKEN = "me.add adds the gradient of a letter, once: receive the next one first"
EMPTY = "me.update of no samples: gradients come by gather(me, ...), me.add, allreduce(me) or me.compute"
OUT_OF_STEP = (
    "update {} of rank 0 is made in step {}: make one in each round of me.steps(), "
    "or go through no rounds at rank 0, and its updates number the steps"
)


class AtHand:
    """The gradient and sum that a rank of any world has at hand."""

    __slots__ = ("added", "what")

    def __init__(self):
        self.what = ""
        self.added = None  # the letter whose gradient was added last

    def begin_gradient(self) -> None:
        """A gradient is about to be computed.

        Raises:
            WrongText: the one at hand would be lost.
        """
        if self.what:
            raise WrongText(LOST.format(self.what))
        self.what = GRADIENT

    def begin_partition(self, part: Partition) -> None:
        """A partition is about to be computed; the first begins a gradient.

        Raises:
            WrongText: the gradient at hand would be lost, or there is none that the partition could be added to.
        """
        if part.index == 0:
            self.begin_gradient()
        elif self.what != GRADIENT:
            raise WrongText(NOT_BEGUN.format(part))

    def begin_sum(self) -> None:
        """A gradient is about to be summed with those of all workers.

        Raises:
            WrongText: it has been.
        """
        if self.what == SUM:
            raise WrongText(TWICE)
        self.what = SUM

    def begin_add(self, letter) -> None:
        """The gradient of a letter is about to be added.

        Raises:
            WrongText: it is no letter with a gradient, or it has been added.
        """
        if letter is None or letter.note or letter is self.added:
            raise WrongText(NOTHING_TAKEN)
        self.what, self.added = SUM, letter

    def handed_on(self) -> None:
        """Forget the gradient at hand: it has been sent or applied."""
        self.what = ""

    def begin_update(self, samples, step: int | np.ndarray, updates: int | None) -> None:
        """New parameters are about to be made of the sum.

        Args:
            samples: in it; of each replication, where there are several.
            updates: that this rank has made, if one is due in each step; None if not.

        Raises:
            WrongText: there is nothing to make them of, or this step has had its update.
        """
        if not (samples if isinstance(samples, int) else np.all(samples)):
            raise WrongText(EMPTY)
        if updates is not None and step != updates:
            raise WrongText(OUT_OF_STEP.format(updates + 1, step))
        self.handed_on()
