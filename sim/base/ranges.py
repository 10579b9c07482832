"""The range of every number that a user may write, in files, options and protocols' settings; finite unless it says otherwise.

Lower limits are the smallest values with a meaning. Upper limits are far beyond any machine: a larger number is a slip of the pen.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, Strict

from sim.base.errors import WrongSetting, printable
from sim.base.units import count, quantity

LONGEST_S = 10**6  # eleven days, of anything that takes time
SHORTEST_S = 1e-9  # of a step and of its computing: no processor does anything in less
MOST_BYTES = 10**15
MOST_RANKS = 10**6  # and hosts
MOST_CORES = 2**12  # of a host, twice what the largest have
MOST = 10**12  # of anything that is counted
MOST_REPLICATIONS = 10**6
MOST_PARAMETERS = 10**14
MOST_VARIABLES = 10**5  # and parts that they are cut into
LONGEST_NAME = 1000

# The numbers of a job, by their names in sim.job.
JOB = {
    "workers": (0, MOST_RANKS),
    "servers": (0, MOST_RANKS),
    "steps": (1, MOST),
    "warmup": (0, MOST),
    "batch": (1, MOST),
    "seed": (0, 2**64 - 1),
    "variable_partitions": (1, MOST_VARIABLES),
    "test_size": (0, MOST),
    "evaluate_every": (1, MOST),
}


def _written_as_number(value: Any) -> Any:
    """Refuse what pydantic would make a number of."""
    if isinstance(value, bool | str | bytes):
        raise ValueError("a number")
    return value


_Number = BeforeValidator(_written_as_number)


def _one_line(name: str) -> str:
    if printable(name) != name:
        raise ValueError("a name without control characters")
    return name


def _in(unit: str, example: str) -> BeforeValidator:
    return BeforeValidator(lambda value: quantity(value, unit, example))


def _bandwidth(value: float) -> float:
    """Infinite is a link on which bytes take no time, as in profiles of logs that do not tell messages from work."""
    if not (1 <= value <= MOST_BYTES or value == math.inf):
        raise ValueError(f"1 to {MOST_BYTES:g} bytes a second, or inf")
    return value


Seconds = Annotated[float, Field(ge=0, le=LONGEST_S, allow_inf_nan=False), _in("second", "50 us")]
StepSeconds = Annotated[float, Field(ge=SHORTEST_S, le=LONGEST_S, allow_inf_nan=False), _in("second", "50 ms")]
BytesPerSecond = Annotated[float, Field(gt=0), _in("byte/second", "10 Gbit/s"), AfterValidator(_bandwidth)]
Bytes = Annotated[float, Field(ge=0, le=MOST_BYTES, allow_inf_nan=False), _in("byte", "4 MiB")]
Window = Annotated[float, Field(ge=1, le=MOST_BYTES, allow_inf_nan=False), _in("byte", "64 KiB")]
Flops = Annotated[float, Field(gt=0, le=1e21, allow_inf_nan=False), _in("flop", "3 Gflop")]

FlopsPerSecond = Annotated[float, Field(ge=1, le=1e21, allow_inf_nan=False), _in("flop/second", "15.7 Tflop/s")]

Count = Annotated[int, Field(ge=1, le=MOST), _Number]
CountIfAny = Annotated[int, Field(ge=0, le=MOST), _Number]
Ranks = Annotated[int, Field(ge=1, le=MOST_RANKS), _Number]
RanksIfAny = Annotated[int, Field(ge=0, le=MOST_RANKS), _Number]
Hosts = Annotated[int, Field(ge=1, le=10 * MOST_RANKS), _Number]
Cores = Annotated[int, Field(ge=1, le=MOST_CORES), _Number]
Parameters = Annotated[int, Field(ge=1, le=MOST_PARAMETERS), _Number]
Counted = Annotated[int, Field(ge=1, le=MOST_PARAMETERS), BeforeValidator(lambda value: count(value, "120 M"))]
Layers = Annotated[int, Field(ge=1, le=MOST_VARIABLES), _Number]
Classes = Annotated[int, Field(ge=2, le=MOST), _Number]

Price = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False), _Number]  # USD an hour
SamplesPerSecond = Annotated[float, Field(gt=0, le=MOST, allow_inf_nan=False), _Number]
Amount = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False), _Number]
Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False), _Number]
Speed = Annotated[float, Field(ge=1e-6, le=1e6, allow_inf_nan=False), _Number]
Slowdown = Annotated[float, Field(ge=0, le=1e3, allow_inf_nan=False), _Number]
# Two ranks are at most as fast as one alone.
Switching = Annotated[float, Field(ge=-0.5, le=10, allow_inf_nan=False), _Number]
Spread = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False), _Number]  # a coefficient of variation
BothWays = Annotated[float, Field(ge=1, le=2, allow_inf_nan=False), _Number]
ItemBytes = Annotated[float, Field(ge=0.125, le=8, allow_inf_nan=False), _Number]  # of a number on a link
LogSpread = Annotated[float, Field(ge=0, le=3, allow_inf_nan=False), _Number]  # of a logarithm
Exponent = Annotated[float, Field(ge=0, le=10, allow_inf_nan=False), _Number]
# Of a law, in the unit of its draws: seconds of a sleep may be written with their unit.
Draw = Annotated[float, Field(ge=0, le=LONGEST_S, allow_inf_nan=False), _in("second", "50 ms")]
Location = Annotated[float, Field(ge=1e-12, le=LONGEST_S, allow_inf_nan=False), _in("second", "50 ms")]
PositiveSpread = Annotated[float, Field(ge=1e-3, le=100, allow_inf_nan=False), _Number]
WeibullShape = Annotated[float, Field(ge=0.1, le=100, allow_inf_nan=False), _Number]
TailExponent = Annotated[float, Field(ge=1.01, le=100, allow_inf_nan=False), _Number]
Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), _Number]

Precision = Literal["fp32", "tf32", "fp16", "bf16"]  # formats of numbers
# Classes of models, by the share of a peak rate that they reach.
Architecture = Literal["convolution", "encoder", "decoder", "other"]
SummedIn = Literal["fp32", "fp16", "bf16"]  # formats of gradients
Optimiser = Literal["sgd", "momentum", "rmsprop", "adagrad", "lion", "adam", "adamw", "lamb"]
Words = Annotated[str, AfterValidator(printable)]  # that are printed as they are
Path = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]  # or a name
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME), AfterValidator(printable)]
HostName = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME), AfterValidator(_one_line)]
Flag = Annotated[bool, Strict()]


def check(setting: str, value: float, least: float, most: float, what: str = "a number", kind: type = Real) -> None:
    """Refuse a number out of its range.

    Args:
        kind: of number, of the module `numbers`.

    Raises:
        WrongSetting: it is, or is no number of that kind.
    """
    if isinstance(value, bool) or not isinstance(value, kind) or not least <= value <= most:
        raise WrongSetting(setting, value, f"{what} from {least:,} to {most:,}")


def check_kind(setting: str, value: object, kind: Any, allowed: str) -> None:
    """Raise WrongSetting for an object that is none of a class."""
    if not isinstance(value, kind):
        raise WrongSetting(setting, value, allowed)


def check_integer(setting: str, value: int, least: int, most: int = MOST) -> None:
    """Refuse an integer out of its range; see `check`."""
    check(setting, value, least, most, "an integer", Integral)
