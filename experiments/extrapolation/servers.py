"""Parameter servers on three clusters (Bugliarello, 2017): three constants fitted on up to 8 GPUs, 64 and 128 predicted, by the simulator.

This is the model of experiments.scaling, with two steps of each run in place of six.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, log

from experiments import scaling
from experiments.extrapolation.held import Held, doublings
from experiments.scaling_model import BATCH, Constants
from experiments.scaling_tables import BUGLIARELLO, PLATFORMS, Row

STEPS = 2
START = Constants(0.04, 0.01, 2e9)
SIMULATIONS = 60  # of the whole source, at most, for the time left


def predicted_s(row: Row, constants: Constants) -> float:
    """Seconds of a step."""
    return BATCH * row.gpus / scaling.predicted(row, constants, steps=STEPS)


def fitted(rows: Sequence[Row]) -> tuple[Constants, float]:
    """The cost of distribution as a share, the port's speed, and the errors of the rows with both; the noise of a step is a start."""
    from scipy.optimize import least_squares

    def made(at) -> Constants:
        return Constants(float(at[0]), START.noise, START.port_bytes_per_s * float(at[1]))

    def off(at) -> list[float]:
        return [log(predicted_s(row, made(at)) / _measured_s(row)) for row in rows]

    bounds = ([0.0, 0.1], [1.0, 10.0])
    found = least_squares(off, [START.cost_of_distribution, 1.0], bounds=bounds, diff_step=0.05, ftol=1e-2, max_nfev=3)
    return made(found.x), float((found.fun @ found.fun / max(1, len(rows) - 2)) ** 0.5)


def held_out() -> Iterator[Held]:
    """All rows of 64 and 128 GPUs."""
    seen = [row for row in BUGLIARELLO if row.gpus <= scaling.FITTED_UP_TO]
    constants, residual = fitted(seen)
    largest = {row.platform: row for row in seen}  # the largest comes last
    for row in BUGLIARELLO:
        if row.gpus > scaling.FITTED_UP_TO:
            platform = PLATFORMS[row.platform]
            hosts, known = (ceil(one.gpus / platform.gpus) for one in (row, largest[row.platform]))
            given = _measured_s(row), predicted_s(row, constants), residual
            name = f"{row.platform}, {row.gpus} GPUs on {hosts} hosts"
            split = f"1 to {scaling.FITTED_UP_TO} GPUs, then more"
            yield Held("servers", split, name, doublings(hosts, known), *given, _measured_s(largest[row.platform]))


def _measured_s(row: Row) -> float:
    return BATCH * row.gpus / row.images_per_s
