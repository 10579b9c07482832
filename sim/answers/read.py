"""An answer in a file, as `sim.run --json` and `real.run --json` print it: schema answer/1, checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from sim.answers.amount import Amount
from sim.answers.basis import Number
from sim.answers.extrapolation import Unknown
from sim.answers.summary import SCHEMA
from sim.base.errors import WrongSetting, printable
from sim.base.files import read_json, validated
from sim.base.ranges import MOST_REPLICATIONS
from sim.job.header import measured

WRITTEN = "JSON that sim.run --json or real.run --json printed"
DEEPEST = 50  # tables and lists within one another
Figure = Annotated[float, Field(ge=0, le=1e30, allow_inf_nan=False)]
Positive = Annotated[float, Field(ge=1e-30, le=1e30, allow_inf_nan=False)]
Log = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=2**63)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Done(_Part):
    """An amount of runs and steps."""

    runs: Annotated[int, Field(ge=1, le=2**63)]
    steps: Annotated[int, Field(ge=1, le=2**63)]
    warmup: Count

    @property
    def amount(self) -> Amount:
        """The same as a tuple."""
        return Amount(self.runs, self.steps, self.warmup)


class Interval(_Part):
    """The ends between which one more run falls with probability `level`; None if they are not known."""

    level: Annotated[float, Field(gt=0, lt=1)]
    samples_per_s: tuple[Positive, Positive] | None
    why_none: str | None = None

    @field_validator("samples_per_s")
    @classmethod
    def _in_order(cls, ends: tuple[float, float] | None) -> tuple[float, float] | None:
        if ends and ends[0] > ends[1]:
            raise ValueError("the low end first")
        return ends


class Limits(_Part):
    """Factors on the throughput."""

    low: Positive
    high: Positive


class Rests(_Part):
    """A number that the answer rests on, see sim.answers.basis.Number."""

    number: str
    value: str
    source: str
    throughput_ratio: Limits
    share_of_variance: Annotated[float, Field(ge=0, le=1)]
    measured_by: str


class Cause(_Part):
    """The part of an unknown that jobs with this cause share, logarithms."""

    cause: str
    slower: Log
    faster: Log


class NotKnown(_Part):
    """Something unknown, see sim.answers.extrapolation.Unknown."""

    slower: Log
    faster: Log
    shared: tuple[Cause, ...] = ()

    @property
    def unknown(self) -> Unknown:
        """The unknown that this was written of, as far as it is in the file."""
        shared = tuple((one.cause, one.slower, one.faster) for one in self.shared)
        return Unknown(self.slower, self.faster, shared=shared)


class Pairing(_Part):
    """Whatever a comparison run by run takes, see sim.answers.paired."""

    first: Count
    samples_per_s: Annotated[list[Figure | None], Field(min_length=1, max_length=MOST_REPLICATIONS)]
    unknown: tuple[NotKnown, ...]


class Answer(_Part):
    """An answer, as far as another one is compared with it.

    Args:
        scenario: the whole job.
        world: that ran it.
        asked, done: runs and steps.
        samples_per_s, step_s, interval: see sim.answers.summary; None where it is not known.
        basis: numbers that the answer rests on; of a real run there are none.
        pairing: None of a real run, and of a file of an earlier version.
    """

    version: str
    scenario: dict[str, Any]
    world: str
    asked: Done
    done: Done
    samples_per_s: Figure | None
    step_s: dict[str, Figure | None]
    interval: Interval
    notes: list[str]
    basis: tuple[Rests, ...] = ()
    pairing: Pairing | None = None

    @property
    def measured(self) -> bool:
        """Whether it is of a real run."""
        return measured(self.world)

    @property
    def numbers(self) -> list[Number]:
        """Those that it rests on."""
        return [Number.of_json(one.model_dump()) for one in self.basis]


def read(path: str | Path) -> Answer:
    """The answer in a file.

    Raises:
        WrongSetting: no such file, not JSON, another schema, or a key missing or wrong.
    """
    name, table = printable(str(path)), read_json(path, "answer", WRITTEN)
    try:
        table = _printable(table)
    except RecursionError as error:
        raise WrongSetting("answer", str(path), f"{WRITTEN}: this one is nested too deeply") from error
    if table.get("schema") != SCHEMA:
        raise WrongSetting(f"{name}: schema", table.get("schema"), f"{SCHEMA}, {WRITTEN}")
    return validated(Answer, table, name)


def _printable(value: Any, depth: int = 0) -> Any:
    """The same without characters that would move a terminal's cursor.

    Raises:
        RecursionError: it is nested deeper than any answer.
    """
    if depth > DEEPEST:
        raise RecursionError
    if isinstance(value, dict):
        return {printable(key): _printable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_printable(item, depth + 1) for item in value]
    return printable(value) if isinstance(value, str) else value
