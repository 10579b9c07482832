"""Horovod: in each cycle, ranks agree on the gradients that all have, and sum them in one buffer."""

from dataclasses import dataclass

from sim.language.buffers import NAMES, ready_together, reduce_in_cycles
from sim.language.text import Text
from sim.language.verbs import until_woken, update, wake


@dataclass(frozen=True)
class Horovod(Text):
    """Sergeev and Del Balso, 2018 (arXiv 1802.05799); its background thread, horovod/common/operations.cc."""

    algorithm: str = "auto"  # as of allreduce
    fusion_bytes: int = 128 * 2**20  # of gradients, at most, that are summed together; one layer alone may have more
    cycle_s: float = 1e-3  # least seconds from one cycle's start to the next's
    order: str = "parameters"  # of the moments at which gradients are ready: by size, uniform, or all at the end
    by_name: bool = False  # ranks negotiate in a message for each gradient, as until 2018

    name, in_step, joins, names = "horovod", True, False, NAMES

    def __call__(self, me):
        ready, idle, over = [], [], []  # gradients to be summed, and texts that wait for another one, and for the last
        yield from me.start(self.background(me, ready, idle, over))
        for _ in me.steps():
            yield from me.sleep()
            yield from me.forward()
            for first, stop in ready_together(me, self):
                yield from me.backward(first, stop)
                ready.append(first)
                yield from wake(me, idle)
            yield from until_woken(me, over)
            yield from update(me)

    def background(self, me, ready, idle, over):
        begin_s = me.now()
        while True:
            begin_s = yield from reduce_in_cycles(me, self, begin_s, ready, idle)
            yield from wake(me, over)
