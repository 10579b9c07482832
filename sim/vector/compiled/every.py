"""Small jobs in which every loop is used once, so that all are compiled."""

from __future__ import annotations

from collections.abc import Iterator

from sim import protocols
from sim.job.scenario import Scenario
from sim.model import workload
from sim.model.costs import Line
from sim.vector import at_once, compiled

JOBS = (
    ("fmb", ""),
    ("allreduce", "ring"),
    ("allreduce", "halving-doubling"),
    ("horovod", "ring"),
    ("horovod", "halving-doubling"),
)


def play_all() -> None:
    """Use every loop."""
    before = compiled.in_use()
    compiled.use()
    try:
        for scenario in scenarios():
            at_once.run(scenario, 2)
    finally:
        compiled.use(before)


def scenarios() -> Iterator[Scenario]:
    """The jobs; in the last one work depends on when it begins, so that its steps are arrays, and loops are in one step."""
    of = workload.read("mnist")
    for name, algorithm in JOBS:
        yield _job(name, algorithm, of)
    costs = of.costs.model_copy(update={"compute": Line(base_s=1e-3, cold_s=1e-3)})
    yield _job(*JOBS[-1], of.model_copy(update={"costs": costs}))


def _job(name: str, algorithm: str, of: workload.Workload) -> Scenario:
    settings = [f"algorithm={algorithm}"] * bool(algorithm)
    return Scenario(protocols.make(name, settings), of, workers=4, steps=6, warmup=1)
