"""Protocols in the language, a file each. TEXTS has them by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from sim.base.errors import WrongSetting
from sim.base.nearest import nearest
from sim.language.text import Text
from sim.texts.amb import AnytimeMinibatch
from sim.texts.amb_dg import AnytimeDelayedGradients
from sim.texts.d_psgd import DecentralisedSgd
from sim.texts.ddp import Ddp
from sim.texts.fmb import FixedMinibatch
from sim.texts.fsdp import Fsdp
from sim.texts.gradient_coding import GradientCoding
from sim.texts.hierarchical import Hierarchical
from sim.texts.horovod import Horovod
from sim.texts.kbatch_async import KBatchAsynchronous
from sim.texts.local_sgd import LocalSgd
from sim.texts.pipeline import Pipeline
from sim.texts.ps_async import AsynchronousServers
from sim.texts.ps_layers import LayerwiseServers
from sim.texts.ps_ssp import StaleSynchronousServers
from sim.texts.ps_sync import SynchronousServers

TEXTS = {
    one.name: one
    for one in (
        AnytimeDelayedGradients, AnytimeMinibatch, AsynchronousServers, Ddp, DecentralisedSgd, FixedMinibatch, Fsdp, GradientCoding,
        Hierarchical, Horovod, KBatchAsynchronous, LayerwiseServers, LocalSgd, Pipeline, StaleSynchronousServers, SynchronousServers,
    )
}  # fmt: skip


def make(name: str, assignments: Iterable[str] = ()) -> Text:
    """The text called `name`, with `name=value` settings.

    Raises:
        WrongSetting: an unknown text or setting, or a value of the wrong type.

    >>> make("ddp", ["accumulate=4"])
    Ddp(bucket_mb=25.0, accumulate=4)
    """
    if name not in TEXTS:
        raise WrongSetting("text", name, ", ".join(sorted(TEXTS)) + nearest(name, TEXTS))
    known, found = {field.name: field for field in fields(TEXTS[name])}, dict[str, Any]()
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if key not in known or not equals:
            usual = ", ".join(f"{one.name}={one.default}" for one in known.values())
            raise WrongSetting("--set", assignment, usual or f"nothing: {name} has no settings")
        try:
            found[key] = int(value) if isinstance(known[key].default, int) else float(value)
        except ValueError:
            raise WrongSetting(f"--set {key}", value, f"a value like {known[key].default}") from None
    return TEXTS[name](**found)
