"""Texts that train in simulated time, compared with their definitions."""

import random

import numpy as np
import pytest

from experiments.proving.definitions import BATCH, CHAIN, DEFINED, START, STEPS, Table, parts_of_layers, serial, trained
from sim.language.cyclic_code import code, decoded
from sim.language.job import Laws
from sim.laws import Exponential, LogNormal
from sim.texts import TEXTS

EXACT = 1e-12


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


@pytest.mark.parametrize("of", DEFINED, ids=[f"{one.name} {k}" for k, one in enumerate(DEFINED)])
def test_a_text_trains_what_its_definition_says(of):
    assert of.error() < EXACT


def test_every_text_has_a_definition():
    assert {one.name for one in DEFINED} == TEXTS.keys()


def test_a_definition_that_is_wrong_is_seen():
    of = next(one for one in DEFINED if one.name == "fmb")
    assert of._replace(expected=lambda: {0: serial(range(1, 4))}).error() > 1e-4
    assert of._replace(minibatches=3).error() == np.inf


@pytest.mark.parametrize("unit", [0.0, 9.0])
@pytest.mark.parametrize("ahead", [0, 1, 3, 9])
def test_fsdp_keeps_no_others_parts(ahead, unit):
    vectors, _ = trained("fsdp", 4, {"ahead": ahead, "unit_parameters": unit})
    held = parts_of_layers(START, 4)
    for rank, one in enumerate(vectors):
        assert (np.isnan(one["weights"]) == np.isnan(held[rank])).all()


def test_any_workers_of_a_code_but_the_late_ones_decode():
    for away in range(7):
        rows = [worker for worker in range(7) if worker not in (away, (away + 3) % 7)]
        assert np.abs(np.array(decoded(7, 2, rows)) @ code(7, 2)[rows] - 1).max() < 1e-9


def test_a_late_coded_worker_goes_on_with_the_newest_step():
    vectors, found = trained("gradient-coding", 4, {"late": 1}, laws=Table(lambda worker, _: 0.5 * (worker == 2)))
    assert np.abs(vectors[0]["weights"] - serial([0])).max() < EXACT
    assert found.ends_s[-1] < 0.5 * STEPS


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
