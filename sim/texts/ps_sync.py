"""Synchronous parameter servers as TensorFlow has them: a queue of tokens, and no barrier."""

from dataclasses import dataclass

from sim.language.verbs import let_go, pulled, report, work_with_servers
from sim.texts.ps_barrier import BarrierServers


@dataclass(frozen=True)
class SynchronousServers(BarrierServers):
    """tf.compat.v1.train.SyncReplicasOptimizer: a worker takes a token and goes on, and each update makes a token for every worker.

    A fast worker may take a slow one's token and push twice. A gradient of an older step than the newest is dropped.
    """

    barrier: bool = False  # the textbook's, without tokens: sim.texts.ps_barrier
    name, by_arrival = "ps-sync", True

    def __call__(self, me):
        if me.rank in me.workers:
            return (yield from work_with_servers(me, tokens=True))
        weights, gradient, n = me.held(me.weights, me.rank), me.held(me.gradient, me.rank), len(me.workers)
        needed, waiting, given = n - self.backup, [], 0  # gradients, workers, tokens
        for step in me.steps():
            missing = needed
            while missing:
                message = yield from pulled(me, weights)
                waiting.append(message.sender)
                if me.rank:  # other servers than the first have no tokens
                    yield from let_go(me, waiting.pop(0))
                if message.step == step:
                    yield from me.mix(gradient, message)
                    missing -= 1
                if missing == 0:
                    yield from me.update(weights, None, needed * me.batch, me.held_share(me.rank, needed))
                    yield from report(me)
                    yield from me.evaluate()
                while waiting and given < needed + n * (step + (missing == 0)):
                    yield from let_go(me, waiting.pop(0), (given - needed) // n + 1)  # with the next token: its step
                    given += 1
