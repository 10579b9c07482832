"""Horovod's page of 2017: 16 GPUs on 4 hosts. Each model from the other two; and then as if nobody had measured 16 GPUs.

Two constants are fitted for each transport, on two models: the share by which distribution makes computing longer, and seconds of a
byte, at least the wire's. The third model is predicted. 128 and 512 GPUs are predicted from 16. Where nothing is fitted, the link has
its nominal bandwidth (25 Gbit/s), and the algorithm is unknown: each candidate is computed.

Fitted rows are off the mechanisms by as much as predicted ones: by their noise, and by what each job has for itself. Where messages are
a tenth of a fitted step and two thirds of a predicted one, that error grows with them.

Source: Horovod README, September 2017; Horovod documentation, benchmarks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil, exp, hypot, log
from typing import NamedTuple

import numpy as np

from calibration.scaling.steps import Scaling
from calibration.scaling.table import Table
from experiments.extrapolation import links
from experiments.extrapolation.held import Held, Unmeasured, doublings
from experiments.extrapolation.transports import BATCH, GPUS_A_HOST, HOSTS, ONE_GPU, SCALING, SIXTEEN_GPUS
from sim.model.sparse_rows import ITEM_BYTES
from sim.platform.cluster import Link

WIRE_S = 8 / 25e9  # of a byte, at 25 Gbit/s
BUFFER_BYTES = 64 * 2**20  # Horovod's, of then
COST = 0.05  # of computing: the cost of distribution, and its error
NOISE = 0.03  # of a step that was measured, standard deviation of its logarithm
# By which jobs are off by themselves, and those that are messages alone besides: by the first tables but this page.
OTHERS = 0.025, 0.09
LINK = Link()
BACKWARD = 2 / 3  # share of computing that hides messages
LAST = 0.1  # share of the bytes that nothing hides: the last buffer
SOFT = 0.05  # of computing, over which hidden messages become visible


class LastBucket:
    """Gradients of so many buffers, of which back-propagation hides all but a last share of the bytes.

    When each variable is ready is left out: most of VGG-16's parameters take little of its computing.
    """

    def __init__(self, buffers: int):
        self.buffers = buffers

    def ends_s(self, computing_s: np.ndarray, messages_s: np.ndarray) -> np.ndarray:
        """Seconds until all is summed, shape (rows,)."""
        width_s = SOFT * computing_s
        beyond_s = (1 - LAST) * messages_s - BACKWARD * computing_s
        return computing_s + LAST * messages_s + width_s * np.logaddexp(0, beyond_s / width_s)

    def calls(self, computing_s: np.ndarray, bytes_s: np.ndarray, call_s: np.ndarray) -> np.ndarray:
        """The number of sums in a step, shape (rows,)."""
        return np.full(len(computing_s), self.buffers)


def page(hosts: int = HOSTS) -> Table:
    """One row of so many hosts of 4 GPUs."""
    row = hosts, hosts * GPUS_A_HOST, GPUS_A_HOST, BATCH, 1.0, 1.0
    return Table(*(np.array([float(value)]) for value in row))


def model_of(name: str, cost: float, byte_s: float) -> Scaling:
    """A model on GPUs as they computed it alone, times 1 + `cost`."""
    from sim.model import workload

    model = workload.NAMED[name]
    computing_s = BATCH / ONE_GPU[name] * (1 + cost)
    held_bytes = float(ITEM_BYTES * model.parameters)
    overlap = LastBucket(ceil(held_bytes / BUFFER_BYTES))
    return Scaling(held_bytes, computing_s, 0.0, byte_s, round_s=LINK.overhead_s, overlap=overlap)


def step_s(name: str, cost: float, byte_s: float, hosts: int = HOSTS) -> float:
    """Seconds of a step."""
    return float(model_of(name, cost, byte_s).step_s(page(hosts))[0])


class Fit(NamedTuple):
    """Logarithm of seconds of a byte over the wire's, and the share that distribution costs, with their covariance."""

    at: np.ndarray
    covariance: np.ndarray

    def predicted(self, name: str, hosts: int = HOSTS) -> tuple[float, float]:
        """Seconds of a step, and the standard deviation of their logarithm, as far as the constants are unknown."""
        slopes = _slopes(lambda at: log(_step_s(name, at, hosts)), self.at)
        return _step_s(name, self.at, hosts), float(np.sqrt(slopes @ self.covariance @ slopes + NOISE**2))


