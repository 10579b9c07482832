"""Stragglers by step and worker: written out, from files, and what each kind does."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from event import agree, by_engine
from law_examples import EVERY, FACTORS, SEQUENCES

from sim import laws, protocols, run, stragglers
from sim.base.errors import WrongSetting
from sim.job import variants
from sim.job.scenario import Scenario
from sim.laws import Stragglers
from sim.laws.randomness import RandomStreams
from sim.model import workload
from sim.platform.cluster import Cluster, Host

MODEL = workload.read("toy_fc")

# Of the factors in law_examples: markov is slow for a quarter of its steps.
MEAN_FACTORS = {"independent, factor": 1.2, "markov, factor": 1.25, "persistent, factor": 1.5, "replay, factor": 1.375}
MEAN_FACTORS["together, factor"] = 1.5 * MEAN_FACTORS["markov, factor"]


def job(law, workers=3, protocol="fmb", **more):
    return Scenario(protocols.make(protocol), MODEL, workers=workers, stragglers=law, **more)


def test_every_kind_has_an_example():
    assert {one.kind for one in EVERY.values()} | {"own"} == set(laws.KINDS)
    assert {one.kind for one in FACTORS.values()} == {one.kind for one in SEQUENCES.values()}


@pytest.mark.parametrize("name", EVERY)
def test_steps_do_not_depend_on_how_many_are_asked_for(name):
    scenario = job(EVERY[name])
    for of in ("sleeps", "noise"):
        grows, whole = (getattr(scenario.draws, of)(1, 2) for _ in range(2))
        assert [grows[step] for step in (0, 1, 200, 7, 899)] == whole.first(900)[[0, 1, 200, 7, 899]].tolist()
        assert whole.sole is None or (whole.first(9) == whole.sole).all()


@pytest.mark.parametrize("name", [name for name in EVERY if EVERY[name].kind != "slow-ranks"])
def test_sleeps_and_factors_have_the_means_that_are_said(name):
    """Of 30 replications of 30 workers in 200 steps; draws that last are fewer than steps."""
    law, scenario = EVERY[name], job(EVERY[name], workers=30)
    for of, mean in (("sleeps", law.mean), ("factors", MEAN_FACTORS.get(name, 1.0))):
        series = [
            getattr(law, of)(scenario, RandomStreams(5, r), w).first(200) for r in range(30) for w in range(1, 31)
        ]
        means = np.mean(series, axis=1)
        rows = means.reshape(30, 30).mean(axis=1) if law.kind != "replay" else means
        assert means.mean() == pytest.approx(mean, abs=4.5 * rows.std() / len(rows) ** 0.5 + 1e-9), of


@pytest.mark.parametrize("name", EVERY)
def test_stragglers_survive_a_file(name, tmp_path):
    import tomli_w

    file = tmp_path / "law.toml"
    file.write_text(tomli_w.dumps(EVERY[name].model_dump(mode="json", exclude_none=True)))
    assert stragglers.read(str(file)) == EVERY[name]


@pytest.mark.parametrize("name", [name for name in SEQUENCES if name != "replay"])
def test_workers_and_replications_have_luck_of_their_own(name):
    law = SEQUENCES[name]
    scenario = job(law)
    keys = [(r, w) for r in range(2) for w in ((2,) if name == "slow-ranks" else (1, 2))]
    series = [scenario.draws.sleeps(*key).first(100).tolist() for key in keys]
    assert len({tuple(one) for one in series}) == len(keys)


@pytest.mark.parametrize(
    ("p_slow", "p_recover"), [(0.02, 0.2), (0.5, 0.5), (0.9, 0.7), (0.0, 0.3), (1.0, 1.0), (0.3, 0.0)]
)
def test_a_markov_chain_has_the_transitions_it_says(p_slow, p_recover):
    """Whichever of p_slow and 1 - p_recover is the larger; the first step has the stationary law."""
    law = laws.Markov(seconds=1, p_slow=p_slow, p_recover=p_recover)
    slow = law.slow(np.random.default_rng(1).random(100_000))
    for before, chance in ((False, p_slow), (True, 1 - p_recover)):
        follows = slow[1:][slow[:-1] == before]
        if len(follows) > 100:
            assert follows.mean() == pytest.approx(chance, abs=4 * 0.5 / len(follows) ** 0.5)
    first = [law.slow(np.random.default_rng(seed).random(2))[0] for seed in range(2000)]
    assert np.mean(first) == pytest.approx(p_slow / (p_slow + p_recover), abs=0.045)


def test_persistent_draws_have_the_law_and_the_autocorrelation():
    law = laws.Persistent(seconds=laws.Gamma(mean=2, cv=0.7), persistence=0.9)
    series = law.sleeps(job(law), RandomStreams(0, 0), 1).first(200_000)
    apart = series - series.mean()
    assert (apart[1:] * apart[:-1]).mean() / apart.var() == pytest.approx(0.9, abs=0.01)
    assert (apart[10:] * apart[:-10]).mean() / apart.var() == pytest.approx(0.9**10, abs=0.04)
    shares = np.array([0.1, 0.5, 0.9])
    assert law.seconds.cdf(np.quantile(series, shares)) == pytest.approx(shares, abs=0.02)


def test_ranks_are_numbered_as_in_traces():
    law = laws.SlowRanks(seconds=1, rank=3)
    slow = [job(law).draws.sleeps(0, worker).sole for worker in (1, 2, 3)]
    assert slow == [0, 0, 1]  # rank 0 is the master
    ring = job(law, workers=4, protocol="allreduce")
    assert [ring.draws.sleeps(0, worker).sole for worker in (1, 2, 3, 4)] == [0, 0, 0, 1]  # rank 0 is the first worker


def test_ranks_of_a_host_share_their_draws():
    hosts = Cluster(hosts=(Host(count=3, cores=4, slots=2),))
    for kind in (laws.Independent, laws.Markov, laws.Persistent):
        more = {laws.Markov: {"p_slow": 0.3, "p_recover": 0.3}, laws.Persistent: {"persistence": 0.5}}.get(kind, {})
        law = kind(seconds=laws.Gamma(mean=1, cv=1), by="host", **more)
        scenario = job(law, workers=6, protocol="allreduce", cluster=hosts)
        drawn = [scenario.draws.sleeps(0, worker).first(50).tolist() for worker in range(1, 7)]
        assert drawn[0] == drawn[1] != drawn[2] == drawn[3] != drawn[4] == drawn[5]


def test_parts_add_up_and_multiply_with_luck_of_their_own():
    one = laws.Gamma(mean=1, cv=1)
    both = laws.Together(of=(one, one, laws.Markov(factor=2, p_slow=1, p_recover=0), laws.Independent(factor=1.5)))
    scenario = job(both)
    series = both.sleeps(scenario, RandomStreams(0, 0), 1).first(20_000)
    assert series.var() == pytest.approx(2, rel=0.1)  # of one draw twice it would be 4
    assert (both.factors(scenario, RandomStreams(0, 0), 1).first(9) == 3).all()


RECORDED = "rank,step,seconds\n5,10,0.1\n5,20,0.2\n3,10,0.3\n3,20,0.4\n5,15,0.5\n3,15,0.6\n"


def test_a_replay_has_ranks_and_steps_in_order_and_wraps_around(tmp_path):
    file = tmp_path / "steps.csv"
    file.write_text(RECORDED)
    law = stragglers.read(f"replay(file={file})")
    assert law.values == ((0.3, 0.6, 0.4), (0.1, 0.5, 0.2))
    scenario = job(law, steps=4, warmup=1)
    assert scenario.draws.sleeps(0, 2).first(5).tolist() == [0.1, 0.5, 0.2, 0.1, 0.5]
    assert scenario.draws.sleeps(0, 3).first(3).tolist() == [0.3, 0.6, 0.4]  # the first rank again
    assert scenario.draws.sleeps(1, 1).first(2).tolist() == [0.4, 0.3]  # where replication 0 ended, after 5 steps
    assert law.notes(scenario) == [
        "replayed stragglers wrap around: 3 workers begin with the first of 2 recorded ranks again, and 5 steps "
        "(warm-up too) begin with the first of 3 recorded steps again"
    ]
    assert law.notes(job(law, workers=2, steps=3, warmup=0)) == []
    toml = tmp_path / "law.toml"
    toml.write_text(f'kind = "replay"\nfile = "{file}"\ncolumn = "seconds"\nunit = "factor"\n')
    assert stragglers.read(str(toml)) == laws.Replay(values=law.values, unit="factor")


BROKEN_TABLES = {
    "no rows": "rank,step,seconds\n",
    "text": RECORDED + "6,1,fast\n",
    "negative": RECORDED.replace("0.3", "-0.3"),
    "infinite": RECORDED.replace("0.3", "inf"),
    "a step less": RECORDED.replace("3,15,0.6\n", ""),
    "a step twice": RECORDED + "3,15,0.7\n",
    "no column": RECORDED.replace("seconds", "time"),
    "bytes": "\0\1\2",
}


@pytest.mark.parametrize("what", BROKEN_TABLES)
@pytest.mark.parametrize("ending", ["csv", "parquet", "txt"])
def test_tables_that_cannot_be_replayed_are_refused_in_a_line(what, ending, tmp_path):
    file = tmp_path / f"steps.{ending}"
    file.write_text(BROKEN_TABLES[what])
    with pytest.raises(WrongSetting, match=r"^[^\n]*steps\.[^\n]*$"):
        stragglers.read(f"replay(file={file})")


WRITTEN = {
    "lognormal(mean=50ms, cv=1.5)": laws.LogNormal(mean=0.05, cv=1.5),
    " lognormal ( mean = 50 ms , cv = 1.5 ) ": laws.LogNormal(mean=0.05, cv=1.5),
    "gamma(mean=1e+0, cv=1)": laws.Gamma(mean=1, cv=1),
    "slow-ranks(rank=3, factor=1.3)": laws.SlowRanks(rank=(3,), factor=laws.Constant(value=1.3)),
    "slow-ranks(rank=[1, 2], seconds=gamma(mean=1,cv=1)*2)": laws.SlowRanks(
        rank=(1, 2), seconds=laws.Gamma(mean=2, cv=1)
    ),
    "markov(p_slow=0.1, p_recover=0.2, seconds=niagara*0.1)": laws.Markov(
        p_slow=0.1, p_recover=0.2, seconds=stragglers.read("niagara*0.1")
    ),
    "independent(factor=lognormal(mean=1, cv=0.2), by=host)": laws.Independent(
        factor=laws.LogNormal(cv=0.2), by="host"
    ),
    "niagara*0.5 + slow-ranks(rank=3, factor=1.3)": laws.Together(
        of=(stragglers.read("niagara*0.5"), laws.SlowRanks(rank=3, factor=1.3))
    ),
    "(niagara + slow-ranks(rank=3, seconds=1))*0.5": stragglers.read("niagara*0.5 + slow-ranks(rank=3, seconds=0.5)"),
    "folded-mixture(components=[{mean_s=0, std_s=4ms, weight=0.7}, {mean_s=0.05, std_s=0, weight=0.3}])": laws.FoldedMixture(
        components=[{"mean_s": 0, "std_s": 0.004, "weight": 0.7}, {"mean_s": 0.05, "std_s": 0, "weight": 0.3}]
    ),
}


@pytest.mark.parametrize("text", WRITTEN)
def test_laws_are_written_out(text):
    assert stragglers.read(text) == WRITTEN[text]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lognormal(men=50ms, cv=1)", r"given 'men'; allowed: mean, cv \(did you mean mean\?"),
        ("lognormal(mean=50ms)", "cv: missing; needed"),
        ("lognrmal(mean=1)", "did you mean lognormal"),
        ("lognormal(mean=50ms, cv=1", "goes on otherwise at the end"),
        ("lognormal(mean=50ms, cv=1))", r"otherwise before '\)'"),
        ("lognormal(mean=50ms, mean=60ms, cv=1)", "each parameter once"),
        ("lognormal(mean=50km, cv=1)", "50 ms"),
        ("lognormal(50ms, 1)", "before '50ms, 1"),
        ("shifted-exponential(shift=2, mean=1)", "at least the shift"),
        ("pareto(mean=1)", "shape: missing"),
        ("exponential(mean=0)", "mean: given 0"),
        ("slow-ranks(rank=3)", "seconds, as in"),
        ("slow-ranks(rank=3, factor=1.3, seconds=1)", "one of both"),
        ("slow-ranks(rank=3, factor=1e5)", "a factor of mean"),
        ("slow-ranks(rank=3, factor=1.3)*2", "a factor already"),
        ("slow-ranks(rank=1, factor=0.8)", r"factor: given 0\.8; allowed: 1 or more: .* 1\.25 times at 0\.8"),
        ("markov(p_slow=0, p_recover=0, factor=2)", "above 0"),
        ("replay(file=nowhere.csv)", "can be read"),
        ("replay(values=[[1,2],[1]])", "as many steps"),
        ("empirical(values=[1])", "values"),
        ("folded-mixture(components=[{mean_s=20bits, std_s=0, weight=1}])", "20 *bits"),
        ("folded-mixture(components=[{mean_s=1, std_s=0, weight=0.5}])", "sum to 1"),
        ("folded-mixture(components=[{mean_s=1, std_s=0, weight=1, mean=1}])", r"0\.mean: given 1; allowed"),
        ("folded-mixture(components=" + "{a=" * 5000, "otherwise before"),
        ("slow-ranks(rank=" + "[" * 9 + "1" + "]" * 9 + ")", "at most 8 deep"),
        ("niagara*0.00000001", "factor from"),
        ("x:y", "imported"),
        ("json:loads", "subclass"),
        ("json:loads(a=[1])", "numbers and texts"),
        ("own(name=json)", "subclass"),
        ("(" * 5000, "otherwise before"),
        ("slow-ranks(rank=" + "[" * 5000, "otherwise before"),
        ("+".join(["none"] * 20_000), "fewer laws"),
        ("replay(values=[1=2])", "otherwise before"),
        ("\0", "kind|known|none"),
    ],
)
def test_what_is_no_law_is_refused_in_a_line(text, said):
    with pytest.raises(WrongSetting, match=said) as caught:
        stragglers.read(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1200


EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "laws").glob("*.toml"))
assert EXAMPLES


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(path, capsys):
    line = ["--protocol", "fmb", "--workers", "4", "--steps", "20", "--replications", "2", "--json"]
    assert run.main([*line, "--stragglers", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["samples_per_s"] > 0


def test_the_example_of_a_law_of_ones_own(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES[0].parent)
    law = stragglers.read("own:Triangular(most=60ms)")
    assert law.mean == 0.03
    assert job(law).draws.sleeps(0, 1).first(500).max() < 0.06
    with pytest.raises(WrongSetting, match="most"):
        stragglers.read("own:Triangular")


class Sawtooth(Stragglers):
    """A user's own: each worker sleeps longer and longer."""

    kind: str = "sawtooth"
    step_s: float = 0.1

    @property
    def mean(self):
        return self.step_s

    def sleeps(self, scenario, random, worker):
        return laws.Steps(lambda count: self.step_s * np.arange(count))


