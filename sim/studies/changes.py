"""A change to a job, as `--what-if` takes it: `workers=64`, `network.bandwidth="25 Gbit/s"`, `protocol=allreduce, algorithm=ring`."""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Callable
from copy import copy
from dataclasses import fields, replace
from typing import Any

from sim import options, protocols
from sim.base import ranges
from sim.base.errors import WrongSetting, nearest
from sim.base.files import validated
from sim.base.units import assigned, parts
from sim.job import filling
from sim.job.scenario import LATER, Scenario
from sim.platform.cluster import Cluster

OPTION = "--what-if"
OF_THE_JOB = (
    *("protocol", "workers", "servers", "placement", "variable_partitions", "batch", "stragglers", "workload"),
    *("cluster", "hosts", "gpus_per_host", "servers_on", "test_size", "evaluate_every"),
)
KEPT = ("protocol", "set", "servers", "batch", "stragglers")  # of the base, as they were filled in there
OF_THE_CLUSTER = tuple(name for name in Cluster.model_fields if name not in ("schema_", "name", "provenance"))
UNITS = ("s", "bytes", "bytes_per_s")  # at the end of names
PRICE = "price"  # of a change itself


def parse(text: str) -> dict[str, str]:
    """The change that a text describes, `path=value`, several with commas between them: what is written for each path.

    A path is an option, a setting of the protocol, or dotted into the cluster.

    Raises:
        WrongSetting: a part has no path or no value, or a path is there twice.
    """
    found = assigned(OPTION, parts(text), "NAME=VALUE, or several with commas between them")
    quoted = {path for path, value in found.items() if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"}
    return {path: value[1:-1] if path in quoted else value for path, value in found.items()}


def price(text: str) -> float | None:
    """USD that a change costs once, its `price=USD`; None if it says none.

    Raises:
        WrongSetting: a price that is no number above 0.
    """
    given = next((part.partition("=")[2] for part in parts(text) if part.partition("=")[0].strip() == PRICE), None)
    usd: Any = given and _value(given.strip().removesuffix("USD"))
    if usd is not None:
        ranges.check(f"{OPTION} {PRICE}", usd, 1e-3, 1e12, "USD that the change costs once,")
    return usd


def applied(text: str, given: argparse.Namespace, read: options.Readers) -> Scenario:
    """The job that the options describe, changed.

    Raises:
        WrongSetting: naming the change: a path that does not exist, a value that it cannot have, or a job that cannot be.
    """
    from sim import simulated_options

    try:
        change = parse(text)
        change.pop(PRICE, None)
        base = simulated_options.completed(given, read)
        kept = {name: getattr(base, name) for name in KEPT if name != "batch" or "workload" not in change}
        own, model, read = _Own(given.workload or "its model"), options.workload_of(given, read), copy(read)
        read.workload = _reader(own, model, read.workload)  # type: ignore[assignment]
        kept["workload"] = own
        changed = simulated_options.completed(_said(change, argparse.Namespace(**vars(given) | kept)), read)
        settings, cluster = _sorted_out(change, changed, read)
        changed.set = _settings(changed, settings, read)
        alter = (lambda found: with_values(found, cluster)) if cluster else None
        job = simulated_options.scenario(changed, read, alter)
        if price(text) and job.cluster.usd_per_hour is None:
            raise WrongSetting(PRICE, price(text), "with hosts whose prices are known: price_per_hour of each")
        return job
    except WrongSetting as error:
        if error.setting.startswith(OPTION):
            raise
        raise WrongSetting(f"{OPTION} {text}: {error.setting}", error.given, error.allowed) from error


def of_job(text: str, job: Scenario) -> Scenario:
    """A job of a program's own, changed as if options had described it; with a worker in every slot it has so on other hosts, too.

    Raises:
        WrongSetting: see `applied`.
    """
    from sim.sweeps import grid

    read, own = options.Readers(), job.servers if job.servers_on == "own" else 0
    assumed = replace(job, cluster=LATER).cluster == job.cluster
    full = job.workers and job.workers + own == job.cluster.slots and not (assumed or filling.takes_any(job.cluster))
    grows = full and any(path.partition(".")[0] == "hosts" for path in parse(text))
    chosen: dict[str, Any] = {
        "protocol": protocols.name_of(job.protocol),
        "set": protocols.settings_of(job.protocol),
        "whole": True,
        "workers": filling.ALL if grows else job.workers,
        "servers": max(1, job.servers),
        "batch": None if job.batch == job.workload.batch else job.batch,
        "workload": _Own(job.workload.name),
        "stragglers": _Own(job.stragglers_name),
        "cluster": None if assumed else _Own(job.cluster.name),
    }
    for name in ("workload", "stragglers", "cluster"):
        setattr(read, name, _reader(chosen[name], getattr(job, name), getattr(read, name)))
    given = vars(grid.parser().parse_args([])) | {one.name: getattr(job, one.name) for one in fields(job)} | chosen
    return replace(applied(text, argparse.Namespace(**given), read), sleeps_of=job.sleeps_of)


class _Own(str):
    """The name of what a job has, which is no file to read."""


def _reader(own: str, has: object, read: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda name: has if name is own else read(name)


def with_values(cluster: Cluster, values: dict[str, str]) -> Cluster:
    """The cluster with other values at some dotted paths; hosts whose count is 0 are gone.

    Raises:
        WrongSetting: no such path, or a value that it cannot have.
    """
    table, whole = (_plain(cluster.model_dump(by_alias=True, exclude_unset=unset)) for unset in (True, False))
    for path, text in values.items():
        node, inside = whole, table
        *above, last = path.split(".")
        for part in above:
            key = _key(node, part, path)
            node = node[key]
            if isinstance(inside, dict):  # which may leave it to defaults
                inside.setdefault(key, node)
            inside = inside[key]
        key, value = _key(node, last, path), _value(text)
        if (names := _names(node[key])) and isinstance(value, int | float):
            raise WrongSetting(
                OPTION, f"{path}={text}", f"a part of {path}: {', '.join(f'{path}.{name}' for name in names)}"
            )
        inside[key] = value
    left = [host for host in table["hosts"] if host.get("count") != 0]  # none at all is refused
    return validated(Cluster, table | {"hosts": left or table["hosts"]}, OPTION)


def _said(change: dict[str, str], given: argparse.Namespace) -> argparse.Namespace:
    """The options, of which it gives some anew; settings and values in the cluster are as they were.

    Raises:
        WrongSetting: a value that one cannot have.
    """
    from sim.sweeps.grid import value_of

    names = {path: path.replace("-", "_") for path in change}
    job = {name: value_of(name, change[path], f"{OPTION} ") for path, name in names.items() if name in OF_THE_JOB}
    return argparse.Namespace(**vars(given) | job)


def _sorted_out(change: dict[str, str], changed: argparse.Namespace, read: options.Readers) -> tuple[dict, dict]:
    """The other values by what they are of: settings of the changed job's protocol, the cluster.

    Raises:
        WrongSetting: a path that is of neither.
    """
    known = [one.name for one in fields(read.protocol(changed.protocol))]
    settings, cluster = {}, {}
    for path, value in change.items():
        name = path.replace("-", "_")
        if name in OF_THE_JOB:
            continue
        if name in known:
            settings[name] = value
        elif path.split(".")[0] in OF_THE_CLUSTER:
            cluster[path] = value
        else:
            every = (*OF_THE_JOB, *known, *(f"{root}..." for root in OF_THE_CLUSTER))
            raise WrongSetting(OPTION, path, f"{', '.join(every)}{nearest(path, every)}")
    return settings, cluster


def _settings(given: argparse.Namespace, settings: dict[str, str], read: options.Readers) -> list[str]:
    """The protocol's settings: the base's, of those that this protocol has, and what is changed."""
    known = {one.name for one in fields(read.protocol(given.protocol))}
    kept = dict(one.partition("=")[::2] for one in given.set)
    chosen = {name: value for name, value in kept.items() if name in known} | settings
    return [f"{name}={value}" for name, value in chosen.items()]


def _key(node, part: str, path: str) -> str | int:
    """The key of a node that a part of a path means; units at the end of a name may be left out.

    Raises:
        WrongSetting: there is none.
    """
    names = _names(node)
    if part in names:
        return int(part) if isinstance(node, list) else part
    for unit in UNITS:
        if f"{part}_{unit}" in names:
            return f"{part}_{unit}"
    where = path.rpartition(part)[0].rstrip(".") or "the cluster"
    said = f"of {where}: {', '.join(names)}" if names else f"no more: {where} has nothing below it"
    raise WrongSetting(OPTION, path, f"{said}{nearest(part, [_short(name) for name in names])}")


def _short(name: str) -> str:
    """A name without its unit."""
    return next((name.removesuffix(f"_{unit}") for unit in reversed(UNITS) if name.endswith(f"_{unit}")), name)


def _names(node) -> list[str]:
    if isinstance(node, list):
        return [str(index) for index in range(len(node))]
    return list(node) if isinstance(node, dict) else []


def _plain(node) -> Any:
    """The same with lists in place of tuples, which can be changed."""
    if isinstance(node, dict):
        return {key: _plain(value) for key, value in node.items()}
    return [_plain(one) for one in node] if isinstance(node, tuple | list) else node


def _value(text: str):
    """The value as TOML reads it, or else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
