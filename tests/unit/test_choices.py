"""Whether predictions would have chosen right: pairs beyond the noise, and targets that are met as often as they say."""

import math

import numpy as np
import pandas as pd
import pytest

from experiments import decisions
from experiments.kit.choices import Choice, pairs, planted, reliability
from sim.base.errors import WrongSetting


def choice(name: str, real: float, said: float, **further) -> Choice:
    return Choice(**{"group": "here", "name": name, "measured": (real,), "predicted": said, "noise": 0.05} | further)


def test_a_pair_is_right_if_the_prediction_is_in_its_order():
    found = pairs([choice("a", 100, 90), choice("b", 120, 95), choice("c", 140, 80)])
    assert [(pair.faster.name, pair.slower.name, pair.right) for pair in found] == [
        ("b", "a", True),
        ("c", "a", False),
        ("c", "b", False),
    ]
    assert str(found[1]) == "here: c is 1.40 times a, predicted 0.89"


@pytest.mark.parametrize(
    "other",
    [choice("b", 104, 1), choice("b", 200, 1, group="there"), choice("b", 200, 1, fitted=True)],
    ids=["noise", "another group", "both fitted"],
)
def test_some_pairs_say_nothing(other):
    assert pairs([choice("a", 100, 100, fitted=other.fitted), other]) == []


def cells(bias: float) -> list[Choice]:
    """Measured where intervals say, but for a bias."""
    rng, deviation = np.random.default_rng(1), 0.2
    found = []
    for place in range(60):
        middle = 100 * (1 + place / 200)
        runs = tuple(middle * bias * np.exp(rng.normal(0, deviation, 4)))
        side = math.exp(1.645 * deviation)
        found.append(choice(str(place), 0, middle, measured=runs, interval=(middle / side, middle * side)))
    return found


def outside(found: list[Choice]) -> int:
    """Ranges whose share met is four standard errors or 0.1 from what was said."""
    return sum(abs(one.met - one.said) > max(0.1, 4 * one.error) for one in reliability(planted(found)))


def test_targets_are_met_as_often_as_honest_intervals_say():
    assert outside(cells(1.0)) == 0


def test_a_prediction_that_is_too_fast_is_seen():
    assert outside(cells(0.8)) >= 3


def test_what_an_experiment_left_is_read(tmp_path):
    (tmp_path / "servers").mkdir()
    row = {"cell": "fmb, 2w", "predicted_step_s": 0.1, "predicted_low_s": 0.09, "predicted_high_s": 0.12, "floor": 0.02}
    row |= {"measured_step_s_0": 0.1, "measured_step_s_1": 0.11, "predicted_samples": 12.0, "measured_samples": 12.0}
    row |= {"predicted_samples_per_s": 120.0, "measured_samples_per_s": 115.0}
    pd.DataFrame([row]).to_csv(tmp_path / "servers" / "servers.csv")
    (found,) = decisions.at_hand(tmp_path)
    assert found.interval == pytest.approx((100.0, 133.33), rel=1e-3)
    assert found.measured == pytest.approx((120.0, 109.09), rel=1e-3)
    (tmp_path / "servers" / "servers.csv").write_text("cell\nx\n")
    with pytest.raises(WrongSetting, match=r"servers\.csv"):
        list(decisions.at_hand(tmp_path))
