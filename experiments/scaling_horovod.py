"""Published parameter servers of Horovod's page: 16 GPUs, three models, one port speed. VGG-16 collapses, because fc6 is on one server."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import exp, log
from typing import TYPE_CHECKING

from experiments.kit import pages
from experiments.scaling_model import Constants, job, throughput
from experiments.scaling_tables import GBIT, HOROVOD, HOROVOD_SINGLE, Platform, Row

if TYPE_CHECKING:
    from sim.job.scenario import Scenario

GPUS, HOSTS, SERVERS = 16, 4, 4


def sixteen_gpus(model: str, constants: Constants, **options) -> Scenario:
    """16 GPUs on 4 hosts, and 4 servers. One copy of each tensor travels for a host's GPUs.

    A server is bounded by its gRPC, which also carries tensors for its own host. Servers therefore have hosts of their own. Workers
    do not meet at a barrier, although the benchmark's source has one. With it the wait for parameters and the wait for gradients
    would follow one another, and the port speeds of the three models would differ more. `options` as of scaling.job.
    """
    from sim.platform.cluster import Host

    platform = Platform("4 x 4 Pascal", HOROVOD_SINGLE[model], GPUS // HOSTS, 16, 25 * GBIT, None, "RoCE")
    row = Row(platform.name, GPUS, SERVERS, False, 0.0)
    made = job(row, platform, constants, model, steps=3, barrier=False, **options)
    hosts = (
        Host(name="server", count=SERVERS),
        Host(name="worker", count=HOSTS, cores=platform.cores, gpus=platform.gpus),
    )
    return replace(made, cluster=made.cluster.model_copy(update={"hosts": hosts}), servers_on="own")


@cache
def speed(model: str, constants: Constants) -> float:
    """Images per second of these 16 GPUs; fits ask for some port speeds again."""
    return throughput(sixteen_gpus(model, constants))


def fitted(measured: dict[str, float], constants: Constants) -> Constants:
    """The one port speed that meets the images/s `measured` of each model best, relative errors squared."""
    from scipy.optimize import minimize_scalar

    def at(log_speed: float) -> Constants:
        return replace(constants, port_bytes_per_s=exp(log_speed))

    def misses(log_speed: float) -> float:
        return sum(log(speed(m, at(log_speed)) / rate) ** 2 for m, rate in measured.items())

    bounds = (log(3e7), log(3e9))
    return at(minimize_scalar(misses, bounds=bounds, method="bounded", options={"xatol": 0.02}).x)


def table(constants: Constants):
    """Each model with the port speed of all three, and with that of the other two."""
    title = (
        "16 GPUs on 4 hosts (Horovod, 2017): one port speed (Gbit/s), fitted on all three models, and on the other two"
    )
    heads = ("variables", "model", "largest server", "measured", "all three", "error", "other two", "error")
    made = pages.table(title, *heads, "16 over 1 GPU", "other two")
    for where, measured in HOROVOD.items():
        of_all = fitted(measured, constants)
        for model, images_per_s in measured.items():
            of_others = fitted({other: rate for other, rate in measured.items() if other != model}, constants)
            by_all, by_others = (speed(model, found) for found in (of_all, of_others))
            made.add_row(
                where,
                model,
                f"{max(sixteen_gpus(model, of_all).traffic.server_bytes) / 1e6:.0f} MB",
                f"{images_per_s:g}",
                f"{by_all:.4g} ({of_all.port_bytes_per_s / GBIT:.2g})",
                f"{by_all / images_per_s - 1:+.0%}",
                f"{by_others:.4g} ({of_others.port_bytes_per_s / GBIT:.2g})",
                f"{by_others / images_per_s - 1:+.0%}",
                f"{images_per_s / HOROVOD_SINGLE[model]:.2g}",
                f"{by_others / HOROVOD_SINGLE[model]:.2g}",
            )
    return made
