"""From a scenario to the head of its trace, and back: a trace says all that is needed to run the job again, but the cluster.

A profile takes the cluster's place, so the header has its name alone. Laws are written whole, and so are workloads of a user's own:
a replay reads no file but the trace. A workload that comes with the simulator is named, with the digest of its description, because
large ones have hundreds of variables; a replay refuses another model of that name.

A user's own protocol is written as module:Class, and a replay imports it, as --protocol does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import TYPE_CHECKING

from sim.errors import WrongSetting, from_validation
from sim.header import Header

if TYPE_CHECKING:
    from sim.cluster import Cluster
    from sim.laws import Stragglers
    from sim.protocols.base import Protocol
    from sim.scenario import Scenario
    from sim.workload import Workload

# Fields of a scenario that a header has in other words; all others it has by the same names.
IN_OTHER_WORDS = {"protocol", "workload", "cluster", "stragglers", "stragglers_name"}


def header_of(scenario: Scenario, world: str, replication: int = 0, **recorded) -> Header:
    """The head of a trace of this scenario.

    Args:
        recorded: of the run: training, hosts, cpu_s and whatever else a header holds.
    """
    from sim.protocols import name_of

    return Header(
        protocol=name_of(scenario.protocol),
        settings=asdict(scenario.protocol),
        world=world,
        **told_of(scenario.workload, scenario.stragglers),
        stragglers=scenario.stragglers_name,
        cluster=scenario.cluster.name,
        replication=replication,
        updates_per_step=scenario.updates_per_step,
        **{name: getattr(scenario, name) for name in _same_names(scenario)},
        **recorded,
    )


def scenario_of(header: Header, cluster: Cluster | None = None) -> Scenario:
    """The scenario that a header is of, on `cluster`.

    Raises:
        WrongSetting: a protocol that cannot be imported, a workload that is another one now, or a job that cannot be.
    """
    from sim.scenario import Scenario

    return Scenario(
        protocol=protocol_of(header),
        workload=workload_of(header),
        cluster=cluster,
        stragglers=law_of(header),
        stragglers_name=header.stragglers,
        **{name: getattr(header, name) for name in _same_names(Scenario)},
    )


def _same_names(scenario) -> list[str]:
    return [one.name for one in fields(scenario) if one.name not in IN_OTHER_WORDS]


def protocol_of(header: Header) -> Protocol:
    """The protocol of a run, with its settings.

    Raises:
        WrongSetting: no such protocol, or not with these settings.
    """
    from sim import protocols

    return protocols.make(header.protocol, [f"{name}={value}" for name, value in header.settings.items()])


def law_of(header: Header) -> Stragglers:
    """The law of a run's sleeps, or of what else slowed its workers down.

    Raises:
        WrongSetting: it is none.
    """
    from pydantic import TypeAdapter, ValidationError

    from sim.laws import AnyStragglers

    try:
        return TypeAdapter(AnyStragglers).validate_python(header.law)
    except ValidationError as error:
        raise from_validation("law", error) from error


def workload_of(header: Header) -> Workload:
    """The workload of a run.

    Raises:
        WrongSetting: it is none, or the one of that name that comes with the simulator is another one now.
    """
    from sim import workload
    from sim.files import validated

    if header.model is None and header.workload not in workload.NAMED:
        raise WrongSetting("workload", header.workload, f"a model that is described, or {', '.join(workload.NAMED)}")
    found = (
        workload.NAMED[header.workload] if header.model is None else validated(workload.Workload, header.model, "model")
    )
    if (found.name, digest(found)) != (header.workload, header.digest):
        allowed = f"the {header.workload} of the simulator, which is another model now (record it again)"
        raise WrongSetting("workload", f"{header.workload}, {header.digest or 'without a digest'}", allowed)
    return found


def told_of(model: Workload, law: Stragglers) -> dict:
    """The fields of a header that say what was trained, and how long ranks were made to sleep."""
    whole = None if _comes_along(model) else model.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return {"workload": model.name, "digest": digest(model), "model": whole, "law": law.model_dump(mode="json")}


def digest(model: Workload) -> str:
    """Of a workload's description, without defaults and nominal costs: a new field of workloads changes no old digest."""
    from sim.workload import nominal

    said = model.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    if model.flops_per_sample is not None and model.costs == nominal(model.flops_per_sample, model.parameters):
        said.pop("costs", None)
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


def _comes_along(model: Workload) -> bool:
    """Whether this very workload comes with the simulator."""
    from sim.workload import NAMED

    return model.name in NAMED and NAMED[model.name] == model


@contextmanager
def said_of(source: str) -> Iterator[None]:
    """Within it, what is wrong is said of `source`."""
    try:
        yield
    except WrongSetting as error:
        raise WrongSetting(f"{source}: {error.setting}", error.given, error.allowed) from error
