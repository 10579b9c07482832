"""The planner: its bounds hold, its best are those that exhaustive simulation finds, and every mistake is one line."""

import json
import math
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count, pairwise
from statistics import NormalDist
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scenarios import ANYWHERE
from test_commands import refused, run

from calibration import profiles
from sim import options, protocols, simulated_options, simulation
from sim import plan as sim_plan
from sim import run as sim_run
from sim.answers import bounds
from sim.base.errors import RunFailed, WrongSetting
from sim.job.scenario import Scenario
from sim.model.costs import Costs, Line
from sim.model.workload import read as read_workload
from sim.plans import candidates, plan, question, search, sensitivity, show, simulating
from sim.plans.candidates import WHOLE, Figures
from sim.plans.configurations import Room
from sim.plans.simulating import Simulating
from sim.platform.cluster import Cluster, Provenance
from sim.platform.cluster import read as read_cluster
from sim.simulation import simulate
from sim.sweeps import pools

pytestmark = pytest.mark.slow

ASKED = {"seed": 3, "probability": 0.8, "keep": 3}
SMALL = {"hosts": ["p3.2xlarge", "g5.12xlarge"], "counts": [1, 2, 3], "batches": [256, 1024]}
QUICK = {"protocols": ["allreduce", "fmb"], "workload": "toy_fc"}
WITHIN_S = 600.0  # of which a plan takes as little as it can


def asked(**further) -> question.Question:
    return question.read(None, ASKED | SMALL | QUICK | further)


@contextmanager
def own_clock() -> Iterator[None]:
    """Whenever the clock is read a microsecond has passed, so that a busy machine simulates as much as an idle one."""
    clock = SimpleNamespace(monotonic=count(step=1e-6).__next__, process_time=count(step=1e-6).__next__)
    with pytest.MonkeyPatch.context() as patch:
        for module in (plan, search, simulating, simulation):
            patch.setattr(module, "time", clock)
        yield


def planned(**further) -> plan.Plan:
    with own_clock():
        return plan.answer(asked(**further), pools.of_size(1), WITHIN_S)


@pytest.fixture(scope="module")
def usual() -> plan.Plan:
    return planned(samples_per_s=400_000)


@pytest.mark.parametrize("name", ANYWHERE)
@pytest.mark.parametrize(("host", "count"), [("p3.2xlarge", 3), ("Piz Daint", 3), ("g5.12xlarge", 2)])
def test_no_job_is_faster_than_its_bound(name, host, count):
    protocol, model = protocols.make(name), read_workload("toy_fc")
    cluster = read_cluster(f"{host}*{count}")
    masters = 1 if protocol.served(model) else 0
    workers = count * cluster.hosts[0].ranks - masters
    job = Scenario(protocol, model, workers, steps=4, warmup=2, batch=128, cluster=cluster)
    assert simulate(job, replications=1).samples_per_s < 1.02 * bounds.least(job).samples_per_s()


def test_a_bound_that_counts_too_much_would_be_seen():
    """The negative control of the test above: it fails if a bound is a tenth too low."""
    job = Scenario(
        protocols.make("allreduce"), read_workload("resnet50"), 4, steps=4, cluster=read_cluster("p3.2xlarge*4")
    )
    assert simulate(job, replications=1).samples_per_s > 0.9 * 1.01 * bounds.least(job).samples_per_s()


