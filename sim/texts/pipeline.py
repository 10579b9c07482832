"""Pipeline parallelism: each rank has a stretch of the layers, and micro-batches pass all ranks."""

from dataclasses import dataclass

from sim.base.errors import WrongSetting
from sim.language.text import Text


@dataclass(frozen=True)
class Pipeline(Text):
    """1F1B (Narayanan et al., "PipeDream", SOSP 2019; with a flush in each step: "Megatron-LM", SC 2021, section 2.2).

    Args:
        micros: micro-batches of a minibatch.
    """

    micros: int = 8

    name, data = "pipeline", "shared"

    def check(self, job):
        if job.ranks > len(job.layers):
            raise WrongSetting("ranks", job.ranks, f"at most one for each of {len(job.layers)} layers with pipeline")
        if not 1 <= self.micros <= job.batch:
            raise WrongSetting("micros", self.micros, f"an integer from 1 to the batch, {job.batch}")

    def __call__(self, me):
        stage, last, of = me.rank, me.n - 1, self.micros
        first, stop = len(me.layers) * stage // me.n, len(me.layers) * (stage + 1) // me.n
        ahead = min(of, last - stage)  # forward passes before the first backward one
        for _ in me.steps():
            yield from me.sleep()
            sent = []
            for turn in range(of + ahead):
                if turn < of:
                    if stage > 0:
                        yield from me.take(stage - 1, me.activation(first, turn, of))
                    yield from me.forward(first, stop, turn, of)
                    if stage < last:
                        handle = yield from me.post(me.activation(stop, turn, of), stage + 1)
                        sent.append(handle)
                if turn >= ahead:
                    micro = turn - ahead
                    if stage < last:
                        yield from me.take(stage + 1, me.slope(stop, micro, of))
                    yield from me.backward(first, stop, micro, of)
                    if stage > 0:
                        handle = yield from me.post(me.slope(first, micro, of), stage - 1)
                        sent.append(handle)
            yield from me.wait(sent)
            yield from me.update(me.of(me.weights, first, stop))
