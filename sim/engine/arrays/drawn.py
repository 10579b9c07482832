"""Random numbers of a run, as many as are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.engine.draws import draws_of, poll_shares, rows_of
from sim.engine.kernel import layout
from sim.engine.kernel.layout import PIECES
from sim.laws import LogNormal
from sim.randomness import Stream, generator

if TYPE_CHECKING:
    from sim.engine.arrays.shape import Shape

DRAWN = ("sleep", "computing", "input", "update")
SHARES = 60  # blocks of shares of sleeps between polls
WEIGHTS = 4096  # of a rank's flows


def draws(job: Shape, replication: int, columns: int) -> dict[str, np.ndarray]:
    """Sleeps, and factors on computing, input and updates; and shares of the time between two polls."""
    of = job.scenario
    polls = np.zeros((of.ranks, 1))
    if job.contended and of.cluster.poll_s:
        polls = np.array([poll_shares(of, replication, rank, SHARES * job.room) for rank in range(of.ranks)])
    return {"poll": polls, **dict(zip(DRAWN, draws_of(of, replication, columns), strict=True))}


def delays(job: Shape, replication: int, columns: int) -> dict[str, np.ndarray]:
    """Induced delays of the messages that a rank receives, and letters whose delay is not over."""
    return {
        "delay": delay_s(job, replication, columns),
        "delayed": np.zeros(job.delayed, layout.DELAYED),
        "free_delayed": np.arange(job.delayed),
        "letter": np.zeros((job.delayed, layout.LETTER)),
    }


def delay_s(job: Shape, replication: int, columns: int) -> np.ndarray:
    """Induced delays of what each rank receives, shape (ranks, columns)."""
    of = job.scenario
    if not of.protocol.delay_std_s:
        return np.zeros((of.ranks, 1))

    def draw(rank: int) -> Stream:
        found = of.draws.delays(replication, of.worker_number(rank))
        assert found is not None
        return found

    return rows_of(draw, columns, range(of.ranks))


def threads(job: Shape, replication: int, columns: int) -> dict[str, np.ndarray]:
    """What other threads do, and when."""
    return {
        "background": np.zeros(job.backgrounds, layout.BACKGROUND),
        "free_background": np.arange(job.backgrounds),
        "moment": moments(job, replication, PIECES * columns),
    }


def moments(job: Shape, replication: int, columns: int) -> np.ndarray:
    """Shares of a step's time after which pieces of its background work begin, in order; shape (ranks, pieces of all steps)."""
    of = job.scenario
    if not of.threaded:
        return np.zeros((of.ranks, 1))
    drawn = [
        generator(of.seed, replication, of.worker_number(rank), "background").random(columns)
        for rank in range(of.ranks)
    ]
    return np.sort(np.array(drawn).reshape(of.ranks, -1, PIECES)).reshape(of.ranks, columns)


def weights(job: Shape, replication: int) -> dict[str, np.ndarray]:
    """The weights of messages that share ports, in the order in which each rank sends them."""
    of, link, ranks = job.scenario, job.scenario.network, job.scenario.ranks
    if not (link.fair and link.unfairness):
        return {"weight": np.ones((ranks, 1))}
    law, key = LogNormal(cv=link.unfairness), (of.seed, replication)

    def draw(rank: int) -> Stream:
        return Stream(law, *key, of.worker_number(rank), "share")

    return {"weight": rows_of(draw, WEIGHTS * job.room, range(ranks))}