@pytest.fixture(scope="module", autouse=True)
def patient():
    """No job has fewer runs than others because it takes long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulating, "LONGEST_S", WITHIN_S)
        yield


@pytest.fixture(scope="module")
def every() -> list[candidates.Candidate]:
    """Every configuration, simulated with the whole effort."""
    room = Room(asked(samples_per_s=1))
    found, _ = search.screened(room)
    with own_clock(), pools.of_size(1) as pool:
        Simulating(room, pool, WITHIN_S, math.inf).simulate(found, WHOLE)
    return found


@pytest.mark.parametrize(
    "target",
    [{"samples_per_s": 400_000}, {"samples": 10**9, "deadline": "40 min"}, {"samples": 10**9, "budget": 3}],
    ids=["throughput", "deadline", "budget"],
)
def test_the_best_are_those_of_exhaustive_simulation(target, every):
    found = planned(**target)
    wanted = [one for one in every if replace(one, question=found.question).meets]
    prices = sorted(price(one, target) for one in wanted)
    assert found.met
    assert len(found.best) == min(len(wanted), found.question.keep)
    assert [price(one, target) for one in found.best] == pytest.approx(prices[: len(found.best)], rel=0.03)


def test_time_that_is_over_leaves_configurations_that_are_not_looked_at():
    """One at least is; a model of 10^5 variables takes seconds for each."""
    room = Room(asked(samples_per_s=1))
    found, thrown = search.screened(room, -math.inf)
    whole, none = search.screened(room)
    assert 0 < len(found) < len(whole)
    assert thrown[search.NO_TIME]
    assert not none[search.NO_TIME]
    assert len(found) + thrown.total() == len(room.all)


@pytest.mark.parametrize("effort", [1, 2])
def test_a_few_steps_find_no_target_less_likely_than_all_do(effort, every):
    """What is thrown out after a few steps may not be an answer, though what no run tells counts from the first."""
    room, much = Room(asked(samples_per_s=1)), candidates.EFFORTS[effort]
    found, _ = search.screened(room)
    with own_clock(), pools.of_size(1) as pool:
        Simulating(room, pool, WITHIN_S, math.inf).simulate(found, effort)
    assert any(one.figures.slower > 0.1 for one in found)
    for few, whole in zip(found, every, strict=True):
        hoped = few.figures.narrowest
        for share in (0.3, 0.5, 0.7, 0.9):
            needed = share * whole.samples_per_s
            assert hoped.chance(needed / much.optimism) >= whole.figures.chance(needed)


def price(one: candidates.Candidate, target: dict) -> float:
    """What is to be least: USD an hour, USD, or seconds if only money is limited."""
    if "samples" not in target:
        return one.usd_per_hour
    seconds = target["samples"] / one.samples_per_s
    return seconds if "budget" in target else seconds / 3600 * one.usd_per_hour


def test_an_impossible_target_gets_the_nearest(usual, every):
    found = planned(samples_per_s=10**12)
    assert not found.met
    assert found.best
    assert found.as_json()["best"][0]["p_target"] < 0.01
    fastest = max(one.samples_per_s for one in every)
    assert found.best[0].samples_per_s == pytest.approx(fastest, rel=0.02)
    assert usual.met


def test_a_row_says_what_was_asked_and_what_came_of_it(usual):
    row = usual.as_json()["best"][0]
    speeds = row["samples_per_s"]
    assert speeds["low"] < speeds["mid"] < speeds["high"]
    assert row["usd_per_hour"] == row["hosts"] * {"p3.2xlarge": 3.06, "g5.12xlarge": 5.672}[row["host"]]
    assert row["p_target"] >= usual.question.probability
    assert json.loads(usual.to_json())["schema"] == "plan/1"


def test_the_command_of_a_row_reproduces_it(usual):
    row = usual.as_json()["best"][0]
    given = sim_run.parser().parse_args(shlex.split(row["command"])[3:])
    again = simulate(simulated_options.scenario(given, options.Readers()), "auto", given.replications)
    assert again.samples_per_s == pytest.approx(row["samples_per_s"]["mid"], rel=1e-9)


def test_every_configuration_is_accounted_for(usual):
    assert len(usual.best) + sum(usual.rejected.values()) == usual.configurations == len(usual.room.all)


def test_nothing_of_the_front_is_beaten(usual):
    front = [(row["usd_per_hour"], -row["samples_per_s"]["mid"]) for row in usual.as_json()["front"]]
    assert len(front) > 1
    assert front == sorted(front)
    assert all(faster[1] < slower[1] for slower, faster in pairwise(front))


@pytest.fixture(scope="module")
def of_kinds() -> plan.Plan:
    """Two kinds of GPU that cost nearly the same, as far as is known."""
    target = {"samples": 10**9, "deadline": "100 d", "counts": [1], "batches": [32, 64], "protocols": ["allreduce"]}
    target |= {"workload": "resnet50", "hosts": ["p3.2xlarge", "g5.xlarge", "p3.8xlarge"]}
    even = planned(**target, prices=dict.fromkeys(target["hosts"], 1.0), keep=1)
    assert (len(even.best), len(even.by_kind)) == (1, 3)
    cost = {one.configuration.host: one.cost_at(one.samples_per_s) for one in even.by_kind}
    return planned(**target, prices={host: 100 / usd for host, usd in cost.items()}, keep=6)


def test_speeds_of_kinds_of_gpu_are_independent(of_kinds):
    """Measuring one of them may change the choice; all were off by the same, and no measurement ever did."""
    computing = {one.parameter.of: one for one in of_kinds.values if one.parameter.kind == sensitivity.COMPUTING}
    assert set(computing) == {"V100", "A10G"}
    for one in computing.values():
        assert one.changes > 0.2
        assert one.saves > 1
    v100 = computing["V100"].parameter
    assert {one.configuration.host for one in v100.times} == {"p3.2xlarge", "p3.8xlarge"}
    assert v100.usd_per_hour in of_kinds.question.prices.values()
    said = " ".join(show.further(of_kinds))
    assert "Measured first, speed of computing on V100 (known within a factor" in said
    assert "USD less on average (an hour of a host: " in said


def test_each_kind_of_host_has_its_best_before_further_ones(of_kinds, capsys):
    assert {one.configuration.host for one in of_kinds.by_kind} == {"p3.2xlarge", "g5.xlarge", "p3.8xlarge"}
    assert of_kinds.by_kind[0] is of_kinds.best[0]
    (_, first), (title, further) = show.answers(of_kinds)
    assert first == of_kinds.by_kind
    assert title
    assert not set(first) & set(further)
    rows = of_kinds.as_json()["by_kind"]
    assert sum(row["p_best"] for row in rows) == pytest.approx(1, abs=0.02)
    assert all(row["p_best"] > 0.1 for row in rows)
    show.show(of_kinds)
    out = capsys.readouterr().out
    assert all(f" {row['p_best']:.2f}\n" in out for row in rows)


@pytest.mark.parametrize(("deadline", "misses"), [("100 d", False), ("10 h", True)])
def test_kinds_of_host_that_miss_the_target_are_not_said_to_meet_it(deadline, misses):
    """The first table has the best of each kind, whether it meets the target or not."""
    asked = {"workload": "resnet50", "samples": 10**8, "counts": [1], "batches": [64], "protocols": ["allreduce"]}
    found = planned(**asked, deadline=deadline, hosts=["p4d.24xlarge", "g4dn.xlarge"])
    assert any(found.row(one)["p_target"] < found.question.probability for one in found.by_kind) == misses
    assert ("the best of each kind of host that misses it:" in show.headline(found)) == misses


def two_kinds(usual, first: float, second: float) -> list[candidates.Candidate]:
    """Two candidates of two hosts that cost 100 and 120 USD, whose steps are computing known to these deviations."""
    one = usual.best[0]
    asked_for = usual.question.model_copy(update={"samples_per_s": None, "samples": 3_600_000, "deadline": 1e9})
    found = []
    for host, usd, deviation in (("a", 100.0, first), ("b", 120.0, second)):
        wide = math.exp(deviation * sensitivity.END)
        figures = Figures(1000 / wide, 1000.0, 1000 * wide)
        least = one.least._replace(compute_s=1.0, samples=1000.0)
        configuration = replace(one.configuration, host=host, usd_per_hour=usd)
        found.append(replace(one, configuration=configuration, question=asked_for, least=least, figures=figures))
    return found


def known_to(one: candidates.Candidate, deviation: float) -> sensitivity.Parameter:
    times = {one: np.exp(sensitivity.PLACES * deviation)}
    return sensitivity.Parameter(sensitivity.COMPUTING, one.configuration.host, False, "", 1.0, times)


@pytest.mark.parametrize(("first", "second"), [(0.3, 0.1), (0.2, 0.0), (0.5, 0.5)])
def test_the_probability_of_being_best_is_that_of_two_normals(usual, first, second):
    both = two_kinds(usual, first, second)
    numbers = [known_to(one, deviation) for one, deviation in zip(both, (first, second), strict=True)]
    better = NormalDist().cdf(math.log(1.2) / math.hypot(first, second))
    assert sensitivity.chances(numbers, both) == pytest.approx([better, 1 - better], abs=0.03)
    rest_alone = sensitivity.chances([], both)  # what no parameter says is of each host, too
    assert rest_alone == pytest.approx([better, 1 - better], abs=0.03)


def test_the_value_of_a_measurement_is_that_of_an_option(usual):
    """To choose the other one once the first is known to cost more: the mean of max(0, cost - 120), by Black's formula."""
    both = two_kinds(usual, 0.3, 0.0)
    (value,) = sensitivity.values([known_to(both[0], 0.3)], both[0], both)
    mean, normal = 100 * math.exp(0.3**2 / 2), NormalDist()
    far = math.log(mean / 120) / 0.3 + 0.15
    assert value.saves == pytest.approx(mean * normal.cdf(far) - 120 * normal.cdf(far - 0.3), rel=0.05)
    assert value.changes == pytest.approx(normal.cdf(-math.log(1.2) / 0.3), abs=0.02)
    shared = known_to(both[0], 0.3)
    shared.times[both[1]] = shared.times[both[0]]
    (value,) = sensitivity.values([shared], both[0], both)
    assert value.saves == value.changes == 0  # off by the same, neither overtakes the other


