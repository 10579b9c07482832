"""A profile from a table of step seconds on several numbers of hosts: `calibration.fit --from scaling`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from calibration import algorithms
from calibration.scaling import algorithms as summing
from calibration.scaling import table
from calibration.scaling.steps import BACKWARD, BUCKET_BYTES, Scaling, fit
from sim.base.errors import WrongSetting
from sim.base.ranges import MOST_BYTES
from sim.model.costs import Costs, Line
from sim.model.sparse_rows import ITEM_BYTES
from sim.platform.cluster import Candidate, Cluster, Host, Link, Model, Provenance
from sim.platform.other_sizes import told

if TYPE_CHECKING:
    from sim.model.workload import Workload

PROTOCOLS = {"horovod": BACKWARD, "allreduce": 0.0}  # share of computing that hides messages
FREE = Link(latency_s=0.0, overhead_s=0.0, bandwidth_bytes_per_s=float("inf"))
FEWEST = 3  # rows


def profile(path: str, name: str, workload: str, protocol: str | None = None, link: Link | None = None) -> Cluster:
    """The profile of the hosts in a table.

    Args:
        protocol: one of PROTOCOLS; that which meets the table better if None.
        link: between hosts, where all rows are of one host.

    Raises:
        WrongSetting: a table that cannot be, too few rows, another protocol, or a link beside one that the table tells.
    """
    from sim.model import workload as workloads

    if protocol is not None and protocol not in PROTOCOLS:
        raise WrongSetting("--protocol", protocol, f"{', '.join(PROTOCOLS)}, or nothing: the one that meets the table")
    rows, model = table.read(path), workloads.read(workload)
    _check(rows, path)
    apart = bool((rows.hosts > 1).any())
    if apart and link:
        raise WrongSetting("--link", told(link), "no link beside that which rows of several hosts tell")
    held_bytes = float(ITEM_BYTES * model.parameters)
    found = {one: fit(rows, held_bytes, PROTOCOLS[one]) for one in ([protocol] if protocol else PROTOCOLS)}
    best = min(found, key=lambda one: found[one].residual)
    able = summing.candidates(rows, held_bytes, PROTOCOLS[best])
    weights = summing.weights(rows, able) if able else {}
    sums = (
        able[max(weights, key=lambda one: weights[one])] if able else found[best]
    )  # the first of those that weigh the same: the ring
    notes = _notes({**found, best: sums}, best, rows, link)
    if weights:
        notes.append(algorithms.note(weights, summing.told(rows, able)))
    made = _made(sums, rows, model, name, Path(path).name, notes, link)
    weighed = {
        one: Candidate(weight=weights[one], network=_network(of), local=_link(of.within_s)) for one, of in able.items()
    }
    assert made.provenance is not None  # `_made` makes one
    return made.model_copy(update={"provenance": made.provenance.model_copy(update={"algorithms": weighed})})


def _check(rows: table.Table, path: str) -> None:
    """Refuse rows that are too few, or that tell no batch of one GPU.

    Raises:
        WrongSetting: so few rows that nothing is fitted to them.
    """
    if rows.size < FEWEST:
        raise WrongSetting(f"{path}: rows", rows.size, f"at least {FEWEST}: of several batches, GPUs or hosts")
    if not np.ptp(rows.batch) and not np.ptp(rows.gpus):
        raise WrongSetting(f"{path}: rows", "one batch on one number of GPUs", "several batches, or numbers of GPUs")


def _notes(found: dict[str, Scaling], best: str, rows: table.Table, link: Link | None) -> list[str]:
    said = [f"steps are met within {found[best].residual:.1%} (standard deviation)"]
    options = f"--protocol {best} --set algorithm={found[best].algorithm}"
    if best == "horovod":
        options += f" --set fusion_bytes={BUCKET_BYTES} --set cycle_s=0"
    if len(found) > 1:
        other = next(one for one in found if one != best)
        said.append(f"{best} meets the table better than {other} ({found[other].residual:.1%})")
    said.append(f"simulate it with {options}")
    if not (rows.hosts > 1).any():
        said.append(
            f"the link was given, not measured: {told(link)}" if link else "links between hosts assumed: 10 Gbit/s"
        )
    elif not found[best].told:
        said.append(
            "a byte is taken to need twice as long on two hosts as on more: no row of more hosts says so, or none of two"
        )
    if found[best].uneven:
        said.append(
            f"links of hosts differ by {found[best].uneven:.0%} (standard deviation): more hosts wait for a slower one"
        )
    return said


def _made(
    found: Scaling, rows: table.Table, model: Workload, name: str, source: str, notes: list[str], link: Link | None
) -> Cluster:
    apart, gpus = bool((rows.hosts > 1).any()), int(rows.most.max())
    compute = Line(base_s=found.base_s, slope_s=found.sample_s)
    made = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    known = Provenance(
        traces=(source,),
        made=made,
        notes=tuple(notes),
        models={model.name: Model.of(model)},
        workers=int(rows.gpus.max()),
        hosts=int(rows.hosts.max()),
        repeated=(model.name,),
        links_measured=apart,
    )
    return Cluster(
        name=name,
        hosts=(Host(count=int(rows.hosts.max()), cores=gpus, gpus=gpus),),
        network=_network(found) if apart else link or Link(),
        local=_link(found.within_s),
        costs={model.name: Costs(compute=compute, error=found.residual)},
        provenance=known,
    )


def _network(found: Scaling) -> Link:
    shape = {"gap_s": found.round_s, "both_ways": found.both_ways, "uneven": found.uneven}
    return _link(found.between_s).model_copy(update=shape)


def _link(byte_s: float) -> Link:
    """One that takes so long for a byte, and nothing else."""
    return FREE if byte_s * MOST_BYTES <= 1 else FREE.model_copy(update={"bandwidth_bytes_per_s": 1 / byte_s})
