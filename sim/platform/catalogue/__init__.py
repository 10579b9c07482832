"""Hosts, GPUs and links by name: those of `sim/platform/catalogue/*.toml`."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field

from sim.base.errors import WrongSetting, nearest
from sim.base.files import read_toml, validated
from sim.base.models import Checked
from sim.base.ranges import Cores, Name, Price, Words
from sim.platform.cluster import ASSUMED, Cluster, Link
from sim.platform.gpu import Gpu

FOLDER = Path(__file__).parent
SEVERAL = re.compile(r"(.+?)(?:\*([0-9]{1,9}))?")  # NAME or NAME*COUNT
SECTIONS = ("hosts", "gpus", "links")
OF_HOSTS = ("cores", "gpus", "gpu", "price_per_hour")  # keys that hosts of a cluster have, too
VARIANTS = {"d", "laptop", "max", "super", "ti"}  # words of a device that make it another one
PROPOSED = 3  # names in place of a wrong one


def _called(table):
    """A catalogue has the rates that links are called by, unless an entry says otherwise."""
    return {"named": True, **table} if isinstance(table, dict) else table


OfferName = Literal["on-demand", "spot", "reserved-1y", "reserved-3y"]
OFFERS: tuple[OfferName, ...] = get_args(OfferName)


class Offer(Checked):
    """A way of renting a host.

    Args:
        usd_per_hour: of one host, Linux, in the cheapest large region.
        as_of: the date of the price.
        source: the address where it was read.
    """

    usd_per_hour: Price
    as_of: Words = ""
    source: Words = ""


class Kind(Checked):
    """A host that can be rented or that many have.

    Args:
        cores: virtual ones of a cloud's; one for each GPU where nobody says.
        gpus, gpu: how many, and the name of each.
        local: the name of the link between its GPUs.
        network: its port; None where nobody says, see `check_network`. Latencies are nominal, unless the source says one.
        price_per_hour: USD, on demand, Linux, in the cheapest large region; None where there is no such price.
        price_as_of, price_source: the date of the price, and the address where it was read.
        offers: other ways of renting it, by their names in OFFERS.
        source: where the other numbers come from, and of when they are.
    """

    cores: Cores | None = None
    gpus: Cores | None = None
    gpu: Name | None = None
    local: Name | None = None
    network: Annotated[Link, BeforeValidator(_called)] | None = None
    price_per_hour: Price | None = None
    price_as_of: Words = ""
    price_source: Words = ""
    offers: dict[OfferName, Offer] = Field(default={})
    source: Words = ""

    @property
    def offered(self) -> dict[str, Offer]:
        """All ways of renting it, by their names, in the order of OFFERS; empty where no price is known."""
        found = dict(self.offers)
        if self.price_per_hour:
            usd, of, source = self.price_per_hour, self.price_as_of, self.price_source
            found["on-demand"] = Offer(usd_per_hour=usd, as_of=of, source=source)
        return {name: found[name] for name in OFFERS if name in found}


def _named(table):
    """A GPU's name is its key."""
    if not isinstance(table, dict):
        return table
    return {name: {"name": name, **one} if isinstance(one, dict) else one for name, one in table.items()}


class Catalogue(Checked):
    """The contents of a catalogue's file."""

    schema_: Literal["catalogue/1"] = Field(alias="schema")
    hosts: dict[Name, Kind] = Field(default={})
    gpus: Annotated[dict[Name, Gpu], BeforeValidator(_named)] = Field(default={})
    links: dict[Name, Annotated[Link, BeforeValidator(_called)]] = Field(default={})


def all_of(section: str) -> dict:
    """Everything of one section, by name: hosts (Kind), gpus (Gpu) or links (Link)."""
    return _read()[section]