def test_stragglers_of_ones_own():
    from sim.job import replay

    law = stragglers.read(f"{__name__}:Sawtooth(step_s=0.5)")
    scenario = job(law)
    assert scenario.draws.sleeps(0, 1).first(3).tolist() == [0, 0.5, 1.0]
    assert replay.scenario_of(scenario.header("event")).stragglers == law


@pytest.mark.parametrize("name", ["bytedance-ar", "bytedance-st"])
def test_named_laws_of_traces(name):
    """Per-rank slowdowns as published: one rank of 16 at 2.35; two of 8, of the last stage, at 1.62."""
    law = stragglers.read(name)
    slow, share = {"bytedance-ar": (2.35, 1 / 16), "bytedance-st": (1.62, 1 / 4)}[name]
    series = np.array([law.factors(job(law), RandomStreams(0, r), 1).first(100) for r in range(600)])
    assert (series.mean(axis=1) > 0.9 * slow).mean() == pytest.approx(share, abs=0.05)
    assert np.quantile(series, 1 - share / 2) == pytest.approx(slow, rel=0.02)
    assert series.std(axis=1).max() < 0.02  # which lasts for the whole run
    assert law.slows_computing
    assert law.mean == 0


@pytest.mark.parametrize("of", ["seconds", "factor"])
@pytest.mark.parametrize("law", [laws.Constant(value=2), laws.Gamma(mean=2, cv=0.5)], ids=["alike", "drawn"])
@pytest.mark.parametrize("kind", [{"rank": 1}, {"by": "host"}], ids=["slow-ranks", "by host"])
def test_the_engine_slows_no_other_ranks_than_the_first_one_s_stragglers_do(kind, law, of):
    """The first worker draws from the law, but others do not, or draw the same numbers as it."""
    hosts = Cluster(hosts=(Host(count=3, cores=4, slots=2),))
    made = (laws.SlowRanks if "rank" in kind else laws.Independent)(**{of: law, **kind})
    agree(job(made, workers=5, cluster=hosts, steps=4, warmup=0))


