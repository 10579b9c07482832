"""Steps at held-out batches: the product has what was learned on half of the models, and the law is closer than both rules."""

import numpy as np
import pytest

from experiments import efficiency, noise_scales
from sim.efficiency import law


@pytest.fixture(scope="module")
def halves() -> dict[str, list[efficiency.Model]]:
    everything = efficiency.models()
    return {half: [one for one in everything if one.half == half] for half in (efficiency.LEARN, efficiency.REPORT)}


def test_the_product_has_the_spreads_of_the_models_that_were_learned_on(halves):
    """To the digits that it is written with: `python -m experiments.run efficiency` prints them."""
    learned = efficiency.learn(halves[efficiency.LEARN])
    assert learned == pytest.approx(law.PUBLISHED, rel=0.03)


def test_the_law_is_closer_than_both_rules_on_the_other_models(halves):
    rows = efficiency.held_out(halves[efficiency.REPORT])
    of_law, samples, steps = (
        efficiency.mean([getattr(one, name) for one in rows]) for name in ("error", "same_samples", "same_steps")
    )
    assert of_law < 0.5 * min(samples, steps)
    assert sum(one.held for one in rows) >= 0.8 * len(rows)


def test_planted_tables_give_their_spreads_back():
    rng = np.random.default_rng(0)
    batches = tuple(2.0**power for power in range(5, 13))
    planted = [
        efficiency.Model("planted", batches, tuple((1 + 300 / b) * rng.lognormal(0, 0.05) for b in batches), 0.1, "")
        for _ in range(20)
    ]
    learned = efficiency.learn(planted)
    assert learned.spread == pytest.approx(0.05, rel=0.2)
    assert learned.a_doubling < 0.02
    assert learned.of_runs == 0.1
    bent = [one._replace(steps=tuple(s * 2 ** (power**2 / 20) for power, s in enumerate(one.steps))) for one in planted]
    assert efficiency.learn(bent).a_doubling > 0.05


def test_it_prints_every_model(tmp_path, capsys):
    efficiency.run(tmp_path, 0)
    printed = capsys.readouterr().out.split()
    assert all(printed.count(one.name) >= 1 for one in efficiency.models())
    assert "outside" in printed


def test_the_spread_by_noise_scales_is_what_half_of_the_models_teach():
    assert round(noise_scales.learn(), 3) == law.PUBLISHED.by_noise
    assert len(noise_scales.LEARN) == law.PUBLISHED.freedom_by_noise


def test_noise_scales_predict_larger_batches_of_models_that_nothing_was_learned_on():
    by_noise, by_law = (list(way(noise_scales.REPORT)) for way in (noise_scales.by_noise, noise_scales.by_law))
    for some, most in ((by_noise, 0.3), (by_law, 0.1)):
        of, samples, steps = (
            efficiency.mean([getattr(one, name) for one in some]) for name in ("error", "same_samples", "same_steps")
        )
        assert of < most
        assert of < min(samples, steps)
        assert sum(one.held for one in some) >= 0.9 * len(some)
