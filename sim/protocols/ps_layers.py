"""Synchronous parameter servers whose transfers overlap with computation, variable by variable."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from sim.errors import WrongSetting
from sim.protocols.base import Protocol


@dataclass(frozen=True)
class LayerwiseServers(Protocol):
    """Synchronous data parallelism with parameter servers, as TensorFlow's benchmark of 2017 does it (tf_cnn_benchmarks).

    The gradient of a variable leaves as soon as back-propagation has made it, the last variable's first, while the rest
    computes (wait-free back-propagation: Zhang et al., "Poseidon", USENIX ATC 2017, section 3.1). The forward pass waits for
    each variable when it comes to it. Nothing is stale: a variable is updated when the gradients of all workers are added.

    Args:
        barrier: parameters leave when every server has updated all it holds (variable_update=parameter_server, whose workers
            meet at the end of a step); else each as soon as it is updated (distributed_replicated).
        local_aggregation: the first worker of a host adds up the gradients of all its workers, sends one, and passes
            parameters on.
    """

    barrier: bool = False
    local_aggregation: bool = False

    name = "ps-layers"
    arrival_order_matters = True
    uses_servers = True
    overlaps = True
    layerwise = True

    def check(self, scenario):
        if not scenario.server_slices[0]:
            allowed = "fewer, or another --placement: the first server would hold no trained variable, and it counts the steps"
            raise WrongSetting("--servers", scenario.servers, allowed)

    def worker(self, me):
        for _ in me.steps():
            yield from me.sleep()
            yield from me.begin()
            for variable in me.variables:
                yield from me.parameters(variable)
                yield from me.forward(variable)
            for variable in reversed(me.variables):
                yield from me.backward(variable)
                me.send_off(variable)

    def server(self, me):
        me.hand_out(me.held)
        for _ in me.steps():
            missing = Counter(dict.fromkeys(me.held, len(me.senders)))
            while missing.total():
                variable = yield from me.take_gradient()
                missing[variable] -= 1
                if not missing[variable]:
                    yield from me.apply(variable)
                    if not self.barrier:
                        me.hand_out([variable])
            yield from me.end_step()
            yield from me.evaluate()
            if self.barrier:
                yield from me.meet()
                me.hand_out(me.held)
