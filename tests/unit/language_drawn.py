"""Jobs of the language that are drawn: every text, with all that a job may have."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import pairwise
from math import inf

from sim.language.collectives import ALGORITHMS
from sim.language.hosts import TICK_S, Fair, Host, Windows
from sim.language.job import Job, Laws
from sim.language.layers import Layer, Rows
from sim.language.library import Library, Line
from sim.language.text import Text
from sim.laws import Constant, Exponential, LogNormal
from sim.texts import TEXTS

OVERTAKEN = ("amb-dg", "kbatch-async", "fmb", "gradient-coding")  # texts whose messages may overtake one another


def drawn(seed: int) -> tuple[Job, Text]:  # noqa: PLR0912
    """A job and a text that it can have."""
    rng = random.Random(seed)
    name = rng.choice(sorted(TEXTS))
    ranks = rng.choice([2, 3, 4, 6, 8, 9, 12])
    layers = [drawn_layer(rng) for _ in range(rng.randrange(1, 8))]
    layers[0] = Layer(layers[0].items + 1, 1e-3, 2e-3, layers[0].activation_items)
    batch = rng.choice([16, 24, 37])
    settings: dict = {}
    if name == "pipeline":
        layers = (layers * ranks)[: ranks + rng.randrange(3)]
        settings = {"micro_batches": rng.randrange(1, 9)}
    elif name == "hierarchical":
        settings = {"group": rng.choice([k for k in range(1, ranks + 1) if ranks % k == 0])}
    elif name == "gradient-coding":
        ranks = max(3, ranks)
        settings = {"late": rng.randrange(0, min(3, ranks - 1))}
    elif name == "hybrid":
        settings = {"servers": rng.randrange(1, min(ranks, 4)), "local_aggregation": rng.random() < 0.7}
        layers = [drawn_rows(rng, one, settings["servers"]) if rng.random() < 0.6 else one for one in layers]
    elif name in ("ps-async", "ps-sync", "ps-barrier", "ps-ssp"):
        settings = {"servers": rng.randrange(1, min(ranks, 4))}
        if name in ("ps-sync", "ps-barrier"):
            settings["backup"] = rng.randrange(0, ranks - settings["servers"])
        elif name == "ps-ssp":
            settings["staleness"] = rng.choice([0, 2, math.inf])
    else:
        settings = {
            "allreduce": {"algorithm": rng.choice([*ALGORITHMS]), "fused": rng.random() < 0.5},
            "ddp": {"bucket_mb": 10 ** rng.uniform(-3, 1), "accumulate": rng.choice([1, 1, 3])},
            "fsdp": {"ahead": rng.randrange(4), "unit_parameters": rng.choice([0.0, 30.0, 1e8])},
            "local-sgd": {"local": rng.randrange(1, 4), "momentum": rng.choice([0.0, 0.9])},
            "d-psgd": {"drawn": rng.random() < 0.5},
            "alone": {"time_limit_s": rng.choice([math.inf, 0.01]), "partitions": rng.choice([1, 5])},
            "amb-dg": {
                "partitions": rng.choice([1, 4]),
                "window_s": rng.uniform(0.01, 0.1),
                "time_limit_s": rng.uniform(0.001, 0.1),
            },
            "ps-layers": {"barrier": rng.random() < 0.3, "local_aggregation": rng.random() < 0.3},
            "kbatch-async": {"gradients": rng.randrange(ranks + 3)},
            "amb": {"time_limit_s": rng.uniform(0.001, 0.1), "partitions": rng.choice([1, 4, 16])},
            "horovod": {"fusion_bytes": int(10 ** rng.uniform(4, 7)), "cycle_s": 10 ** rng.uniform(-4, -2)},
        }.get(name, {})
        if name in ("ddp", "horovod"):
            settings["algorithm"] = rng.choice([*ALGORITHMS])
        if name == "horovod":
            settings["by_name"] = rng.random() < 0.3
    given = {
        "ranks": ranks,
        "layers": tuple(layers),
        "steps": rng.randrange(1, 5),
        "batch": batch,
        "latency_s": rng.choice([0.0, 2e-5, 10 ** rng.uniform(-6, -3)]),
        "bandwidth": 10 ** rng.uniform(7, 10),
        "seed": rng.randrange(1000),
        "replication": rng.randrange(3),
        "laws": Laws(
            sleep=rng.choice([Constant(value=0.0), Constant(value=0.01), Exponential(mean=0.02)]),
            noise=rng.choice([Constant(value=1.0), LogNormal(mean=1.0, cv=0.2)]),
            input=rng.choice([Constant(value=1.0), LogNormal(mean=1.0, cv=0.2)]),
            update=rng.choice([Constant(value=1.0), LogNormal(mean=1.0, cv=0.2)]),
            delay=Exponential(mean=0.01) if name in OVERTAKEN and rng.random() < 0.5 else Constant(value=0.0),
            seed=rng.randrange(1000),
        ),
    }
    if rng.random() < 0.6:
        given |= drawn_hosts(rng, ranks)
    if rng.random() < 0.5:
        given |= drawn_costs(rng)
    items, servers = sum(layer.items for layer in layers), settings.get("servers", 1)
    if 1 < servers < items and rng.random() < 0.7:
        given["shares"] = drawn_shares(rng, items, servers)
    if rng.random() < 0.5:
        given |= drawn_machines(rng, ranks)
    given |= drawn_links(random.Random(seed))
    given["warmup"] = rng.randrange(given["steps"])
    given["laws"] = replace(given["laws"], share=LogNormal(mean=1.0, cv=given.pop("weight", 0.0)))
    return Job(**given), TEXTS[name](**settings)


def drawn_links(rng: random.Random) -> dict:
    """Links by numbers of their own, so that the rest of a job is as it was without."""
    kind = rng.choice(["plain", "plain", "earns", "windows", "fair", "fair"])
    if kind == "earns":
        return {"sustained": 10 ** rng.uniform(6, 9), "whole_messages": rng.random() < 0.5}
    if kind == "windows":
        return {"windows": Windows(rng.choice([1e3, 14_600.0]), 10 ** rng.uniform(4.5, 7)), "latency_s": 1e-3}
    if kind == "fair":
        sizes = [rng.choice([0.0, 10 ** rng.uniform(3, 6)]) for _ in range(4)]
        eager_bytes, weight = rng.choice([inf, inf, 0.0, 65536.0]), rng.choice([0.0, 0.3])
        return {"fair": Fair(*sizes, eager_bytes, rng.random() < 0.5), "weight": weight}
    return {}


def drawn_shares(rng: random.Random, items: int, servers: int) -> tuple[int, ...]:
    ends = [0, *sorted(rng.sample(range(1, items), servers - 1)), items]
    return tuple(stop - first for first, stop in pairwise(ends))


def drawn_layer(rng: random.Random) -> Layer:
    items = rng.choice([0, 1, 7, 1000, 250_000]) if rng.random() < 0.3 else rng.randrange(1, 2_000_000)
    forward_s = rng.choice([0.0, 10 ** rng.uniform(-4, -2)])
    return Layer(items, forward_s, 2 * forward_s, rng.randrange(10_000))


def drawn_rows(rng: random.Random, layer: Layer, servers: int) -> Layer:
    """The layer as a sparse one, of which a minibatch touches some rows."""
    count, columns, share = rng.randrange(1, 3000), rng.choice([1, 16, 500]), rng.uniform(0.01, 1)
    rows = Rows(count, lambda minibatches: max(1, round(count * (1 - (1 - share) ** minibatches))))
    return replace(layer, items=count * columns, rows=rows, server=rng.choice([None, rng.randrange(servers)]))


def drawn_hosts(rng: random.Random, ranks: int) -> dict:
    per_host = rng.randrange(1, 6)
    found = {
        "per_host": per_host,
        "cores": rng.choice([None, 1, 2, 3]),
        "in_turn": rng.random() < 0.5,
        "shared_ports": rng.random() < 0.5,
        "local_latency_s": rng.choice([0.0, 1e-6]),
        "speeds": rng.choice([(), tuple(rng.choice([1.0, 0.5, 1.7]) for _ in range(ranks))]),
    }
    if rng.random() < 0.5:
        found |= {"local_bandwidth": 10 ** rng.uniform(9, 11)}
    if rng.random() < 0.5:
        found |= {"local_overhead_s": rng.choice([0.0, 1e-4]), "local_copy_s": rng.choice([0.0, 1e-10, 1e-8])}
    if rng.random() < 0.3:
        found |= {"local_wakes": True, "local_latency_s": 1e-5}
    if rng.random() < 0.5:
        found |= {"per_rack": rng.randrange(1, 3), "uplink": 10 ** rng.uniform(7, 10)}
    return found


def drawn_machines(rng: random.Random, ranks: int) -> dict:
    """Hosts of different kinds, and how ranks wait on them."""
    hosts = rng.randrange(1, ranks + 1)
    found = {
        "placement": tuple(rng.randrange(hosts) for _ in range(ranks)),
        "kinds": tuple(drawn_host(rng) for _ in range(hosts)),
        "one_machine": rng.random() < 0.2,
        "oversleep_s": rng.choice([0.0, 6e-5]),
    }
    if rng.random() < 0.3:
        found["background_s"] = rng.choice([1e-3, 0.05])
    if rng.random() < 0.3:
        found |= {"message_background_s": rng.choice([0.0, 1e-4]), "local_background_s": rng.choice([0.0, 1e-4])}
    return found | ({"poll_s": rng.choice([4e-5, 1e-6])} if rng.random() < 0.6 else {})


def drawn_host(rng: random.Random) -> Host:
    turn_s = rng.choice([0.0, 2.5e-4, TICK_S, TICK_S, math.inf])
    contention = rng.choice([0.0, 0.05]) if turn_s < math.inf else 0.0
    gpus = {"gpus": rng.randrange(1, 4), "switching": rng.choice([0.0, 0.1, -0.1])} if rng.random() < 0.3 else {}
    return Host(rng.choice([None, 1, 2, 3]), turn_s, contention, **gpus)


def drawn_costs(rng: random.Random) -> dict:
    return {
        "overhead_s": rng.choice([0.0, 5e-6, 1e-3]),
        "gap_s": rng.choice([0.0, 1e-6]),
        "header_bytes": rng.choice([0.0, 100.0]),
        "update_s": rng.choice([0.0, 1e-9]),
        "mix_s": rng.choice([0.0, 1e-10, 1e-9]),
        "update_base_s": rng.choice([0.0, 1e-4]),
        "mix_base_s": rng.choice([0.0, 1e-5]),
        **rng.choice([{}, {"rows_s": 3e-9, "rows_base_s": 2e-5}]),
        "fixed": rng.choice([0.0, 0.3]),
        "least": rng.choice([0.0, 0.5]),
        "loop_s": rng.choice([0.0, 1e-3]),
        "cold_s": rng.choice([0.0, 2e-3]),
        "update_cold_s": rng.choice([0.0, 1e-3]),
        "resume_s": rng.choice([0.0, 1e-3]),
        "take_up_base_s": rng.choice([0.0, 1e-4]),
        "input_s": rng.choice([0.0, 1e-3]),
        "to_device_s": rng.choice([0.0, 1e-3]),
        "copied_at_once": rng.random() < 0.5,
        "pack_s": rng.choice([0.0, 1e-4]),
        "take_up_s": rng.choice([0.0, 1e-10]),
        "library": Library(*(drawn_line(rng) for _ in range(2)), rng.choice([0.0, 1e-3]), rng.choice([0.0, 1e-4])),
        "evaluate_s": rng.choice([0.0, 0.01]),
        "evaluate_every": rng.choice([1, 2]),
    }


def drawn_line(rng: random.Random) -> Line:
    return Line(rng.choice([0.0, 1e-5]), rng.choice([0.0, 1e-10]), rng.choice([0.0, 1e-4]))
