"""Whether predictions would have chosen right: pairs beyond the noise, and targets that are met as often as they say."""

import math

import numpy as np
import pytest

from experiments import decisions, figures, kinds_of_gpu
from experiments.kit import kept, pages, report
from experiments.kit.choices import Choice, difference, pairs, planted, ratios, reliability
from experiments.kit.comparison import Comparison
from real.cells import Cell
from sim.answers.extrapolation import Unknown
from sim.base.errors import WrongSetting
from sim.platform import cluster
from sim.simulation import simulate
from sim.studies.what_if import compare


def choice(name: str, real: float, said: float, **further) -> Choice:
    return Choice(**{"group": "here", "name": name, "measured": (real,), "predicted": said, "noise": 0.05} | further)


def test_a_pair_is_right_if_the_prediction_is_in_its_order():
    found = pairs([choice("a", 100, 90), choice("b", 120, 95), choice("c", 140, 80)])
    named = [(pair.faster.name, pair.slower.name, pair.right) for pair in found]
    assert named == [("b", "a", True), ("c", "a", False), ("c", "b", False)]
    assert str(found[1]) == "here: c is 1.40 times a, predicted 0.89"


@pytest.mark.parametrize(
    "other",
    [choice("b", 104, 1), choice("b", 200, 1, group="there"), choice("b", 200, 1, fitted=True)],
    ids=["noise", "another group", "both fitted"],
)
def test_some_pairs_say_nothing(other):
    assert pairs([choice("a", 100, 100, fitted=other.fitted), other]) == []


def cells(bias: float = 1.0, share: float = 1.0) -> list[Choice]:
    """Measured where intervals say, but for a bias, and a share of the width that intervals should have."""
    rng, deviation = np.random.default_rng(1), 0.2
    found = []
    for place in range(60):
        middle = 100 * (1 + place / 200)
        runs = tuple(middle * bias * np.exp(rng.normal(0, deviation, 4)))
        side = math.exp(1.645 * deviation * share)
        found.append(choice(str(place), 0, middle, measured=runs, interval=(middle / side, middle * side)))
    return found


def outside(found: list[Choice]) -> int:
    """Ranges whose share met is four standard errors or 0.1 from what was said."""
    return sum(abs(one.met - one.said) > max(0.1, 4 * one.error) for one in reliability(planted(found)))


def test_targets_are_met_as_often_as_honest_intervals_say_and_a_prediction_that_is_too_fast_is_seen():
    assert outside(cells()) == 0
    assert outside(cells(bias=0.8)) >= 3


@pytest.mark.parametrize("share", [0.4, 2.5])
def test_intervals_that_are_too_narrow_or_too_wide_are_seen(share):
    """Too narrow: what is said to be met with 0.7 to 0.9 is met less often, and the other way round."""
    found = {one.low: one for one in reliability(planted(cells(share=share)))}
    assert outside(cells(share=share)) >= 2
    for low in (0.1, 0.7):
        likelier = (found[low].met - found[low].said) * (0.5 - low)
        assert likelier * (1 - share) > 0


def runs_of(drift: float, said: float, seed: int = 2) -> list[Choice]:
    """Configurations that share a factor of 2 on all runs, each with a drift of its own, of which the model is told `said`."""
    rng, common = np.random.default_rng(seed), np.exp(np.linspace(-0.7, 0.7, 9))
    unknown = (Unknown(1.645 * said, 1.645 * said),)
    found = []
    for place in range(30):
        middle = 100 * (1 + place / 30)
        measured = tuple(middle * 2 * np.exp(rng.normal(0, drift, 2)))
        found.append(choice(str(place), 0, middle, measured=measured, runs=tuple(middle * common), unknown=unknown))
    return found


def test_differences_are_covered_if_what_does_not_cancel_is_known():
    honest, certain = (ratios(runs_of(0.1, said))["here"] for said in (0.1, 0.02))
    assert honest.pairs == 2 * 30 * 29 / 2
    assert 0.85 < honest.covered / honest.pairs < 0.95
    assert certain.covered / certain.pairs < 0.4
    low, high = difference(*runs_of(0.1, 0.1)[:2])
    assert high / low < 2, "the factor that all share has cancelled"


