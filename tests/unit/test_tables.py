"""A server's rows: updated by hand, made up for, refused."""

import numpy as np
import pytest

from real.training.row_optimiser import RowOptimiser, Table
from real.training.row_slices import Slices
from sim.base.errors import WrongSetting

RATE, DECAY = 0.5, 0.1
START = np.arange(1, 9, dtype=np.float32).reshape(4, 2)


def gradient(*rows: int, value: float = 1.0) -> Slices:
    return Slices(np.array(rows, np.int32), np.full((len(rows), 2), value, np.float32))


def updated(optimiser: RowOptimiser, *gradients: Slices, samples: int = 2) -> Table:
    """A table after an update for each gradient."""
    table = Table(START.copy(), optimiser)
    for each in gradients:
        table.add(each)
        table.update(samples)
    return table


def test_an_update_is_by_the_mean_of_all_that_was_added():
    optimiser = RowOptimiser("sgd", RATE, weight_decay=0)
    table = Table(START.copy(), optimiser)
    for rows in ((0, 1), (1, 3)):
        table.add(gradient(*rows, value=4))
    assert table.update(samples=8) == 3
    np.testing.assert_allclose(table.all(), START - RATE * np.array([[4 / 8], [8 / 8], [0], [4 / 8]]))


@pytest.mark.parametrize("decay_steps", [0, 2])
def test_weight_decay_that_rows_missed_is_made_up_for(decay_steps):
    """As the dense update: every row by its gradient, 0 where there is none, and by the decay; read late or often alike."""
    settings = {"decay_steps": decay_steps, "decay_rate": 0.5, "weight_decay": DECAY}
    touched = [(0,), (1, 2), (0, 2), (2,), (1,)]
    expected, optimiser = START.astype(float), RowOptimiser("sgd", RATE, **settings)
    table = Table(START.copy(), optimiser)
    for number, rows in enumerate(touched):
        dense = np.zeros((4, 1))
        dense[list(rows)] = 1 / 2
        rate = RATE * 0.5 ** (number / decay_steps if decay_steps else 0)
        assert optimiser.learning_rate == pytest.approx(rate)
        expected -= rate * (dense + DECAY * expected)
        table.add(gradient(*rows))
        table.update(samples=2)
        np.testing.assert_allclose(table.read(np.array([0])), expected[:1], rtol=1e-6)  # the others wait
    np.testing.assert_allclose(table.all(), expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["mom", "rms"])
def test_rows_without_a_gradient_keep_values_and_moments(name):
    """Touched, left alone twice, touched again: as if it had been touched twice running."""
    often, seldom = (
        updated(RowOptimiser(name, RATE), *gradients).all()
        for gradients in ([gradient(0), gradient(0)], [gradient(0), gradient(1), gradient(2), gradient(0)])
    )
    np.testing.assert_array_equal(often[0], seldom[0])
    np.testing.assert_array_equal(seldom[3], START[3])
    assert (often[0] != updated(RowOptimiser(name, RATE), gradient(0)).all()[0]).all()


@pytest.mark.parametrize(
    ("settings", "said"),
    [(("adm",), "sgd, mom, rms where"), (("sgd", 0.0), "--learning-rate"), (("sgd", 0.1, -1), "--decay-steps")],
)
def test_what_cannot_be_is_refused(settings, said):
    with pytest.raises(WrongSetting, match=said):
        RowOptimiser(*settings)
