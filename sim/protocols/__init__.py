"""The protocols by name, and their settings from the command line: each is a text (sim.texts) with its settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import Field, fields

from sim.base.errors import WrongSetting, nearest
from sim.base.files import text_of
from sim.base.own import complaint, place
from sim.base.units import number_or_text, quantity
from sim.language.text import kind_of
from sim.protocols import own
from sim.protocols.base import Protocol, protocol_of
from sim.texts import CHOSEN, TEXTS

PROTOCOLS: dict[str, type[Protocol]] = {name: protocol_of(text) for name, text in TEXTS.items() if name not in CHOSEN}
ALLOWED = {"float": "a number", "int": "an integer", "bool": "true or false"}  # as a setting's type says


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
        settings[key] = _value(known[key], value)
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


def _value(setting: Field, text: str) -> object:
    """A setting's value from the command line; whether it is in its range, the text says (sim.language.text.Text)."""
    kind = kind_of(setting)
    if text == "None" and (setting.default is None or "None" in str(setting.type)):
        return None
    try:
        if kind == "float":  # seconds with or without a unit
            return float(quantity(number_or_text(text), "second", "80 ms") if setting.name.endswith("_s") else text)
        if kind == "bool":
            return {"true": True, "false": False}[text.lower()]
        return int(text) if kind == "int" else text
    except (ValueError, KeyError) as error:
        raise WrongSetting(f"--set {setting.name}", text, ALLOWED[kind]) from error