def find(section: str, name: str, setting: str = ""):
    """The entry of this name, in upper or lower case.

    Args:
        setting: that has the name, for complaints; the section's if empty.

    Raises:
        WrongSetting: nothing has.
    """
    known = all_of(section)
    names = {one.lower(): one for one in known}
    if name.lower() not in names:
        allowed = hosts_near(name) if section == "hosts" else f"{', '.join(known)}{nearest(name, known)}"
        raise WrongSetting(setting or section.removesuffix("s"), name, allowed)
    return known[names[name.lower()]]


def hosts_near(name: str) -> str:
    """What may stand in place of a host that there is not: there are too many to list them."""
    known = all_of("hosts")
    return f"one of the {len(known)} kinds of sim.hosts list{nearest(name, known, PROPOSED)}"


def gpu_of(device: str) -> Gpu | None:
    """The GPU whose name is words of a device's, "A100" of "NVIDIA A100-SXM4-40GB"; None if there is none."""
    words = _words(device)
    names = [name for name in all_of("gpus") if _words(name) <= words and words & VARIANTS <= _words(name)]
    return find("gpus", max(names, key=len)) if names else None


def _words(text: str) -> set[str]:
    return set(re.split(r"[\s\-_/]+", text.lower()))


def cluster_of(text: str) -> Cluster | None:
    """The cluster of one kind of host that `text` names, NAME or NAME*COUNT; None if it names none.

    Raises:
        WrongSetting: a number of hosts that cannot be.
    """
    several = SEVERAL.fullmatch(text)
    name, count = several.groups() if several else (text, None)
    if name not in all_of("hosts"):
        return None
    check_network(name, int(count or 1))
    host = {"type": name, "count": int(count or 1)}
    return validated(Cluster, {"name": text, "hosts": [host]}, f"--cluster {text}")


def of_type(table: dict) -> dict:
    """A host's table in a file, filled in from its type."""
    name = table.get("type")
    if name is None:
        return table
    if not isinstance(name, str):
        raise WrongSetting("type", name, "a name of a kind of host as its type")
    kind = find("hosts", name)
    taken = {key: value for key in OF_HOSTS if (value := getattr(kind, key)) is not None}
    return {"name": name, **taken} | {key: table[key] for key in table if key != "type"}


def check_network(name: str, count: int) -> None:
    """Raise WrongSetting for several hosts of a kind of which nobody says how fast its network is."""
    if count > 1 and find("hosts", name).network is None:
        allowed = f'one {name}, because its network is not known; or a cluster file with type = "{name}" and [network]'
        raise WrongSetting("--cluster", f"{name}*{count}", allowed)


def links_of(hosts: list | tuple, has_network: bool = False) -> dict:
    """The network and the local link of a cluster of such hosts: the slowest of those of their types.

    Args:
        has_network: whether the cluster says itself how fast its network is.

    Raises:
        WrongSetting: a type that there is not, or several hosts whose network nobody knows.
    """
    typed = [host for host in hosts if isinstance(host, dict) and isinstance(host.get("type"), str)]
    kinds = [find("hosts", host["type"]) for host in typed]
    counts = (host.get("count", 1) for host in hosts if isinstance(host, dict))
    several = sum(one if isinstance(one, int) else 1 for one in counts)
    for host, kind in zip(typed, kinds, strict=True):
        if kind.network is None and not has_network:
            check_network(host["type"], several)
    found = {"network": [kind.network or ASSUMED for kind in kinds]}
    found["local"] = [find("links", kind.local) for kind in kinds if kind.local]
    return {name: min(links, key=_speed) for name, links in found.items() if links}


def _speed(link: Link) -> float:
    return link.sustained_bytes_per_s or link.bandwidth_bytes_per_s


@cache
def _read() -> dict[str, dict]:
    found: dict[str, dict] = {section: {} for section in SECTIONS}
    for path in FOLDER.glob("*.toml"):
        one = validated(Catalogue, read_toml(path, "catalogue"), str(path))
        for section, names in found.items():
            names.update(getattr(one, section))
    return found
