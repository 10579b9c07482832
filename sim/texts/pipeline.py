"""Pipeline parallelism: each rank has a stretch of the layers, and micro-batches pass all ranks."""

from dataclasses import dataclass

from sim.language.layers import stages
from sim.language.text import Text, require


@dataclass(frozen=True)
class Pipeline(Text):
    """1F1B (PipeDream, SOSP 2019; with a flush in each step: Narayanan et al., "Megatron-LM", SC 2021, section 2.2)."""

    micro_batches: int = 8  # of a minibatch
    name, data, micros, joins, keeps = "pipeline", "shared", "micro_batches", False, "layers"

    def check(self, job):
        ends = set(stages(job.layers, job.ranks))
        require(len(ends) > job.ranks, "ranks", job.ranks, "one for each layer that has activation_items")

    def __call__(self, me):
        stage, last, of, ends = me.rank, me.n - 1, self.micro_batches, me.stages
        first, stop, ahead = ends[stage], ends[stage + 1], min(of, last - stage)  # forward passes before any backward
        for _ in me.steps():
            yield from me.sleep()
            sent = []
            for turn in range(of + ahead):
                if turn < of:
                    if stage > 0:
                        yield from me.take(stage - 1, me.activation(first, turn, of))
                    yield from me.forward(first, stop, turn, of)
                    if stage < last:
                        sent.append((yield from me.post(me.activation(stop, turn, of), stage + 1)))
                if turn >= ahead:
                    if stage < last:
                        yield from me.take(stage + 1, me.slope(stop, turn - ahead, of))
                    yield from me.backward(first, stop, turn - ahead, of)
                    if stage > 0:
                        sent.append((yield from me.post(me.slope(first, turn - ahead, of), stage - 1)))
            yield from me.wait(sent)
            yield from me.update(me.of(me.weights, first, stop))