def test_nominal_costs_make_no_certainty(tmp_path):
    """Computing is within a factor 11, so twice or half of what is needed may well miss or meet it."""
    nominal = tmp_path / "nominal.toml"
    nominal.write_text('schema = "cluster/1"\nhosts = [{ count = 2, cores = 4 }]\n')
    asked = {"hosts": [str(nominal)], "prices": {str(nominal): 1.0}, "workload": "mlp", "counts": [1]}
    asked["protocols"] = ["allreduce"]
    speed = planned(**asked, samples_per_s=100).as_json()["best"][0]["samples_per_s"]
    assert speed["low"] < speed["mid"] / 3
    for factor, least, most in ((0.5, 0.5, 0.9), (2, 0.1, 0.5)):
        row = planned(**asked, samples_per_s=factor * speed["mid"]).as_json()["best"][0]
        assert least < row["p_target"] < most


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, "^target: missing; needed: .*--samples-per-s .*--deadline .*--budget"),
        ({"deadline": "24 h"}, "^samples: missing; needed: .* with a deadline"),
        ({"samples_per_s": 10, "epochs": 3}, "^samples_per_epoch: missing"),
        ({"samples_per_s": 10, "hosts": ["DGX-1"]}, "USD an hour"),
        ({"samples_per_s": 10, "hosts": ["p3.2xlarg"]}, "hosts: given 'p3.2xlarg'.*p3.2xlarge"),
        (
            {"samples_per_s": 10, "prices": {"p3.2xlage": 1}},
            "^prices: given 'p3.2xlage'; allowed: a host .did you mean p3.2xlarge",
        ),
        ({"samples_per_s": 10, "settings": {"no": [1]}}, "algorithm"),
        ({"samples_per_s": 10, "settings": {"algorithm": ["no"]}}, "ring"),
        ({"samples_per_s": 10, "protocol": ["amb"]}, "did you mean protocols?"),
        ({"samples_per_s": 10, "hosts": ["p3.2xlarge", "p3.2xlarge"]}, "^hosts: given .*; allowed: each once"),
        ({"samples_per_s": 10, "counts": [1, 2, 1]}, "^counts: given .*; allowed: each once"),
    ],
)
def test_what_is_wrong_is_said(wrong, said):
    with pytest.raises(WrongSetting, match=said):
        Room(asked(**wrong))


