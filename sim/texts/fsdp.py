"""Fully sharded data parallelism: each rank keeps a part of each layer."""

from dataclasses import dataclass

from sim.language.collectives import allgather, reduce_scatter
from sim.language.text import Text


@dataclass(frozen=True)
class Fsdp(Text):
    """ZeRO-3 (Rajbhandari et al., SC 2020; Zhao et al., "PyTorch FSDP", VLDB 2023): layers are gathered for each pass, then dropped."""

    ahead: int = 1  # layers that are gathered while one is computed

    name, in_step, joins = "fsdp", True, False

    def __call__(self, me):
        order = [*me.layers, *reversed(me.layers)]
        for _ in me.steps():
            yield from me.sleep()
            gathers, sums = [], []
            for turn, layer in enumerate(order):
                while len(gathers) < min(turn + 1 + self.ahead, len(order)):
                    text = allgather(me, me.of(me.weights, order[len(gathers)]), me.workers)
                    gathers.append((yield from me.start(text, after=gathers[-1:])))
                yield from me.wait(gathers[turn])
                if turn < len(me.layers):
                    yield from me.forward(layer, layer + 1)
                else:
                    yield from me.backward(layer, layer + 1)
                    text = reduce_scatter(me, me.of(me.gradient, layer), me.workers)
                    sums.append((yield from me.start(text, after=sums[-1:])))
                if turn >= len(me.layers) or len(order) - 1 - turn >= len(
                    gathers
                ):  # not if it is gathered again by now
                    yield from me.drop(me.of(me.weights, layer), but=me.of(me.weights, layer).part(me.rank, me.n))
            yield from me.wait(sums)
            for layer in me.layers:
                yield from me.update(me.of(me.weights, layer).part(me.rank, me.n))
            yield from me.drop(me.gradient)
