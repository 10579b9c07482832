"""A workload as text: the TOML that `sim.model.workload.read` reads, lines for people, and the commands that measure it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from sim.base.errors import WrongSetting
from sim.base.files import MOST_BYTES
from sim.base.home import installed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.model.workload import Variable, Workload

NOTE = """\
# {}numbers in {} variables are trained. Say what computing takes:
# step = {{ time = "250 ms", batch = 32, gpu = "A100" }}, a step of one process that you measured and its GPU,
# or flops_per_sample = "3 Gflop", of a forward pass.
"""


def of(model: Workload) -> str:
    """A workload as TOML, after comments on what it does not say yet; WrongSetting if it is longer than what is read."""
    from sim.model.workload import SCHEMA

    table = model.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)
    text = toml({"schema": SCHEMA, **table}, table.pop("variables", []))
    if not (model.step or model.is_nominal or "costs" in table):
        text = NOTE.format(counted(model.parameters), len(model.variables)) + text
    if len(text.encode()) > MOST_BYTES:
        raise WrongSetting(
            "variables", len(model.created), f"so many that a file of {MOST_BYTES // 2**20} MiB has them"
        )
    return text


def toml(table: dict, variables: Sequence[dict]) -> str:
    """A workload as TOML, a line for each variable; tomli_w would take a line for each number of a shape."""
    head = [f"{name} = {_value(value)}" for name, value in table.items() if name != "variables"]
    lines = [f"    {_value(variable)}," for variable in variables]
    return "\n".join([*head, *(["variables = [", *lines, "]"] if lines else []), ""])


def _value(value) -> str:
    """A string, a number, a boolean, a list or a table, as TOML in one line."""
    import tomli_w

    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_value(item)}" for name, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return tomli_w.dumps({"x": value}).partition(" = ")[2].rstrip("\n")


def line(model: Workload) -> str:
    """A model in one line."""
    size = counted(model.parameters)
    return f"{model.name:16} {size:>8} in {len(model.variables):4} variables  batch {model.batch:5}  {computing(model)}"


def computing(model: Workload) -> str:
    """The key that says how long its computing takes."""
    if model.step:
        gpus = dict.fromkeys(step.gpu for step in model.step if step.gpu)
        return f"step measured{' on ' * bool(gpus)}{' and '.join(gpus)}"
    if model.is_nominal and model.flops_per_sample is not None:
        return f"{counted(model.flops_per_sample)}flop a sample, forward"
    return "costs given" if "costs" in model.model_fields_set else "nothing says what computing takes"


def of_variable(one: Variable) -> str:
    """A variable in one line."""
    shape = " x ".join(map(str, one.shape))
    return f"  {one.name:48} {shape}{', not trained' * (not one.trained)}{', rows' * (one.rows is not None)}"


def counted(number: float) -> str:
    """Three digits and a prefix."""
    for prefix, times in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= times:
            return f"{number / times:.3g} {prefix}"
    return f"{number:.3g} "


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
