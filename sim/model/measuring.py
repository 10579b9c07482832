"""The commands that measure a model: `real.run` trains some, and others are measured in the user's own training."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from sim.base.home import installed

if TYPE_CHECKING:
    from sim.model.workload import Workload

# The models that real.run trains, as real.models has them.
TRAINED = (
    *("toy_fc", "toy_conv", "mnist", "cifar10", "mlp", "lstm_classifier", "lstm_lm", "bigram", "softmax"),
    *("resnet18", "resnet18_cifar", "transformer_small"),
)
FIT = f"python -m {installed('calibration.fit')}"
# By whether the hosts have GPUs, the commands that measure links.
LINKS = {
    False: f"python -m {installed('real.probe')} -o links.json",
    True: f"all_reduce_perf -b 1M -e 1G -f 2 > links.txt; {FIT} links.txt --from nccl-tests -o links.toml",
}


def is_trained(workload: Workload) -> bool:
    """Whether real.run trains this model."""
    return workload.name in TRAINED and workload.precision in (None, "fp32")


def calibrated(workload: Workload) -> str:
    """How a profile of this model is made, in a few words."""
    if is_trained(workload):
        return "calibrate (real.calibrate)"
    return "measure it (calibration.fit --from torch, a trace of your own training, or --from steps)"


def commands(workload: Workload, said: str, batch: int, on_gpu: bool) -> str:
    """The commands that measure its computing.

    Args:
        said: as the user names the workload: a name or a file.
        batch: samples of a worker and step.
        on_gpu: whether the host has GPUs.
    """
    name = shlex.quote(said)
    if is_trained(workload):
        device = " --device gpu" * on_gpu
        of = f" --batch {batch}" * (batch != workload.batch)
        return f"python -m {installed('real.calibrate')} --workload {name}{of}{device} -o measured.toml"
    fit = f"{FIT} trace.json --from torch --workload {name} --batch {batch} -o measured.toml"
    return f"train it under torch.profiler; {fit} (or a table of its steps, --from steps)"
