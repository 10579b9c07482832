"""Closed forms of steps: eight equal layers, ranks that are equally fast, on a port each, without sleeps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from sim.language import event
from sim.language.engine import job as engine
from sim.language.job import Job, Layer, Result
from sim.texts import TEXTS

ITEMS, T, B, L = 6_553_600, 0.1, 1.25e9, 20e-6  # of a layer, 25 MiB; seconds of a gradient; bytes/s; latency
V = 8 * ITEMS * 4  # bytes of the model
X = V / B  # seconds in which it passes a port
STEPS = 3


class Closed(NamedTuple):
    """A text whose steps are known.

    Args:
        step_s: seconds of each of the first steps; the last one's are those of all that follow.
    """

    name: str
    settings: dict
    job: Job
    step_s: tuple[float, ...]

    def error_s(self, run=event.run) -> float:
        """The largest difference of a simulated step from the closed form, seconds.

        Args:
            run: of a world.
        """
        found = steps_of(run(self.job, TEXTS[self.name](**self.settings)))
        expected = [self.step_s[min(step, len(self.step_s) - 1)] for step in range(self.job.steps)]
        return max(abs(one - other) for one, other in zip(found, expected, strict=True))

    def worlds_error_s(self) -> float:
        """The same of the event world and, where it is compiled, of the engine, whichever is further."""
        return max(self.error_s(run) for run in (event.run, *([engine.run] if engine._kernel else [])))


def job(ranks: int, steps: int = STEPS, activation_items: int = 0, **more) -> Job:
    """A job of so many ranks; `more` are fields of sim.language.job.Job."""
    layer = Layer(ITEMS, T / 24, T / 12, activation_items)
    return Job(ranks, (layer,) * 8, steps, **{"latency_s": L, "bandwidth": B, "batch": 16, **more})


def steps_of(found: Result) -> list[float]:
    """Seconds of each step."""
    return [after - before for before, after in pairwise([0.0, *found.ends_s])]


def ring(size_bytes: float, n: int, bandwidth: float = B) -> float:
    """Seconds of a ring allreduce of n ranks."""
    return 2 * (n - 1) * (size_bytes / n / bandwidth + L)


def of_buckets(bandwidth: float) -> float:
    """Eight buckets, each summed when its layer is done and the bucket before is summed."""
    end_s = 0.0
    for bucket in range(8):
        end_s = max(end_s, T / 3 + (bucket + 1) * T / 12) + ring(V / 8, 4, bandwidth)
    return end_s


def last_layer_left_s(forward_s: float) -> float:
    """Of a worker whose forward pass has ended: when the gradient of the first layer has passed its port."""
    end_s = 0.0
    for layer in range(8):
        end_s = max(end_s, forward_s + (layer + 1) * T / 12) + X / 8
    return end_s


def layers_to_servers(update_base_s: float = 0.0) -> Iterator[float]:
    """Steps of ps-layers with one worker: a layer travels while others are computed."""
    forward_s, end_s = 0.0, 0.0
    for layer in range(8):  # the server hands out the first weights, the first layer's first
        forward_s = max(forward_s, (layer + 1) * X / 8 + L) + T / 24
    while True:  # later each layer's when it is updated; the first layer's come last
        begin_s, end_s = end_s, last_layer_left_s(forward_s) + L + update_base_s
        yield end_s - begin_s
        forward_s = end_s + X / 8 + L + T / 3


def stages(p: int, m: int, L: float, x: float) -> float:
    """Seconds of a step of 1F1B by a recurrence: p stages, m micro-batches, a port taken for x seconds by each."""
    forward, order = T / 3 / p / m, []
    for stage in range(p):
        ahead = min(m, p - 1 - stage)
        order.append(
            [one for k in range(m + ahead) for one in [("f", k)] * (k < m) + [("b", k - ahead)] * (k >= ahead)]
        )
    clock, done, out, into, there = [0.0] * p, [0] * p, [0.0] * p, [0.0] * p, dict[tuple, float]()
    for _ in range(2 * m * p):
        ready = []
        for stage in range(p):
            if done[stage] < len(order[stage]):
                kind, k = order[stage][done[stage]]
                first = stage == 0 if kind == "f" else stage == p - 1
                if first or (kind, stage, k) in there:
                    ready.append((max(clock[stage], there.get((kind, stage, k), 0.0)), stage, kind, k))
        begin_s, stage, kind, k = min(ready)
        clock[stage], done[stage] = begin_s + (forward if kind == "f" else 2 * forward), done[stage] + 1
        to = stage + 1 if kind == "f" else stage - 1
        if 0 <= to < p:
            leaves_s = max(clock[stage], out[stage])
            out[stage] = leaves_s + x
            there[kind, to, k] = into[to] = max(leaves_s + L, into[to]) + x
    return max(clock)


def pulling(workers: int, rounds: tuple[int, ...] = (1,)) -> tuple[float, ...]:
    """Steps of workers that are let go and pull: the weights of all leave one after another.

    Args:
        rounds: of each step, in which workers pull and push; those of the last are those of all that follow.
    """
    step_s = T + (workers + 1) * X + 4 * L
    return (step_s - L, *(one * step_s for one in rounds))  # nobody is let go before the first


FAST: dict[str, Any] = {"bandwidth": 10 * B}
FREE: dict[str, Any] = {"bandwidth": math.inf}
_layers = layers_to_servers()
_ROWS: tuple[tuple[str, dict, Job, tuple[float, ...]], ...] = (
    ("alone", {}, job(1), (T,)),
    ("alone", {"time_limit_s": 0.06, "partitions": 16}, job(1), (10 * T / 16,)),
    ("allreduce", {"algorithm": "ring"}, job(4), (T + ring(V, 4),)),
    ("allreduce", {"algorithm": "ring", "fused": False}, job(4), (T + 8 * ring(V / 8, 4),)),
    ("ddp", {}, job(4), (of_buckets(B),)),
    ("ddp", {}, job(4, **FAST), (of_buckets(10 * B),)),
    ("ddp", {"bucket_mb": 1e9}, job(4), (T + ring(V, 4),)),
    ("ddp", {"bucket_mb": 1e9, "accumulate": 4}, job(4), (T + ring(V, 4),)),
    ("ddp", {}, job(1), (T,)),
    ("fsdp", {"unit_parameters": 0.0}, job(4, **FAST), (T + 2 * 3 * (X / 32 / 10 + L),)),
    ("fsdp", {}, job(1), (T,)),
    ("local-sgd", {"local": 4}, job(4, 4), (T, T, T, T + ring(V, 4))),
    ("d-psgd", {"drawn": True}, job(5), (T + X + L,)),
    ("d-psgd", {}, job(5), (T + 2 * X + L,)),
    ("gradient-coding", {"late": 1}, job(4), (3 * X + 11 / 16 * T + 2 * L,)),  # of 5, 5 and 6 samples
    ("gradient-coding", {"late": 1}, job(4, batch=3), (3 * X + 2 / 3 * T + 2 * L,)),
    ("hierarchical", {"group": 2}, job(8), (T + 2 * (X / 2 + L) + ring(V / 2, 4),)),
    ("fmb", {}, job(9), (T + (8 + 1) * X + 2 * L,)),
    ("amb", {}, job(9), (10 * T / 16 + (8 + 1) * X + 2 * L,)),  # ten of 16 micro-batches reach beyond 60 ms
    ("amb-dg", {"window_s": 5.0}, job(3), (5.0,)),  # whatever workers and links do
    ("kbatch-async", {"gradients": 1}, job(2, **FREE), (T + 2 * L, T)),  # the worker waits for nobody
    ("horovod", {"cycle_s": 0.2}, job(1), (0.2,)),
    ("hybrid", {"servers": 0}, job(4), (T + ring(V, 4),)),
    ("pipeline", {}, job(1), (T,)),
    ("pipeline", {}, job(4, latency_s=0.0), ((8 + 4 - 1) * T / 4 / 8,)),
    *(("pipeline", {}, job(4, 1, items), (stages(4, 8, L, 8 * items / B),)) for items in (0, 50_000, 500_000)),
    ("ps-async", {}, job(2), pulling(1)),
    ("ps-ssp", {"staleness": 0}, job(2), pulling(1)),
    ("ps-barrier", {}, job(9), pulling(8)),
    ("ps-sync", {}, job(2), pulling(1, (2, 1))),  # gradients that take the first tokens are lost
    ("ps-backup", {"backup": 1}, job(3, **FREE), (T + 3 * L, T + 4 * L)),
    ("ps-rows", {}, job(2), (T + 2 * X + 4 * L,)),
    ("ps-layers", {}, job(2), (next(_layers), next(_layers))),
)
CLOSED = tuple(Closed(*one) for one in _ROWS)