def _noise(name: str, measured_s: float) -> float:
    """Deviation of a fitted row around the mechanisms, of the logarithm: its noise, and what each job is off by itself."""
    share = max(0.0, 1 - BATCH / ONE_GPU[name] / measured_s)
    own, of_messages = OTHERS
    return hypot(NOISE, own, share**0.5 * of_messages)


def _step_s(name: str, at: np.ndarray, hosts: int = HOSTS) -> float:
    return step_s(name, float(at[1]), exp(float(at[0])) * WIRE_S, hosts)


def _slopes(of: Callable, at: np.ndarray, far: float = 0.01) -> np.ndarray:
    return np.array([(of(at + far * one) - of(at - far * one)) / (2 * far) for one in np.eye(len(at))])


def fitted(measured_s: dict[str, float], known: links.Links) -> Fit:
    """The constants that meet these models best, in ratio, with what other clusters say of them.

    Args:
        known: of links by their names alone.
    """
    from scipy.optimize import least_squares

    noises = {name: _noise(name, took_s) for name, took_s in measured_s.items()}

    def off(at) -> np.ndarray:
        models = [log(_step_s(name, at) / took_s) / noises[name] for name, took_s in measured_s.items()]
        return np.array([*models, (at[0] - known.mean) / known.spread, (at[1] - COST) / COST])

    found = least_squares(off, [known.mean, COST], bounds=([0.0, 0.0], [10.0, 1.0]))
    slopes = np.array([_slopes(lambda at, i=i: off(at)[i], found.x) for i in range(len(found.fun))])
    misses = float(found.fun @ found.fun) / len(measured_s)
    return Fit(found.x, np.linalg.inv(slopes.T @ slopes) * max(1.0, misses))


def held_out() -> Iterator[Held]:
    """Each model of each transport; then more GPUs."""
    known = links.learned(links.factors())
    for transport, rates in SIXTEEN_GPUS.items():
        took_s = {name: BATCH * HOSTS * GPUS_A_HOST / rate for name, rate in rates.items()}
        for name, measured_s in took_s.items():
            others = {other: value for other, value in took_s.items() if other != name}
            said_s, unknown = fitted(others, known).predicted(name)
            given = measured_s, said_s, unknown, BATCH / ONE_GPU[name]
            yield Held("Horovod page", "the other two models", f"{transport}, {name}", 0.0, *given)
    yield from _more_gpus(known)


def _more_gpus(known: links.Links) -> Iterator[Held]:
    rates = SIXTEEN_GPUS["RDMA, NCCL"]
    took_s = {name: BATCH * HOSTS * GPUS_A_HOST / rate for name, rate in rates.items()}
    found = fitted(took_s, known)
    for gpus, shares in SCALING.items():
        hosts = gpus // GPUS_A_HOST
        for name, share in shares.items():
            said_s, unknown = found.predicted(name, hosts)
            given = BATCH / ONE_GPU[name] / share, said_s, unknown, took_s[name]
            yield Held("Horovod page", "16 GPUs, then more", f"{name}, {gpus} GPUs", doublings(hosts, HOSTS), *given)


# Of the bytes that are summed, so many times pass a host's port, by algorithm: n ranks on h hosts, one after another.
def port_bytes(algorithm: str, gpus: int, hosts: int) -> float:
    """Times the gradient's bytes that pass a host's port."""
    each = gpus // hosts
    return {
        "ring": 2 * (gpus - 1) / gpus,
        "hierarchical": 2 * (hosts - 1) / hosts,
        "halving-doubling": 2 * each * (1 - 1 / hosts),
        "recursive-doubling": each * log(hosts, 2),
    }[algorithm]


CANDIDATES = ("ring", "hierarchical", "halving-doubling", "recursive-doubling")


def unmeasured() -> Iterator[Unmeasured]:
    """Every model by every transport, with nothing fitted but one GPU."""
    gpus = HOSTS * GPUS_A_HOST
    for transport, rates in SIXTEEN_GPUS.items():
        for name, rate in rates.items():
            said = []
            for algorithm in CANDIDATES:
                times = port_bytes(algorithm, gpus, HOSTS) / port_bytes("ring", gpus, HOSTS)
                said.append(step_s(name, 0.0, times * WIRE_S))
            yield Unmeasured(f"{transport}, {name}", BATCH * gpus / rate, BATCH / ONE_GPU[name], said)
