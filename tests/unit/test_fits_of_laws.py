"""Fits of laws: planted parameters and effects are found, and files that are no measurements are refused in a line."""

import tomllib

import event
import numpy as np
import pandas as pd
import pytest
from law_examples import LAWS

from calibration import laws as fits
from calibration.laws import ranking, ranks
from calibration.laws.families import FITS, log_likelihood
from sim import laws, protocols, stragglers
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model import workload

pytestmark = pytest.mark.slow

PLANTED = [laws.Normal(mean=0.25, std=0.05), *(one for kind, one in LAWS.items() if kind in {*FITS} - {"normal"})]
NOT_FITTED = {"constant", "folded-mixture", "empirical", "exponential"}  # a shifted one, without a shift


def test_every_law_has_a_family_or_a_reason():
    assert set(FITS) == set(laws.LAWS) - NOT_FITTED


@pytest.mark.parametrize("law", PLANTED, ids=lambda law: law.kind)
def test_planted_parameters_are_found(law):
    values = law.draw(np.random.default_rng(3), 20_000)
    found = FITS[law.kind](values)
    for name, value in law.model_dump(exclude={"kind"}).items():
        assert getattr(found, name) == pytest.approx(value, rel=0.05), name


@pytest.mark.parametrize("law", [law for law in PLANTED if law.kind != "normal"], ids=lambda law: law.kind)
def test_a_fit_is_the_most_likely_law(law):
    """No neighbour is likelier."""
    values = law.draw(np.random.default_rng(4), 200)
    found = FITS[law.kind](values)
    most = log_likelihood(found, values)
    for name in type(law).model_fields:
        for factor in (0.98, 1.02) if name not in ("kind", "shift") else (0.98,) * (name != "kind"):
            other = found.model_copy(update={name: getattr(found, name) * factor})
            assert log_likelihood(other, values) < most, (name, factor)


@pytest.mark.parametrize("kind", ["normal", "lognormal", "shifted-exponential", "pareto"])
def test_intervals_cover_planted_parameters(kind, monkeypatch):
    """Of 100 values, about as often as they say."""
    monkeypatch.setattr(ranking, "BOOTSTRAPS", 99)
    law, rng, repeats = next(one for one in PLANTED if one.kind == kind), np.random.default_rng(11), 60
    hits = dict.fromkeys(set(type(law).model_fields) - {"kind"}, 0)
    for seed in range(repeats):
        found = ranking.fitted(kind, law.draw(rng, 100), seed)
        for name, (low, high) in found.intervals.items():
            hits[name] += low <= getattr(law, name) <= high
    assert all(0.8 <= count / repeats <= 0.97 for count in hits.values()), hits


@pytest.mark.parametrize("law", PLANTED, ids=lambda law: law.kind)
def test_the_planted_family_ranks_first_and_is_not_rejected(law, monkeypatch):
    monkeypatch.setattr(ranking, "BOOTSTRAPS", 39)
    values = law.draw(np.random.default_rng(5), 3000)
    found, _ = ranking.ranked(values)
    assert found[0].law.kind == law.kind
    assert found[0].p_value > 0.02
    assert found[-1].p_value < 0.05  # the worst is rejected
    assert found[-1].aic > found[0].aic + 10


def test_distances_have_the_chance_that_they_say(monkeypatch):
    """P values of values that have the law are uniform; those of the table, for laws that were not fitted, would be near 1."""
    monkeypatch.setattr(ranking, "BOOTSTRAPS", 39)
    rng, p_values = np.random.default_rng(6), []
    for _ in range(40):
        values = laws.LogNormal(mean=1, cv=1).draw(rng, 60)
        p_values.append(ranking.fitted("lognormal", values, seed=int(rng.integers(1 << 30))).p_value)
    assert np.mean(p_values) == pytest.approx(0.5, abs=4 * 0.29 / 40**0.5)
    assert min(p_values) < 0.2


def planted(ranks_=8, steps=200, slow=1.0, persistence=0.0, seed=1):
    """Log-normal values by rank, of which rank 3 is slow."""
    rng, found = np.random.default_rng(seed), {}
    for rank in range(ranks_):
        drawn, keep = rng.standard_normal(steps), rng.random(steps) < persistence
        keep[0] = False
        last = np.maximum.accumulate(np.where(keep, 0, np.arange(steps)))
        found[rank] = 0.1 * np.exp(0.2 * drawn[last]) * (slow if rank == 3 else 1)
    return found


def test_slow_ranks_noise_and_lasting_stragglers_are_told_apart():
    noise, slow, lasting, both = (
        ranks.varies(planted(**how))
        for how in ({}, {"slow": 1.16}, {"persistence": 0.9}, {"slow": 2, "persistence": 0.8})
    )
    assert not noise.slow
    assert not noise.persists
    assert list(slow.slow) == [3]
    assert slow.slow[3] == pytest.approx(1.16, rel=0.05)
    assert not slow.persists
    assert lasting.persists
    assert lasting.persistence == pytest.approx(0.9, abs=0.05)
    assert not lasting.slow  # though its ranks' means differ by more than independent noise allows
    assert both.slow[3] == pytest.approx(2, rel=0.2)
    assert both.persists


