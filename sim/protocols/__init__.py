"""The protocols by name, and their settings from the command line: each is a text (sim.texts) with its settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import Field, fields

from sim.base.errors import WrongSetting
from sim.base.files import text_of
from sim.base.nearest import nearest
from sim.base.own import complaint, place
from sim.base.ranges import LONGEST_S, MOST_BYTES
from sim.base.units import quantity
from sim.protocols import own
from sim.protocols.base import Protocol, protocol_of
from sim.texts import TEXTS

NAMES = (
    *("amb", "fmb", "kbatch-async", "amb-dg", "ps-async", "ps-sync", "ps-backup", "ps-ssp", "ps-layers"),
    *(
        "allreduce",
        "ddp",
        "horovod",
        "hybrid",
        "fsdp",
        "hierarchical",
        "local-sgd",
        "d-psgd",
        "gradient-coding",
        "pipeline",
    ),
)
PROTOCOLS: dict[str, type[Protocol]] = {name: protocol_of(TEXTS[name]) for name in NAMES}


def find(name: str) -> type[Protocol]:
    """The class of the protocol called `name`, or a user's own, module:Class.

    Raises:
        WrongSetting: there is none, or none that can be run.
    """
    return PROTOCOLS.get(name) or own.find(name, PROTOCOLS)


def make(name: str, assignments: Iterable[str] = ()) -> Protocol:
    """The protocol called `name`, or a user's own, module:Class, with `name=value` settings; seconds may carry a unit.

    Raises:
        WrongSetting: an unknown protocol or setting, a value of the wrong type, or a class that cannot be run.

    >>> make("amb", ["time_limit_s=80 ms"])
    AnytimeMinibatch(time_limit_s=0.08, partitions=16)
    """
    protocol = find(text_of("--protocol", name))
    if isinstance(assignments, str | Mapping) or not isinstance(assignments, Iterable):
        raise WrongSetting("--set", assignments, "a list of NAME=VALUE")
    known = {f.name: f for f in fields(protocol)}
    settings = {}
    for assignment in assignments:
        key, equals, value = text_of("--set", assignment).partition("=")
        if key in known and not equals:
            raise WrongSetting("--set", assignment, f"NAME=VALUE, such as {own.default_of(known[key])}")
        if key not in known:
            allowed = ", ".join(map(own.default_of, known.values())) or f"nothing: {name} has no settings"
            raise WrongSetting("--set", assignment, allowed + nearest(key, known))
        if key in settings:
            raise WrongSetting("--set", assignment, f"each setting once: {key} was given before")
        settings[key] = _value(known[key], value, protocol.text_class.infinite)
    missing = [f.name for f in known.values() if f.name not in settings and own.is_required(f)]
    if missing:
        raise WrongSetting("--set", None, f"{missing[0]}=VALUE: {name} has no default for it")
    try:
        return protocol(**settings)
    except WrongSetting:
        raise
    except Exception as error:  # in a user's own class, whatever it does there
        allowed = f"settings that it takes ({place(error)}: {complaint(error)})"
        raise WrongSetting("--protocol", name, allowed) from error


def settings_of(protocol: Protocol) -> list[str]:
    """The settings by which it differs from its class, as `make` takes them."""
    values = {one: getattr(protocol, one.name) for one in fields(protocol)}
    return [f"{one.name}={value}" for one, value in values.items() if value != one.default]


def name_of(protocol: Protocol) -> str:
    """The name from which `make` makes a protocol of this class: its own, or module:Class of a user's."""
    if is_ours(protocol):
        return protocol.name
    return f"{type(protocol).__module__}:{type(protocol).__qualname__}"


def is_ours(protocol: Protocol) -> bool:
    """Whether it is one of PROTOCOLS, not a user's own."""
    return PROTOCOLS.get(protocol.name) is type(protocol)


def _value(setting: Field, text: str, infinite: Collection[str]):
    """A setting's value from the command line."""
    kind = own.kind_of(setting)
    if text == "None" and (setting.default is None or "None" in str(setting.type)):
        return None
    try:
        if kind == "float":
            return _number(setting, text, setting.name in infinite)
        kinds: dict[str, Callable[[str], object]] = {"int": _integer, "str": str, "bool": _boolean}
        return kinds[kind](text)
    except ValueError as error:
        allowed = {
            "float": f"seconds up to {LONGEST_S:,}" if _in_seconds(setting) else f"a number up to {MOST_BYTES:,}",
            "int": f"an integer up to {MOST_BYTES:,}",
            "bool": "true or false",
        }[kind]
        raise WrongSetting(f"--set {setting.name}", text, allowed) from error


def _in_seconds(setting: Field) -> bool:
    return setting.name.endswith("_s")


def _number(setting: Field, text: str, infinite: bool) -> float:
    """A finite number, unless it may be infinite; of seconds, with or without a unit."""
    in_seconds = _in_seconds(setting)
    value = float(quantity(text, "second", "80 ms")) if in_seconds and not _is_number(text) else float(text)
    most = LONGEST_S if in_seconds else MOST_BYTES
    if not (abs(value) <= most or (value == math.inf and infinite)):
        raise ValueError(text)
    return value


def _integer(text: str) -> int:
    value = int(text)
    if abs(value) > MOST_BYTES:
        raise ValueError(text)
    return value


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
