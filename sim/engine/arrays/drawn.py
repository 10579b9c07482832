"""Random numbers of a run, as many as are asked for, from the streams that every world draws from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from sim.base.home import installed
from sim.engine.arrays.shape import Empty
from sim.engine.kernel import layout
from sim.engine.kernel.layout import PIECES
from sim.laws import Law, LogNormal
from sim.laws.randomness import BLOCK, Draws, Stream, generator, known

if TYPE_CHECKING:
    from sim.engine.arrays.shape import Shape
    from sim.engine.kernel.state import State
    from sim.job.scenario import Scenario
    from sim.laws.steps import Steps

OURS = installed("sim.laws.")  # laws of one's own are checked as they draw, rank by rank
MOST_DRAWN = 2**22  # numbers that are drawn at once, of one kind, if those of one block are fewer
SHARES = 60  # blocks of shares of sleeps between polls
WEIGHTS = 4096  # of a rank's flows


def begun(job: Shape) -> dict[str, np.ndarray | Empty]:
    """What runs begin with: room for what other threads do; and a column of all that may be drawn besides."""
    column = (job.scenario.ranks, 1)
    return {
        "background": Empty(job.backgrounds, layout.BACKGROUND),
        "free_background": np.arange(job.backgrounds),
        "poll": Empty(column, float),
        "moment": Empty(column, float),
        "weight": np.ones(column),
    }


def draws(job: Shape, replication: int, columns: int) -> dict[str, np.ndarray]:
    """Sleeps, and factors on computing, input and updates; and shares of the time between two polls, where ranks poll."""
    of = job.scenario
    few = min(columns, most_columns(job))
    found = {name: draw(of, replication, few) for name, draw in DRAWN.items()}
    if of.cluster.poll_s:
        found["poll"] = np.array([poll_shares(of, replication, rank, SHARES * job.room) for rank in range(of.ranks)])
    return found


def most_columns(job: Shape) -> int:
    """Steps of which numbers are drawn at once: all, unless ranks are many."""
    of = job.scenario
    return 2**62 if of.protocol.counts_updates else BLOCK * max(1, MOST_DRAWN // (BLOCK * of.ranks))


def further(job: Shape, replication: int, state: State) -> Iterator[tuple[str, np.ndarray]]:
    """Numbers of each kind from the first step on that a rank may still ask for, where those that there are do not suffice."""
    rank, calls = state.arrays["rank"], max(1, int(state.record["calls"][0]))
    columns, first = 2 * max(state.arrays[name].shape[1] for name in list(DRAWN)[:3]), 0
    if columns > (most := most_columns(job)):
        first = int(rank["step"][rank["ended"] == 0].min()) // BLOCK * BLOCK
        columns = max(most, -(-int(rank["step"].max() + 1 - first) // BLOCK) * BLOCK)
    state.record["drawn_from"] = first
    for name, draw in DRAWN.items():
        said = {"calls": calls} if draw is sleeps else {}
        yield name, draw(job.scenario, replication, columns, first, **said)


def threads(job: Shape, replication: int, columns: int) -> dict[str, np.ndarray]:
    """When other threads work, where there are any."""
    return {"moment": moments(job, replication, PIECES * columns)} if job.scenario.threaded else {}


def moments(job: Shape, replication: int, columns: int) -> np.ndarray:
    """Shares of a step's time after which pieces of its background work begin, in order; shape (ranks, pieces of all steps)."""
    of = job.scenario
    drawn = [
        generator(of.seed, replication, of.worker_number(rank), "background").random(columns)
        for rank in range(of.ranks)
    ]
    return np.sort(np.array(drawn).reshape(of.ranks, -1, PIECES)).reshape(of.ranks, columns)


def weights(job: Shape, replication: int) -> dict[str, np.ndarray]:
    """The weights of messages that share ports, in the order in which each rank sends them; none if all are alike."""
    of, link, ranks = job.scenario, job.scenario.network, job.scenario.ranks
    if not (link.fair and link.unfairness):
        return {}
    law, key = LogNormal(cv=link.unfairness), (of.seed, replication)

    def draw(rank: int) -> Stream:
        return Stream(law, *key, of.worker_number(rank), "share")

    return {"weight": rows_of(draw, WEIGHTS * job.room, range(ranks))}