class Second(Stragglers):
    """A user's own: the second worker takes three times as long."""

    kind: str = "second"
    mean: float = 0.0

    def factors(self, scenario, random, worker):
        return laws.Steps(sole=3.0) if worker == 2 else super().factors(scenario, random, worker)


@pytest.mark.parametrize("law", [Second(), laws.Own(name=f"{__name__}:Second")], ids=["an object", "by its name"])
def test_factors_of_ones_own_slow_the_ranks_that_have_them(law):
    scenario = job(law, workers=3, steps=4, warmup=0)
    agree(scenario)
    usual_s = by_engine(replace(scenario, stragglers=laws.Constant(value=0))).step_s.mean()
    assert by_engine(scenario).step_s.mean() > 2 * usual_s


def test_factors_multiply_the_noise_of_computing():
    law = laws.Independent(factor=laws.Gamma(mean=2, cv=0.5))
    scenario = job(law)
    noise = replace(scenario, stragglers=laws.Constant(value=0)).draws.noise(0, 1).first(50)
    factors = law.factors(scenario, RandomStreams(0, 0), 1).first(50)
    np.testing.assert_allclose(scenario.draws.noise(0, 1).first(50), noise * factors)
    assert scenario.draws.sleeps(0, 1).sole == 0


def test_stragglers_are_those_of_another_replication_if_that_is_asked_for():
    for law in (laws.Independent(factor=laws.Gamma(mean=2, cv=0.5)), laws.Gamma(mean=2, cv=0.5)):
        own, of_7 = job(law), job(law, sleeps_of=7)
        assert of_7.draws.sleeps(0, 1)[0] == own.draws.sleeps(7, 1)[0]
        factors = [
            one.draws.noise(r, 1)[3] / replace(one, stragglers=laws.Constant(value=0)).draws.noise(r, 1)[3]
            for one, r in ((of_7, 0), (own, 7))
        ]
        assert factors[0] == pytest.approx(factors[1])


