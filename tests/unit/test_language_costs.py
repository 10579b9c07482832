"""Costs, noises, delays and stragglers of a scenario are charged in the language as in sim.protocols' worlds."""

import random
from dataclasses import replace

import numpy as np
import pytest
from sim.event.machines import streams
from test_language_today import Updates
from today import common

from sim import event, stragglers
from sim.event.language import job_of
from sim.job.scenario import Scenario
from sim.language.engine import job as engine
from sim.language.event import run
from sim.laws import LogNormal
from sim.model.costs import Line
from sim.protocols.texts import text_of

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


def off_s(scenario: Scenario) -> tuple[float, float]:
    """How far the language is off: of ends of updates, seconds, and of samples. Its engine has the same ends."""
    text = text_of(scenario)
    expected, _ = event.run(scenario, want_trace=False)
    job, updates = job_of(scenario, text), Updates()
    found, each = run(job, text, updates), scenario.updates_per_step
    step_s = np.diff(updates.ends_s[each - 1 :: each], prepend=0.0)
    if engine._kernel:
        assert engine.run(job, text).ends_s == pytest.approx(found.ends_s, abs=EXACT_S)
    samples = np.array(found.samples)
    return np.abs(step_s - expected.step_s[0]).max(), np.abs(samples - expected.samples[0]).max()


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
def test_costs_are_charged_as_in_sim_protocols(said):
    for number in range(3):
        assert off_s(with_costs(number, said)) == pytest.approx((0.0, 0.0), abs=EXACT_S)


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
        assert off_s(of) == pytest.approx((0.0, 0.0), abs=EXACT_S)


@pytest.mark.parametrize("said", ["fmb", "amb time_limit_s=0.03", "amb time_limit_s=10 partitions=4"])
def test_a_process_alone_trains(said):
    for number in range(3):
        of = replace(
            with_costs(number, said), stragglers=stragglers.read("exponential(mean=5ms)"), workers=0, cluster=None
        )
        assert off_s(of) == pytest.approx((0.0, 0.0), abs=EXACT_S)


@pytest.mark.parametrize("said", ["amb-dg time_limit_s=0.02", "kbatch-async gradients=2", "kbatch-async"])
def test_what_has_begun_to_come_is_not_there_yet(said, monkeypatch):
    """The one rule that differs: sim.event's `until_s` waits for a message that has begun to pass the receiver's port."""

    def reached(self, message):
        link, port = self._link, self._mechanics.machine.ingress
        message.begin_s, message.end_s = port.take(self._env.now, link.occupancy_s(message.size_bytes))
        self._env.after(message.end_s - self._env.now, self._mechanics.inbox.put, message)

    monkeypatch.setattr(streams.Ports, "reached", reached)
    for number in range(3):
        of = with_costs(number, said)
        link = of.cluster.network.model_copy(
            update={"overhead_s": 0.0}
        )  # which sim.event takes for old parameters, too
        of = replace(of, cluster=of.cluster.model_copy(update={"network": link}))
        assert off_s(of) == pytest.approx((0.0, 0.0), abs=EXACT_S)
