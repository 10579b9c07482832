"""Parallax's figure: each system on two machines from itself on one, with the library's algorithm as an unknown.

And then as if nobody had measured two machines: the port has its nominal bandwidth (100 Gbit/s), and each candidate is simulated.

The constants are those of experiments.parallax. They are fitted on one machine, and the port's rate on TensorFlow's servers on two
machines. The ratio of two machines to one is the simulated ratio. ResNet-50's gradients travel while it is computed, as in Horovod
and TensorFlow. LM1B's systems are those of experiments.parallax. The algorithms of the libraries are not published: all candidates
are simulated, the prediction is their geometric mean, and their spread is in its interval.

Source: Parallax's README, figure (EuroSys 2019), digitised: within 27 images/s and 1,000 words/s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import hypot
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from experiments import parallax
from experiments.extrapolation.held import Held, Unmeasured
from sim import protocols
from sim.base.interval import of_normal
from sim.simulation import simulate

if TYPE_CHECKING:
    from sim.job.scenario import Scenario

CANDIDATES = ("ring", "hierarchical", "halving-doubling")
WIRE_BYTES_PER_S = 100e9 / 8  # InfiniBand: assumed, from memory of the paper


class System(NamedTuple):
    """A system of the figure.

    Args:
        text: its protocol and settings; those of experiments.parallax if there are none.
        like: the system there whose job it is.
        rates: samples/s on one machine and on two.
    """

    model: str
    named: str
    like: str
    text: tuple[str, ...]
    rates: tuple[float, float]


IMAGES, WORDS = parallax.MEASURED["resnet50"], parallax.MEASURED["lm1b"]
SERVED = ("ps-layers", "local_aggregation=true")
SYSTEMS = (
    System("resnet50", "TensorFlow-PS", "TensorFlow-PS", SERVED, IMAGES["TensorFlow-PS"]),
    System("resnet50", "Parallax-PS", "TensorFlow-PS", SERVED, (970, 1980)),
    System("resnet50", "Horovod", "Horovod", ("horovod",), IMAGES["Horovod"]),
    System("resnet50", "Parallax-MPI", "Horovod", ("horovod",), (1030, 2030)),
    System("resnet50", "Parallax-HYBRID", "Horovod", ("horovod",), IMAGES["Parallax-HYBRID"]),
    System("lm1b", "Horovod", "Horovod", (), WORDS["Horovod"]),
    System("lm1b", "Parallax-HYBRID", "Parallax-HYBRID", (), WORDS["Parallax-HYBRID"]),
)


def held_out() -> Iterator[Held]:
    """All systems on two machines but the one that is fitted."""
    constants = parallax.fitted()
    for system in SYSTEMS:
        batch, (one, two) = parallax.BATCH[system.model], system.rates
        samples = parallax.GPUS * batch
        said_s = [2 * samples / rate for rate in predicted(system, constants)]
        alone_s = samples / one
        middle_s = float(np.exp(np.log(said_s).mean()))
        spread = float(np.log(said_s).std(ddof=1)) if len(said_s) > 1 else 0.0
        spread = hypot(spread, reading_error(system) / of_normal(1.0))
        row = f"{system.model}, {system.named}"
        yield Held("Parallax", "1 machine, then 2", row, 1.0, 2 * samples / two, middle_s, spread, alone_s)


def reading_error(system: System) -> float:
    """Of the ratio of two bars of the figure, as a share."""
    return hypot(*(parallax.TOLERANCE[system.model] / rate for rate in system.rates))


def unmeasured() -> Iterator[Unmeasured]:
    """Every system on two machines, with nothing fitted there."""
    constants = replace(parallax.fitted(), port_bytes_per_s=WIRE_BYTES_PER_S)
    for system in (*SYSTEMS, System("lm1b", "TensorFlow-PS", "TensorFlow-PS", (), WORDS["TensorFlow-PS"])):
        samples = parallax.GPUS * parallax.BATCH[system.model]
        said_s = [2 * samples / rate for rate in predicted(system, constants)]
        computing_s = min(samples / system.rates[0], getattr(constants, f"{system.model}_s"))
        row = f"{system.model}, {system.named}"
        yield Unmeasured(row, 2 * samples / system.rates[1], computing_s, said_s, reading_error(system))


def predicted(system: System, constants: parallax.Constants) -> list[float]:
    """Samples a second on two machines, with each candidate."""
    one, two = (parallax.job(system.model, system.like, machines, constants) for machines in (1, 2))
    return [
        system.rates[0] * _rate(replace(two, protocol=protocol)) / _rate(replace(one, protocol=protocol))
        for protocol in candidates(system, one)
    ]


def candidates(system: System, job: Scenario) -> list[protocols.Protocol]:
    """The algorithms that it may run; servers have no such choice."""
    if system.text and system.text[0] != "horovod":
        return [protocols.make(system.text[0], list(system.text[1:]))]
    if system.like == "TensorFlow-PS":
        return [job.protocol]
    if system.text:
        return [protocols.make("horovod", [f"algorithm={name}"]) for name in CANDIDATES]
    return [replace(job.protocol, algorithm=name) for name in CANDIDATES]


def _rate(job: Scenario) -> float:
    return float(simulate(job, "event", 1).outcome.throughput()[0])
