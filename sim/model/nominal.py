"""Costs where no run was fitted: from operations and a nominal core, from steps that the user measured, or from a GPU's peak rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sim.laws import LogNormal
from sim.model.costs import FORWARD, TRAINING, Costs, Line
from sim.model.sizes import ITEM_BYTES

if TYPE_CHECKING:
    from sim.model.workload import Step

CORE_FLOPS = 100e9  # a second, forward and backward, of a nominal core
CORE_BYTES_PER_S = 4e9  # of its memory
GPU_BYTES_PER_S = 9e11  # of the memory of a GPU that nobody named: a V100's, in the middle of the catalogue
TO_ADD = 3  # accesses to memory for a number that is added: two are read, one is written
LAUNCH_S = 1e-3  # of a step besides its operations: input, and starting kernels


def nominal(flops_per_sample: float, parameters: int) -> Costs:
    """Costs on a nominal core: 100 Gflop/s forward and backward, 4 GB/s over the parameters; a guess, to be calibrated."""
    sample_s = TRAINING * flops_per_sample / CORE_FLOPS
    per_byte_s = 1 / CORE_BYTES_PER_S
    return Costs(
        compute=Line(base_s=1e-3, slope_s=sample_s),
        loop_s=1e-3,
        partition=Line(base_s=2e-4 + parameters / CORE_BYTES_PER_S, slope_s=sample_s),
        pack=Line(slope_s=per_byte_s),
        take_up=Line(slope_s=per_byte_s),
        reduce=Line(slope_s=per_byte_s),
        update=Line(base_s=1e-3, slope_s=2 * per_byte_s),
        evaluate=Line(base_s=1e-3, slope_s=sample_s / 3),
        noise=LogNormal(cv=0.02),
    )


def of_memory(bytes_per_s: float) -> dict[str, Line]:
    """Lines of the work over parameters, at the speed of a memory: two accesses a parameter, three to add, five to update with momentum."""
    moved = {"pack": 2, "take_up": 2, "reduce": TO_ADD, "update": 5}
    return {name: Line(slope_s=times / bytes_per_s) for name, times in moved.items()}


def on_gpu(flops_per_sample: float, parameters: int, flops_per_s: float, bytes_per_s: float, error: float) -> Costs:
    """Costs on a GPU that reaches so many operations and bytes of its memory a second.

    Args:
        error: how far the operations a second may be off, see sim.model.costs.Costs.
    """
    sample_s = TRAINING * flops_per_sample / flops_per_s
    computing = Costs(
        compute=Line(base_s=LAUNCH_S, slope_s=sample_s),
        loop_s=LAUNCH_S,
        partition=Line(base_s=LAUNCH_S + 3 * ITEM_BYTES * parameters / bytes_per_s, slope_s=sample_s),
        evaluate=Line(base_s=LAUNCH_S, slope_s=sample_s / TRAINING),
        noise=LogNormal(cv=0.02),
        error=error,
    )
    return computing.model_copy(update=of_memory(bytes_per_s))


def measured(steps: Sequence[Step], parameters: int) -> Costs:
    """Costs where steps of one process were measured: their line, by least squares; in proportion to the batch, if all had one batch.

    Values of the line below 0 are 0. A step contains its update, which therefore takes no further time. Other activities are nominal,
    and partitions of a minibatch together cost as much as the minibatch.

    Raises:
        ValueError: steps take no longer with more to compute.
    """
    batches, times_s = np.array([step.batch for step in steps], float), np.array([step.time_s for step in steps])
    base_s, slope_s = 0.0, float(batches @ times_s / (batches @ batches))
    if np.ptp(batches):
        slope_s_free = float(np.cov(batches, times_s)[0, 1] / batches.var(ddof=1))
        if slope_s_free <= 0:
            raise ValueError("step: times that grow with the batch")
        base_s_free = float(times_s.mean() - slope_s_free * batches.mean())
        base_s, slope_s = (base_s_free, slope_s_free) if base_s_free > 0 else (0.0, slope_s)
    computing = {
        "compute": Line(base_s=base_s, slope_s=slope_s),
        "loop_s": base_s,
        "partition": Line(slope_s=slope_s),
        "update": Line(),
        "evaluate": Line(base_s=base_s / 3, slope_s=slope_s / 3),
    }
    return nominal(0.0, parameters).model_copy(update=computing)


def layer_shares(sizes: list[int], order: str) -> list[float]:
    """Each variable's share of a gradient's time, shape (variables,); the forward pass before all of them has the rest.

    Args:
        order: after the forward pass each takes time in proportion to its number of `parameters`, or `uniform`; or all are ready
            at the `end`.
    """
    if order == "end":
        return [0.0] * len(sizes)
    weights = sizes if order == "parameters" else [1] * len(sizes)
    whole = sum(weights)  # once: a model may have 10^5 variables
    return [(1 - FORWARD) * weight / whole for weight in weights]
