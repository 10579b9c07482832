"""How fast the engine is: milliseconds of a core for a step of texts, without preparing."""

from __future__ import annotations

import time
from typing import NamedTuple

from sim.language.engine.job import Run
from sim.language.engine.primitives import lowered
from sim.language.job import Job, Laws, Layer
from sim.laws import Exponential
from sim.texts import TEXTS

MODEL = tuple(Layer(6_553_600, 0.1 / 24, 0.1 / 12) for _ in range(8))  # 25 MiB each, 100 ms in all
HOSTS = {"per_host": 8, "cores": 8, "shared_ports": True}
TIMED: tuple[tuple[str, dict, int, int, dict], ...] = (  # the text, its settings, ranks, steps, hosts
    ("ddp", {}, 64, 20, {}),
    ("ddp", {}, 64, 20, HOSTS),
    ("fmb", {}, 1_001, 100, {}),
    ("fmb", {}, 10_001, 20, {}),
    ("fmb", {}, 100_001, 4, {}),
    ("d-psgd", {"drawn": True}, 4_096, 20, {}),
    ("ps-async", {}, 1_001, 50, {}),
)


class Timed(NamedTuple):
    """What one job took.

    Args:
        lowering_s: seconds of preparing its program.
        step_s: seconds of a step.
        message_s: of a message.
        event_s: of an event.
    """

    text: str
    ranks: int
    lowering_s: float
    step_s: float
    message_s: float
    event_s: float


def timed(name: str, settings: dict, ranks: int, steps: int, hosts: dict) -> Timed:
    """Run one job, in processor time."""
    job, text = (
        Job(ranks, MODEL, steps, batch=16, laws=Laws(sleep=Exponential(mean=0.02)), **hosts),
        TEXTS[name](**settings),
    )
    start_s = time.process_time()
    program = lowered(job, text)
    lowered_s = time.process_time()
    run = Run(job, text, program)
    begun_s = time.process_time()
    run.result()
    took_s = time.process_time() - begun_s
    return Timed(
        name, ranks, lowered_s - start_s, took_s / steps, took_s / run.state.posted, took_s / run.state.happened
    )


def table() -> list[Timed]:
    """All of them."""
    return [timed(*one) for one in TIMED]
