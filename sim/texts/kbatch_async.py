"""K-batch asynchronous: an update of the next K gradients, and nobody waits."""

from dataclasses import dataclass

from sim.language.text import Delayed
from sim.language.verbs import compute, gather, hand_on, spread


@dataclass(frozen=True)
class KBatchAsynchronous(Delayed):
    """Dutta et al., "Slow and Stale Gradients Can Win the Race", AISTATS 2018, section 2, as the AMB repository (T. Adikari) runs it."""

    gradients: int = 0  # K, which make an update, whoever sent them; 0 is as many as there are workers

    name, servers = "kbatch-async", 1

    def gradients_per_update(self, workers):
        return self.gradients or workers

    def __call__(self, me):
        if me.rank == me.master:
            yield from spread(me, me.weights, me.workers)
            for _ in me.steps():
                samples = yield from gather(me, me.workers, me.gradient, self.gradients_per_update(len(me.workers)))
                yield from me.update(samples=samples)
                yield from me.evaluate()
                yield from spread(me, me.weights, me.workers)
        else:
            going, sent = (yield from me.follow(me.master, me.weights)), []
            while going:
                yield from me.sleep()
                yield from compute(me)
                sent = yield from hand_on(me, me.master, sent)
                going = yield from me.follow(me.master, me.weights, wait=False)