def test_a_profile_of_another_model_is_said_to_be_one(tmp_path):
    path = tmp_path / "mine.toml"
    known = {"provenance": Provenance(), "costs": {"mlp": Costs(compute=Line(slope_s=1e-3))}}
    profiles.write(Cluster(name="mine", hosts=[{"price_per_hour": 1}], **known), str(path))
    host, note = str(path), f"{path} is a profile of mlp, not of resnet50"
    assert [
        note in Room(asked(samples_per_s=9, hosts=[host], workload=name)).notes for name in ("resnet50", "mlp")
    ] == [True, False]


def test_nothing_that_can_be_is_a_failure():
    with pytest.raises(RunFailed, match="none of"):
        planned(samples_per_s=10, usd_per_hour=0.01)


def test_the_command_answers_and_says_so_by_its_exit(tmp_path):
    job = tmp_path / "job.toml"
    job.write_text(
        'schema = "plan-job/1"\nworkload = "toy_fc"\nhosts = "p3.2xlarge"\ncounts = [1, 2]\nprotocols = "allreduce"\n'
    )
    words = [job, "--samples-per-s", "500", "--processes", "1"]
    found = run("sim.plan", *words, "--json", "-o", tmp_path / "rows.csv")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["question"]["counts"] == [1, 2]
    assert len(pd.read_csv(tmp_path / "rows.csv")) == len(json.loads(found.stdout)["rows"])
    impossible = run("sim.plan", *words[:1], "--samples-per-s", "1e11", "--processes", "1")
    assert impossible.returncode == 1
    assert impossible.stdout.startswith("No configuration of 2 meets")
    assert "negative" not in refused(run("sim.plan", job, "--samples-per-s", "5", "--price", "p3.2xlarge=-2"))


