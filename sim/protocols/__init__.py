"""The protocols by name, and their settings from the command line."""

from __future__ import annotations

from dataclasses import fields

from sim.errors import WrongSetting
from sim.protocols.allreduce import Allreduce
from sim.protocols.amb import AnytimeMinibatch
from sim.protocols.amb_dg import AnytimeDelayedGradients
from sim.protocols.base import Protocol
from sim.protocols.fmb import FixedMinibatch
from sim.protocols.horovod import Horovod
from sim.protocols.hybrid import Hybrid
from sim.protocols.kbatch_async import KBatchAsynchronous
from sim.protocols.ps_async import AsynchronousServers
from sim.protocols.ps_layers import LayerwiseServers
from sim.protocols.ps_ssp import StaleSynchronousServers
from sim.protocols.ps_sync import BackupWorkers, SynchronousServers
from sim.units import quantity

PROTOCOLS: dict[str, type[Protocol]] = {
    protocol.name: protocol
    for protocol in (
        AnytimeMinibatch,
        FixedMinibatch,
        KBatchAsynchronous,
        AnytimeDelayedGradients,
        AsynchronousServers,
        SynchronousServers,
        BackupWorkers,
        StaleSynchronousServers,
        LayerwiseServers,
        Allreduce,
        Horovod,
        Hybrid,
    )
}


def make(name: str, assignments: list[str] = ()) -> Protocol:
    """The protocol called `name`, or a user's own, module:Class, with `name=value` settings; seconds may carry a unit.

    Raises:
        WrongSetting: an unknown protocol or setting, or a value of the wrong type.
    """
    protocol = PROTOCOLS.get(name) or _own(name)
    types = {f.name: getattr(f.type, "__name__", f.type) for f in fields(protocol)}  # classes, or their names
    settings = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if key not in types or not equals:
            allowed = ", ".join(f"{f.name}={f.default}" for f in fields(protocol)) or f"nothing: {name} has no settings"
            raise WrongSetting("--set", assignment, allowed)
        settings[key] = _value(key, value, types[key])
    return protocol(**settings)


def _own(name: str) -> type[Protocol]:
    """A user's own protocol, given as module:Class."""
    from importlib import import_module

    module, colon, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute) if colon else None
    except (ImportError, AttributeError) as error:
        raise WrongSetting("--protocol", name, f"a class that can be imported ({error})") from error
    if not (isinstance(found, type) and issubclass(found, Protocol)):
        raise WrongSetting("--protocol", name, f"{', '.join(PROTOCOLS)}, or module:Class of your own")
    return found


def _value(key: str, text: str, kind: str):
    try:
        if kind == "float":
            return (
                float(quantity(text, "second", "80 ms")) if key.endswith("_s") and not _is_number(text) else float(text)
            )
        return {"int": int, "str": str, "bool": _boolean}[kind](text)
    except ValueError as error:
        raise WrongSetting(
            f"--set {key}", text, {"float": "a number", "int": "an integer", "bool": "true or false"}.get(kind, kind)
        ) from error


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
