"""Each optimiser against the closed form of its first steps."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from real.training.optimiser import LEARNING_RATES, Optimiser
from real.training.tensorflow_setup import tensorflow
from real.training.trainee import Training, Workshop
from sim.base.errors import WrongSetting

pytestmark = pytest.mark.tensorflow
RATE, SAMPLES, DECAY = 0.01, 8, 0.1
START = np.array([1.0, -2.0, 0.5, 0.0], np.float32)
SUMS = np.array([[8.0, 4.0, -16.0, 2.0], [-4.0, 4.0, 8.0, 1.0]], np.float32)


@pytest.fixture(autouse=True)
def one_thread():
    tensorflow(threads=1)


def sgd(gradients):
    return -RATE * sum(gradients)


def mom(gradients):
    velocity = total = 0
    for g in gradients:
        velocity = 0.9 * velocity - RATE * g
        total = total + velocity
    return total


def rms(gradients):
    """Keras: the moving mean starts at 0, decays by 0.9."""
    square = total = 0
    for g in gradients:
        square = 0.9 * square + 0.1 * g**2
        total = total - RATE * g / np.sqrt(square + 1e-7)
    return total


def adm(gradients):
    """Kingma and Ba, ICLR 2015, algorithm 1."""
    first = second = total = 0
    for t, g in enumerate(gradients, 1):
        first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g**2
        total = total - RATE * first / (1 - 0.9**t) / (np.sqrt(second / (1 - 0.999**t)) + 1e-7)
    return total


def applied(optimiser, steps):
    parameters = START.copy()
    for total in SUMS[:steps]:
        optimiser.apply(parameters, total, SAMPLES)
    return parameters


def test_every_optimiser_has_a_closed_form_here():
    assert set(LEARNING_RATES) == {"sgd", "mom", "rms", "adm"}


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("form", [sgd, mom, rms, adm])
def test_step_is_the_closed_form_of_the_mean_gradient(form, steps):
    optimiser = Optimiser(form.__name__, RATE, weight_decay=0.0)
    expected = START + form([total / SAMPLES for total in SUMS[:steps].astype(float)])
    np.testing.assert_allclose(applied(optimiser, steps), expected, rtol=1e-5, atol=1e-6)


def test_weight_decay_adds_to_the_gradient():
    decayed = applied(Optimiser("sgd", RATE, weight_decay=DECAY), 1)
    np.testing.assert_allclose(decayed, START - RATE * (SUMS[0] / SAMPLES + DECAY * START), rtol=1e-6)


def test_weight_decay_is_not_decoupled():
    """Adam's first step is RATE against the sign; AdamW's would be RATE * DECAY of the parameter."""
    parameters = START.copy()
    Optimiser("adm", RATE, weight_decay=DECAY).apply(parameters, np.zeros(4, np.float32), SAMPLES)
    np.testing.assert_allclose(parameters, START - RATE * np.sign(START), rtol=1e-4)


def test_gradients_are_left_as_they_were_and_parameters_change_in_place():
    parameters, total = START.copy(), SUMS[0].copy()
    total.flags.writeable = False  # as Gradients returns them
    view = parameters[:]
    assert Optimiser("sgd", RATE).apply(parameters, total, SAMPLES) is None
    assert not np.array_equal(view, START)


def test_learning_rate_decays_exponentially():
    optimiser = Optimiser("sgd", 0.5, decay_steps=2, decay_rate=0.25, weight_decay=0.0)
    parameters = applied(optimiser, 2)
    np.testing.assert_allclose(parameters, START - 0.5 * SUMS[0] / 8 - 0.25 * SUMS[1] / 8, rtol=1e-6)


@pytest.mark.parametrize("name", LEARNING_RATES)
def test_warm_up_is_no_step(name):
    cold, warm = (Optimiser(name, RATE, decay_steps=1, decay_rate=0.5) for _ in range(2))
    warm.warm_up(len(START))
    np.testing.assert_array_equal(applied(warm, 2), applied(cold, 2))


@pytest.mark.parametrize(
    ("settings", "setting"),
    [
        ({"name": "adam"}, "--optimiser"),
        ({"learning_rate": 0.0}, "--learning-rate"),
        ({"decay_steps": -1}, "--decay-steps"),
        ({"decay_rate": float("nan")}, "--decay-rate"),
        ({"weight_decay": -1.0}, "--weight-decay"),
    ],
)
def test_settings_that_cannot_be(settings, setting):
    with pytest.raises(WrongSetting) as refusal:
        Optimiser(**({"name": "sgd"} | settings))
    assert refusal.value.setting == setting


def test_an_update_of_no_samples_is_refused():
    with pytest.raises(WrongSetting, match="samples"):
        Optimiser("sgd").apply(START.copy(), SUMS[0], 0)


@pytest.mark.parametrize("engine", ["tensorflow", "numpy"])
@pytest.mark.parametrize("name", LEARNING_RATES)
def test_the_next_run_of_a_process_begins_at_step_0(name, engine):
    """With the same optimiser, which is compiled once."""
    workshop = Workshop(Training(optimiser=name, decay_steps=1, decay_rate=0.5, engine=engine), rank=0)
    ends = []
    for _ in range(2):
        optimiser, parameters = workshop._warm_optimiser(len(START)), START.copy()
        for gradient in SUMS:
            optimiser.apply(parameters, gradient, SAMPLES)
        ends.append(parameters)
    np.testing.assert_array_equal(*ends)
    assert (ends[0] != START).any()


def test_a_rank_loads_nothing_that_its_update_can_do_without():
    """And what it did without can be loaded later."""
    program = """
import sys
from real.training.optimiser import Optimiser
from real.training.tensorflow_setup import tensorflow
tf = tensorflow()
Optimiser("adm", decay_steps=3).warm_up(5)
assert not {"jax", "sklearn", "pandas", "matplotlib"}.intersection(sys.modules)
import pandas
tf.keras.layers.Dense(1)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
