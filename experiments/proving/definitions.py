"""What texts train: gradient descent on a quadratic as their papers define it, beside the weights that they leave in simulated time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from sim.language.event import run
from sim.language.job import Job, Laws, Result
from sim.language.learning import Chain, Values
from sim.language.rank import drawn
from sim.laws import Exponential
from sim.laws.base import NOTHING, ONES, Steps
from sim.texts import TEXTS

CHAIN, BATCH, STEPS, RATE = Chain(width=3, depth=5), 12, 6, 0.1
START = CHAIN.weights()
LAYER = 4 * 9 / 2**20  # MiB of one
Weights = dict[int, np.ndarray]  # by rank; NaN where a rank holds none


class Table:
    """Sleeps by worker and round, seconds."""

    def __init__(self, seconds: Callable[[int, int], float]):
        self._seconds = seconds

    def sleeps(self, replication: int, worker: int, call: int = 0) -> Steps:
        """Those of a worker, by round."""
        return Steps(lambda count: np.array([self._seconds(worker, step) for step in range(count)]))

    def noises(self, replication: int, worker: int, of: str = "noise") -> Any:
        """None."""
        return NOTHING if of == "delay" else ONES


class Defined(NamedTuple):
    """A text whose weights are known after some steps.

    Args:
        ranks: servers included.
        expected: makes the weights that ranks have in the end.
        minibatches: that enter an update in a step; of partitions, not all of each.
        sleeps: seconds by worker and round; None: as they are drawn.
        of_job: fields of sim.language.job.Job.
    """

    name: str
    settings: dict
    ranks: int
    expected: Callable[[], Weights]
    minibatches: float
    sleeps: Callable[[int, int], float] | None = None
    of_job: Mapping[str, Any] = MappingProxyType({})

    def error(self) -> float:
        """The largest difference of a weight from what the definition says; infinity if other samples entered updates."""
        laws = {"laws": Table(self.sleeps)} if self.sleeps else {}
        vectors, found = trained(self.name, self.ranks, self.settings, **laws, **self.of_job)
        if not np.allclose(found.samples, self.minibatches * BATCH, rtol=1e-9):
            return np.inf
        expected = self.expected()
        apart = [np.abs(vectors[rank]["weights"] - of)[~np.isnan(of)] for rank, of in expected.items()]
        return float(np.concatenate(apart).max())


def trained(name: str, ranks: int, settings: dict | None = None, **of_job) -> tuple[list[dict], Result]:
    """The vectors of all ranks after a run of a text, and its result."""
    text = TEXTS[name](**(settings or {}))
    laws = {"laws": Laws(sleep=Exponential(mean=0.05), seed=3), **of_job}
    job = Job(ranks, CHAIN.layers(0.02, 0.04), STEPS, batch=BATCH, bandwidth=1e5, rate=RATE, **laws)
    values = Values(job, CHAIN, text.data == "shared")
    found = run(job, text, values)
    return list(values.vectors.values()), found


def mean_gradient(weights: np.ndarray, step: int, owners: Iterable[int], rows: slice = slice(None)) -> np.ndarray:
    """The sum of the gradients of some ranks' minibatches, over their samples."""
    data = [CHAIN.data(owner, step, BATCH) for owner in owners]
    given, target = (np.concatenate([one[k][rows] for one in data]) for k in (0, 1))
    return CHAIN.gradient(weights, given, target) / len(given)


def serial(owners: Iterable[int]) -> np.ndarray:
    """Gradient descent on the minibatches of some ranks together."""
    weights, owners = START.copy(), list(owners)
    for step in range(STEPS):
        weights -= RATE * mean_gradient(weights, step, owners)
    return weights


# ---- who has what


def replicas(owners: Sequence[int]) -> Weights:
    """Ranks that have all of serial training on the minibatches of all of them."""
    return dict.fromkeys(owners, serial(owners))


def at_master(weights: np.ndarray) -> Weights:
    """What rank 0 has."""
    return {0: weights}


