"""Random numbers of a run, as many as are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from sim.engine.arrays.shape import Empty
from sim.engine.draws import computing, inputs, poll_shares, rows_of, sleeps, updates
from sim.engine.kernel import layout
from sim.engine.kernel.layout import PIECES
from sim.laws import LogNormal
from sim.laws.randomness import BLOCK, Stream, generator

if TYPE_CHECKING:
    from sim.engine.arrays.shape import Shape
    from sim.engine.kernel.state import State

DRAWN = {"sleep": sleeps, "computing": computing, "input": inputs, "update": updates}  # by step
MOST_DRAWN = 2**22  # numbers that are drawn at once, of one kind, if those of one block are fewer
SHARES = 60  # blocks of shares of sleeps between polls
WEIGHTS = 4096  # of a rank's flows


def begun(job: Shape) -> dict[str, np.ndarray | Empty]:
    """What runs begin with: room for delayed letters and for what other threads do; and a column of all that may be drawn besides."""
    column = (job.scenario.ranks, 1)
    return {
        "delayed": Empty(job.delayed, layout.DELAYED),
        "free_delayed": np.arange(job.delayed),
        "letter": Empty((job.delayed, layout.LETTER), float),
        "background": Empty(job.backgrounds, layout.BACKGROUND),
        "free_background": np.arange(job.backgrounds),
        "poll": Empty(column, float),
        "delay": Empty(column, float),
        "moment": Empty(column, float),
        "weight": np.ones(column),
    }


def draws(job: Shape, replication: int, columns: int) -> dict[str, np.ndarray]:
    """Sleeps, and factors on computing, input and updates; and shares of the time between two polls, where ranks poll."""
    of = job.scenario
    few = min(columns, most_columns(job))
    found = {name: draw(of, replication, few) for name, draw in DRAWN.items()}
    if job.contended and of.cluster.poll_s:
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


def delays(job: Shape, replication: int, columns: int) -> dict[str, np.ndarray]:
    """Induced delays of the messages that a rank receives, if there are any."""
    return {"delay": delay_s(job, replication, columns)} if job.scenario.protocol.delay_std_s else {}


def delay_s(job: Shape, replication: int, columns: int) -> np.ndarray:
    """Induced delays of what each rank receives, shape (ranks, columns)."""
    of = job.scenario

    def draw(rank: int) -> Stream:
        found = of.draws.delays(replication, of.worker_number(rank))
        assert found is not None
        return found

    return rows_of(draw, columns, range(of.ranks))


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
