"""What is trained: the variables of a model, the samples of a minibatch, and what they cost a nominal core."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from sim.arguments import nearest
from sim.costs import Costs, Line
from sim.errors import WrongSetting
from sim.files import read_toml, validated
from sim.laws import LogNormal
from sim.ranges import MOST_PARAMETERS, MOST_VARIABLES, Classes, Count, Flag, Flops, Name, Seconds
from sim.rows import HEADER_BYTES, ITEM_BYTES, Load, Rows

FOLDER = Path(__file__).parent / "zoo"
SCHEMA = "workload/1"
MOST_DIMENSIONS = 32  # of a tensor


class Variable(BaseModel):
    """One tensor of a model.

    Args:
        name: unique in its model.
        shape: rows, columns and so on.
        rows: which of its rows (along the first axis) a minibatch touches, of a sparse variable.
        trained: false of the moving means and variances of batch normalisation. They take their turn when variables are placed
            on servers, and nothing else: see `sim.placement`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: Name
    shape: tuple[Count, ...] = Field(min_length=1, max_length=MOST_DIMENSIONS)
    rows: Rows | None = None
    trained: Flag = True

    @model_validator(mode="after")
    def _rows_that_can_be(self):
        if self.rows and not self.trained:
            raise ValueError(f"{self.name}: rows are those that have a gradient, and this variable is not trained")
        if self.rows and self.rows.per_minibatch >= self.shape[0]:
            raise ValueError(f"{self.name}: rows.per_minibatch must be below the number of rows, {self.shape[0]}")
        return self

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def part(self, index: int, rows: int) -> Variable:
        """A part of so many rows."""
        law = self.rows and self.rows.model_copy(update={"of": self.rows.of or self.shape[0]})
        return Variable(name=f"{self.name}/part_{index}", shape=(rows, *self.shape[1:]), rows=law)

    def load(self, samples: int, minibatches: int = 1) -> Load:
        """What travels of it: all, or the rows that so many minibatches of so many samples touch between them."""
        if self.rows is None:
            return Load(0, self.size)
        touched = max(1, round(self.shape[0] * self.rows.share(self.shape[0], samples, minibatches)))
        return Load(touched, touched * (self.size // self.shape[0]))


class Step(BaseModel):
    """A step of one process alone that was measured.

    Args:
        time_s: that it took; in a file, `time`.
        batch: its samples.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    time_s: Seconds = Field(alias="time", gt=0)
    batch: Count


def _several(given):
    """One step is a list of one."""
    return given if isinstance(given, (list, tuple)) else (given,)


class Workload(BaseModel):
    """A model and how it is fed.

    Args:
        name: what `--workload` calls it.
        created: all variables in the order in which the model creates them; files, and who makes a workload, say `variables`.
        sample_shape: shape of one input.
        inputs: pictures, whose numbers are from 0 to 1, or numbers of words, from 0 to classes - 1.
        classes: number of labels.
        batch: samples per worker and step, unless `--batch` says otherwise.
        flops_per_sample: of a forward pass; nominal costs follow from it unless costs are given.
        step: or one or more steps that were measured: the costs of computing follow from them, those of all else are nominal.
        costs: or seconds on a nominal core; a calibrated cluster overrides them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    schema_: Literal["workload/1"] = Field(default="workload/1", alias="schema")
    name: Name
    created: tuple[Variable, ...] = Field(min_length=1, max_length=MOST_VARIABLES, alias="variables")
    sample_shape: tuple[Count, ...] = Field(default=(1,), max_length=MOST_DIMENSIONS)
    inputs: Literal["pictures", "words"] = "pictures"
    classes: Classes = 10
    batch: Count = 256
    flops_per_sample: Flops | None = None
    step: Annotated[tuple[Step, ...], BeforeValidator(_several)] = ()
    costs: Costs = Costs()

    @model_validator(mode="after")
    def _something_is_trained(self):
        if not self.variables:
            raise ValueError("variables: none of them is trained")
        return self

    @model_validator(mode="after")
    def _not_too_large(self):
        if sum(variable.size for variable in self.created) > MOST_PARAMETERS:
            raise ValueError(f"variables: more than {MOST_PARAMETERS:,} numbers")
        return self

    @model_validator(mode="after")
    def _costs_from_what_is_given(self):
        if self.step and self.model_fields_set & {"costs", "flops_per_sample"}:
            raise ValueError("step: without costs and flops_per_sample")
        if self.step:
            object.__setattr__(self, "costs", measured(self.step, self.parameters))
        elif self.is_nominal:
            object.__setattr__(self, "costs", nominal(self.flops_per_sample or 0.0, self.parameters))
        else:
            object.__setattr__(self, "costs", self.costs.with_partitions())
        return self

    @property
    def is_nominal(self) -> bool:
        """Whether computing takes what a nominal core would need for the operations, and nothing was measured."""
        return self.flops_per_sample is not None and "costs" not in self.model_fields_set

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Those that are trained, in creation order; their sizes decide what the network carries."""
        return tuple(variable for variable in self.created if variable.trained)

    def without_untrained(self) -> Workload:
        """The same model, but for the variables that are not trained."""
        given = self.model_dump(by_alias=True, exclude_unset=True)
        return Workload.model_validate(given | {"variables": self.variables})

    @cached_property
    def parameters(self) -> int:
        """Number of trainable numbers."""
        return sum(v.size for v in self.variables)

    @property
    def message_bytes(self) -> int:
        """Bytes of a message that carries all parameters, or their gradient: header and float32 payload."""
        return HEADER_BYTES + ITEM_BYTES * self.parameters


def nominal(flops_per_sample: float, parameters: int) -> Costs:
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


def measured(steps: Sequence[Step], parameters: int) -> Costs:
    """Costs where steps of one process were measured: their line, by least squares; in proportion to the batch, if all had one batch.

    What is left of a line below 0 is 0. What ranks do besides computing is nominal, and partitions of a minibatch cost no more than it.

    Raises:
        ValueError: steps that take no longer if there is more to compute.
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
        "evaluate": Line(base_s=base_s / 3, slope_s=slope_s / 3),
    }
    return nominal(0.0, parameters).model_copy(update=computing)


class Zoo(Mapping):
    """The workloads that come with the simulator, by name: sim/zoo/NAME.toml."""

    def __iter__(self):
        return iter(_names())

    def __len__(self):
        return len(_names())

    def __getitem__(self, name: str) -> Workload:
        if name not in _names():
            raise KeyError(name)
        return _from_zoo(name)


NAMED = Zoo()


def read(text: str) -> Workload:
    """The workload called `text`, or described by the TOML file `text`.

    Raises:
        WrongSetting: neither a name nor a usable file.
    """
    if text in NAMED:
        return NAMED[text]
    if not os.path.exists(text):
        raise WrongSetting("--workload", text, f"{', '.join(NAMED)}, or a TOML file{nearest(text, NAMED)}")
    return _from_file(Path(text))


@cache
def _names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


@cache
def _from_zoo(name: str) -> Workload:
    return _from_file(FOLDER / f"{name}.toml")


def _from_file(path: Path) -> Workload:
    return validated(Workload, read_toml(path, "--workload"), str(path))
