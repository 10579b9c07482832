"""What a protocol is: texts for the ranks' roles, written with the verbs of `me`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

INFINITE = "infinite"  # in the metadata of a setting that may be so
Text = Iterator[object]  # a generator; what it yields is the world's business


class Protocol:
    """Texts that each world runs with its own `me`. A subclass is a frozen dataclass of the protocol's settings.

    Settings are int, float, str or bool. A text decides by these and by what `me` says alone: random numbers, clocks and globals
    of its own would differ from world to world. A gradient is sent, summed or applied before the next is computed. Gradients
    that come add up until the update. Rank 0 makes one update in each round of `me.steps()`; if rounds do not count its updates,
    `arrival_order_matters` is true. The event world simulates every verb. The vector world takes over where all workers do
    the same: `me.send`, `me.receive` and `me.gather` name the master or all workers, and nothing looks at the clock or asks
    for the rank. Over MPI run all verbs but those of variables that travel one by one, or while ranks compute.

    The verbs, all but `steps` used with `yield from`:

    - `me.steps()`: the rounds, warm-up included
    - `me.sleep()`: the induced straggler of this step
    - `me.fetch()`: a minibatch, where its parameters come after it; computing fetches one else
    - `me.compute()`: the gradient of the whole minibatch
    - `me.compute_until(deadline_s, partitions)`: partitions of the minibatch while there is time, at least one
    - `me.send(peers)`: a worker sends its gradient, the master or a server its parameters
    - `me.receive(peers)`: a worker waits for parameters and takes them up; false when a server says that training is over
    - `me.gather(peers)`: the master receives gradients from each of `peers` in order of arrival and adds them up
    - `me.take(peers)`: the sender of the next gradient that comes, of `me.staleness` updates; None when training is over
    - `me.answer(workers)`: a server hands them parameters and goes on at once
    - `me.take(peers, until_s)`: the same, and None at that time too
    - `me.post(peer)`: a worker sends its gradient and goes on at once, but for a gradient that has not left yet
    - `me.newest(peer)`: take up the last parameters that have come, if any have; false when training is over
    - `me.compute_renewing(deadline_s, partitions, peer)`: as compute_until, on the newest parameters in each partition
    - `me.pull(servers)`: ask servers for the parameters that they hold at that moment, and take them up
    - `me.push(servers, version)`: send the gradient, and wait until each has let this worker go; false when training is over
    - `me.let_go(workers, version)`: a server acknowledges their gradients; `me.let_go_at` is the version that it says
    - `me.tell(server)`, `me.hear(servers)`: a note between servers, and the wait for one from each
    - `me.add()`: add the gradient that was taken to the sum
    - `me.allreduce(algorithm, fused)`: the sum of all workers' gradients, at each of them (sim/collectives)
    - `me.allgather()`: the rows of sparse variables that any worker touched, at each of them
    - `me.update()`: divide the sum by its samples and apply the optimiser
    - `me.evaluate()`: loss and accuracy, where it is due, at rank 0

    where the first worker of a host sends for all its workers (`local_aggregation`; else each for itself):

    - `me.neighbours`: for whom this rank sends besides itself; `me.aggregators`: the servers, or who sends for this rank
    - `me.senders`: workers that send to servers; `me.hand_in()`: send the gradient, with those of the neighbours, where it goes

    where variables travel one by one to servers, while ranks compute (`overlaps`; send_off and hand_out return at once):

    - `me.begin()`: fetch a minibatch; `me.parameters(v)`: wait for a variable's; `me.forward(v)`, `me.backward(v)`: compute
    - `me.send_off(v)`: let its gradient leave; `me.take_gradient()`: the variable whose gradient comes next, added to its sum
    - `me.apply(v)`: new parameters of the sum; `me.hand_out(vs)`: let them leave; `me.end_step()`: all have been updated
    - `me.meet()`: wait for the other servers
    - `me.variables`, `me.held`: of the model, of a server

    where they are summed by all workers while these compute (`overlaps`; sim/worlds/background.py):

    - `me.beside(computing, communicating)`: both texts at once; `me.compute_by_layer(order)`: the gradient, variable by variable
    - `me.next_cycle(cycle_s)`, `me.negotiate()`: wait until gradients are ready everywhere, and agree on which
    - `me.copy(piece)`: into the fusion buffer or out of it; `me.reduce_all(algorithm, piece)`: one call of an allreduce

    and `me.now_s`, the rank's clock; `me.rank`, `me.master`, `me.servers`, `me.workers`.
    """

    name: ClassVar[str]
    arrival_order_matters: ClassVar[bool] = False  # if not, the vector world may run it
    uses_servers: ClassVar[bool] = False  # ranks 0, 1, ... are parameter servers, not one master
    local_aggregation: ClassVar[bool] = (
        False  # the first worker of a host sends to servers what its workers' gradients add up to
    )
    layerwise: ClassVar[bool] = False  # variables travel one by one between workers and servers
    overlaps: ClassVar[bool] = False  # variables travel while ranks compute: the event world only
    applies_each_gradient: ClassVar[bool] = False  # a step then is as many updates as there are workers
    renews: ClassVar[bool] = False  # partitions are computed one by one, for new parameters may come between them
    delay_std_s: ClassVar[float] = 0.0  # every message is delayed by |N(0, delay_std_s)| where it is received
    masterless: ClassVar[bool] = False  # every rank, from 0, is a worker that updates its own parameters

    def __init_subclass__(cls, **named):
        """A protocol without a name is called as its class is."""
        super().__init_subclass__(**named)
        cls.name = vars(cls).get("name", cls.__name__)

    @property
    def way(self) -> str:
        """How parameters are updated: by each gradient as it comes, or by several at once."""
        return "asynchronous" if self.applies_each_gradient else "synchronous"

    @property
    def in_library(self) -> bool:
        """Whether its messages travel within one call of MPI's."""
        return False

    def served(self, workload) -> tuple:
        """The variables that the master or the servers hold; of sparse ones on servers, rows alone travel."""
        return () if self.masterless else workload.variables

    def summed(self, workload) -> tuple:
        """The variables that workers allreduce, and update by themselves."""
        return workload.variables if self.masterless else ()

    def gathered(self, workload) -> tuple:
        """The sparse variables whose rows all workers hand to one another, and which they update by themselves."""
        return ()

    def check(self, scenario) -> None:
        """Refuse a scenario that the settings do not fit.

        Raises:
            WrongSetting: naming the setting.
        """

    def master(self, me) -> Text:
        """The text of rank 0."""
        raise NotImplementedError

    def server(self, me) -> Text:
        """The text of each parameter server."""
        raise NotImplementedError

    def worker(self, me) -> Text:
        """The text of the ranks after master or servers."""
        raise NotImplementedError

    def alone(self, me) -> Text:
        """The text of a single process that trains undistributed."""
        raise NotImplementedError


VERBS = tuple(sorted(set(re.findall(r"`me\.(\w+)", Protocol.__doc__ or ""))))  # and attributes: all that `me` has
