"""Parameter servers with bounded staleness: nobody runs ahead of the slowest by more than a bound."""

from __future__ import annotations

from dataclasses import dataclass, field

from sim.errors import WrongSetting
from sim.protocols.base import INFINITE, Protocol


@dataclass(frozen=True)
class StaleSynchronousServers(Protocol):
    """Stale synchronous parallel.

    Ho et al., "More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server", NIPS 2013. A worker that
    has done more than `staleness` steps more than the slowest waits for it. 0 is synchronous, infinite asynchronous.

    Args:
        staleness: steps by which a worker may be ahead of the slowest.
    """

    staleness: float = field(default=3, metadata={INFINITE: True})

    name = "ps-ssp"
    arrival_order_matters = True
    uses_servers = True
    applies_each_gradient = True

    def __post_init__(self):
        if not self.staleness >= 0:
            raise WrongSetting("--set staleness", self.staleness, "steps, 0 or more, or inf")

    def worker(self, me):
        going_on = True
        while going_on:
            yield from me.sleep()
            yield from me.fetch()
            yield from me.pull(me.servers)
            yield from me.compute()
            going_on = yield from me.push(me.servers)

    def server(self, me):
        steps, waiting = dict.fromkeys(me.workers, 0), []
        while worker := (yield from me.take(me.workers)):
            yield from me.add()
            yield from me.update()
            yield from me.evaluate()
            steps[worker] += 1
            waiting.append(worker)
            slowest = min(steps.values())
            free = [w for w in waiting if steps[w] - slowest <= self.staleness]
            waiting = [w for w in waiting if w not in free]
            yield from me.let_go(free)
