"""Gradient coding: several workers compute each partition of a minibatch, so that late ones are not waited for."""

from dataclasses import dataclass

from sim.language.cyclic_code import code, decoded
from sim.language.text import Text, require
from sim.language.verbs import compute, push, spread


@dataclass(frozen=True)
class GradientCoding(Text):
    """Tandon, Lei, Dimakis, Karampatziakis, "Gradient Coding", ICML 2017: a cyclic code, decoded by least squares."""

    late: int = 1  # workers of each step that need not be waited for; each computes late + 1 partitions
    name, servers, data, by_arrival = "gradient-coding", 1, "shared", True

    def check(self, job):
        require(self.late < job.ranks - 1, "--set late", self.late, "an integer, less than the workers")
        require(job.batch >= job.ranks - 1, "--batch", job.batch, "at least a sample for each worker")

    def __call__(self, me):
        n = len(me.workers)
        if me.rank == me.master:
            for step in me.steps():
                yield from spread(me, me.weights, me.workers)  # late ones may be sending
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
                for micro in [(me.rank - 1 + k) % n for k in range(self.late + 1)]:
                    yield from compute(me, micro, n, code(n, self.late)[me.rank - 1, micro])
                yield from push(me, me.servers)