def test_factors_of_real_runs_are_refused():
    reasons = {name: EVERY[name].unreal() for name in EVERY}
    assert all(("factor" in name) == bool(why) for name, why in reasons.items()), reasons
    assert "host" in laws.Independent(seconds=1, by="host").unreal()


def test_slow_ranks_cost_what_the_median_rank_would_not():
    """A host of half the speed, and noise: all as the median is as fast as the others are alone."""
    from sim.model.costs import Costs, Line

    costs = Costs(compute=Line(base_s=0.1), noise=laws.LogNormal(cv=0.3), run=laws.LogNormal(cv=0.1))
    hosts = (Host(name="a", count=3), Host(name="slow", speed=0.5))
    known = Cluster(hosts=hosts, costs={"toy_fc": costs})
    scenario = job(stragglers.read("niagara*0.01"), workers=3, cluster=known, steps=20)
    median = variants.at_the_median(scenario)
    assert {host.speed for host in median.machines} == {1.0}
    assert median.costs.noise.sole == pytest.approx(math.exp(-math.log1p(0.3**2) / 2))
    assert median.costs.run.sole is not None
    assert not median.slowed
    assert variants.at_the_median(median) == median
    now, free = (by_engine(one).throughput()[0] for one in (scenario, median))
    assert free > 1.9 * now


@pytest.mark.parametrize("workers", [1, 2])
def test_a_rank_alone_is_not_slower_than_the_median_one(workers):
    from sim.answers.summary import SLOW_RANKS_COST
    from sim.model.costs import Costs, Line

    costs = Costs(compute=Line(base_s=0.1), noise=laws.LogNormal(cv=0.3))
    known = Cluster(hosts=(Host(name="a", count=2),), costs={"toy_fc": costs})
    scenario = job(stragglers.read("none"), workers, "allreduce", cluster=known)
    assert (SLOW_RANKS_COST in run.compared(scenario)) == (workers > 1)


def test_nominal_noise_is_no_slow_rank():
    scenario = job(stragglers.read("none"))
    assert variants.at_the_median(scenario) == scenario