def test_tests_of_effects_reject_as_seldom_as_they_say():
    """Of 100 data sets without effects, and of 100 with lasting ones alone."""
    noise = [ranks.varies(planted(ranks_=6, steps=40, seed=seed)) for seed in range(100)]
    assert sum(one.persists for one in noise) <= 5
    assert sum(bool(one.slow) for one in noise) <= 5
    assert np.mean([one.ranks_p for one in noise]) == pytest.approx(0.5, abs=0.12)
    lasting = [ranks.varies(planted(ranks_=6, steps=300, persistence=0.8, seed=seed)) for seed in range(40)]
    assert sum(bool(one.slow) for one in lasting) <= 4


def table(tmp_path, values, ending="csv", **more):
    rows = [(rank, step, value) for rank, series in values.items() for step, value in enumerate(series)]
    frame = pd.DataFrame(rows, columns=["rank", "step", "seconds"]).assign(**more).sample(frac=1, random_state=1)
    path = tmp_path / f"steps.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    return str(path)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_becomes_stragglers(tmp_path, capsys, ending, monkeypatch):
    """Whatever the order of its rows."""
    monkeypatch.setattr(ranking, "BOOTSTRAPS", 39)
    path, out = table(tmp_path, planted(slow=1.5), ending), tmp_path / "law.toml"
    assert fits.main([path, "--by", "rank", "--as", "factor", "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert "best by AIC: lognormal" in said
    assert "slow throughout: rank 3" in said
    assert "each step draws anew" in said
    found = stragglers.read(str(out))
    noise, slow = found.of
    assert noise.factor.cv == pytest.approx(0.2, rel=0.1)
    assert slow.rank == (3,)
    assert slow.factor.value == pytest.approx(1.5, rel=0.05)


def test_lasting_stragglers_are_written_as_such(tmp_path, monkeypatch):
    monkeypatch.setattr(ranking, "BOOTSTRAPS", 39)
    out = tmp_path / "law.toml"
    fits.main([table(tmp_path, planted(persistence=0.9)), "--by", "rank", "-o", str(out)])
    found = stragglers.read(str(out))
    assert found.kind == "persistent"
    assert found.persistence == pytest.approx(0.9, abs=0.05)
    assert tomllib.loads(out.read_text())["seconds"]["kind"] == found.seconds.kind


def test_a_trace_is_a_table_by_rank(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(ranking, "BOOTSTRAPS", 39)
    law = stragglers.read("gamma(mean=50ms, cv=0.5)")
    job = Scenario(protocols.make("fmb"), workload.read("toy_fc"), stragglers=law, steps=300, warmup=5)
    event.trace(job).write(tmp_path / "run.parquet")
    fits.main([str(tmp_path / "run.parquet"), "--column", "sleep"])
    said = capsys.readouterr().out
    assert "900 values" in said
    assert "best by AIC: gamma" in said
    assert "each step draws anew" in said
    with pytest.raises(WrongSetting, match="did you mean compute"):
        fits.main([str(tmp_path / "run.parquet"), "--column", "compte"])


def test_constant_values_are_constant(tmp_path):
    out = tmp_path / "law.toml"
    fits.main([table(tmp_path, {0: np.full(20, 0.25)}), "-o", str(out)])
    assert stragglers.read(str(out)) == laws.Constant(value=0.25)


def test_zeros_are_values_of_seconds_and_no_factors(tmp_path, capsys):
    values, out = np.append(planted()[0], [0.0] * 100), tmp_path / "law.toml"
    fits.main([table(tmp_path, {0: values}), "-o", str(out)])
    said = capsys.readouterr().out
    assert f"100 of them 0, the mean {values.mean():.4g}" in said
    assert "33.3% of the values are 0: the laws above are of the others" in said
    assert stragglers.read(str(out)).mean == pytest.approx(values.mean(), rel=0.01)
    fits.main([table(tmp_path, {0: values}), "--as", "factor"])
    assert "100 zeros left out, which are no factors" in capsys.readouterr().out


def test_factors_become_seconds_by_no_oversight(tmp_path):
    """A factor of 1.03 is no sleep of 1.03 seconds."""
    path = tmp_path / "factors.csv"
    pd.DataFrame({"slow_factor": planted()[0], "seconds": planted()[0]}).to_csv(path, index=False)
    with pytest.raises(WrongSetting, match="--as: missing; needed: factor, or seconds: slow_factor sounds like"):
        fits.main([str(path), "--column", "slow_factor"])
    for words in (["--column", "slow_factor", "--as", "factor"], ["--column", "slow_factor", "--as", "seconds"], []):
        assert fits.main([str(path), *words]) == 0


BROKEN = {
    "nothing": "",
    "two values": "rank,step,seconds\n0,0,1\n0,1,2\n",
    "not a number": "rank,step,seconds\n0,0,1\n0,1,nan\n",
    "negative": "rank,step,seconds\n0,0,1\n0,1,-2\n",
    "text": "rank,step,seconds\n0,0,1\n0,1,quick\n",
    "truths": "rank,step,seconds\n0,0,true\n0,1,false\n",
    "another column": "rank,step,secs\n0,0,1\n0,1,2\n",
    "zeros": "rank,step,seconds\n0,0,0\n0,1,0\n",
    "more cells": "rank,step,seconds\n0,0,1,5\n0,1,2,3,4\n",
    "ranks that are text": "rank,step,seconds\na,0,1\nb,1,2\n",
}


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "txt"])
def test_files_that_are_no_measurements_are_refused_in_a_line(what, ending, tmp_path):
    path, out = tmp_path / f"steps.{ending}", tmp_path / "law.toml"
    path.write_text(BROKEN[what])
    with pytest.raises(WrongSetting, match=r"^[^\n]+$"):
        fits.main([str(path), "--by", "rank", "-o", str(out)])
    assert not out.exists()
