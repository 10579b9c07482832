"""The error of a nominal core: published rates of ranks of CPUs beside 100 Gflop/s.

Seconds of one more sample, by a straight line through a table of minibatches in one partition.

Source: seconds per step against minibatch in the history of the AMB repository (T. Adikari), 2019.
"""

from __future__ import annotations

import numpy as np

from sim.model.nominal import CORE_FLOPS, TRAINING

SAMPLE_S = {  # (machine, model): seconds
    ("m3.xlarge", "cifar10"): 22.1e-3,
    ("t2.micro", "toy_conv"): 0.419e-3,
    ("t2.micro", "toy_fc"): 0.121e-3,
}


def times() -> dict[str, float]:
    """Times as long as a nominal core computes."""
    from sim.model import workload

    found = {}
    for (machine, model), sample_s in SAMPLE_S.items():
        nominal_s = TRAINING * (workload.NAMED[model].flops_per_sample or 0.0) / CORE_FLOPS
        found[f"{machine}, {model}"] = sample_s / nominal_s
    return found


def spread() -> float:
    """Root mean square of their logarithms: a nominal core is a guess, and no better than this."""
    return float(np.sqrt(np.square(np.log(list(times().values()))).mean()))
