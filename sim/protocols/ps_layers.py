"""Synchronous parameter servers whose transfers overlap with computation, variable by variable."""

from __future__ import annotations

from dataclasses import dataclass

from sim.base.errors import WrongSetting
from sim.protocols.base import Protocol
from sim.verbs import barrier
from sim.verbs.me import FORWARD_SHARE, Layer, Variable

ALLOWED = "fewer, or another --placement: the first server would hold no trained variable, and it counts the steps"


@dataclass(frozen=True)
class LayerwiseServers(Protocol):
    """Synchronous data parallelism with parameter servers, as TensorFlow's benchmark of 2017 does it (tf_cnn_benchmarks).

    The gradient of a variable leaves as soon as back-propagation has made it, the last variable's first, while the rest
    computes (wait-free back-propagation: Zhang et al., "Poseidon", USENIX ATC 2017, section 3.1). The forward pass waits for each
    variable before it uses it. No gradient is stale: a variable is updated when the gradients of all workers are added.

    Over MPI TensorFlow computes in a thread of its own. It waits before each variable until its parameters have come, and hands each
    gradient over when it has it. A host's workers do not add up their gradients over MPI: the first of them is busy, and no other
    thread of it receives.

    Args:
        barrier: parameters leave when every server has updated all of its variables (variable_update=parameter_server, whose workers
            meet at the end of a step); else each leaves as soon as it is updated (distributed_replicated).
        local_aggregation: the first worker of a host adds up the gradients of all its workers, sends one, and passes
            parameters on.
    """

    barrier: bool = False
    local_aggregation: bool = False

    name = "ps-layers"

    def check(self, scenario):
        if not scenario.traffic.server_slices[0]:
            raise WrongSetting("--servers", scenario.servers, ALLOWED)

    def worker(self, me):
        share = 1 / len(me.variables)
        for _ in me.steps():
            yield from me.sleep()
            yield from me.fetch()
            for number in me.variables:
                yield from me.receive(me.servers, variable=number)
                yield from me.compute(Layer(number, share * FORWARD_SHARE, backward=False))
            for number in reversed(me.variables):
                yield from me.compute(Layer(number, share * (1 - FORWARD_SHARE), last=number == 0))
                yield from me.send(Variable(number), me.aggregators, wait=False)

    def server(self, me):
        yield from self.hand_out(me, me.held)
        for _ in me.steps():
            missing = dict.fromkeys(me.held, len(me.senders))
            for _ in range(len(me.held) * len(me.senders)):
                letter = yield from me.receive(me.senders)
                yield from me.add(letter)
                missing[letter.variable] -= 1
                if not missing[letter.variable]:
                    yield from me.update([letter.variable])
                    if not self.barrier:
                        yield from self.hand_out(me, [letter.variable])
            if me.held:  # a server may hold untrained variables alone
                yield from me.update()
            yield from me.evaluate()
            if self.barrier:
                yield from barrier(me, me.servers)
                yield from self.hand_out(me, me.held)

    def hand_out(self, me, variables):
        """Let parameters leave for the next step, variable by variable, as they are needed; none after the last."""
        for number in variables:
            yield from me.send(Variable(number), me.senders, wait=False)