def parts(weights: np.ndarray, ranks: int) -> Weights:
    """Equal parts of all weights, one a rank."""
    ends = [weights.size * rank // ranks for rank in range(ranks + 1)]
    return {rank: _only(weights, slice(ends[rank], ends[rank + 1])) for rank in range(ranks)}


def parts_of_layers(weights: np.ndarray, ranks: int) -> Weights:
    """Equal parts of each layer, one a rank."""
    each = weights.reshape(CHAIN.depth, -1)
    found = [parts(layer, ranks) for layer in each]
    return {rank: np.concatenate([of[rank] for of in found]) for rank in range(ranks)}


def layers(weights: np.ndarray, of: Iterable[slice]) -> Weights:
    """Whole layers; those of each rank."""
    each = np.arange(weights.size).reshape(CHAIN.depth, -1)
    return {rank: _only(weights, each[mine].ravel()) for rank, mine in enumerate(of)}


def stages(weights: np.ndarray, ranks: int) -> Weights:
    """Layers in as many stretches as there are ranks."""
    ends = [CHAIN.depth * rank // ranks for rank in range(ranks + 1)]
    return layers(weights, map(slice, ends, ends[1:]))


def _only(weights: np.ndarray, places: Any) -> np.ndarray:
    held = np.full_like(weights, np.nan)
    held[places] = weights[places]
    return held


# ---- definitions


def averaged(step_of_all: Callable[[int, list, list], list]) -> Weights:
    """Weights of four ranks that each compute a gradient, and then what `step_of_all` makes of weights and gradients."""
    each = [START.copy() for _ in range(4)]
    for step in range(STEPS):
        each = step_of_all(step, each, [mean_gradient(weights, step, [rank]) for rank, weights in enumerate(each)])
    return dict(enumerate(each))


def descended(each: list, gradients: list) -> list:
    """Each rank after a step of its own."""
    return [weights - RATE * gradient for weights, gradient in zip(each, gradients, strict=True)]


def local_sgd(local: int) -> Weights:
    """An average every few steps."""

    def step_of_all(step, each, gradients):
        each = descended(each, gradients)
        return [np.mean(each, axis=0)] * 4 if step % local == local - 1 else each

    return averaged(step_of_all)


def diloco(local: int, outer_rate: float, momentum: float) -> Weights:
    """The average is a gradient of Nesterov's."""
    anchor, velocity = [START.copy()], [np.zeros_like(START)]

    def step_of_all(step, each, gradients):
        each = descended(each, gradients)
        if step % local != local - 1:
            return each
        change = np.mean(each, axis=0) - anchor[0]
        velocity[0] = momentum * velocity[0] + change
        anchor[0] = anchor[0] + outer_rate * (change + momentum * velocity[0])
        return [anchor[0]] * 4

    return averaged(step_of_all)


def ring_of_neighbours() -> Weights:
    """A third of each neighbour's weights and of a rank's own, less the gradient."""
    return averaged(
        lambda step, each, gradients: descended(
            [(each[k - 1] + each[k] + each[(k + 1) % 4]) / 3 for k in range(4)], gradients
        )
    )


def drawn_peers(seed: int) -> Weights:
    """Half of a drawn rank's weights."""

    def step_of_all(step, each, gradients):
        far = 1 + drawn(seed, 0, step) % 3
        return descended([(each[k] + each[k - far]) / 2 for k in range(4)], gradients)

    return averaged(step_of_all)


def anytime(done: dict[int, int]) -> np.ndarray:
    """Workers weigh as many samples as they have computed."""
    weights = START.copy()
    for step in range(STEPS):
        sums = [mean_gradient(weights, step, [rank], slice(0, rows)) * rows for rank, rows in done.items()]
        weights -= RATE * np.sum(sums, axis=0) / sum(done.values())
    return weights


def one_after_another(workers: Sequence[int]) -> np.ndarray:
    """Each gradient is of the weights that the one before has left."""
    weights = START.copy()
    for step in range(STEPS):
        for worker in workers:
            weights -= RATE * mean_gradient(weights, step, [worker])
    return weights


def together(workers: Sequence[int]) -> np.ndarray:
    """A step of each worker's gradient, on the same weights."""
    weights = START.copy()
    for step in range(STEPS):
        weights -= RATE * sum(mean_gradient(weights, step, [worker]) for worker in workers)
    return weights


def tokens(workers: Sequence[int]) -> np.ndarray:
    """The first gradients take tokens of step 0, and so do the next ones, which are lost."""
    weights = START.copy()
    for step in range(STEPS):
        weights -= RATE * np.mean([mean_gradient(weights, step + (step > 0), [one]) for one in workers], axis=0)
    return weights


def behind() -> np.ndarray:
    """A gradient is of the weights before the newest."""
    each = [START, START]
    for number in range(STEPS):
        each.append(each[-1] - RATE * mean_gradient(each[number], number, [1]))
    return each[-1]


def servers(name: str, many: int, held: Callable[[np.ndarray, int], Weights], **settings) -> Defined:
    """Servers that share the weights, and four workers."""
    return Defined(name, settings | {"servers": many}, many + 4, lambda: held(serial(range(many, many + 4)), many), 4)


def never(worker: int, step: int) -> float:
    """No sleeps."""
    return 0.0


AMB = {1: 12, 2: 8, 3: 1}  # micro-batches of 5 ms in 60 ms by worker: at least one
AMB_SLEEPS_S = {1: 0.0, 2: 0.021, 3: 0.5}
OUTER: dict[str, Any] = {"local": 2, "outer_rate": 0.7, "momentum": 0.9}
DEFINED = (
    Defined("alone", {}, 1, lambda: replicas([0]), 1),
    *(
        Defined("allreduce", {"algorithm": how}, ranks, partial(replicas, range(ranks)), ranks)
        for how, several in {"ring": (5,), "halving-doubling": (4, 8), "tree": (1, 6, 7)}.items()
        for ranks in several
    ),
    Defined("ddp", {"bucket_mb": 2 * LAYER}, 4, lambda: replicas(range(4)), 4),
    Defined("ddp", {"bucket_mb": 0.0, "accumulate": 3}, 3, lambda: replicas(range(3)), 3),
    Defined("ddp", {}, 1, lambda: replicas(range(1)), 1),
    Defined("hierarchical", {"group": 3}, 6, lambda: replicas(range(6)), 6),
    Defined("hierarchical", {"group": 1}, 4, lambda: replicas(range(4)), 4),
    Defined("horovod", {"fusion_bytes": 2 * 4 * 9}, 4, lambda: replicas(range(4)), 4),
    Defined("horovod", {"cycle_s": 0.1}, 3, lambda: replicas(range(3)), 3),
    Defined("hybrid", {"servers": 0}, 4, lambda: replicas(range(4)), 4),
    *(
        Defined("fsdp", {"ahead": of, "unit_parameters": unit}, 4, lambda: parts_of_layers(serial(range(4)), 4), 4)
        for of in (0, 1, 3, 9)
        for unit in (0.0, 9.0)
    ),
    *(
        Defined("pipeline", {"micro_batches": of}, ranks, partial(stages, serial([0]), ranks), 1)
        for of in (1, 3, 8)
        for ranks in (1, 2, 5)
    ),
    Defined("local-sgd", {"local": 3}, 4, lambda: local_sgd(3), 4),
    Defined("local-sgd", OUTER, 4, lambda: diloco(**OUTER), 4),
    Defined("d-psgd", {}, 4, ring_of_neighbours, 4),
    Defined("d-psgd", {"drawn": True}, 4, lambda: drawn_peers(7), 4, of_job={"seed": 7}),
    *(
        Defined("gradient-coding", {"late": late}, workers + 1, lambda: at_master(serial([0])), 1)
        for workers, late in ((3, 1), (5, 2), (6, 0), (6, 5), (7, 3))
    ),
    Defined("fmb", {}, 5, lambda: at_master(serial(range(1, 5))), 4),
    Defined(
        "amb",
        {"time_limit_s": 0.06, "partitions": 12},
        4,
        lambda: at_master(anytime(AMB)),
        sum(AMB.values()) / BATCH,
        lambda worker, _: AMB_SLEEPS_S[worker],
    ),
    Defined("amb-dg", {"partitions": 1, "window_s": 0.0}, 2, lambda: at_master(behind()), 1, never),
    Defined("kbatch-async", {"gradients": 1}, 2, lambda: at_master(behind()), 1, never),
    *(servers("ps-barrier", many, parts) for many in (1, 3)),
    *(servers("ps-layers", n, lambda w, n: layers(w, (slice(k, None, n) for k in range(n)))) for n in (1, 2)),
    servers("ps-rows", 1, parts),
    Defined(
        "ps-barrier", {"backup": 1}, 5, lambda: at_master(serial([1, 3, 4])), 3, lambda worker, _: 10.0 * (worker == 2)
    ),
    Defined(
        "ps-async",
        {},
        4,
        lambda: at_master(one_after_another(range(1, 4))),
        3,
        lambda worker, step: 0.9 if step else 0.3 * worker,  # they take turns
    ),
    *(Defined("ps-sync", {"servers": n}, n + 3, partial(parts, tokens(range(n, n + 3)), n), 3, never) for n in (1, 2)),
    *(
        Defined("ps-ssp", {"servers": n, "staleness": 0}, n + 3, partial(parts, together(range(n, n + 3)), n), 3)
        for n in (1, 2)
    ),
    Defined("ps-backup", {"backup": 0}, 4, lambda: at_master(tokens(range(1, 4))), 3, never),
)
