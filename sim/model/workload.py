"""Workloads: the variables of a model, the samples of a minibatch, and the costs on a nominal core."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from sim import zoo
from sim.base.errors import WrongSetting, nearest
from sim.base.files import check_output, names_a_file, read_toml, text_of, validated, write_text
from sim.base.models import Checked
from sim.base.ranges import (
    MOST_PARAMETERS,
    MOST_VARIABLES,
    Architecture,
    Bytes,
    Classes,
    Count,
    Counted,
    Flag,
    Flops,
    Layers,
    Name,
    Optimiser,
    Precision,
    SamplesPerSecond,
    StepSeconds,
    SummedIn,
)
from sim.model.costs import Costs
from sim.model.nominal import measured, nominal
from sim.model.sizes import HEADER_BYTES, ITEM_BYTES
from sim.model.sparse_rows import Load, Rows

SCHEMA = "workload/1"
MOST_DIMENSIONS = 32  # of a tensor


class Variable(Checked):
    """One tensor of a model.

    Args:
        name: unique in its model.
        shape: rows, columns and so on.
        rows: which of its rows (along the first axis) a minibatch touches, of a sparse variable.
        activation_items: of a variable with which a layer begins, the numbers of that layer's input for each sample, which is what a
            pipeline sends from the stage before it to the one that begins with it; the variables behind it belong to its layer.
        trained: false of the moving means and variances of batch normalisation. They take their turn when variables are placed
            on servers, and nothing else: see `sim.model.variable_placement`.
    """

    name: Name
    shape: tuple[Count, ...] = Field(min_length=1, max_length=MOST_DIMENSIONS)
    rows: Rows | None = None
    activation_items: Count | None = None
    trained: Flag = True

    @model_validator(mode="after")
    def _rows_that_can_be(self):
        if self.rows and not self.trained:
            raise ValueError(f"{self.name}: rows are those that have a gradient, and this variable is not trained")
        whole = (self.rows and self.rows.of) or self.shape[0]  # of which this may be a part
        if self.rows and self.rows.per_minibatch >= whole:
            raise ValueError(f"{self.name}: rows.per_minibatch must be below the number of rows, {whole}")
        return self

    @cached_property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def part(self, index: int, rows: int) -> Variable:
        """A part of so many rows."""
        law = self.rows and self.rows.model_copy(update={"of": self.rows.of or self.shape[0]})
        return Variable(name=f"{self.name}/part_{index}", shape=(rows, *self.shape[1:]), rows=law)

    def load(self, samples: int, minibatches: int = 1) -> Load:
        """Its load: all of it, or the rows that so many minibatches of so many samples touch together."""
        if self.rows is None:
            return Load(0, self.size)
        touched = max(1, round(self.shape[0] * self.rows.share(self.shape[0], samples, minibatches)))
        return Load(touched, touched * (self.size // self.shape[0]))


class Step(Checked):
    """A step of one process alone that was measured.

    Args:
        time_s: that it took; in a file, `time`.
        batch: its samples.
        gpu: that it was measured on, by its name in the catalogue or in the cluster's file. On another GPU it takes longer or shorter
            by the ratio of what training reaches on both. Where steps do not say their GPU, they are taken as measured on the cluster.
        precision: of its arithmetic; the workload's if not given, which is that of all steps if it is not given itself.
    """

    time_s: StepSeconds = Field(alias="time")
    batch: Count
    gpu: Name | None = None
    precision: Precision | None = None

    @model_validator(mode="after")
    def _precision_of_a_gpu(self):
        if self.precision and not self.gpu:
            raise WrongSetting("precision", self.precision, "gpu beside it: formats are those of a GPU")
        return self


def equal_layers(parameters: int, layers: int, activation_items: int | None = None) -> tuple[Variable, ...]:
    """Variables of one dimension, as equal as whole numbers can be: the first ones have one number more."""
    each, more = divmod(parameters, layers)
    return tuple(
        Variable(name=f"layer_{i}", shape=(each + (i < more),), activation_items=activation_items)
        for i in range(layers)
    )


def _several(given):
    """One step is a list of one."""
    return given if isinstance(given, (list, tuple)) else (given,)


class Workload(Checked):
    """A model and its input.

    Args:
        name: its name for `--workload`.
        created: all variables in the order in which the model creates them; files, and code that makes a workload, say `variables`.
        total: or the number of parameters, in so many equal `layers`; files say `parameters`.
        layers: each is a variable. A layer's gradient is known, fused, sent and placed on a server as one.
        activation_items: numbers of the input of each of these layers for a sample; of `variables` each may say its own.
        sample_shape: shape of one input.
        inputs: pictures, whose numbers are from 0 to 1, or numbers of words, from 0 to classes - 1.
        classes: number of labels.
        batch: samples per worker and step, unless `--batch` says otherwise; that of the first `step` if not given.
        architecture: the class of the model, by which the share of a GPU's peak rate is known; see `kind`.
        precision: of arithmetic on a GPU whose name is known, see sim.platform.gpu; parameters are float32, as in mixed precision.
        gradients: the format in which workers sum gradients among themselves; float32 unless a profile's costs say otherwise.
        optimiser: which the update is of; its state takes memory: one copy of the parameters, or two (adam, adamw, lamb), or none (sgd).
        memory_bytes: the most that a process alone was seen to take on its GPU with `batch` samples
            (torch.cuda.max_memory_allocated); see sim.job.gpu_memory.
        flops_per_sample: of a forward pass; nominal costs follow from it unless a step or costs are given, and MFU in any case.
        step: or one or more steps that were measured, see sim.job.measured_steps: the costs of computing follow from them, those
            of all else are nominal.
        reading: samples a second that a host reads and prepares; as fast as they are computed if not given. See sim.job.reading.
        costs: or seconds on a nominal core; a calibrated cluster overrides them.
    """

    schema_: Literal["workload/1"] = Field(default="workload/1", alias="schema")
    name: Name
    created: tuple[Variable, ...] = Field(default=(), max_length=MOST_VARIABLES, alias="variables")
    total: Counted | None = Field(default=None, alias="parameters")
    layers: Layers | None = None
    activation_items: Count | None = None
    sample_shape: tuple[Count, ...] = Field(default=(1,), max_length=MOST_DIMENSIONS)
    inputs: Literal["pictures", "words"] = "pictures"
    classes: Classes = 10
    batch: Count = 256
    architecture: Architecture | None = None
    precision: Precision | None = None
    gradients: SummedIn | None = None
    optimiser: Optimiser = "momentum"
    memory_bytes: Annotated[Bytes, Field(gt=0)] | None = None
    flops_per_sample: Flops | None = None
    step: Annotated[tuple[Step, ...], BeforeValidator(_several)] = ()
    reading: SamplesPerSecond | None = None
    costs: Costs = Costs()

    @model_validator(mode="after")
    def _variables_of_layers(self):
        if self.total is None and self.layers is None:
            if not self.created:
                raise WrongSetting("variables", None, 'at least one; or parameters and layers, such as "120 M" and 48')
            if self.activation_items:
                raise WrongSetting(
                    "activation_items", self.activation_items, "in variables, or with parameters and layers"
                )
            return self
        if "created" in self.model_fields_set:
            raise WrongSetting("variables", "parameters or layers too", "one or the other")
        if self.layers is None:
            raise WrongSetting("layers", None, "how many equal layers the parameters are in; 1: all are one variable")
        if self.total is None or self.total < self.layers:
            raise WrongSetting("parameters", self.total, f"at least as many as layers, {self.layers}")
        object.__setattr__(self, "created", equal_layers(self.total, self.layers, self.activation_items))
        return self

    @model_validator(mode="after")
    def _variables_that_can_be(self):
        if not self.variables:
            raise ValueError("variables: none of them is trained")
        if again := [name for name, count in Counter(one.name for one in self.created).items() if count > 1]:
            raise WrongSetting("variables", again[0], "each name once")
        if self.numbers > MOST_PARAMETERS:
            raise ValueError(f"variables: more than {MOST_PARAMETERS:,} numbers")
        return self

    @model_validator(mode="after")
    def _what_is_not_given(self):
        if self.step and "costs" in self.model_fields_set:
            raise ValueError("step: without costs")
        if self.step:
            if 0 < sum(step.gpu is None for step in self.step) < len(self.step):
                raise ValueError("step: gpu in each of them, or in none")
            formats = {step.precision for step in self.step}
            if self.precision is None and len(formats) == 1:
                object.__setattr__(self, "precision", formats.pop())
            of_gpus = [measured(steps, self.parameters) for steps in self.steps_by_gpu]
            object.__setattr__(self, "costs", of_gpus[0])
            if "batch" not in self.model_fields_set:
                object.__setattr__(self, "batch", self.step[0].batch)
        elif self.is_nominal:
            object.__setattr__(self, "costs", nominal(self.flops_per_sample or 0.0, self.parameters))
        else:
            object.__setattr__(self, "costs", self.costs.with_partitions())
        if self.memory_bytes and not (self.step or "batch" in self.model_fields_set):
            raise WrongSetting("batch", None, "the samples of a step in which memory_bytes were taken")
        return self

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the TOML file that `read` reads.

        Raises:
            WrongSetting, RunFailed: no file of TOML, or one that cannot be written.
        """
        from sim.model import workload_text

        path = text_of("path", path)
        check_output("path", path, (".toml",))
        write_text(path, workload_text.of(self))

    @property
    def is_nominal(self) -> bool:
        """Whether computing takes what a nominal core would need for the operations, and nothing was measured."""
        return self.flops_per_sample is not None and not (self.step or "costs" in self.model_fields_set)

    @cached_property
    def kind(self) -> Architecture:
        """The class that is said, or a convolution if kernels have four dimensions, or a decoder (fused attention) if of words or BF16."""
        if self.architecture:
            return self.architecture
        if any(len(one.shape) > 3 for one in self.variables):
            return "convolution"
        return "decoder" if self.tokens_per_sample or self.precision == "bf16" else "other"

    @property
    def steps_by_gpu(self) -> list[tuple[Step, ...]]:
        """The steps of each GPU and format together."""
        found: dict[tuple[str | None, Precision | None], tuple[Step, ...]] = {}
        for step in self.step:
            key = step.gpu and step.gpu.lower(), step.precision or self.precision
            found[key] = (*found.get(key, ()), step)
        return list(found.values())

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The trained variables in creation order; their sizes determine the bytes on the network."""
        return tuple(variable for variable in self.created if variable.trained)

    def without_untrained(self) -> Workload:
        """The same model, but for the variables that are not trained."""
        if self.variables == self.created:
            return self
        given = self.model_dump(by_alias=True, exclude_unset=True)
        return Workload.model_validate(given | {"variables": self.variables})

    @cached_property
    def parameters(self) -> int:
        """Number of trainable numbers."""
        return sum(v.size for v in self.variables)

    @cached_property
    def numbers(self) -> int:
        """Number of numbers of all variables, trained or not."""
        return sum(variable.size for variable in self.created)

    @property
    def gradient_bytes(self) -> int | None:
        """Bytes of a number of the gradients as workers sum them; None if the model does not say."""
        return self.gradients and (ITEM_BYTES if self.gradients == "fp32" else ITEM_BYTES // 2)

    @property
    def tokens_per_sample(self) -> int | None:
        """The words of a sample that is a sequence of them; None of other samples."""
        words = self.inputs == "words" and len(self.sample_shape) == 1 and self.sample_shape[0] > 1
        return self.sample_shape[0] if words else None

    @property
    def message_bytes(self) -> int:
        """Bytes of a message that carries all parameters, or their gradient: header and float32 payload."""
        return HEADER_BYTES + ITEM_BYTES * self.parameters


class Zoo(Mapping):
    """The workloads that come with the simulator, by name (`sim.zoo`)."""

    def __iter__(self):
        return iter(zoo.names())

    def __len__(self):
        return len(zoo.names())

    def __contains__(self, name: object) -> bool:
        return name in zoo.names()

    def __getitem__(self, name: str) -> Workload:
        return _from_zoo(name)


NAMED = Zoo()


def read(text: str | os.PathLike[str] | Workload) -> Workload:
    """The workload called `text` (with - or _), or described by the TOML file `text`, which may be the profile that was fitted for it.

    One that is read already stays as it is.

    Raises:
        WrongSetting: neither a name nor a usable file.

    >>> model = read("mnist")
    >>> model.parameters, model.batch, [variable.name for variable in model.variables][:2]
    (3274634, 64, ['k1', 'b1'])
    """
    if isinstance(text, Workload):
        return text
    text = text_of("--workload", text)
    if (name := text.replace("-", "_")) in NAMED:
        return NAMED[name]
    if not names_a_file(text):
        raise WrongSetting("--workload", text, f"{', '.join(NAMED)}, or a TOML file{nearest(text, NAMED)}")
    table = read_toml(text, "--workload")
    return _fitted(table["provenance"], text) if "provenance" in table else validated(Workload, table, text)


def _fitted(provenance: Any, path: str) -> Workload:
    """The model that a profile was fitted for, the first of several; WrongSetting if nothing describes it."""
    models = provenance.get("models") if isinstance(provenance, dict) else None
    for name, one in models.items() if isinstance(models, dict) else ():
        if isinstance(one, dict) and "described" in one:
            return validated(Workload, one["described"], path)
        if name in NAMED:
            return NAMED[name]
    raise WrongSetting("--workload", path, "a profile that says which model it was fitted for")


@cache
def _from_zoo(name: str) -> Workload:
    return validated(Workload, zoo.table(name), name)
