"""Random numbers of all ranks by step, from the streams that every world draws from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from sim.laws import Law
from sim.randomness import BLOCK, Draws, Stream, generator

OURS = "sim.laws."  # laws of one's own are checked as they draw, rank by rank

if TYPE_CHECKING:
    from sim.job.scenario import Scenario
    from sim.laws.steps import Steps


def rows_of(draw: Callable[[int], Stream | Steps], columns: int, ranks: Iterable[int]) -> np.ndarray:
    """Draws of ranks by step, shape (ranks, columns), or (ranks, 1) if all are alike."""
    streams = [draw(rank) for rank in ranks]
    if all(one.sole is not None for one in streams):
        return np.array([[one.sole] for one in streams])
    return np.array(
        [np.asarray(one.first(columns)) if one.sole is None else np.full(columns, one.sole) for one in streams]
    )


def rows_of_law(scenario: Scenario, law: Law, replication: int, purpose: str, columns: int) -> np.ndarray:
    """The same of one law, for all ranks at once."""
    ranks, first = scenario.ranks, scenario.servers
    if law.sole is not None:
        return np.full((ranks, 1), float(law.sole))
    found, draws = np.empty((columns, ranks)), Draws(law, scenario.seed, replication, purpose)
    for block, at in enumerate(range(0, columns, BLOCK)):
        part = found[at : at + BLOCK]
        draws.fill(part[:, first:], range(1, ranks - first + 1), block)
        draws.fill(part[:, :first], range(first), block)
    return np.ascontiguousarray(found.T)


def draws_of(scenario: Scenario, replication: int, columns: int, calls: int = 1) -> tuple[np.ndarray, ...]:
    """Sleeps, again for each further call of a step, and factors on computing, on input and on updates, each as of `rows_of`."""
    inputs = rows_of_law(scenario, scenario.costs.input_noise, replication, "input", columns)
    updates = _updates(scenario, replication, columns)
    sleeps = np.concatenate([_sleeps(scenario, replication, columns, call) for call in range(calls)])
    return sleeps, _computing(scenario, replication, columns), inputs, updates


def _sleeps(scenario: Scenario, replication: int, columns: int, call: int) -> np.ndarray:
    law, of = scenario.stragglers, scenario.draws
    if call == 0 and isinstance(law, Law) and type(law).__module__.startswith(OURS):
        drawn = replication if scenario.sleeps_of is None else scenario.sleeps_of
        return rows_of_law(scenario, law, drawn, "sleep", columns)
    ranks = range(scenario.ranks)
    return rows_of(lambda rank: of.sleeps(replication, scenario.worker_number(rank), call), columns, ranks)


def _computing(scenario: Scenario, replication: int, columns: int) -> np.ndarray:
    of, ranks = scenario.draws, range(scenario.ranks)
    if scenario.stragglers.slows_computing:
        noise = rows_of(lambda rank: of.noise(replication, scenario.worker_number(rank)), columns, ranks)
    else:
        noise = rows_of_law(scenario, scenario.costs.noise, replication, "noise", columns)
    factors = {host: of.run_factor(replication, host) for host in set(scenario.hosts)}
    return noise * np.array([factors[host] for host in scenario.hosts])[:, None]


def _updates(scenario: Scenario, replication: int, columns: int) -> np.ndarray:
    """Of servers alone, and many, where updates number the steps."""
    law = scenario.costs.update_noise
    if not scenario.protocol.counts_updates:
        return rows_of_law(scenario, law, replication, "update", columns)

    def draw(rank: int) -> Stream:
        return Stream(law, scenario.seed, replication, scenario.worker_number(rank), "update")

    return rows_of(draw, max(columns, scenario.updates + 2 * scenario.ranks), range(scenario.servers))


def poll_shares(scenario: Scenario, replication: int, rank: int, blocks: int) -> np.ndarray:
    """Random shares of the time between two polls, in the order in which the event world takes them."""
    rng = generator(scenario.seed, replication, scenario.worker_number(rank), "pause")
    return np.concatenate([rng.random(BLOCK)[::-1] for _ in range(blocks)])
