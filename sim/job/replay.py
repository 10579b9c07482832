"""From a scenario to the header of its trace, and back.

A trace has everything that another run of the job needs, except the cluster.

A profile takes the cluster's place, and the header has only its name. Laws and a user's own workloads are written whole: a replay
reads no file but the trace. A workload of the simulator is named, with the digest of its description, because large ones have
hundreds of variables. A replay refuses another model of that name.

A user's own protocol is written as module:Class, and a replay imports it, as --protocol does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from sim.base.errors import WrongSetting, from_validation
from sim.base.files import validated
from sim.base.models import validator
from sim.job.header import Header, checked

if TYPE_CHECKING:
    from sim.job.scenario import Scenario
    from sim.laws import Stragglers
    from sim.model.workload import Workload
    from sim.platform.cluster import Cluster
    from sim.protocols.base import Protocol

# Fields of a scenario that have other names in a header; all other fields have the same names.
IN_OTHER_WORDS = {"protocol", "workload", "cluster", "stragglers", "stragglers_name"}
# Fields of a workload, and of its variables, that models by name did not have when the first traces were recorded.
SAID_LATER: Any = {"architecture": True, "activation_items": True, "created": {"__all__": {"activation_items"}}}


def scenario_of(header: Header, cluster: Cluster | None = None) -> Scenario:
    """The scenario that a header is of, on `cluster`.

    Raises:
        WrongSetting: a protocol that cannot be imported, a workload that is another one now, or a job that cannot be.
    """
    from sim.job.scenario import LATER, Scenario

    return Scenario(
        protocol=protocol_of(header),
        workload=workload_of(header),
        cluster=cluster or LATER,
        stragglers=law_of(header),
        stragglers_name=header.stragglers,
        **{name: getattr(header, name) for name in same_names(Scenario)},
    )


def protocol_of(header: Header) -> Protocol:
    """The protocol of a run, with its settings; WrongSetting if there is none."""
    from sim import protocols

    return protocols.make(header.protocol, [f"{name}={value}" for name, value in header.settings.items()])


def law_of(header: Header) -> Stragglers:
    """The law of a run's sleeps, or of what else slowed its workers down; WrongSetting if it is none."""
    from pydantic import ValidationError

    from sim.laws import AnyStragglers

    try:
        return validator(AnyStragglers).validate_python(header.law)
    except ValidationError as error:
        raise from_validation("law", error) from error


def workload_of(header: Header) -> Workload:
    """The workload of a run.

    Raises:
        WrongSetting: it is none, or the one of that name that comes with the simulator is another one now.
    """
    from sim.model import workload

    if header.model is None and header.workload not in workload.NAMED:
        raise WrongSetting("workload", header.workload, f"a model that is described, or {', '.join(workload.NAMED)}")
    model = header.model
    found = workload.NAMED[header.workload] if model is None else validated(workload.Workload, model, "model")
    if (found.name, digest(found)) != (header.workload, header.digest):
        allowed = f"the {header.workload} of the simulator, which is another model now (record it again)"
        raise WrongSetting("workload", f"{header.workload}, {header.digest or 'without a digest'}", allowed)
    return found


@contextmanager
def said_of(source: str) -> Iterator[None]:
    """Errors within it name `source`."""
    try:
        yield
    except WrongSetting as error:
        raise WrongSetting(f"{source}: {error.setting}", error.given, error.allowed) from error


def header(text: str | bytes, source: str) -> Header:
    """The header in JSON, of a run that can be: a model or a law that is described whole is one.

    Args:
        source: the file, as a complaint names it.

    Raises:
        WrongSetting: it is no such header.
    """
    found = checked(text, source)
    with said_of(source):
        law_of(found)
        if found.model is not None:
            workload_of(found)
    return found


def header_of(scenario, world: str, replication: int = 0, **recorded) -> Header:
    """The head of a trace of this scenario.

    Args:
        scenario: sim.job.scenario.Scenario.
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
        **{name: getattr(scenario, name) for name in same_names(scenario)},
        **recorded,
    )


def same_names(scenario) -> list[str]:
    """The fields of a scenario that a header has by the same name."""
    return [one.name for one in fields(scenario) if one.name not in IN_OTHER_WORDS]


def told_of(model: Workload, law: Stragglers) -> dict:
    """The fields of a header for the trained model and the induced sleeps."""
    from sim.model.workload import NAMED

    whole = None
    if model.name not in NAMED or NAMED[model.name] != model:  # which does not come with the simulator
        whole = model.model_dump(mode="json", by_alias=True, exclude_unset=True)
        if "costs" in whole or validated(type(model), whole, "workload").costs != model.costs:  # of a changed copy
            whole = {name: value for name, value in whole.items() if name != "step"}
            whole["costs"] = model.costs.model_dump(mode="json")
        model = validated(type(model), whole, "workload")
    return {"workload": model.name, "digest": digest(model), "model": whole, "law": law.model_dump(mode="json")}


def digest(model: Workload) -> str:
    """A digest of a workload's description, without defaults and nominal costs, and without what models by name said later.

    No new field changes an old digest: the class of a model, and sizes of its layers' inputs, are left out.
    """
    from sim.model.nominal import nominal

    said = model.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=SAID_LATER)
    if model.flops_per_sample is not None and model.costs == nominal(model.flops_per_sample, model.parameters):
        said.pop("costs", None)
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]