@pytest.mark.parametrize("took_s", [1e-6, 1e3])
@pytest.mark.parametrize(
    ("step_s", "expected"), [(0.002, [(3, 1), (20, 1), (39, 1)]), (0.0, [(3, 1), (20, 3), (50, 9)])]
)
def test_steps_are_decided_by_counts_and_not_by_the_clock(took_s, step_s, expected, monkeypatch):
    """Whatever a first look took, the second one has as many steps: fewer than all where little time is left."""
    looks = []

    def rows(self, jobs):
        looks.append([(job.scenario.steps, job.how.replications) for job in jobs])
        said = {"samples_per_s": 1e4, "samples_per_s_low": 9e3, "samples_per_s_high": 1.1e4}
        said |= {"why_no_interval": None, "step_mean_s": 1.0}
        for job in jobs:
            did = {"steps_done": job.scenario.steps, "warmup_done": job.scenario.warmup, "runs_done": looks[-1][0][1]}
            yield {"digest": job.digest, "world": "event", "wall_s": took_s} | said | did

    monkeypatch.setattr(Simulating, "_rows", rows)
    monkeypatch.setattr(simulating.replications, "once_and_step_s", lambda _: (1e-3, step_s))
    room = Room(asked(samples_per_s=1, protocols=["allreduce"], hosts=["g5.12xlarge"], counts=[3], batches=[256]))
    found, _ = search.screened(room)
    looking = Simulating(room, pools.of_size(1), 1.5, math.inf)
    for effort in range(1, WHOLE + 1):
        looking.simulate(found, effort)
    assert looks == [[one] for one in expected]
    assert not looking.cut


def test_what_ports_have_saved_is_no_speed_that_lasts():
    """The first steps of a master whose port still has credit are faster than all that follow."""
    question = {"protocols": ["kbatch-async"], "hosts": ["g4dn.xlarge"], "counts": [5], "workload": "resnet50"}
    room = Room(asked(**question, batches=[64], samples_per_s=1))
    (found,), _ = search.screened(room)
    with pools.of_size(1) as pool:
        Simulating(room, pool, WITHIN_S, math.inf).simulate([found], 1)
    long_run = simulate(replace(room.scenario(found.configuration), steps=30, warmup=10), replications=1)
    few_steps = simulate(replace(room.scenario(found.configuration), steps=3, warmup=1), replications=1)
    assert few_steps.samples_per_s > 1.1 * long_run.samples_per_s
    assert found.samples_per_s == pytest.approx(long_run.samples_per_s, rel=0.1)


def test_a_full_disk_does_not_cost_the_answer(tmp_path, monkeypatch, capsys):
    def full(*_):
        raise RunFailed("no space")

    monkeypatch.setattr(sim_plan, "write", full)
    words = ["--workload", "toy_fc", "--hosts", "p3.2xlarge", "--counts", "1", "--samples-per-s", "10"]
    with pytest.raises(RunFailed, match="no space"):
        sim_plan.main([*words, "--processes", "1", "--protocols", "fmb", "-o", str(tmp_path / "rows.csv")])
    assert capsys.readouterr().out.startswith("The cheapest of 1 configuration")


def test_a_search_that_was_cut_short_does_not_say_that_there_is_none():
    found = planned(samples_per_s=1e11, counts=[1])
    assert show.headline(found).startswith(f"No configuration of {found.configurations}")
    cut = replace(found, whole=False)
    assert show.headline(cut).startswith(
        f"None of the {len(found.simulated)} that were simulated, of {found.configurations}"
    )


