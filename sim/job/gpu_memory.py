"""The memory that a worker takes on its GPU: parameters, gradients, the optimiser's state, and activations.

All numbers are float32, as the gradients that are simulated. In mixed precision a copy of the parameters in 16 bits comes on top
(Micikevicius et al., "Mixed precision training", ICLR 2018). Activations follow from the memory that a process was seen to take, in
proportion to the batch; those of a transformer of words else from its shape, as little as full recomputation leaves of them. A library's
own needs (contexts, workspace, fragments) are in what was measured, and in nothing else.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

from sim.language.layers import stages, stretches
from sim.model.sizes import ITEM_BYTES

if TYPE_CHECKING:
    from sim.job.scenario import Scenario
    from sim.model.workload import Variable, Workload
    from sim.platform.gpu import Gpu

HALF_BYTES = 2  # of a number in fp16 or bf16
COPIES: dict[str, int] = {"sgd": 0} | dict.fromkeys(("momentum", "rmsprop", "adagrad", "lion"), 1)
COPIES |= dict.fromkeys(("adam", "adamw", "lamb"), 2)

DOES_NOT_FIT, RECOMPUTED = "does not fit", "fits only with recomputed activations"
# Bytes of a layer for each word and number of its width, in 16 bits: its input, which recomputation needs; all, with fused attention.
INPUT, ALL = 2, 34
LOGITS = 4  # and for each word and number of the width and of the vocabulary


class Held(NamedTuple):
    """Bytes on a GPU, by what they are.

    Args:
        activations: the fewest that there may be; None if nothing says how many.
        kept: all of them, where they are estimated.
        measured: all together, where a process was seen to take less than these; None if not.
    """

    parameters: float
    gradients: float
    state: float
    activations: float | None
    measured: float | None = None
    kept: float | None = None

    @property
    def total(self) -> float:
        """All of them, as far as they are known."""
        parts = self.parameters + self.gradients + self.state + (self.activations or 0.0)
        return parts if self.measured is None else self.measured


class Taken(NamedTuple):
    """A kind of GPU of a job, and its workers' memory there.

    Args:
        workers: that share one, where the most do.
        held: of one worker.
    """

    gpu: Gpu
    workers: int
    held: Held

    @property
    def bytes(self) -> float:
        """Of all workers on one."""
        return self.workers * self.held.total

    @property
    def share(self) -> float:
        """Of the GPU's memory; above 1 it does not fit."""
        return self.bytes / self.gpu.memory_bytes

    @property
    def verdict(self) -> str:
        """Whether it does not fit, or only just, as text; empty if it fits."""
        held, room = self.held, self.gpu.memory_bytes / self.workers
        more = (held.kept or 0.0) - (held.activations or 0.0)
        return DOES_NOT_FIT if self.share > 1 else RECOMPUTED if held.total + more > room else ""


class Shares(NamedTuple):
    """What a worker keeps at most at once, of each as a share of the whole model's."""

    parameters: float = 1.0
    gradients: float = 1.0
    state: float = 1.0
    activations: float = 1.0


def shares(scenario: Scenario) -> Shares:
    """By what the protocol's text keeps: whole copies, a part of each layer, or layers of its own (`Text.keeps`)."""
    protocol, ranks, sizes = scenario.protocol, scenario.workers, [one.size for one in scenario.workload.variables]
    keeps = protocol.text_class.keeps
    if keeps == "whole" or ranks < 2:
        return Shares()
    if keeps == "layers":
        ends = pairwise(stages(scenario.workload.variables, ranks))
        largest = max(sum(sizes[first:stop]) for first, stop in ends) / sum(sizes)
        micros = getattr(protocol, protocol.text_class.micros, 1)
        return Shares(largest, largest, largest, min(ranks, micros) / micros / ranks)
    least = getattr(protocol, "unit_parameters", 0)
    units = [sum(sizes[first:stop]) for first, stop in stretches(sizes, least)]
    gathered = getattr(protocol, "ahead", 0) + 1
    windows = (sum(units[first : first + gathered]) for first in range(len(units)))
    own, weights, gradient = 1 / ranks, max(windows) / sum(sizes), max(units) / sum(sizes)
    return Shares(own + (1 - own) * weights, own + (1 - own) * gradient, own, 1.0)


