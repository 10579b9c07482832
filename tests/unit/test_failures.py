"""What failures cost: the published mean, an independent simulation failure by failure, and which hosts stop a run."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from sim import protocols, run
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model import workload
from sim.platform.cluster import Cluster, Host
from sim.protocols import PROTOCOLS
from sim.studies import failures
from sim.studies.failures import Failures, best_every_s, lost, mean_segment_s, read, stopping_hosts

HOUR = 3600.0
GIVEN = Failures(mtbf_s=100 * HOUR, restart_s=600, checkpoint_s=60, every_s=0.5 * HOUR, run_s=24 * HOUR)


def job(name: str = "allreduce", workers: int = 8, **further) -> Scenario:
    return Scenario(protocols.make(name), workload.read("mlp"), workers, **further)


def by_hand(rng, hosts: int, given: Failures) -> float:
    """Seconds of a run of so many segments, failure by failure, each host with a clock of its own."""
    segment_s, now_s = given.every_s + given.checkpoint_s, 0.0
    fails_s = rng.exponential(given.mtbf_s, hosts)
    segments = round(given.run_s / mean_segment_s(hosts / given.mtbf_s, segment_s, given.restart_s))
    needs = [segment_s] * segments
    while needs:
        first = int(fails_s.argmin())
        if fails_s[first] >= now_s + needs[0]:
            now_s += needs.pop(0)
            continue
        now_s = fails_s[first]
        fails_s[first] = now_s + rng.exponential(given.mtbf_s)
        if needs[0] != given.restart_s:
            needs.insert(0, given.restart_s)
    return segments * given.every_s / now_s


@pytest.mark.parametrize("mtbf_hours", [4, 100, 1e4])
def test_runs_are_spread_as_where_each_failure_is_simulated(mtbf_hours):
    given = replace(GIVEN, mtbf_s=mtbf_hours * HOUR)
    rng, scenario = np.random.default_rng(1), job()
    shares = np.array([by_hand(rng, 8, given) for _ in range(400)])
    found = lost(scenario, given)
    assert found.goodput == pytest.approx(shares.mean(), rel=0.02)
    assert found.interval == pytest.approx(tuple(np.quantile(shares, (0.05, 0.95))), rel=0.05)


@pytest.mark.slow
def test_each_kind_of_attempt_lasts_as_long_as_exponential_times_say():
    rng, rate, long_s = np.random.default_rng(0), 1 / HOUR, 2 * HOUR
    for count in (3, 1000):
        drawn = failures._in_vain_s(rng, np.full(500, count), rate, long_s)
        times = rng.exponential(HOUR, (500, 40 * count))
        kept = [row[row < long_s][:count].sum() for row in times]
        from scipy.stats import ks_2samp

        assert ks_2samp(drawn, kept).pvalue > 1e-3


@pytest.mark.parametrize("mtbf_hours", [20, 100, 1e4])
def test_the_mean_is_dalys(mtbf_hours):
    given = replace(GIVEN, mtbf_s=mtbf_hours * HOUR, run_s=1000 * HOUR)
    rate, segment_s = 8 / given.mtbf_s, given.every_s + given.checkpoint_s
    share = given.every_s / mean_segment_s(rate, segment_s, given.restart_s)
    assert lost(job(), given).goodput == pytest.approx(share, rel=0.005)
    daly = given.mtbf_s / 8 * math.exp(given.restart_s * rate) * (math.exp(segment_s * rate) - 1)
    assert mean_segment_s(rate, segment_s, given.restart_s) == pytest.approx(daly)


@pytest.mark.parametrize("mtbf_hours", [20, 1000, 1e5])
def test_the_best_interval_is_no_worse_than_any_other_and_near_youngs(mtbf_hours):
    given, rate = replace(GIVEN, mtbf_s=mtbf_hours * HOUR, run_s=1e6), 8 / (mtbf_hours * HOUR)
    best = best_every_s(rate, given)
    losses = {
        s: mean_segment_s(rate, s + given.checkpoint_s, given.restart_s) / s
        for s in (*np.geomspace(10, 1e6, 300), best)
    }
    assert min(losses.values()) >= losses[best] * (1 - 1e-6)
    assert best == pytest.approx(math.sqrt(2 * given.checkpoint_s / rate), rel=0.15)  # Young, CACM 17 (1974)


def test_shares_of_what_is_lost_add_up():
    found = lost(job(), GIVEN)
    assert found.goodput + found.checkpoints + found.repeated + found.restarts == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    "name", [name for name in PROTOCOLS if name != "pipeline"]
)  # which the model has no layers for
def test_hosts_with_only_workers_stop_those_protocols_that_wait_for_each(name):
    scenario = job(name, servers=2)
    goes_on = name in ("kbatch-async", "amb-dg", "ps-async", "ps-ssp", "ps-sync", "ps-backup", "gradient-coding")
    expected = (scenario.servers, 1.0) if goes_on else (scenario.ranks, 0.0)
    assert stopping_hosts(scenario) == expected


def test_a_textbook_barrier_waits_for_each_worker_but_not_with_a_backup():
    barrier = Scenario(protocols.make("ps-sync", ["barrier=true"]), workload.read("mlp"), 8)
    assert stopping_hosts(barrier) == (9, 0.0)
    backup = Scenario(protocols.make("ps-backup", ["barrier=true"]), workload.read("mlp"), 8)
    assert stopping_hosts(backup) == (1, 1.0)


def test_workers_on_a_servers_host_stop_the_run_with_it():
    place = Cluster(hosts=(Host(name="a", count=3, cores=4),))
    assert stopping_hosts(job("ps-async", workers=7, cluster=place)) == (1, 4 / 7)


def test_missing_workers_cost_their_share_of_the_time():
    given = Failures(mtbf_s=900.0, restart_s=100.0, checkpoint_s=0.0, every_s=HOUR, run_s=HOUR)
    scenario = job("ps-async", workers=8)
    alone = replace(given, mtbf_s=1e9)
    assert lost(scenario, alone).missing == pytest.approx(1e-7, rel=1e-3)
    assert lost(scenario, replace(given, every_s=60.0)).missing == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mtbf", "mtbf=TIME"),
        ("mtfb=1 d", "did you mean mtbf"),
        ("restart=1 s", "mtbf=TIME besides"),
        ("mtbf=1 d, mtbf=2 d", "given 'mtbf=2 d'.*given before"),
        ("mtbf=1 parsec", "a quantity with its unit"),
        ("mtbf=86400", 'a quantity with its unit, such as "30 d"$'),
        ("mtbf=0 s", "1 to"),
        ("mtbf=1 d, every=-1 s", "1 to"),
        ("mtbf=1 d, restart=nan s", "a quantity"),
    ],
)
def test_failures_that_cannot_be_are_said_in_a_line(text, said):
    with pytest.raises(WrongSetting, match=said):
        read(text)


@pytest.mark.parametrize("text", ["mtbf=1 s", "mtbf=1 h, restart=100 h", "mtbf=10 min, every=10 h"])
def test_a_run_that_makes_no_progress_is_refused(text):
    with pytest.raises(WrongSetting, match="is progress"):
        lost(job(), read(text))


def test_the_answer_says_what_is_lost(capsys):
    words = ["--protocol", "allreduce", "--steps", "5", "--replications", "2", "--failures", "mtbf=30 d, run=48 h"]
    run.main([*words, "--json"])
    found = json.loads(capsys.readouterr().out)["failures"]
    assert 0.9 < found["interval"][0] < found["goodput"] < found["interval"][1] < 1
    run.main(words)
    assert "with failures" in capsys.readouterr().out


def test_preemptions_cost_a_checkpoint_and_a_restart_and_nothing_is_done_again():
    often = replace(GIVEN, mtbf_s=1e9, preemption_s=20 * HOUR)
    found, failing = lost(job(), often), lost(job(), replace(GIVEN, mtbf_s=20 * HOUR))
    each_s = GIVEN.restart_s + GIVEN.checkpoint_s
    assert found.stops == pytest.approx(8 * 24 / 20, rel=0.02)
    assert found.goodput == pytest.approx((1 - 60 / 1860) / (1 + 8 * each_s / (20 * HOUR)), rel=0.01)
    assert found.repeated < 1e-4 < failing.repeated
    assert found.goodput > failing.goodput
    assert read("mtbf=30 d, preemption=5 d").preemption_s == 120 * HOUR
    beside = lost(job("ps-async"), often)
    assert beside.missing == pytest.approx(1 / (1 + 20 * HOUR / 600), rel=1e-3)
    with pytest.raises(WrongSetting, match="preemption=2 s"):
        lost(job(), replace(often, preemption_s=2.0))


def test_an_interval_reaches_to_a_mean_that_few_bad_runs_move():
    found = lost(job("ps-async"), replace(GIVEN, mtbf_s=720 * HOUR, every_s=3 * HOUR))
    assert found.interval[0] <= found.goodput <= found.interval[1]
