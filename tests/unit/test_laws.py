"""Every law goes through the same laws; the named stragglers have their known means."""

import numpy as np
import pytest
from law_examples import LAWS as EXAMPLES

from calibration.laws.families import FITS
from sim import laws, stragglers
from sim.laws import randomness
from sim.laws.randomness import BLOCK, Draws, Stream, generator, group_of

DRAWS = 200_000


def test_every_kind_has_an_example():
    assert set(laws.LAWS) == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_draws_have_the_mean_that_the_law_says(name):
    law, rng = EXAMPLES[name], np.random.default_rng(1)
    draws = law.draw(rng, DRAWS)
    assert draws.shape == (DRAWS,)
    assert (draws >= 0).all()
    assert draws.mean() == pytest.approx(law.mean, abs=4 * draws.std() / DRAWS**0.5 + 1e-12)


@pytest.mark.parametrize("name", EXAMPLES)
def test_fewer_rows_are_the_first_of_more(name):
    few, many = (EXAMPLES[name].draw(generator(7, 0, 0, "sleep"), (rows, 8)) for rows in (3, BLOCK))
    np.testing.assert_array_equal(few, many[:3])


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("rank", [0, 7, 8, 31, 32, 100])
def test_a_stream_is_what_the_generators_of_its_group_draw(name, rank):
    """Of each block one; though blocks are kept."""
    law, group = EXAMPLES[name], group_of(rank)
    shape = BLOCK, group.stop - group.first
    blocks = [law.draw(generator(7, 0, group.number, "sleep", block), shape) for block in range(3)]
    drawn = np.concatenate(blocks)[:, rank - group.first]
    for count in (1, BLOCK, BLOCK + 1, 3 * BLOCK):
        np.testing.assert_array_equal(Stream(law, 7, 0, rank, "sleep").first(count), drawn[:count])
    growing = Stream(law, 7, 0, rank, "sleep")
    assert [growing[index] for index in (0, BLOCK, 2 * BLOCK + 5)] == drawn[[0, BLOCK, 2 * BLOCK + 5]].tolist()


@pytest.mark.parametrize("ranks", [range(1), range(1, 4), range(5, 70), range(32, 64), range(90, 200)])
def test_many_ranks_draw_at_once_what_each_draws_by_itself(ranks):
    """Whichever was first, and however many rows were drawn first."""
    randomness._kept.clear()
    draws = Draws(laws.LogNormal(cv=0.4), 7, 2, "noise")
    found = {rows: np.empty((rows, len(ranks))) for rows in (5, BLOCK, 9)}
    for out in found.values():
        draws.fill(out, ranks, 1)
    streams = np.stack([Stream(*draws[:3], rank, "noise").first(2 * BLOCK)[BLOCK:] for rank in ranks], axis=1)
    for rows, out in found.items():
        np.testing.assert_array_equal(out, streams[:rows])


def test_kept_draws_are_forgotten_before_they_are_too_many(monkeypatch):
    monkeypatch.setattr(randomness, "MOST_KEPT", 3)
    randomness._kept.clear()
    law = laws.LogNormal(cv=0.1)
    for replication in range(10):
        Stream(law, 7, replication, 1, "sleep").first(1)
        assert len(randomness._kept) <= 3
    with pytest.raises(ValueError, match="read-only"):
        Draws(law, 7, 9, "sleep").of_group(group_of(1), 0)[0, 0] = 0.0


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.75, 0.97])
def test_quantiles_are_those_of_the_draws(name, share):
    draws = EXAMPLES[name].draw(np.random.default_rng(5), DRAWS)
    value = EXAMPLES[name].quantile(share)
    assert (draws < value - 1e-3).mean() - 0.005 <= share <= (draws <= value + 1e-3).mean() + 0.005


@pytest.mark.parametrize(("name", "mean_s", "p95_s"), [("niagara", 0.996, 5.0), ("cedar", 0.0713, None)])
def test_named_stragglers_have_their_known_moments(name, mean_s, p95_s):
    law = stragglers.read(name)
    assert law.mean == pytest.approx(mean_s, rel=0.003)
    if p95_s:
        draws = law.draw(np.random.default_rng(3), DRAWS)
        assert np.percentile(draws, 95) == pytest.approx(p95_s, rel=0.01)
        assert (draws == 0).mean() == pytest.approx(0.4, abs=0.01)


def test_sleeps_are_folded_and_cut_at_the_limit():
    law = laws.FoldedMixture(components=[{"mean_s": 0, "std_s": 1, "weight": 1}])
    assert law.longest_s == 5
    assert law.mean == pytest.approx((2 / np.pi) ** 0.5, rel=1e-3)
    wide = laws.FoldedMixture(
        components=[{"mean_s": 0, "std_s": 1, "weight": 0.999}, {"mean_s": 0, "std_s": 0, "weight": 0.001}]
    )
    assert wide.draw(np.random.default_rng(0), DRAWS).max() <= 5


def test_a_law_from_a_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('[[components]]\nmean_s = "20 ms"\nstd_s = "1 ms"\nweight = 1.0\n')
    assert stragglers.read(str(file)).mean == pytest.approx(0.02, rel=1e-3)
    assert stragglers.read(f"{file}*2").mean == pytest.approx(0.04, rel=1e-3)


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_the_distribution_is_the_inverse_of_quantiles(name, share):
    """Where draws are not all alike just there."""
    law = EXAMPLES[name]
    value = law.quantile(share)
    assert law.upper(1 - share) == pytest.approx(value, abs=1e-3)
    if name in FITS:  # laws that are fitted
        below, at = float(law.cdf(value - 1e-2)), float(law.cdf(value + 1e-2))
        assert below - 1e-9 <= share <= at + 1e-9
        assert float(law.cdf(-1.0)) == 0


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_law_can_be_scaled(name):
    law = EXAMPLES[name]
    longer = law.scaled(2.5)
    np.testing.assert_allclose(
        longer.draw(np.random.default_rng(1), 50), 2.5 * law.draw(np.random.default_rng(1), 50), rtol=1e-12
    )
    assert longer.mean == pytest.approx(2.5 * law.mean)


@pytest.mark.parametrize("kind", laws.KINDS)
def test_every_kind_says_what_its_parameters_mean(kind):
    """In its docstring, which has no more than these."""
    text = laws.KINDS[kind].__doc__
    for name in laws.KINDS[kind].model_fields:
        inherited = name in ("kind", "seconds", "factor", "by")
        assert inherited or f"\n        {name}: " in text, name
