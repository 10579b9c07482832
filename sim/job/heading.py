"""From a scenario to the header of its trace: the whole job, with only the name of the cluster (sim.job.replay is the inverse)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from sim.base.files import validated
from sim.job.header import Header

if TYPE_CHECKING:
    from sim.laws import Stragglers
    from sim.model.workload import Workload

# Fields of a scenario that have other names in a header; all other fields have the same names.
IN_OTHER_WORDS = {"protocol", "workload", "cluster", "stragglers", "stragglers_name"}
# Fields of a workload, and of its variables, that models by name did not have when the first traces were recorded.
SAID_LATER: Any = {"architecture": True, "activation_items": True, "created": {"__all__": {"activation_items"}}}


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
    whole = None
    if not _comes_along(model):
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


def _comes_along(model: Workload) -> bool:
    """Whether this very workload comes with the simulator."""
    from sim.model.workload import NAMED

    return model.name in NAMED and NAMED[model.name] == model
