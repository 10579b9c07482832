"""Synchronous parameter servers whose messages overlap with computing, layer by layer."""

from dataclasses import dataclass

from sim.language.text import Text
from sim.language.verbs import begin, gather, push, spread


@dataclass(frozen=True)
class LayerwiseServers(Text):
    """Wait-free back-propagation (Zhang et al., "Poseidon", USENIX ATC 2017, section 3.1); a server has a part of each layer."""

    servers: int = 1
    name, layerwise = "ps-layers", True

    def __call__(self, me):
        text, handles = self.served if me.rank in me.servers else self.exchanged, []
        for _ in me.steps():
            if me.rank in me.workers:
                yield from begin(me)
                for layer in me.layers:
                    yield from me.wait(handles[-1 - layer :])  # its weights and those of the layers before have come
                    yield from me.forward(layer, layer + 1)
            handles = []
            for layer in reversed(me.layers):
                if me.rank in me.workers:
                    yield from me.backward(layer, layer + 1)
                handles.append((yield from me.start(text(me, layer))))
            yield from me.wait(handles if me.rank in me.servers else [])

    def served(self, me, layer):
        weights, gradient = (me.of(one, layer).part(me.rank, self.servers) for one in (me.weights, me.gradient))
        yield from gather(me, me.workers, gradient)
        yield from me.update(weights, share=me.share(layer, len(me.workers)))
        yield from spread(me, weights, me.workers, me.share(layer, numbered=True))

    def exchanged(self, me, layer):
        yield from push(me, me.servers, me.of(me.gradient, layer), me.share(layer, numbered=True))
        for server in me.servers:
            yield from me.take(server, me.of(me.weights, layer).part(server, self.servers))
