"""Texts that train in simulated time, compared with their definitions."""

import random

import numpy as np
import pytest

from sim.language.cyclic_code import code, decoded
from sim.language.event import run
from sim.language.job import Job, Laws
from sim.language.learning import Chain, Values
from sim.language.rank import drawn
from sim.laws import Exponential, LogNormal
from sim.texts import TEXTS

CHAIN, BATCH, STEPS, RATE = Chain(width=3, depth=5), 12, 6, 0.1
EXACT = 1e-12
START = CHAIN.weights()


class Table:
    """Sleeps by worker and round, seconds."""

    def __init__(self, seconds):
        self._seconds = seconds

    def sleeps(self, replication, worker, call=0):
        from sim.laws.base import Steps

        return Steps(lambda count: np.array([self._seconds(worker, step) for step in range(count)]))

    def noises(self, replication, worker, of="noise"):
        from sim.laws.base import NOTHING, ONES

        return NOTHING if of == "delay" else ONES


def trained(name: str, ranks: int, settings: dict | None = None, **of_job):
    """The vectors of all ranks after a run of a text, and its result."""
    text = TEXTS[name](**(settings or {}))
    laws = {"laws": Laws(sleep=Exponential(mean=0.05), seed=3), **of_job}
    job = Job(ranks, CHAIN.layers(0.02, 0.04), STEPS, batch=BATCH, bandwidth=1e5, rate=RATE, **laws)
    values = Values(job, CHAIN, text.data == "shared")
    found = run(job, text, values)
    return list(values.vectors.values()), found


def mean_gradient(weights, step: int, owners, rows=slice(None)):
    """The sum of the gradients of some ranks' minibatches, over their samples."""
    data = [CHAIN.data(owner, step, BATCH) for owner in owners]
    given, target = (np.concatenate([one[k][rows] for one in data]) for k in (0, 1))
    return CHAIN.gradient(weights, given, target) / len(given)


def serial(owners):
    """Gradient descent on the minibatches of some ranks together."""
    weights = START.copy()
    for step in range(STEPS):
        weights -= RATE * mean_gradient(weights, step, owners)
    return weights


def test_backward_is_the_gradient_of_the_loss():
    given, target = CHAIN.data(0, 0, BATCH)
    each = START.reshape(CHAIN.depth, -1)

    def loss(weights):
        out = given
        for layer in weights.reshape(CHAIN.depth, -1):
            out = CHAIN.forward(layer, out)
        return 0.5 * np.sum((out - target) ** 2)

    found = CHAIN.gradient(START, given, target)
    for item in (0, each.shape[1], START.size - 1):
        aside = np.zeros_like(START)
        aside[item] = 1e-6
        assert found[item] == pytest.approx((loss(START + aside) - loss(START - aside)) / 2e-6, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "ranks", "settings"),
    [
        ("ddp", 4, {"bucket_mb": 2 * 4 * 9 / 2**20}),  # two layers a bucket
        ("ddp", 3, {"bucket_mb": 0.0, "accumulate": 3}),
        ("ddp", 1, {}),
        ("hierarchical", 6, {"group": 3}),
        ("hierarchical", 4, {"group": 1}),
        ("horovod", 4, {"fusion_bytes": 2 * 4 * 9}),
        ("horovod", 3, {"cycle_s": 0.1}),
    ],
)
def test_replicas_are_equal_to_serial_training_on_all_minibatches(name, ranks, settings):
    vectors, found = trained(name, ranks, settings)
    expected = serial(range(ranks))
    for one in vectors:
        assert np.abs(one["weights"] - expected).max() < EXACT
    assert found.samples == pytest.approx([ranks * BATCH] * STEPS)


