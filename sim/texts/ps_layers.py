"""Synchronous parameter servers whose messages overlap with computing, layer by layer."""

from dataclasses import dataclass

from sim.language.rows import hand_over, there_and_back
from sim.language.text import Text
from sim.language.verbs import agreed, begin, evaluate


@dataclass(frozen=True)
class LayerwiseServers(Text):
    """Wait-free back-propagation (Zhang et al., "Poseidon", USENIX ATC 2017, section 3.1); each layer is on one server."""

    servers: int = 1
    barrier: bool = False  # weights leave when all layers of all servers are updated; else each layer's when it is
    local_aggregation: bool = False  # the first worker of a host adds up its workers' gradients, and passes weights on
    name, layerwise = "ps-layers", True

    def __call__(self, me):
        group = me.neighbours(me.rank) if self.local_aggregation else range(me.rank, me.rank + 1)
        firsts = [one for one in me.workers if me.neighbours(one)[0] == one or not self.local_aggregation]
        texts = [0 for _ in me.layers]
        for step in me.steps():
            if self.barrier and step and me.rank in me.servers:
                yield from agreed(me, 0, 1, me.servers)
            if self.barrier or step == 0:
                for layer in me.layers:
                    texts[layer] = yield from me.start(hand_over(me, layer, group, firsts))
            if me.rank in me.workers:
                yield from begin(me)
                for layer in me.layers:
                    yield from me.wait(texts[layer])  # its weights have come
                    yield from me.forward(layer, layer + 1)
            for layer in reversed(me.layers):
                if me.rank in me.workers:
                    yield from me.backward(layer, layer + 1)
                texts[layer] = yield from me.start(there_and_back(me, layer, group, firsts, not self.barrier))
            if me.rank in me.servers:
                yield from me.wait(texts)
            yield from evaluate(me)