def held(
    workload: Workload, batch: int, elsewhere: int = 0, absent: int = 0, still: int = 0, of: Shares | None = None
) -> Held:
    """The bytes of one worker.

    Args:
        of: what it keeps of the whole model's; None: all.
        batch: its samples a step.
        elsewhere: numbers that others apply the optimiser to: servers, or a master.
        absent: numbers of sparse variables on servers that it does not read in a step.
        still: numbers of sparse variables, these too, that have no gradient in a step.
    """
    of = of or Shares()
    number = float(ITEM_BYTES + (HALF_BYTES if workload.precision in ("fp16", "bf16") else 0))
    gradient, copies = workload.gradient_bytes or ITEM_BYTES, ITEM_BYTES * COPIES[workload.optimiser]
    trained = workload.parameters
    alone = Held(number * workload.numbers, gradient * trained, copies * trained, None)
    found = Held(
        (alone.parameters - number * absent) * of.parameters,
        (alone.gradients - gradient * still) * of.gradients,
        (alone.state - copies * elsewhere) * of.state,
        None,
    )
    if workload.memory_bytes is None:
        fewest, kept = activations(workload, batch) or (None, None)
        return found._replace(activations=fewest and fewest * of.activations, kept=kept and kept * of.activations)
    left, times = workload.memory_bytes - alone.total, batch / workload.batch
    if left < 0:  # in formats of fewer bits, perhaps: at most in proportion to the batch
        return found._replace(measured=workload.memory_bytes * max(1.0, times))
    return found._replace(activations=left * times * of.activations)


def activations(workload: Workload, batch: int) -> tuple[float, float] | None:
    """Bytes of a transformer's activations, if every layer is computed again for its gradient, and if none is; None of other models.

    V. Korthikanti et al., "Reducing activation recomputation in large transformer models", MLSys 2023 (arXiv 2205.05198), table 2 and
    section 4.3. Layers are those that names of variables count, and the width is the length of most vectors; a model of so many equal
    layers is taken to have 12 x width^2 parameters in each.
    """
    if not workload.tokens_per_sample or workload.kind not in ("decoder", "encoder"):
        return None
    if workload.layers:
        layers, width = workload.layers, sqrt(workload.parameters / (12 * workload.layers))
    else:
        layers = len({found[1] for one in workload.created if (found := re.search(r"\.(\d+)\.", one.name))})
        vectors = Counter(one.size for one in workload.created if len(one.shape) == 1)
        if not (layers and vectors):
            return None
        width = vectors.most_common(1)[0][0]
    words = batch * workload.tokens_per_sample
    return INPUT * words * width * layers, words * (ALL * width * layers + LOGITS * (width + workload.classes))


def of_job(scenario: Scenario, batch: int | None = None) -> Taken | None:
    """The kind of GPU that is fullest; None if no worker has a GPU whose memory is known.

    Args:
        batch: in place of the scenario's.
    """
    workers: dict[str, tuple[Gpu, int]] = {}  # the most on one GPU of a kind
    for place, several in Counter(scenario.gpus[scenario.servers :] or scenario.gpus).items():
        gpu = scenario.machines[place.host].gpu if place else None
        if gpu and gpu.memory_bytes:
            workers[gpu.name] = gpu, max(several, workers.get(gpu.name, (gpu, 0))[1])
    if not workers:
        return None
    batch = scenario.batch if batch is None else batch
    if not scenario.workers:
        one = held(scenario.workload, batch)
    else:
        absent, still = (_still(several, batch) for several in (scenario.served, scenario.gathered_variables))
        served = sum(variable.size for variable in scenario.served)
        one = held(scenario.workload, batch, served, absent, absent + still, shares(scenario))
    return max((Taken(gpu, most, one) for gpu, most in workers.values()), key=lambda taken: taken.share)


def _still(variables: tuple[Variable, ...], batch: int) -> int:
    """Numbers of sparse variables that a minibatch of so many samples does not touch."""
    return sum(one.size - one.load(batch).numbers for one in variables if one.rows)


def parts(workload: Workload, one: Held) -> str:
    """What a worker holds, as text."""
    if one.measured is not None:
        return f"a process was seen to take {gigabytes(one.measured)}"
    said = {"parameters": one.parameters, "gradients": one.gradients, workload.optimiser: one.state}
    if one.activations is not None:
        said["recomputed activations" if one.kept else "activations"] = one.activations
    listed = ", ".join(f"{name} {gigabytes(size)}" for name, size in said.items() if size)
    return listed + (f"; {gigabytes(one.kept)} if none is recomputed" if one.kept else "")


def note(scenario: Scenario) -> list[str]:
    """A line on the fullest GPU's memory; none if it is not known."""
    taken = of_job(scenario)
    if taken is None:
        return []
    name, has = taken.gpu.name, gigabytes(taken.gpu.memory_bytes)
    takes = f"{taken.workers} workers on a GPU take" if taken.workers > 1 else "a worker takes"
    each = " each" if taken.workers > 1 else ""
    said = f"{takes} {gigabytes(taken.bytes)} ({parts(scenario.workload, taken.held)}{each})"
    line = f"{taken.verdict}: {said}, and {name} has {has}" if taken.verdict else f"{said} of the {has} of {name}"
    uncounted = taken.held.activations is None and taken.held.measured is None
    return [line + "; activations are not counted: say memory_bytes" * uncounted]


def gigabytes(size: float) -> str:
    """Bytes as text, with three digits."""
    return f"{size / 1e9:.3g} GB"
