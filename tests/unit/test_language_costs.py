"""Costs, noises and stragglers of a scenario: the engine charges them as the event world does, by several protocols."""

import random
from dataclasses import replace

import pytest
from common import common
from event import agree, by_engine

from sim import stragglers
from sim.base.errors import WrongValue
from sim.job.scenario import Scenario
from sim.laws import Constant, LogNormal
from sim.model.costs import Costs, Line

EXACT_S = 1e-9
SLOW = (
    "exponential(mean=10ms)",
    "independent(factor=lognormal(mean=2, cv=0.5), by=host)",
    "persistent(seconds=exponential(mean=20ms), persistence=0.7)",
    "markov(factor=3, p_slow=0.3, p_recover=0.5)",
    "slow-ranks(seconds=30ms, rank=2)",
    "slow-ranks(factor=2, rank=[1, 2])",
    "exponential(mean=5ms) + persistent(factor=lognormal(mean=1.5, cv=0.3), persistence=0.9)",
    "niagara*0.01",
)


def with_costs(number: int, said: str) -> Scenario:
    """A job of the common kind with all costs and noises that the language charges."""
    rng, of = random.Random(number), common(number, said)
    noises = (
        "noise",
        "input_noise",
        "update_noise",
        "common_noise",
        "common_input_noise",
        "common_update_noise",
        "run",
    )
    costs = of.workload.costs.model_copy(
        update={
            **{name: LogNormal(cv=rng.choice([0.0, 0.2])) for name in noises},
            "input": Line(base_s=1e-3, slope_s=1e-5),
            "compute": of.workload.costs.compute.model_copy(update={"base_s": 1e-3, "cold_s": 2e-3}),
            "partition": of.workload.costs.partition.model_copy(update={"base_s": 1e-4, "cold_s": 2e-3}),
            "update": Line(base_s=1e-3, slope_s=1e-10, cold_s=rng.choice([0.0, 1e-3])),
            "pack": Line(base_s=1e-4, slope_s=1e-10),
            "take_up": Line(base_s=1e-4, slope_s=1e-10),
            "resume_s": rng.choice([0.0, 2e-3]),
            "loop_s": 5e-4,
        }
    )
    workers, rounds = max(2, of.workers), of.rounds
    slow = stragglers.read(rng.choice(SLOW))
    workload = of.workload.model_copy(update={"costs": costs})
    return replace(of, workload=workload, workers=workers, stragglers=slow, steps=rounds, warmup=0)


SAID = (
    "fmb",
    "amb time_limit_s=0.03",
    "amb time_limit_s=0.01 partitions=4",
    "ps-async",
    "ps-sync",
    "ps-sync barrier=true",
    "ps-backup",
    "ps-backup barrier=true",
    "ps-ssp staleness=1",
)


@pytest.mark.slow
@pytest.mark.parametrize("said", SAID)
def test_costs_are_charged_alike(said):
    for number in range(3):
        agree(with_costs(number, said))


@pytest.mark.parametrize("said", [one for one in SAID if one.startswith("ps-")])
def test_servers_hold_what_placement_gives_them(said):
    for number, placement in ((1, "round-robin"), (2, "greedy"), (3, "round-robin")):
        of = with_costs(number, said)
        sizes = [(301 + 1000 * k, 7) for k in range(5)]
        variables = [
            one.model_copy(update={"shape": size}) for one, size in zip(of.workload.variables * 5, sizes, strict=False)
        ]
        variables = [one.model_copy(update={"name": f"v{k}"}) for k, one in enumerate(variables)]
        workload = of.workload.model_copy(update={"variables": tuple(variables)})
        of = replace(of, workload=workload, servers=2, placement=placement, variable_partitions=number, cluster=None)
        agree(of)


@pytest.mark.parametrize("said", ["fmb", "amb time_limit_s=0.03", "amb time_limit_s=10 partitions=4"])
def test_a_process_alone_trains(said):
    for number in range(3):
        of = replace(
            with_costs(number, said), stragglers=stragglers.read("exponential(mean=5ms)"), workers=0, cluster=None
        )
        agree(of)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_one_slow_rank_is_slow_whichever_it_is(rank):
    """All streams were taken for alike where that of the first worker was a constant."""
    of = common(1, "allreduce")
    quiet = of.workload.model_copy(
        update={"costs": of.workload.costs.model_copy(update={"noise": Constant(value=1.0)})}
    )
    of = replace(of, workload=quiet, workers=4, stragglers=stragglers.read("none"))
    slow = replace(of, stragglers=stragglers.read(f"slow-ranks(factor=3, rank={rank})"))
    agree(slow)
    assert by_engine(slow).step_s.mean() > 1.05 * by_engine(of).step_s.mean()


def test_what_bytes_take_has_no_floor():
    with pytest.raises(WrongValue, match=r"reduce: floor_s = 0"):
        Costs(reduce=Line(floor_s=1e-3))
