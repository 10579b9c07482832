"""What is trained: the variables of a model, the samples of a minibatch, and what they cost a nominal core."""

from __future__ import annotations

import math
from functools import cached_property
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from sim.costs import Costs, Line
from sim.errors import WrongSetting
from sim.files import read_toml, validated
from sim.laws import LogNormal

ITEM_BYTES = 4  # float32 throughout
HEADER_BYTES = 32  # every message starts with step, version, samples and one spare: four 64-bit integers


class Variable(BaseModel):
    """One trainable tensor."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    shape: tuple[int, ...] = Field(min_length=1)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


class Workload(BaseModel):
    """A model and how it is fed.

    Args:
        name: what `--workload` calls it.
        variables: in creation order; their sizes decide what the network carries.
        sample_shape: shape of one input.
        classes: number of labels.
        batch: samples per worker and step, unless `--batch` says otherwise.
        costs: seconds on a nominal core; a calibrated cluster overrides them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    variables: tuple[Variable, ...] = Field(min_length=1)
    sample_shape: tuple[int, ...] = (1,)
    classes: int = Field(default=10, ge=2)
    batch: int = Field(default=256, ge=1)
    costs: Costs = Costs()

    @cached_property
    def parameters(self) -> int:
        """Number of trainable numbers."""
        return sum(v.size for v in self.variables)

    @property
    def message_bytes(self) -> int:
        """Bytes of a message that carries the parameters, or a gradient: header and float32 payload."""
        return HEADER_BYTES + ITEM_BYTES * self.parameters


def _variables(**shapes: tuple[int, ...]) -> tuple[Variable, ...]:
    return tuple(Variable(name=name, shape=shape) for name, shape in shapes.items())


def _nominal(flops_per_sample: float, parameters: int) -> Costs:
    """Costs on a nominal core: 100 Gflop/s forward and backward, 4 GB/s over the parameters; a guess, to be calibrated."""
    sample_s = 3 * flops_per_sample / 100e9
    per_byte_s = 1 / 4e9
    return Costs(
        compute=Line(base_s=1e-3, slope_s=sample_s),
        loop_s=1e-3,
        partition=Line(base_s=2e-4 + parameters * 8 / 4e9 / 8, slope_s=sample_s),
        pack=Line(slope_s=per_byte_s),
        take_up=Line(slope_s=per_byte_s),
        reduce=Line(slope_s=per_byte_s),
        update=Line(base_s=1e-3, slope_s=2 * per_byte_s),
        evaluate=Line(base_s=1e-3, slope_s=sample_s / 3),
        noise=LogNormal(cv=0.02),
    )


def _workload(
    name: str, sample_shape: tuple[int, ...], flops: float, variables: tuple[Variable, ...], batch: int
) -> Workload:
    size = sum(v.size for v in variables)
    return Workload(name=name, variables=variables, sample_shape=sample_shape, batch=batch, costs=_nominal(flops, size))


NAMED: dict[str, Workload] = {
    w.name: w
    for w in (
        _workload(  # seed 003's toy_model, fully connected
            "toy_fc",
            (100,),
            2.1e6,
            _variables(
                w1=(100, 500), b1=(500,), w2=(500, 1000), b2=(1000,), w3=(1000, 500), b3=(500,), w4=(500, 10), b4=(10,)
            ),
            1024,
        ),
        _workload(  # the same 100 numbers as a 10 x 10 picture
            "toy_conv",
            (10, 10, 1),
            2.5e6,
            _variables(
                k1=(3, 3, 1, 32),
                b1=(32,),
                k2=(3, 3, 32, 64),
                b2=(64,),
                w3=(1600, 128),
                b3=(128,),
                w4=(128, 10),
                b4=(10,),
            ),
            256,
        ),
        _workload(  # 3.3 M parameters
            "mnist",
            (28, 28, 1),
            27.6e6,
            _variables(
                k1=(5, 5, 1, 32),
                b1=(32,),
                k2=(5, 5, 32, 64),
                b2=(64,),
                w3=(3136, 1024),
                b3=(1024,),
                w4=(1024, 10),
                b4=(10,),
            ),
            64,
        ),
        _workload(  # 4.6 M parameters
            "cifar10",
            (32, 32, 3),
            123e6,
            _variables(
                k1=(5, 5, 3, 64),
                b1=(64,),
                k2=(5, 5, 64, 128),
                b2=(128,),
                w3=(8192, 512),
                b3=(512,),
                w4=(512, 384),
                b4=(384,),
                w5=(384, 10),
                b5=(10,),
            ),
            64,
        ),
        _workload(  # seed 002: one sigmoid layer of 100
            "mlp",
            (784,),
            0.16e6,
            _variables(w1=(784, 100), b1=(100,), w2=(100, 10), b2=(10,)),
            100,
        ),
    )
}


def read(text: str) -> Workload:
    """The workload called `text`, or described by the TOML file `text`.

    Raises:
        WrongSetting: neither a name nor a usable file.
    """
    if text in NAMED:
        return NAMED[text]
    if not Path(text).exists():
        raise WrongSetting("--workload", text, f"{', '.join(NAMED)}, or a TOML file")
    return validated(Workload, read_toml(text, "--workload"), text)
