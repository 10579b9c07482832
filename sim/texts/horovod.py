"""Horovod: in each cycle, ranks agree on the gradients that all have, and sum them in one buffer."""

from dataclasses import dataclass

from sim.language.collectives import allreduce
from sim.language.text import Text
from sim.language.verbs import least, pause


@dataclass(frozen=True)
class Horovod(Text):
    """Sergeev and Del Balso, 2018 (arXiv 1802.05799); its background thread, horovod/common/operations.cc."""

    fusion_mb: float = 128.0  # MiB of gradients, at most, that are summed together; one layer alone may have more
    cycle_s: float = 1e-3  # least seconds from one cycle's start to the next's
    name = "horovod"

    def __call__(self, me):
        for _ in me.steps():
            yield from me.sleep()
            ready = []
            background = yield from me.start(self.cycles(me, ready))
            yield from me.forward()
            for layer in reversed(me.layers):
                yield from me.backward(layer, layer + 1)
                ready.append(layer)
            yield from me.wait(background)
            yield from me.update()

    def cycles(self, me, ready):
        stop, most = len(me.layers), self.fusion_mb * 2**20 / me.item_bytes
        while stop:
            end_s = me.now() + self.cycle_s
            left = len(me.layers) - (yield from least(me, len(ready), len(me.layers), me.workers))
            while stop > left:
                first = stop - 1
                while first > left and me.of(me.gradient, first - 1, stop).items <= most:
                    first -= 1
                yield from allreduce(me, me.of(me.gradient, first, stop), me.workers)
                stop = first
            yield from pause(me, end_s if stop else 0.0)
