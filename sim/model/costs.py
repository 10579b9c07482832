"""The costs of a rank's work on one core or GPU, as lines with a floor: max(floor_s, base_s + slope_s x amount)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import AfterValidator, model_validator

from sim.base.models import Checked
from sim.base.ranges import Count, Exponent, ItemBytes, LogSpread, Seconds, Slowdown
from sim.laws import AnyLaw, Constant, Law, LogNormal
from sim.model.sizes import ITEM_BYTES

# Of idling: after less a rank is warm, after more it is cold (measured; see docs/how/details/idling.md).
COLD_FROM_S, COLD_AFTER_S = 2e-3, 8e-3
TRAINING = 3  # times the operations of a forward pass: the backward pass takes two forward passes
FORWARD = 1 / TRAINING  # of computing a gradient
TO_DEVICE, TO_HOST = "copy to device", "copy to host"  # activities
OFF_ONE = 0.05  # largest distance of the mean of a factor's law from 1


class Line(Checked):
    """Seconds of one core for an amount of work.

    Args:
        base_s: seconds whatever the amount.
        slope_s: seconds for each sample or byte more.
        cold_s: seconds more after the rank has long been idle: its caches have gone cold, and its threads sleep.
        floor_s: no amount takes less. A GPU's small minibatch takes what launching its kernels takes, whatever its size. Sums, updates
            and taking up have none.
    """

    base_s: Seconds = 0.0
    slope_s: Seconds = 0.0
    cold_s: Seconds = 0.0
    floor_s: Seconds = 0.0

    def __call__(self, amount):
        """Seconds for an amount, in samples or bytes, of a warm rank: a number or an array."""
        seconds = self.base_s + self.slope_s * amount
        return np.maximum(self.floor_s, seconds) if self.floor_s else seconds

    def times(self, factor: float) -> Line:
        """The line of what takes so many times as long."""
        return Line(**{name: factor * seconds for name, seconds in self})


def _of_mean_one(law: Law) -> Law:
    if abs(law.mean - 1) > OFF_ONE:
        raise ValueError(f"a law of mean 1, to within {OFF_ONE:.0%}: it is a factor (this one's is {law.mean:.4g})")
    return law


Factor = Annotated[AnyLaw, AfterValidator(_of_mean_one)]


class Costs(Checked):
    """The costs of one workload for the ranks of one cluster.

    Args:
        input: fetching and feeding a minibatch; amount in samples.
        loading: of a minibatch, by processes that load while gradients are computed: `input` is then what remains when these are there.
            None where nothing loads meanwhile; amount in samples.
        resume_s: extra seconds of the first work after an induced sleep, if measured for a step as a whole.
        resume_error_s: standard deviation of the error of `resume_s` in one run, seconds. Only intervals have it (sim.answers.quantities).
        compute: one gradient of a fixed minibatch; amount in samples. After a rank was idle, `compute`, `partition` or `update` takes
            `cold_s` longer, once.
        loop_s: entering the in-graph loop of partitions, once a step.
        partition: one turn of that loop; amount in samples of the micro-batch. A workload that gives neither has them from `compute`.
        to_device, to_host: a rank's copies between host and device: parameters and minibatch before a gradient, the joined gradient
            after it; amount in bytes. A rank whose host computes has none.
        pack: the gradients of all variables are joined into one message; amount in bytes.
        take_up: a worker takes up new parameters; amount in bytes.
        reduce: the master adds one gradient to the sum; amount in bytes.
        reduce_rows: the same for rows of a sparse variable, which are added one by one; as `reduce` if not given.
        update: the master divides and applies the optimiser; amount in bytes.
        background: seconds of a core of a step that no rank waits for: a runtime's other threads, at random moments; amount in
            samples.
        evaluate: loss and accuracy at the master; amount in samples. A third of `compute`, a forward pass, if it was not measured.
        call: a library's work around the exchanges of one allreduce (its operation, copies); amount in bytes that are summed.
        agree_s: seconds without a core before a call, while its ranks agree on it: of a cycle (Horovod), or until they poll.
        negotiate_s: seconds of a core for agreeing, where there are several ranks, whatever their number (Horovod).
        item_bytes: of a number of the gradients on a link, where ranks sum them without servers: 4, or 2 in half precision. What is said
            in bytes elsewhere counts 4.
        several, apart: shares by which `compute`, `partition` and `loop_s`, which are those of one worker alone, take longer where several
            workers train together, whatever their number, and where these are on several hosts.
        doubling: the power of the number of workers by which these take longer besides.
        alone: sizes of a minibatch whose `compute` is not on the line, and the seconds that each takes.
        noise: factor on a step's computation, drawn for each rank and step, mean 1.
        input_noise: the same on a step's input.
        update_noise: factor on the master's update, drawn for each step, mean 1.
        common_noise, common_input_noise, common_update_noise: factors likewise that all ranks have alike in a step, as long batches
            or checkpoints make them.
        run: factor on all computation of a run on one host, drawn once for each replication: processors drift between runs.
        error: standard deviation of the logarithm of a factor on all work of a run on all cores: the profile's error for one more run,
            beyond the laws above. Every simulated run has the factor's median, 1; intervals have the rest (sim.answers.quantities).
    """

    input: Line = Line()
    loading: Line | None = None
    resume_s: Seconds = 0.0
    resume_error_s: Seconds = 0.0
    compute: Line = Line()
    loop_s: Seconds = 0.0
    partition: Line = Line()
    to_device: Line = Line()
    to_host: Line = Line()
    pack: Line = Line()
    take_up: Line = Line()
    reduce: Line = Line()
    reduce_rows: Line | None = None
    update: Line = Line()
    evaluate: Line = Line()
    background: Line = Line()
    call: Line = Line()
    agree_s: Seconds = 0.0
    negotiate_s: Seconds = 0.0
    item_bytes: ItemBytes = ITEM_BYTES
    several: Slowdown = 0.0
    apart: Slowdown = 0.0
    doubling: Exponent = 0.0
    alone: tuple[tuple[Count, Seconds], ...] = ()
    noise: Factor = LogNormal(cv=0.0)
    input_noise: Factor = LogNormal(cv=0.0)
    update_noise: Factor = LogNormal(cv=0.0)
    common_noise: Factor = LogNormal(cv=0.0)
    common_input_noise: Factor = LogNormal(cv=0.0)
    common_update_noise: Factor = LogNormal(cv=0.0)
    run: Factor = LogNormal(cv=0.0)
    error: LogSpread = 0.0

    @model_validator(mode="after")
    def _bytes_have_no_floor(self):
        for name in ("take_up", "reduce", "reduce_rows", "update"):
            if (line := getattr(self, name)) and line.floor_s:
                raise ValueError(f"{name}: floor_s = 0")
        return self

    def at_the_median(self) -> Costs:
        """With every factor in which ranks differ at its median."""
        names = [name for name in ("noise", "input_noise", "update_noise", "run") if getattr(self, name).sole is None]
        medians = {name: Constant(value=getattr(self, name).quantile(0.5)) for name in names}
        off = {"error": 0.0} if self.error else {}
        return self.model_copy(update=medians | off) if medians or off else self

    @property
    def evaluated(self) -> bool:
        """Whether it is known what an evaluation takes."""
        return self.evaluate != Line()

    def with_evaluation(self) -> Costs:
        """With an evaluation that takes as long as a forward pass, if nobody measured one."""
        if self.evaluated:
            return self
        return self.model_copy(update={"evaluate": self.compute.times(FORWARD).model_copy(update={"cold_s": 0.0})})

    def of_batch(self, batch: int) -> Costs:
        """Those of minibatches of so many samples, which need not be on the line of others."""
        own = dict(self.alone)
        return self.model_copy(update={"compute": Line(base_s=own[batch]), "alone": ()}) if batch in own else self

    def among(self, workers: int, hosts: int) -> Costs:
        """Those of each of so many workers on so many hosts."""
        workers = max(1, workers)
        times = (1 + self.several * (workers > 1)) * (1 + self.apart * (hosts > 1)) * workers**self.doubling
        if times == 1:
            return self
        lines = {name: getattr(self, name).times(times) for name in ("compute", "partition")}
        alone = dict.fromkeys(("several", "apart", "doubling"), 0.0)
        return self.model_copy(update={**lines, **alone, "loop_s": times * self.loop_s})

    def with_computing(self, times: float) -> Costs:
        """With computing and evaluation that take so many times as long."""
        lines = {name: getattr(self, name).times(times) for name in ("compute", "partition", "evaluate")}
        return self.model_copy(update={**lines, "loop_s": times * self.loop_s})

    def with_partitions(self) -> Costs:
        """With those of partitions, where a whole minibatch's are given alone: they cost no more than it, however many there are."""
        if self.model_fields_set & {"loop_s", "partition"} or "compute" not in self.model_fields_set:
            return self
        partition = Line(slope_s=self.compute.slope_s, floor_s=self.compute.floor_s)
        return self.model_copy(update={"loop_s": self.compute.base_s, "partition": partition})