def rows_of(draw: Callable[[int], Stream | Steps], columns: int, ranks: Iterable[int], first: int = 0) -> np.ndarray:
    """Draws of ranks from a step on, shape (ranks, columns), or (ranks, 1) if all are alike."""
    streams = [draw(rank) for rank in ranks]
    if all(one.sole is not None for one in streams):
        return np.array([[one.sole] for one in streams])
    return np.array(
        [
            np.asarray(one.first(first + columns))[first:] if one.sole is None else np.full(columns, one.sole)
            for one in streams
        ]
    )


def rows_of_law(
    scenario: Scenario, law: Law, replication: int, purpose: str, columns: int, first: int = 0
) -> np.ndarray:
    """The same of one law, for all ranks at once; from the first step of a block on."""
    ranks, servers = scenario.ranks, scenario.servers
    if law.sole is not None:
        return np.full((ranks, 1), float(law.sole))
    found, draws = np.empty((ranks, columns)), Draws(known(law), scenario.seed, replication, purpose)
    for block, at in enumerate(range(0, columns, BLOCK), first // BLOCK):
        part = found[:, at : at + BLOCK].T
        draws.fill(part[:, servers:], range(1, ranks - servers + 1), block)
        draws.fill(part[:, :servers], range(servers), block)
    return found


def sleeps(scenario: Scenario, replication: int, columns: int, first: int = 0, calls: int = 1) -> np.ndarray:
    """Sleeps, again for each further call of a step."""
    return np.concatenate([_sleeps(scenario, replication, columns, first, call) for call in range(calls)])


def _sleeps(scenario: Scenario, replication: int, columns: int, first: int, call: int) -> np.ndarray:
    law, of = scenario.stragglers, scenario.draws
    if call == 0 and isinstance(law, Law) and type(law).__module__.startswith(OURS):
        drawn = replication if scenario.sleeps_of is None else scenario.sleeps_of
        return rows_of_law(scenario, law, drawn, "sleep", columns, first)
    ranks = range(scenario.ranks)
    return rows_of(lambda rank: of.sleeps(replication, scenario.worker_number(rank), call), columns, ranks, first)


def computing(scenario: Scenario, replication: int, columns: int, first: int = 0) -> np.ndarray:
    """Factors on computing."""
    of, ranks = scenario.draws, range(scenario.ranks)
    if scenario.stragglers.slows_computing:
        noise = rows_of(lambda rank: of.noise(replication, scenario.worker_number(rank)), columns, ranks, first)
    else:
        noise = rows_of_law(scenario, scenario.costs.noise, replication, "noise", columns, first)
        noise = noise * _common(scenario, replication, "noise", columns, first)
    if scenario.costs.run.sole is not None:
        noise *= scenario.costs.run.sole
        return noise
    factors = {host: of.run_factor(replication, host) for host in set(scenario.hosts)}
    noise *= np.array([factors[host] for host in scenario.hosts])[:, None]
    return noise


def _common(scenario: Scenario, replication: int, purpose: str, columns: int, first: int = 0) -> np.ndarray:
    """Factors that all ranks have alike, shape (1, columns), or (1, 1) if those of all steps are."""
    return rows_of(lambda _: scenario.draws.common(replication, purpose), columns, (0,), first)


def inputs(scenario: Scenario, replication: int, columns: int, first: int = 0) -> np.ndarray:
    """Factors on the seconds of an input."""
    own = rows_of_law(scenario, scenario.costs.input_noise, replication, "input", columns, first)
    return own * _common(scenario, replication, "input", columns, first)


def updates(scenario: Scenario, replication: int, columns: int, first: int = 0) -> np.ndarray:
    """Factors on updates; of servers alone, and many, where updates number the steps."""
    law = scenario.costs.update_noise
    if not scenario.protocol.counts_updates:
        own = rows_of_law(scenario, law, replication, "update", columns, first)
        return own * _common(scenario, replication, "update", columns, first)

    def draw(rank: int) -> Stream:
        return Stream(law, scenario.seed, replication, scenario.worker_number(rank), "update")

    columns = max(columns, scenario.updates + 2 * scenario.ranks)
    return rows_of(draw, columns, range(scenario.servers)) * _common(scenario, replication, "update", columns)


def poll_shares(scenario: Scenario, replication: int, rank: int, blocks: int) -> np.ndarray:
    """Random shares of the time between two polls, in the order in which the event world takes them."""
    rng = generator(scenario.seed, replication, scenario.worker_number(rank), "pause")
    return np.concatenate([rng.random(BLOCK)[::-1] for _ in range(blocks)])


DRAWN = {"sleep": sleeps, "computing": computing, "input": inputs, "update": updates}  # by step
