"""Parameter servers with bounded staleness: nobody runs ahead of the slowest by more than a bound."""

from dataclasses import dataclass

from sim.language.text import Text
from sim.language.verbs import let_go, pulled, work_with_servers


@dataclass(frozen=True)
class StaleSynchronousServers(Text):
    """Stale synchronous parallel (Ho et al., "More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server", 2013)."""

    servers: int = 1  # that have a share of the weights each
    staleness: float = 3  # steps by which a worker may be ahead of the slowest; 0 is synchronous, inf asynchronous

    name, each, infinite = "ps-ssp", True, ("staleness",)

    def __call__(self, me):
        if me.rank in me.servers:
            weights, gradient = me.held(me.weights, me.rank), me.held(me.gradient, me.rank)
            done, waiting = [0 for _ in range(me.n)], []  # gradients of each rank, and workers that are not let go yet
            for _ in me.steps():
                for _ in me.workers:
                    message = yield from pulled(me, weights)
                    yield from me.mix(gradient, message)
                    yield from me.update(weights, samples=message.samples, share=me.held_share(me.rank))
                    done[message.sender] += 1
                    waiting.append(message.sender)
                    for _ in range(len(waiting)):
                        worker = waiting.pop(0)
                        if done[worker] - min(done[me.workers.start :]) <= self.staleness:
                            yield from let_go(me, worker)
                        else:
                            waiting.append(worker)
                yield from me.evaluate()
        else:
            yield from work_with_servers(me)
