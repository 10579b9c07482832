"""Synchronous parameter servers whose messages overlap with computing, layer by layer."""

from dataclasses import dataclass

from sim.language.rows import hand_in, publish, sum_up
from sim.language.text import Text
from sim.language.verbs import begin


@dataclass(frozen=True)
class LayerwiseServers(Text):
    """Wait-free back-propagation (Zhang et al., "Poseidon", USENIX ATC 2017, section 3.1); each layer is on one server."""

    servers: int = 1
    name, layerwise = "ps-layers", True

    def __call__(self, me):
        handles = []
        yield from publish(me, me.layers)
        for step in me.steps():
            if me.rank in me.workers:
                yield from begin(me)
                for layer in me.layers:
                    yield from me.wait(handles[-1 - layer :])  # its weights and those of the layers before have come
                    if step == 0:
                        yield from me.take(me.server_of(layer), me.of(me.weights, layer))
                    yield from me.forward(layer, layer + 1)
            handles = []
            for layer in reversed(me.layers):
                if me.rank in me.workers:
                    yield from me.backward(layer, layer + 1)
                handles.append((yield from me.start(self.exchanged(me, layer))))
            yield from me.wait(handles if me.rank in me.servers else [])

    def exchanged(self, me, layer):
        if me.rank in me.workers:
            yield from hand_in(me, layer, range(me.rank, me.rank + 1))
            yield from me.take(me.server_of(layer), me.of(me.weights, layer))
        yield from sum_up(me, layer, len(me.workers))
        yield from publish(me, range(layer, layer + 1))
