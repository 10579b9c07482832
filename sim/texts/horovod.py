"""Horovod: in each cycle, ranks agree on the gradients that all have, and sum them in one buffer."""

from dataclasses import dataclass

from sim.language.buffers import LEAST, NAMES, cycle, negotiated, on_time, reduce_ready
from sim.language.text import Text


@dataclass(frozen=True)
class Horovod(Text):
    """Sergeev and Del Balso, 2018 (arXiv 1802.05799); its background thread, horovod/common/operations.cc."""

    algorithm: str = "auto"  # as of allreduce
    fusion_bytes: int = 128 * 2**20  # of gradients, at most, that are summed together; one layer alone may have more
    cycle_s: float = 1e-3  # least seconds from one cycle's start to the next's
    order: str = "parameters"  # of the moments at which gradients are ready: by size, uniform, or all at the end
    by_name: bool = False  # ranks negotiate in a message for each gradient, as until 2018

    name, joins, names, least = "horovod", False, NAMES, LEAST

    def __call__(self, me):
        for _ in me.steps():
            yield from me.sleep()
            ready, begin_s = [], me.now()
            yield from me.forward()
            background = yield from me.start(self.cycles(me, ready, on_time(me, begin_s, self.cycle_s)))
            for layer in reversed(me.layers):
                yield from me.backward(layer, layer + 1)
                ready.append(layer)
            yield from me.wait(background)
            yield from me.update()
            if me.rank == me.master:
                yield from me.evaluate()

    def cycles(self, me, ready, begin_s):
        done = 0
        while done < len(me.layers):
            begin_s = self.cycle_s + (yield from cycle(me, begin_s, self.cycle_s, ready, done))
            most = yield from negotiated(me, len(ready), done, self.by_name)
            yield from reduce_ready(me, done, most, self.fusion_bytes, self.algorithm)
            done = most
