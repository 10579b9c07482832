"""Parameter servers with bounded staleness: nobody runs ahead of the slowest by more than a bound."""

from dataclasses import dataclass

from sim.language.text import Text
from sim.language.verbs import compute, push, send


@dataclass(frozen=True)
class StaleSynchronousServers(Text):
    """Stale synchronous parallel (Ho et al., "More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server", 2013)."""

    servers: int = 1  # that have a share of the weights each
    staleness: int = 3  # steps by which a worker may be ahead of the slowest; 0 is synchronous

    name, each = "ps-ssp", True

    def __call__(self, me):
        if me.rank in me.servers:
            weights, gradient = (one.part(me.rank, self.servers) for one in (me.weights, me.gradient))
            yield from send(me, weights, me.workers)
            done, waiting = [0 for _ in range(me.n)], []  # gradients of each rank, and workers that are not let go yet
            for _ in me.steps():
                for _ in me.workers:
                    message = yield from me.take(me.workers, gradient, adds=True)
                    yield from me.update(weights, samples=message.samples)
                    done[message.sender] += 1
                    waiting.append(message.sender)
                    for _ in range(len(waiting)):
                        worker = waiting.pop(0)
                        if done[worker] - min(done[me.workers.start :]) <= self.staleness:
                            yield from me.post(weights, worker)
                        else:
                            waiting.append(worker)
        else:
            while (yield from me.follow(me.servers, me.weights)):
                yield from me.sleep()
                yield from compute(me)
                yield from push(me, me.servers)
