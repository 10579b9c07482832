"""Fully sharded data parallelism: each rank keeps a part of each layer."""

from dataclasses import dataclass

from sim.language.collectives import allgather, reduce_scatter
from sim.language.text import Text


@dataclass(frozen=True)
class Fsdp(Text):
    """ZeRO-3 (Rajbhandari et al., SC 2020; Zhao et al., "PyTorch FSDP", VLDB 2023): layers are gathered for each pass, then dropped.

    Args:
        ahead: layers that are gathered while one is computed.
    """

    ahead: int = 1

    name = "fsdp"

    def __call__(self, me):
        order = [*me.layers, *reversed(me.layers)]
        for _ in me.steps():
            yield from me.sleep()
            gathers, sums = [], []
            for turn, layer in enumerate(order):
                while len(gathers) < min(turn + 1 + self.ahead, len(order)):
                    later = order[len(gathers)]
                    text = allgather(me, me.of(me.weights, later, later + 1), me.workers)
                    handle = yield from me.start(text, after=gathers[-1:])
                    gathers.append(handle)
                yield from me.wait(gathers[turn])
                if turn < len(me.layers):
                    yield from me.forward(layer, layer + 1)
                else:
                    yield from me.backward(layer, layer + 1)
                    text = reduce_scatter(me, me.of(me.gradient, layer, layer + 1), me.workers)
                    handle = yield from me.start(text, after=sums[-1:])
                    sums.append(handle)
                if turn >= len(me.layers) or len(order) - 1 - turn >= len(gathers):  # not if it is being gathered again
                    whole = me.of(me.weights, layer, layer + 1)
                    yield from me.drop(whole, but=whole.part(me.rank, me.n))
            yield from me.wait(sums)
            for layer in me.layers:
                yield from me.update(me.of(me.weights, layer, layer + 1).part(me.rank, me.n))
            yield from me.drop(me.gradient)