class Slow:
    """A simulation that takes a second for each candidate, and finds that only those of 2 USD an hour meet the target."""

    def __init__(self, until_s: float):
        self.pool, self.until_s, self.spent_s, self.cut = SimpleNamespace(processes=1), until_s, 0.0, False

    @property
    def left_s(self) -> float:
        return max(0.0, self.until_s - self.spent_s)

    def simulate(self, some, effort: int) -> None:
        for one in some:
            self.spent_s += 1
            mid = 2000.0 if one.usd_per_hour == 2 else 500.0
            one.effort, one.figures = effort, Figures(0.9 * mid, mid, 1.1 * mid)


@pytest.mark.parametrize(("until_s", "met", "cut"), [(75.0, True, True), (1000.0, True, False), (60.0, False, True)])
def test_what_meets_the_target_easily_is_looked_at_before_time_is_over(until_s, met, cut):
    """120 cheap configurations may meet it by their bound, and miss it: it was said that none meets it."""
    question = asked(samples_per_s=1000)
    (first, *_), _ = search.screened(Room(question))
    some = [(1.0, 1100.0)] * 120 + [(2.0, 2500.0)] * 10
    candidates = [
        replace(
            first, configuration=replace(first.configuration, usd_per_hour=price), least_likely=bound, at_most=bound
        )
        for price, bound in some
    ]
    slow = Slow(until_s)
    found, known = plan._best(question, candidates, slow)
    assert (known, slow.cut) == (met, cut)
    assert all(one.usd_per_hour == 2 for one in found) == met


def test_a_search_that_has_found_some_goes_on_while_there_is_time():
    """It stopped after 0.7 of its time, which is kept for others where nothing is found."""
    question = asked(samples_per_s=1000)
    (first, *_), _ = search.screened(Room(question))
    dear = replace(first.configuration, usd_per_hour=2.0)
    candidates = [replace(first, configuration=dear, least_likely=2500.0, at_most=2500.0) for _ in range(question.keep)]
    whole = Slow(1e6)
    plan._best(question, [replace(one) for one in candidates], whole)
    slow = Slow(whole.spent_s + 1)
    found, known = plan._best(question, candidates, slow)
    assert known
    assert len(found) == question.keep
    assert slow.left_s > 0
    assert not slow.cut
    assert all(one.effort == search.WHOLE for one in found)


def test_spot_hosts_fail_and_others_do_not():
    """Both in one plan: preemptions struck hosts on demand, too."""
    target = {"samples": 10**9, "deadline": "5 d", "counts": [1], "batches": [256], "protocols": ["allreduce"]}
    target |= {"hosts": ["p3.2xlarge"], "offers": ["on-demand", "spot"], "prices": {"p3.2xlarge:spot": 1.0}}
    found = planned(**target, failures={"spot": "mtbf=30 d, preemption=1 h"})
    of_offer = {one.configuration.offer: one for one in found.by_kind}
    assert of_offer["on-demand"].figures.goodput == 1
    assert of_offer["spot"].figures.goodput < 0.95
    assert of_offer["spot"].samples_per_s < of_offer["on-demand"].samples_per_s
    commands = {offer: found.row(one)["command"] for offer, one in of_offer.items()}
    assert "--failures" not in commands["on-demand"]
    assert "preemption=1 h" in commands["spot"]
    both = planned(**target, failures={"": "mtbf=30 d", "spot": "mtbf=30 d, preemption=1 h"})
    assert all(one.figures.goodput < 1 for one in both.by_kind)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--failures", "spot:mtbf=3 d"], "failures: given 'spot'; allowed: one of offers: on-demand"),
        (
            ["--failures", "mtbf=3 d", "--failures", "mtbf=4 d"],
            "--failures: given 'mtbf=4 d'; allowed: each name once: that of all",
        ),
        (["--failures", "mtfb=3 d"], "--failures: given 'mtfb=3 d'; allowed: .*did you mean mtbf"),
    ],
)
def test_failures_of_an_offer_are_checked(words, said):
    given = sim_plan.parser().parse_args(["--workload", "toy_fc", "--samples-per-s", "10", *words])
    with pytest.raises(WrongSetting, match=said):
        question.read(None, sim_plan.asked(given))
