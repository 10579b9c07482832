"""Fully sharded data parallelism: each rank keeps a part of each layer."""

from dataclasses import dataclass

from sim.language.collectives import allgather, reduce_scatter
from sim.language.text import Text
from sim.language.verbs import buckets


@dataclass(frozen=True)
class Fsdp(Text):
    """ZeRO-3 (Rajbhandari et al., SC 2020; Zhao et al., "PyTorch FSDP", VLDB 2023): layers are gathered for each pass, then dropped."""

    ahead: int = 1  # units that are gathered while one is computed
    unit_parameters: float = 1e8  # of layers, at least, that are a unit (PyTorch's size_based_auto_wrap_policy)
    name, in_step, joins, keeps = "fsdp", True, False, "parts"

    def __call__(self, me):
        units = buckets(me, self.unit_parameters * me.item_bytes)
        order = [*reversed(units), *units]
        for _ in me.steps():
            yield from me.sleep()
            gathers, sums = [], []
            for turn, unit in enumerate(order):
                for other in order[turn + self.ahead if turn else 0 : turn + self.ahead + 1]:
                    text = allgather(me, me.of(me.weights, *other), me.workers)
                    gathers.append((yield from me.start(text, after=gathers[-1:])))
                yield from me.wait(gathers[turn])
                if turn < len(units):
                    yield from me.forward(*unit)
                else:
                    yield from me.backward(*unit)
                    text = reduce_scatter(me, me.of(me.gradient, *unit), me.workers)
                    sums.append((yield from me.start(text, after=sums[-1:])))
                if turn >= len(units) or len(gathers) < 2 * len(units) - turn:  # else it is gathered again by now
                    yield from me.drop(me.of(me.weights, *unit), but=me.of(me.weights, *unit).part(me.rank, me.n))
            yield from me.wait(sums)
            for unit in units:
                yield from me.update(me.of(me.weights, *unit).part(me.rank, me.n))
            yield from me.drop(me.gradient)
