"""The gradient noise scale: closed forms, planted gradients, its standard error, and wrong inputs."""

import math

import numpy as np
import pytest

from sim.base.errors import WrongSetting
from sim.efficiency import law
from sim.efficiency.noise import NoiseScale, noise_scale, noise_scale_of_run

SQUARED, TRACE = 4.0, 600.0  # |G|^2 and tr(Sigma): B_simple is 150


def norms(rng: np.random.Generator, batch: int, pairs: int, size: int = 50) -> np.ndarray:
    """Squared norms of gradients with this noise, shape (pairs,)."""
    gradient = np.full(size, math.sqrt(SQUARED / size))
    noise = rng.normal(0, math.sqrt(TRACE / size / batch), (pairs, size))
    return np.sum((gradient + noise) ** 2, axis=1)


def test_expected_norms_give_the_scale_exactly():
    found = noise_scale(8, SQUARED + TRACE / 8, 64, SQUARED + TRACE / 64)
    assert found[:1] + found[2:] == pytest.approx((150, SQUARED, TRACE))
    assert math.isnan(found.error)


def test_planted_gradients_come_back_within_their_error():
    rng, off = np.random.default_rng(0), []
    for _ in range(200):
        found = noise_scale(32, norms(rng, 32, 200), 512, norms(rng, 512, 200))
        off.append((found.samples - 150) / found.error)
    assert abs(np.mean(off)) < 0.3
    assert 0.8 < np.std(off) < 1.25


def test_norms_alone_would_be_biased():
    """The negative control: the big batch's norm taken for the gradient's."""
    rng = np.random.default_rng(0)
    small, big = norms(rng, 32, 1000), norms(rng, 512, 1000)
    assert noise_scale(32, small, 512, big).squared == pytest.approx(SQUARED, rel=0.05)
    assert big.mean() > 1.2 * SQUARED


def test_where_noise_hides_the_gradient_there_is_no_scale():
    assert math.isnan(noise_scale(8, 80.0, 16, 39.0).samples)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((8, 1.0, 8, 1.0), "big_batch"),
        ((0, 1.0, 8, 1.0), "small_batch"),
        ((8, [1.0, 2.0], 16, [1.0]), "big_norm2"),
        ((8, [], 16, []), "big_norm2"),
        ((8, math.nan, 16, 1.0), "small_norm2"),
        ((8, 1.0, 16, -1.0), "big_norm2"),
        (("a", 1.0, 16, 1.0), "small_batch"),
        ((8, 1.0, 16, None), "big_norm2"),
    ],
)
def test_wrong_norms_are_refused_by_name(given, said):
    with pytest.raises(WrongSetting, match=said):
        noise_scale(*given)


def test_of_a_run_steps_at_other_batches_are_those_of_the_same_progress():
    """Steps at each place are 1 + N / batch times those of a batch without end."""
    ideal, scales = np.array([10.0, 30.0, 100.0]), np.array([40.0, 300.0, 5000.0])
    squared = np.array([4.0, 0.5, 0.01])
    places = [NoiseScale(one, math.nan, of, of * one) for one, of in zip(scales, squared, strict=True)]
    found = noise_scale_of_run(64, ideal * (1 + scales / 64), places)
    by = law.of_noise(64, [float(np.sum(ideal * (1 + scales / 64)))], found)
    for batch in (8, 64, 1024, 2**20):
        assert by.steps(batch).median == pytest.approx(np.sum(ideal * (1 + scales / batch)), rel=1e-9)


def test_single_places_may_be_noisy():
    """Sums are divided: a mean of the places' own ratios would be off."""
    rng, places = np.random.default_rng(0), 800
    rows = [noise_scale(32, norms(rng, 32, 4), 128, norms(rng, 128, 4)) for _ in range(places)]
    assert noise_scale_of_run(32, [1] * places, rows) == pytest.approx(150, rel=0.06)
    assert np.mean([row.samples for row in rows]) > 1.1 * 150


def test_a_run_without_a_gradient_has_no_scale():
    hidden = [NoiseScale(math.nan, math.nan, -1.0, 10.0), NoiseScale(math.nan, math.nan, -2.0, 20.0)]
    assert math.isnan(noise_scale_of_run(8, [3, 2], hidden))


PLACE = noise_scale(8, 80.0, 16, 60.0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((0, [1], [PLACE]), "batch"),
        ((256, [1], []), "places"),
        ((256, [1], [5]), "places"),
        ((256, [1], None), "places"),
        ((256, [1, 2], [PLACE]), "steps"),
        ((256, 1, [PLACE, PLACE]), "steps"),
        ((256, [0], [PLACE]), "steps"),
        ((256, [math.nan], [PLACE]), "steps"),
    ],
)
def test_wrong_places_of_a_run_are_refused_by_name(given, said):
    """Each would be no number, without a word."""
    with pytest.raises(WrongSetting, match=f"^{said}: (given|missing)"):
        noise_scale_of_run(*given)
