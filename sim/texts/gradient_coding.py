"""Gradient coding: each partition of a minibatch is computed by several workers, so that late ones are not waited for."""

from dataclasses import dataclass

from sim.base.errors import WrongSetting
from sim.language.cyclic_code import code, decoded
from sim.language.text import Text
from sim.language.verbs import clear, send


@dataclass(frozen=True)
class GradientCoding(Text):
    """Tandon, Lei, Dimakis, Karampatziakis, "Gradient Coding", ICML 2017: the cyclic code of algorithm 2, decoded by least squares.

    Args:
        late: workers of each step that need not be waited for; each worker computes `late` + 1 partitions of the minibatch.
    """

    late: int = 1

    name, servers, data = "gradient-coding", 1, "shared"

    def check(self, job):
        if not 0 <= self.late < job.ranks - 1:
            raise WrongSetting("late", self.late, f"an integer from 0, and less than the {job.ranks - 1} workers")
        if job.batch < job.ranks - 1:
            raise WrongSetting("batch", job.batch, f"at least one sample for each of {job.ranks - 1} partitions")

    def __call__(self, me):
        n = len(me.workers)
        if me.rank == me.master:
            for step in me.steps():
                yield from send(me, me.weights, me.workers)
                messages = []
                while len(messages) < n - self.late:
                    message = yield from me.take(me.workers)
                    if message.step == step:  # others are late
                        messages.append(message)
                shares = decoded(n, self.late, [message.sender - 1 for message in messages])
                for message, share in zip(messages, shares, strict=True):
                    yield from me.mix(me.gradient, message, 1, share)
                yield from me.update()
        else:
            while (yield from me.follow(me.master, me.weights)):
                yield from me.sleep()
                for k in range(self.late + 1):
                    micro = (me.rank - 1 + k) % n
                    yield from me.forward(micro=micro, of=n)
                    yield from me.backward(micro=micro, of=n, weight=code(n, self.late)[me.rank - 1][micro])
                yield from me.post(me.gradient, me.master)
                yield from clear(me, me.gradient)
