"""Hybrid: parameter servers for sparse layers, allreduce for dense ones."""

from dataclasses import dataclass

from sim.language.collectives import SETTINGS, summed
from sim.language.rows import hear, pull, push_rows, serve
from sim.language.text import Text, require
from sim.language.verbs import agree, compute, evaluate


@dataclass(frozen=True)
class Hybrid(Text):
    """Kim et al., "Parallax: Sparsity-aware Data Parallel Training", EuroSys 2019 (arXiv 1808.02621), section 3.1."""

    servers: int = 1
    algorithm: str = "ring"  # as of allreduce
    local_aggregation: bool = True  # the first worker of a host adds up what its workers push: a row leaves it once
    name, in_step, least, names, serves = "hybrid", True, {"servers": 0}, {"algorithm": SETTINGS}, "sparse"

    def check(self, job):
        sparse = any(layer.rows for layer in job.layers)
        require(self.servers > 0 or not sparse, "--servers", 0, "an integer from 1 with sparse variables")

    def __call__(self, me):
        group = me.neighbours(me.rank) if self.local_aggregation else range(me.rank, me.rank + 1)
        senders = [one for one in me.workers if me.neighbours(one)[0] == one or not self.local_aggregation]
        layers, dense = (me.sparse, me.dense) if self.serves == "sparse" else (me.layers, [])  # on servers, and others
        for _ in me.steps():
            if me.rank in me.servers:
                yield from serve(me, layers, senders)
                continue
            yield from me.wait((yield from me.start(pull(me, layers))))
            yield from compute(me)
            yield from push_rows(me, layers, group)
            for first, stop in dense:
                yield from agree(me)
                yield from summed(me, me.of(me.gradient, first, stop), self.algorithm)
                yield from me.update(me.of(me.weights, first, stop))
            yield from hear(me, group)
            yield from evaluate(me)