@pytest.mark.parametrize("unit", [0.0, 9.0])
@pytest.mark.parametrize("ahead", [0, 1, 3, 9])
def test_fsdp_trains_its_parts_and_keeps_no_others(ahead, unit):
    vectors, found = trained("fsdp", 4, {"ahead": ahead, "unit_parameters": unit})
    expected, each = serial(range(4)).reshape(CHAIN.depth, -1), START.size // CHAIN.depth
    for rank, one in enumerate(vectors):
        mine = slice(each * rank // 4, each * (rank + 1) // 4)
        kept = one["weights"].reshape(CHAIN.depth, -1)
        assert np.abs(kept - expected)[:, mine].max() < EXACT
        assert np.isnan(np.delete(kept, mine, axis=1)).all()
    assert found.samples == pytest.approx([4 * BATCH] * STEPS)


@pytest.mark.parametrize("micros", [1, 3, 8])
@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_stages_of_a_pipeline_train_their_layers(ranks, micros):
    vectors, found = trained("pipeline", ranks, {"micro_batches": micros})
    expected = serial([0]).reshape(CHAIN.depth, -1)
    for rank, one in enumerate(vectors):
        mine = slice(CHAIN.depth * rank // ranks, CHAIN.depth * (rank + 1) // ranks)
        assert np.abs(one["weights"].reshape(CHAIN.depth, -1) - expected)[mine].max() < EXACT
    assert found.samples == pytest.approx([BATCH] * STEPS)


@pytest.mark.parametrize(
    ("name", "settings"),
    [("fmb", {}), ("ps-barrier", {}), ("ps-barrier", {"servers": 3}), ("ps-layers", {}), ("ps-layers", {"servers": 2})],
)
def test_servers_train_on_all_minibatches(name, settings):
    servers = settings.get("servers", 1)
    vectors, found = trained(name, servers + 4, settings)
    expected = serial(range(servers, servers + 4))
    for rank in range(servers):
        off = np.abs(vectors[rank]["weights"] - expected)
        size = START.size
        held = off[size * rank // servers : size * (rank + 1) // servers]
        if name == "ps-layers":  # whole layers are shared out, in turn
            held = off.reshape(CHAIN.depth, -1)[rank::servers]
        assert held.max() < EXACT
    assert found.samples == pytest.approx([4 * BATCH] * STEPS)


def test_a_backup_worker_s_late_gradient_is_dropped():
    vectors, found = trained("ps-barrier", 5, {"backup": 1}, laws=Table(lambda worker, _: 10.0 * (worker == 2)))
    assert np.abs(vectors[0]["weights"] - serial([1, 3, 4])).max() < EXACT  # worker 2 is never in time
    assert found.samples == pytest.approx([3 * BATCH] * STEPS)
    assert found.ends_s[-1] < 10


def test_amb_weighs_workers_by_what_they_have_computed():
    sleeps = {1: 0.0, 2: 0.021, 3: 0.5}  # micro-batches of 5 ms in 60 ms: 12, 8 and, at least, 1
    vectors, found = trained(
        "amb", 4, {"time_limit_s": 0.06, "partitions": 12}, laws=Table(lambda worker, _: sleeps[worker])
    )
    weights, done = START.copy(), {1: 12, 2: 8, 3: 1}
    for step in range(STEPS):
        sums = [mean_gradient(weights, step, [rank], slice(0, rows)) * rows for rank, rows in done.items()]
        weights -= RATE * np.sum(sums, axis=0) / sum(done.values())
    assert np.abs(vectors[0]["weights"] - weights).max() < EXACT
    assert found.samples == pytest.approx([sum(done.values())] * STEPS)


def averaged(step_of_all):
    """Weights of ranks that each take a step of their own, and then what `step_of_all` makes of them."""
    each = [START.copy() for _ in range(4)]
    for step in range(STEPS):
        each = step_of_all(step, each, [mean_gradient(weights, step, [rank]) for rank, weights in enumerate(each)])
    return each


def check_averaged(vectors, found, step_of_all):
    for one, expected in zip(vectors, averaged(step_of_all), strict=True):
        assert np.abs(one["weights"] - expected).max() < EXACT
    assert found.samples == pytest.approx([4 * BATCH] * STEPS)


def test_local_sgd_averages_every_few_steps():
    def step_of_all(step, each, gradients):
        each = [weights - RATE * gradient for weights, gradient in zip(each, gradients, strict=True)]
        return [np.mean(each, axis=0)] * 4 if step % 3 == 2 else each

    check_averaged(*trained("local-sgd", 4, {"local": 3}), step_of_all)


def test_local_sgd_has_an_outer_optimiser():
    anchor, velocity, rate, momentum = [START.copy()], [np.zeros_like(START)], 0.7, 0.9

    def step_of_all(step, each, gradients):
        each = [weights - RATE * gradient for weights, gradient in zip(each, gradients, strict=True)]
        if step % 2 == 0:
            return each
        change = np.mean(each, axis=0) - anchor[0]
        velocity[0] = momentum * velocity[0] + change
        anchor[0] = anchor[0] + rate * (change + momentum * velocity[0])  # Nesterov
        return [anchor[0]] * 4

    check_averaged(*trained("local-sgd", 4, {"local": 2, "outer_rate": rate, "momentum": momentum}), step_of_all)


def test_gossip_averages_with_both_neighbours():
    def step_of_all(step, each, gradients):
        return [(each[k - 1] + each[k] + each[(k + 1) % 4]) / 3 - RATE * gradients[k] for k in range(4)]

    check_averaged(*trained("d-psgd", 4), step_of_all)


def test_gossip_averages_with_a_drawn_peer():
    fars = []

    def step_of_all(step, each, gradients):
        fars.append(1 + drawn(7, 0, step) % 3)
        return [(each[k] + each[(k - fars[-1]) % 4]) / 2 - RATE * gradients[k] for k in range(4)]

    check_averaged(*trained("d-psgd", 4, {"drawn": True}, seed=7), step_of_all)
    assert len(set(fars)) > 1


@pytest.mark.parametrize(("workers", "late"), [(3, 1), (5, 2), (6, 0), (6, 5), (7, 3)])
def test_coded_gradients_are_those_of_the_minibatch(workers, late):
    vectors, found = trained("gradient-coding", workers + 1, {"late": late})
    assert np.abs(vectors[0]["weights"] - serial([0])).max() < 1e-10  # a code of 6 of 7 rows has a condition of its own
    assert found.samples == pytest.approx([BATCH] * STEPS)


def test_any_workers_of_a_code_but_the_late_ones_decode():
    for away in range(7):
        rows = [worker for worker in range(7) if worker not in (away, (away + 3) % 7)]
        assert np.abs(np.array(decoded(7, 2, rows)) @ code(7, 2)[rows] - 1).max() < 1e-9


def test_a_late_coded_worker_goes_on_with_the_newest_step():
    vectors, found = trained("gradient-coding", 4, {"late": 1}, laws=Table(lambda worker, _: 0.5 * (worker == 2)))
    assert np.abs(vectors[0]["weights"] - serial([0])).max() < EXACT
    assert found.ends_s[-1] < 0.5 * STEPS


def test_asynchronous_gradients_are_those_of_the_weights_that_were_pulled_after_the_sleep():
    vectors, found = trained(
        "ps-async", 4, laws=Table(lambda worker, step: 0.9 if step else 0.3 * worker)
    )  # they take turns
    server = START.copy()
    for step in range(STEPS):
        for worker in (1, 2, 3):
            server -= RATE * mean_gradient(server, step, [worker])
    assert np.abs(vectors[0]["weights"] - server).max() < EXACT
    assert found.samples == pytest.approx([3 * BATCH] * STEPS)


@pytest.mark.parametrize("servers", [1, 2])
def test_tokens_let_gradients_be_lost_that_are_of_an_older_step(servers):
    """The first gradients get tokens of step 0, and so do the next ones, which are lost; then all go in step."""
    vectors, found = trained("ps-sync", servers + 3, {"servers": servers}, laws=Table(lambda worker, _: 0.0))
    server = START.copy()
    for step in range(STEPS):
        owners = range(servers, servers + 3)
        server -= RATE * np.mean([mean_gradient(server, step + (step > 0), [one]) for one in owners], axis=0)
    held = vectors[0]["weights"][: START.size // servers]
    assert np.abs(held - server[: held.size]).max() < EXACT
    assert found.samples == pytest.approx([3 * BATCH] * STEPS)


def test_ring_and_other_allreduces_sum_alike():
    from dataclasses import dataclass

    from sim.language import collectives
    from sim.language.text import Text
    from sim.language.verbs import compute

    @dataclass(frozen=True)
    class Summed(Text):
        how: str = "allreduce"
        name = "summed"

        def __call__(self, me):
            for _ in me.steps():
                yield from compute(me)
                yield from getattr(collectives, self.how)(me, me.gradient, me.workers)
                yield from me.update()

    for how, ranks in (
        ("allreduce", 5),
        ("halving_doubling", 4),
        ("halving_doubling", 8),
        ("tree", 6),
        ("tree", 7),
        ("tree", 1),
    ):
        job = Job(ranks, CHAIN.layers(), STEPS, batch=BATCH, rate=RATE)
        values = Values(job, CHAIN)
        run(job, Summed(how), values)
        expected = serial(range(ranks))
        for one in values.vectors.values():
            assert np.abs(one["weights"] - expected).max() < EXACT, (how, ranks)


@pytest.mark.parametrize(
    ("name", "settings"), [("kbatch-async", {"gradients": 1}), ("amb-dg", {"partitions": 1, "window_s": 0.0})]
)
def test_workers_that_wait_for_nobody_compute_on_the_weights_that_have_come(name, settings):
    vectors, found = trained(name, 2, settings, laws=Table(lambda worker, _: 0.0))
    each = [START, START]  # new weights come while the next gradient is computed on the old ones
    for number in range(STEPS):
        each.append(each[-1] - RATE * mean_gradient(each[number], number, [1]))
    assert np.abs(vectors[0]["weights"] - each[-1]).max() < EXACT
    assert found.samples == pytest.approx([BATCH] * STEPS)


@pytest.mark.parametrize("servers", [1, 2])
def test_no_staleness_makes_servers_synchronous(servers):
    vectors, found = trained("ps-ssp", servers + 3, {"servers": servers, "staleness": 0})
    weights = START.copy()
    for step in range(STEPS):
        weights -= RATE * sum(mean_gradient(weights, step, [servers + worker]) for worker in range(3))
    held = [vectors[rank]["weights"] for rank in range(servers)]
    found_weights = np.concatenate(
        [one[START.size * k // servers : START.size * (k + 1) // servers] for k, one in enumerate(held)]
    )
    assert np.abs(found_weights - weights).max() < EXACT
    assert found.samples == pytest.approx([3 * BATCH] * STEPS)


def test_nobody_runs_ahead_by_more_than_the_staleness():
    ahead = {}
    for staleness in (0, 2, 100):
        _, found = trained(
            "ps-ssp", 3, {"staleness": staleness}, laws=Table(lambda worker, step: 1.0 * (worker == 2 and step == 0))
        )
        ahead[staleness] = [end_s < 1 for end_s in found.ends_s[:3]]  # of two updates each, before the other has slept
    assert ahead == {0: [False] * 3, 2: [True, False, False], 100: [True] * 3}


SYNCHRONOUS = [
    ("ddp", 6, {"bucket_mb": 2 * 4 * 9 / 2**20, "accumulate": 2}),
    ("fsdp", 6, {"ahead": 2, "unit_parameters": 0.0}),
    ("hierarchical", 6, {"group": 3}),
    ("horovod", 6, {"fusion_bytes": 2 * 4 * 9, "cycle_s": 0.01}),
    ("local-sgd", 6, {"local": 2, "outer_rate": 0.7, "momentum": 0.9}),
    ("d-psgd", 6, {}),
    ("d-psgd", 6, {"drawn": True}),
    ("pipeline", 5, {"micro_batches": 6}),
    ("fmb", 6, {}),
    ("ps-barrier", 6, {"servers": 2}),
    ("ps-layers", 6, {"servers": 2}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "ranks", "settings"), SYNCHRONOUS)
def test_what_is_trained_does_not_depend_on_hosts_and_links(name, ranks, settings):
    expected, _ = trained(name, ranks, settings)
    for number in range(6):
        rng = random.Random(number)
        where = {
            "per_host": rng.randrange(1, 4),
            "cores": rng.choice([None, 1, 2]),
            "in_turn": rng.random() < 0.5,
            "shared_ports": rng.random() < 0.5,
            "per_rack": rng.choice([0, 1, 2]),
            "uplink": 10 ** rng.uniform(3, 7),
            "latency_s": rng.choice([0.0, 1e-4]),
            "overhead_s": rng.choice([0.0, 1e-4]),
            "local_bandwidth": 10 ** rng.uniform(4, 7),
            "mix_s": rng.choice([0.0, 1e-5]),
            "update_s": rng.choice([0.0, 1e-5]),
            "speeds": tuple(rng.choice([1.0, 0.5]) for _ in range(ranks)),
            "laws": Laws(
                sleep=Exponential(mean=rng.choice([0.001, 0.2])),
                noise=LogNormal(cv=rng.choice([0.0, 0.5])),
                seed=number,
            ),
        }
        vectors, found = trained(name, ranks, settings, **where)
        holding = settings["servers"] if name == "ps-layers" else ranks  # its workers end before the last weights come
        for one, other in zip(vectors[:holding], expected[:holding], strict=True):
            assert np.allclose(one["weights"], other["weights"], rtol=0, atol=EXACT, equal_nan=True), where
        assert (np.diff(found.ends_s, prepend=0.0) > 0).all()
        assert all(0 <= idle_s <= found.ends_s[-1] for idle_s in found.idle_s)
        _, same = trained(name, ranks, settings, **where)
        assert same == found