def test_what_an_experiment_writes_is_enough_for_a_decision(tmp_path, monkeypatch):
    """Cells as validate compares them, kept and read again: the same intervals as where they were simulated."""
    monkeypatch.setattr(decisions, "KEPT", tmp_path)
    cells = [Cell("fmb", workers, 256, steps=10) for workers in (1, 2)]
    jobs = [cell.scenario(cluster.one_rank_a_host(3)) for cell in cells]
    results = [simulate(job, replications=3) for job in jobs]
    rows = [
        Comparison(cell, one.outcome, [one.outcome], scenario=job)
        for cell, one, job in zip(cells, results, jobs, strict=True)
    ]
    with pages.keeping() as shown:
        report.show(rows, tmp_path, "")
    kept.write(kept.of(shown, "validate", "", "", tmp_path), tmp_path / "validate.json")
    found = list(decisions.at_hand(tmp_path))
    assert difference(*found) == pytest.approx(compare("", *results, real=True).interval, rel=1e-4)
    assert ratios(found)["validate"].covered == 1
    (tmp_path / "validate").mkdir()
    left = (tmp_path / "validate.json").rename(tmp_path / "validate" / "validate.json")
    assert list(decisions.at_hand(tmp_path)) == found, "of the folder of results"
    placed = [{"where": "1 Gbit/s", **row} for row in kept.read(left).cells]
    kept.write(kept.of([placed], "validate", "", "", tmp_path), left)
    assert {one.group for one in decisions.at_hand(tmp_path)} == {"validate, 1 Gbit/s"}
    kept.write(kept.of([[{"cell": "x"}]], "validate", "", "", tmp_path), left)
    with pytest.raises(WrongSetting, match=r"validate\.json"):
        list(decisions.at_hand(tmp_path))


def test_the_interval_that_is_judged_is_the_one_that_sim_run_prints():
    """Also beyond what was fitted, where it is wider than the runs."""
    cell = Cell("fmb", 2, 256, steps=10)
    found = simulate(cell.scenario(cluster.one_rank_a_host(3)), replications=3)
    row = Comparison(cell, found.outcome, [found.outcome], scenario=found.scenario)
    samples = found.outcome.samples[0, 0]
    assert [samples / end_s for end_s in row.interval_s()] == pytest.approx([*found.interval][::-1])
    alone = Comparison(cell, found.outcome, [found.outcome])
    assert row.interval_s()[1] > 2 * alone.interval_s()[1], "nothing of this job was measured"


def test_pairs_are_of_one_model_with_the_same_sleeps():
    labels = [Cell("fmb", 2, 64), Cell("fmb", 2, 64, workload="mnist", stragglers="cedar*0.02")]
    labels.append(Cell("amb", 3, 64, 0.06, servers=2))
    jobs = [decisions._job(one.label) for one in labels]
    assert jobs == ["toy_fc, none", "mnist, cedar*0.02", "toy_fc, none"]
    one, other, same = (
        choice(str(place), 100 * (1 + place), 100, job=job, runs=(1.0,)) for place, job in enumerate(jobs)
    )
    assert not pairs([one, other])
    assert not ratios([one, other])
    assert pairs([one, same])
    assert ratios([one, same])


def test_of_two_kinds_of_gpu_known_by_name_the_faster_one_is_picked_and_how_surely_is_known():
    """At least 40 pairs that differ by a tenth: 85 % picked right, and 95 % of those that a plan calls sure at 0.9."""
    found = pairs(list(kinds_of_gpu.choices()))
    sure = [(one.targets, one.met) for one in kinds_of_gpu.called(found) if one.low >= 0.9]
    assert len(found) > 100
    assert sum(pair.right for pair in found) / len(found) > 0.85
    assert sum(targets for targets, _ in sure) > 40
    assert all(met > 0.95 for _, met in sure)
    assert all(pair.faster.real / pair.slower.real > 1.1 for pair in found)


def test_no_rate_that_a_share_was_learned_from_is_called_one_that_was_not():
    """Nor does a pair compare batches, or sequences, that are far apart."""
    learned = {f"lambda_{gpu}" for gpu in ("v100", "a100", "h100_sxm", "h100_pcie")}
    learned |= {f"nvidia_{host}" for host in ("dgx1", "dgx_a100", "dgx2")}
    assert not learned & {source.name for source in figures.sources() if source.gpu}
    rows = [kinds_of_gpu.Row("all", "resnet50", None, gpu, near, rate) for gpu, near, rate in
            (("V100", 64, 300.0), ("V100", 256, 1.0), ("A100", 96, 600.0), ("A100", 1024, 1.0))]  # fmt: skip
    pair = [one for one in kinds_of_gpu.choices(rows) if one.real != 1]
    assert [one.real for one in pair] == [2]
