"""The question of a plan: what is trained, what it must reach, and what may be chosen. A TOML file and options have the same names."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from sim.base.errors import WrongSetting
from sim.base.files import read_toml, validated
from sim.base.ranges import MOST, Count, Path, Ranks
from sim.base.units import count, quantity
from sim.plans import prices
from sim.platform.catalogue import OfferName
from sim.studies import failures

SCHEMA = "plan-job/1"
HOUR_S = 3600.0
MOST_USD = 1e9
DEFAULT_PROTOCOLS = ("allreduce", "ddp", "ps-sync")  # synchronous: equal samples are worth the same
DEFAULT_COUNTS = (1, 2, 4, 8, 16, 32)
TARGETS = (
    "a throughput, as --samples-per-s 5000; or the samples of the whole training with a deadline or a budget, "
    'as --samples "115 M" --deadline "24 h" or --budget 100; or an accuracy, as --until accuracy=0.755 or as a '
    "table of steps to it, --until steps.csv, in place of the samples; a JOB file has the same names with underscores"
)


def _listed(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


def _each_once(value: Any) -> Any:
    several = _listed(value)
    if len({repr(one) for one in several}) < len(several):
        raise ValueError("each once")
    return several


def _of_all(value: Any) -> Any:
    """A table; what stands in place of one is that of all."""
    return value if isinstance(value, dict) else {} if value is None else {"": value}


Usd = Annotated[float, Field(gt=0, le=MOST_USD, allow_inf_nan=False)]
Rate = Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)]
_in_seconds = BeforeValidator(lambda value: quantity(value, "second", "24 h"))
Long = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False), _in_seconds]
Samples = Annotated[int, Field(ge=1, le=MOST), BeforeValidator(lambda value: count(value, "115 M"))]
Several = BeforeValidator(_each_once)
Setting = Annotated[tuple[str | bool | int | float, ...], Field(min_length=1), Several]


class Question(BaseModel):
    """The question. A field that lists choices may have a single one.

    Args:
        workload: a name, or a TOML file.
        protocols, hosts, counts, batches, servers, servers_on, placements, variable_partitions: may be chosen. A host is a kind of
            sim.platform.catalogue, or the file of a cluster or profile. If none is given, hosts are those of the catalogue with GPUs and a
            price. HOST*N is a host of which there are N at most.
        offers: ways of renting hosts, whose prices are compared: on-demand, spot, reserved-1y, reserved-3y; of a host that has some of
            them, these.
        gpus_per_host: workers on each host; a host with fewer GPUs is no choice. All of a host's GPUs, or cores, if None.
        settings: values of protocols' settings, for the protocols that have them.
        samples_per_s: the target.
        samples, or epochs of samples_per_epoch: the whole training, which has to end by `deadline` (seconds) for at most `budget` (USD).
        until: in place of them, a table of steps to a target by the global batch (sim.efficiency), columns batch and steps; or
            METRIC=NUMBER, which published runs of the workload reached.
        usd_per_hour: the largest.
        largest_global_batch: the largest number of samples of all workers together in a step.
        probability: that the target is met.
        prices: USD an hour by HOST, before the catalogue's on demand, or by HOST:OFFER. Where one offer alone is asked for, HOST is of it.
        stragglers: as sim.run has them.
        failures: likewise, of all hosts, or by how they are rented: {"spot": "mtbf=30 d, preemption=6 h"}.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    schema_: Literal["plan-job/1"] = Field(default="plan-job/1", alias="schema")
    workload: Path = "resnet50"
    protocols: Annotated[tuple[Path, ...], Field(min_length=1), Several] = DEFAULT_PROTOCOLS
    hosts: Annotated[tuple[Path, ...], Several] = ()
    counts: Annotated[tuple[Ranks, ...], Field(min_length=1), Several] = DEFAULT_COUNTS
    batches: Annotated[tuple[Count, ...], Several] = ()
    servers: Annotated[tuple[Ranks, ...], Field(min_length=1), Several] = (1, 2, 4)
    servers_on: Annotated[tuple[Literal["own", "workers"], ...], Field(min_length=1), Several] = ("workers",)
    placements: Annotated[tuple[Path, ...], Field(min_length=1), Several] = ("round-robin",)
    variable_partitions: Annotated[tuple[Ranks, ...], Field(min_length=1), Several] = (1,)
    gpus_per_host: Ranks | None = None
    settings: dict[Path, Setting] = {}
    samples_per_s: Rate | None = None
    samples: Samples | None = None
    epochs: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] | None = None
    samples_per_epoch: Samples | None = None
    until: Path | None = None
    deadline: Long | None = None
    budget: Usd | None = None
    usd_per_hour: Usd | None = None
    largest_global_batch: Samples | None = None
    probability: Annotated[float, Field(ge=0.5, le=0.999)] = 0.9
    offers: Annotated[tuple[OfferName, ...], Field(min_length=1), Several] = ("on-demand",)
    prices: dict[Path, Usd] = {}
    stragglers: Path = "none"
    failures: Annotated[dict[str, str], BeforeValidator(_of_all)] = {}
    seed: Annotated[int, Field(ge=0, le=2**64 - 1)] = 0
    keep: Annotated[int, Field(ge=1, le=100)] = 10

    @model_validator(mode="after")
    def _makes_sense(self):
        for offer, text in self.failures.items():
            failures.read(text)
            if offer and offer not in self.offers:
                raise WrongSetting("failures", offer, f"one of offers: {', '.join(self.offers)}")
        other_work, has_limit = self.samples or self.epochs, self.deadline or self.budget
        beside = "no samples, epochs or samples_per_s besides: the target says when training ends"
        limited = 'a deadline or a budget with until, as --deadline "24 h" or --budget 200'
        both = "epochs and samples_per_epoch, or neither"
        whole = "those of the whole training, with a deadline or a budget; or epochs and samples_per_epoch; or until"
        for is_wrong, name, given, allowed in (
            (self.until and (other_work or self.samples_per_s), "until", self.until, beside),
            (self.until and not has_limit, "deadline", None, limited),
            (self.samples and self.epochs, "epochs", self.epochs, "samples, or epochs and samples_per_epoch, not both"),
            (self.samples_per_epoch and not self.epochs, "epochs", None, both),
            (self.epochs and not self.samples_per_epoch, "samples_per_epoch", None, both),
            (has_limit and not self.has_end, "samples", None, whole),
            (not (self.samples_per_s or has_limit), "target", None, TARGETS),
        ):
            if is_wrong:
                raise WrongSetting(name, given, allowed)
        return self

    @property
    def work(self) -> float | None:
        """Samples of the whole training, where they are the same for all configurations; None if not, or if it has no end."""
        if self.epochs and self.samples_per_epoch:
            return self.epochs * self.samples_per_epoch
        return self.samples

    @property
    def has_end(self) -> bool:
        """Whether the training has an end."""
        return bool(self.work or self.until)

    @property
    def cheapest(self) -> bool:
        """Whether the cheapest that meets the target is wanted; else the fastest, because only money is limited."""
        return bool(self.samples_per_s or self.deadline)

    def needed(self, usd_per_hour: float, samples: float | None = None) -> float:
        """Samples a second that meet every target at this price.

        Args:
            samples: of the whole training, where they differ by the configuration; likewise below.
        """
        floors, work = [self.samples_per_s or 0.0], samples or self.work
        if work and self.deadline:
            floors.append(work / self.deadline)
        if work and self.budget:
            floors.append(usd_per_hour / HOUR_S * work / self.budget)
        return max(floors)

    def hours(self, samples_per_s: float, samples: float | None = None) -> float | None:
        """The time of the whole training."""
        work = samples or self.work
        return work / samples_per_s / HOUR_S if work else None

    def failures_for(self, offer: str, samples_per_s: float, samples: float | None = None) -> str:
        """The failures during the training of hosts that are rented so, as `--failures` of sim.run takes them; empty without any.

        Args:
            samples_per_s: without failures.
        """
        hours = self.hours(samples_per_s, samples)
        text = self.failures.get(offer, self.failures.get("", ""))
        return failures.lasting(text, hours and hours * HOUR_S) if text else ""


