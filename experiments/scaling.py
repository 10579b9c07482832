"""Published scaling of synchronous training on parameter servers: fitted on 1 to 8 GPUs, predicted for 64 and 128.

The model is sim.protocols.ps_layers on the published clusters. Variables are placed as the benchmark's source does
(variable_mgr.py of tf_cnn_benchmarks, 2017): greedy by bytes for parameter_server; round-robin for distributed_replicated, whose
servers hold trained variables alone. Servers sit on the workers' hosts. One copy of a gradient leaves a host of several GPUs and
one of a parameter comes to it (the source's add_n and its caching devices). Ports are as documented, and gRPC hands whole tensors
over through them. A platform's own inputs are its documented network and its measured speed of one GPU. Three constants are
fitted, over all platforms at once, on 2 to 8 GPUs.

Consequence: the largest variable (8.2 MB) is on one server, whose port sends it to every worker. On 8 GPUs computation hides that; on
64 or 128 hosts it does not. 8 GPUs that share a host need one copy.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import log
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments.kit import pages
from experiments.scaling_model import Constants, job, throughput
from experiments.scaling_tables import BUGLIARELLO, GOOGLE, PLATFORMS, Platform, Row
from sim.base.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.table import Table


FITTED_UP_TO = 8
WORK = 4.6e6  # of all simulations together, for the time left: gradients that workers make of variables


START = Constants(0.03, 0.02, 1e9)


def predicted(row: Row, constants: Constants, platform: Platform | None = None, **options) -> float:
    """Images per second; `options` as of `job`."""
    platform = platform or PLATFORMS[row.platform]
    carried = min(constants.port_bytes_per_s, platform.line_bytes_per_s)  # gRPC's limit is none where the line has less
    return _predicted(row, replace(constants, port_bytes_per_s=carried), platform, **options)


@cache
def _predicted(row: Row, constants: Constants, platform: Platform, **options) -> float:
    return throughput(job(row, platform, constants, **options))


def fitted(rows: list[Row] | None = None) -> Constants:
    """Least squares of the relative errors on the rows of 2 to 8 GPUs; the others are not used."""
    from scipy.optimize import least_squares

    rows = [row for row in rows or BUGLIARELLO if row.gpus <= FITTED_UP_TO]

    def errors(at) -> list[float]:
        constants = Constants(at[0], at[1], START.port_bytes_per_s * at[2])
        return [log(predicted(row, constants) / row.images_per_s) for row in rows]

    start = [START.cost_of_distribution, START.noise, 1.0]
    found = least_squares(
        errors,
        start,
        bounds=([0, 0, 0.05], [1, 1, 20]),
        x_scale=[0.01, 0.01, 0.3],
        diff_step=0.05,
        ftol=1e-2,
        max_nfev=6,
    )
    return Constants(found.x[0], found.x[1], START.port_bytes_per_s * found.x[2])


def decided_by(row: Row, constants: Constants, tolerance: float = 0.03) -> str:
    """The port speeds that fit `row` as closely as laboratories agree."""
    speeds = np.linspace(1, 4, 31) * 1e9
    met = [
        s
        for s in speeds
        if abs(predicted(row, replace(constants, port_bytes_per_s=s)) / row.images_per_s - 1) < tolerance
    ]
    upper = f"to {met[-1] / 1e9:.1f} GB/s" if met[-1] < speeds[-1] else "GB/s and any more"
    return f"{met[0] / 1e9:.1f} {upper} meet it within {tolerance:.0%}"


def variants(row: Row, constants: Constants) -> dict[str, float]:
    """Images per second without one of the mechanisms that the row's platform has."""
    from sim.protocols.ps_sync import SynchronousServers

    platform, found = PLATFORMS[row.platform], {}
    if platform.gpus > 1:
        found["each GPU sends its own"] = predicted(row, constants, local_aggregation=False, steps=2)
    serial = replace(job(row, platform, constants, steps=2), protocol=SynchronousServers(barrier=True))
    found["nor overlap" if found else "no overlap"] = throughput(serial)
    if platform.sustained_bytes_per_s:
        steady = platform._replace(line_bytes_per_s=platform.sustained_bytes_per_s)
        found["no credit saved"] = predicted(row, constants, steady, steps=2)
    return found


def run(out: Path, seed: int = 0) -> None:
    """Print fit, predictions, what each mechanism is worth, and the checks."""
    with Progress("simulating", WORK):
        answer = list(_answer())
    for part in answer:
        pages.show(part)


def _answer() -> Iterator[str | Table]:
    from experiments import scaling_horovod

    constants = fitted()
    yield f"fitted on 2 to {FITTED_UP_TO} GPUs of all platforms: {constants}"
    deciding = max(
        (r for r in BUGLIARELLO if r.gpus <= FITTED_UP_TO and r.platform == "Piz Daint"), key=lambda r: r.gpus
    )
    yield f"the last is decided by one row, Piz Daint with 8 GPUs and 2 servers: {decided_by(deciding, constants)}"
    for platform in PLATFORMS.values():
        yield f"{platform.name}: one GPU {platform.single} images/s (measured); port: {platform.why}"
    said = {row: predicted(row, constants) for row in BUGLIARELLO}
    yield _table("InceptionV3 (Bugliarello, 2017)", said)
    yield _worth(constants, said)
    yield _checks(constants)
    yield scaling_horovod.table(constants)


def _table(title: str, said: dict[Row, float]) -> Table:
    columns: list[tuple[str, Callable[[Row], str]]] = [
        ("platform", lambda row: row.platform),
        ("GPUs", lambda row: str(row.gpus)),
        ("servers", lambda row: str(row.servers)),
        ("", lambda row: "fitted" if row.gpus <= FITTED_UP_TO else "predicted"),
        ("measured", lambda row: f"{row.images_per_s:.4g}"),
        ("predicted", lambda row: f"{said[row]:.4g}"),
        ("error", lambda row: f"{said[row] / row.images_per_s - 1:+.1%}"),
        ("efficiency", lambda row: f"{row.images_per_s / row.gpus / PLATFORMS[row.platform].single:.1%}"),
        ("predicted", lambda row: f"{said[row] / row.gpus / PLATFORMS[row.platform].single:.1%}"),
    ]
    return pages.listed(title, columns, said)


def _worth(constants: Constants, said: dict[Row, float]) -> Table:
    table = pages.table(
        "What the mechanisms are worth, images/s on 128 GPUs", "platform", "measured", "predicted", "without one"
    )
    for row in (row for row in BUGLIARELLO if row.gpus == 128):
        without = ", ".join(f"{name} {value:.4g}" for name, value in variants(row, constants).items())
        table.add_row(row.platform, f"{row.images_per_s:.4g}", f"{said[row]:.4g}", without)
    return table


def _checks(constants: Constants) -> Table:
    table = pages.table(
        "Another laboratory's p2.8xlarge, nothing fitted", "model", "GPUs", "measured", "predicted", "error"
    )
    for model, (single, measured) in GOOGLE.items():
        platform = PLATFORMS["p2.8xlarge"]._replace(single=single)
        for gpus, images_per_s in measured.items():
            row = Row("p2.8xlarge", gpus, gpus // platform.gpus, True, images_per_s)
            value = predicted(row, constants, platform, model=model)
            table.add_row(model, str(gpus), f"{images_per_s:g}", f"{value:.4g}", f"{value / images_per_s - 1:+.1%}")
    return table
