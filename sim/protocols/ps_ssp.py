"""Parameter servers with bounded staleness: nobody runs ahead of the slowest by more than a bound."""

from __future__ import annotations

from dataclasses import dataclass, field

from sim.base.errors import WrongSetting
from sim.protocols.base import INFINITE
from sim.protocols.ps_async import AsynchronousServers
from sim.verbs import let_go, take


@dataclass(frozen=True)
class StaleSynchronousServers(AsynchronousServers):
    """Stale synchronous parallel: workers as of asynchronous servers, which let them go later.

    Ho et al., "More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server", NIPS 2013. A worker that
    has done more than `staleness` steps more than the slowest waits for it. 0 is synchronous, infinite asynchronous.

    Args:
        staleness: steps by which a worker may be ahead of the slowest.
    """

    staleness: float = field(default=3, metadata={INFINITE: True})

    name = "ps-ssp"

    def __post_init__(self):
        if not self.staleness >= 0:
            raise WrongSetting("--set staleness", self.staleness, "steps, 0 or more, or inf")

    def server(self, me):
        steps, waiting = dict.fromkeys(me.workers, 0), []
        slowest, workers_at = 0, {0: len(me.workers)}  # how many workers have done so many steps
        while letter := (yield from take(me, me.workers)):
            yield from me.add(letter)
            yield from me.update()
            yield from me.evaluate()
            done = steps[letter.sender] = steps[letter.sender] + 1
            workers_at[done - 1] -= 1
            workers_at[done] = workers_at.get(done, 0) + 1
            slowest += workers_at[slowest] == 0
            waiting.append(letter.sender)
            free = [w for w in waiting if steps[w] - slowest <= self.staleness]
            waiting = [w for w in waiting if w not in free]
            yield from let_go(me, free)