def read(path: str | None, further: dict[str, Any]) -> Question:
    """The question in a TOML file, with what options say besides, or in place of it.

    Raises:
        WrongSetting: no such file, an unknown key, a value that it cannot have, or no target.
    """
    table = read_toml(path, "JOB") if path else {"schema": SCHEMA}
    if table.get("schema") != SCHEMA:
        raise WrongSetting(f"{path}: schema", table.get("schema"), SCHEMA)
    tables = {
        name: _joined(table.get(name, {}), further[name])
        for name in ("prices", "settings", "failures")
        if name in further
    }
    return validated(Question, _of_profiles(table | further | tables), path or "")


def _of_profiles(table: dict[str, Any]) -> dict[str, Any]:
    """The table, and what profiles among its hosts know of the runs that they were fitted on, where it says nothing else."""
    texts = [one for one in _listed(table.get("hosts", ())) if isinstance(one, str)]
    fitted = [known for text in texts if (known := prices.read(prices.limited(text)[0])).provenance]
    found: dict[str, Any] = {}
    for known in reversed(fitted):  # the first one last
        runs = known.provenance
        if runs and runs.protocol:
            found |= {"stragglers": runs.stragglers, "protocols": [runs.protocol, *found.get("protocols", ())]}
        if model := known.fitted(table.get("workload")):
            batch = runs and model.name in runs.models and runs.models[model.name].batch
            found |= {"workload": model.name} | ({"batches": [batch]} if batch else {})
    if "protocols" in found:
        found["protocols"] = list(dict.fromkeys(found["protocols"]))
    return found | table


def _joined(table: Any, further: Any) -> dict[str, Any]:
    """The options' entries before the file's; a number in place of a table is that of all."""
    return _of_all(table) | _of_all(further)
