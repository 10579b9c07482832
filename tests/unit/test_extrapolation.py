"""Intervals that hold the model's ignorance: they widen with each doubling beyond what was measured, and say so; every answer has one."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from calibration.profiles import FREE
from experiments.extrapolation import law as learning
from experiments.extrapolation import scores
from experiments.extrapolation.held import Held, Unmeasured, doublings
from sim import laws, protocols
from sim.answers import extrapolation
from sim.answers.ignorance import CORE, HOST, LAW, UNCHANGED, Law
from sim.answers.result import Result
from sim.answers.sources import HOSTS, INNER_LINKS, LINKS
from sim.base import interval
from sim.engine import kept
from sim.job import variants
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform import other_sizes
from sim.platform.cluster import Cluster, Growth, Host, Model, Provenance
from sim.platform.named_links import LINK
from sim.simulation import simulate as simulated

MODEL = workload.NAMED["resnet50"]
GROWN = Growth(per_doubling=0.2, simulated=0.2, unchanged=0.3, simulated_weight=0.5)
COSTS = {"resnet50": Costs(compute=Line(base_s=0.1), noise=LogNormal(cv=0.02))}


def job(workers, hosts_seen=2, workers_seen=2, algorithm="ring", **seen):
    known = {"models": {"resnet50": Model.of(MODEL)}, "repeated": ("resnet50",)} | seen
    where = Provenance(hosts=hosts_seen, workers=workers_seen, **known)
    cluster = Cluster(hosts=[Host(count=workers)], costs=COSTS, provenance=where)
    return Scenario(
        protocols.make("allreduce", [f"algorithm={algorithm}"]), MODEL, workers=workers, steps=5, cluster=cluster
    )


def simulate(scenario: Scenario, replications: int) -> Result:
    """By the engine, whose answers are the event world's."""
    if not kept.is_kept():
        pytest.skip("the engine is not compiled: python -m sim.engine.install")
    return simulated(scenario, "engine", replications)


@cache
def answer(hosts_seen):
    """Of sixteen hosts, fitted on so many."""
    return simulate(job(16, hosts_seen, hosts_seen), replications=4)


def width(found) -> float:
    low, high = found.interval
    return math.log(high / low) / 2


def test_an_interval_widens_with_each_doubling():
    widths = [width(answer(known)) for known in (16, 8, 4, 2, 1)]
    assert widths == sorted(widths)
    logs = [[abs(math.log(end / answer(known).samples_per_s)) for end in answer(known).interval] for known in (16, 2)]
    beyond = interval.of_normal(LAW.deviation(3))
    for side, times in enumerate((1.0, LAW.faster)):
        assert logs[1][side] == pytest.approx(math.hypot(logs[0][side], times * beyond), rel=0.01)
    assert logs[1][0] > 2 * logs[1][1]  # steps take longer than predicted more often


def test_the_answer_says_how_far_it_is_beyond():
    assert answer(2).notes[-1] == "fitted on 2 hosts, asked for 16: 3 doublings beyond"
    assert not any("beyond" in note for note in answer(16).notes)
    assert "fitted on 3 hosts, asked for 16: 2.4 doublings beyond" in answer(3).notes[-1]


def test_a_fit_without_repeats_and_links_that_nobody_measured_are_unknown_too():
    usual = answer(16)
    alone = simulate(job(16, 16, 16, repeated=()), replications=4)
    named = simulate(job(16, 16, 16, links_measured=False), replications=4)
    assert width(usual) < width(alone) < width(named)
    assert "was repeated" in alone.notes[-1]
    (links,) = (one for one in named.basis if one.name == LINKS)
    assert (links.source, links.faster) == ("given, and not measured", 0)
    assert links.slower > 0.1
    assert named.interval[1] == pytest.approx(usual.interval[1])  # nothing is faster than the wire


def test_after_sleeps_that_no_fitted_run_had_caches_may_be_cold():
    """ResNet-50's 25.6 million parameters, six times read at 10 GB/s, take 61 ms."""
    sleeping = replace(job(16, 16, 16, slept=True, laws=("niagara",)), stragglers=laws.Constant(value=2.0))
    known, other = (
        simulate(replace(sleeping, stragglers_name=name), replications=4) for name in ("niagara*2", "cedar")
    )
    assert known.samples_per_s == other.samples_per_s
    assert other.interval[1] == pytest.approx(known.interval[1])
    step_s = 16 * MODEL.batch / known.samples_per_s
    more = math.log1p(6 * 4 * MODEL.parameters / 1e10 / step_s)
    assert 0.01 < more < 0.05
    logs = [math.log(one.samples_per_s / one.interval[0]) for one in (known, other)]
    assert logs[1] == pytest.approx(math.hypot(logs[0], more), rel=0.01)


def test_free_links_are_as_uncertain_as_the_rule_that_nothing_changes():
    plain = job(16)
    free = replace(plain, cluster=plain.cluster.model_copy(update={"network": FREE}))
    found = simulate(free, replications=4)
    half = interval.of_normal(math.hypot(3 * UNCHANGED, LAW.deviation(3)))
    assert width(found) == pytest.approx(half, rel=0.05)


def test_what_fitted_steps_do_not_tell_of_messages_widens_the_interval_by_hosts():
    """Between two numbers of hosts in proportion to the logarithm; not where the network is another one now."""
    plain = job(8, 8, 8)
    link = plain.cluster.network.model_copy(update={"spread_by_hosts": ((2, 0.0), (4, 0.1), (16, 0.3))})
    fitted = replace(plain, cluster=plain.cluster.model_copy(update={"network": link}))
    one, other = (simulate(each, replications=4) for each in (plain, fitted))
    assert (link.spread_at(1), link.spread_at(8), link.spread_at(64)) == pytest.approx((0.0, 0.2, 0.3))
    assert one.samples_per_s == other.samples_per_s
    assert other.interval[0] < 0.95 * one.interval[0]
    assert other.interval[1] > 1.01 * one.interval[1]
    elsewhere = other_sizes.on_network(fitted.cluster, "10 Gbit/s, 20 us")
    assert elsewhere.network.spread_by_hosts == ()


def test_fitted_steps_are_off_as_a_whole():
    """Half of this step is messages; with the error of its computing alone the interval is narrower: the control."""
    plain = job(16, 16, 16)
    costs = {"resnet50": COSTS["resnet50"].model_copy(update={"error": 0.1})}
    link = plain.cluster.network.model_copy(update={"spread_by_hosts": ((16, 0.0),)})
    of_costs = replace(plain, cluster=plain.cluster.model_copy(update={"costs": costs}))
    fitted = replace(plain, cluster=plain.cluster.model_copy(update={"costs": costs, "network": link}))
    alone, whole = (width(simulate(one, replications=4)) for one in (of_costs, fitted))
    assert alone < 0.9 * interval.of_normal(0.1) < interval.of_normal(0.1) < whole


def test_a_probe_whose_bandwidth_differed_widens_a_job_of_messages_and_none_of_computing():
    """By 10 %, nine times in ten a factor 1.18; a slower link shows hidden messages, and another network was not measured."""
    plain = job(16, 16, 16)

    def spread(at):
        link = at.cluster.network.model_copy(update={"bandwidth_spread": 0.1, "latency_spread": 0.5})
        return replace(at, cluster=at.cluster.model_copy(update={"network": link}))

    known, varied = (simulate(one, replications=4) for one in (plain, spread(plain)))
    assert known.samples_per_s == varied.samples_per_s
    slower = variants.with_links(plain, math.exp(interval.of_normal(0.1)), within=False)
    half = math.log(known.samples_per_s / simulate(slower, replications=4).samples_per_s)
    assert math.log(known.samples_per_s / varied.interval[0]) == pytest.approx(
        math.hypot(math.log(known.samples_per_s / known.interval[0]), half), rel=0.02
    )
    costs = {"resnet50": Costs(compute=Line(base_s=60.0), noise=LogNormal(cv=0.02))}
    busy = replace(plain, cluster=plain.cluster.model_copy(update={"costs": costs}))
    alone, same = (simulate(one, replications=4) for one in (busy, spread(busy)))
    assert width(same) < width(alone) + 0.005
    assert width(varied) > width(known) + 0.08
    assert not any("probe" in note for note in same.notes)
    elsewhere = other_sizes.on_network(spread(plain).cluster, "10 Gbit/s, 20 us")
    assert (elsewhere.network.bandwidth_spread, elsewhere.network.latency_spread) == (None, None)


@pytest.mark.parametrize(("workers", "steps", "runs"), [(3, 5, 1), (64, 2, 1), (2000, 1, 1), (64, 5, 4)])
def test_every_answer_has_an_interval(workers, steps, runs):
    nominal = Scenario(protocols.make("fmb", []), MODEL, workers=workers, steps=steps, warmup=1)
    found = simulate(nominal, replications=runs)
    low, high = found.interval
    assert low < found.samples_per_s / 3 < found.samples_per_s < high
    assert found.why_no_interval is None


def test_a_step_that_was_measured_leaves_links_unknown():
    mine = workload.Workload(name="mine", parameters="120 M", layers=48, step={"time": "250 ms", "batch": 32})
    one, many = (
        simulate(Scenario(protocols.make("allreduce", []), mine, workers=n, steps=10), replications=3) for n in (1, 16)
    )
    assert width(one) < 0.1 < width(many) < 2


@pytest.mark.parametrize(("gpus", "measured_s"), [(4, 0.3933), (1, 0.3156)])
def test_one_host_from_the_step_of_one_gpu_holds_what_was_measured(gpus, measured_s):
    """ResNet-101 on V100 of PCIe (Horovod's issue 416): links by name and what GPUs share are unknown; of one alone nothing is."""
    variables = workload.NAMED["resnet101"].variables
    mine = workload.Workload(name="mine", variables=variables, step={"time": "315.6 ms", "batch": 64})
    box = Cluster(hosts=[Host(cores=gpus, gpus=gpus)], local="PCIe 3 x16")
    asked = Scenario(protocols.make("horovod", ["algorithm=ring"]), mine, gpus, 2, 1, batch=64, cluster=box)
    found = simulate(asked.without_stragglers(), replications=2)
    low, high = found.interval
    assert low < gpus * 64 / measured_s < high
    assert (high / low > 2) == (gpus > 1)
    parts = {one.name: one for one in found.basis}
    assert (HOSTS in parts) == (INNER_LINKS in parts) == (gpus > 1)
    if gpus > 1:
        assert parts[HOSTS].slower == pytest.approx(math.log(HOST.at(1)))
        assert parts[INNER_LINKS].source == "by name"


def test_a_host_of_several_gpus_that_was_fitted_is_known():
    """Profiles of one rank alone know no host that GPUs share; of two ranks they do."""
    place = Cluster(hosts=[Host(cores=4, gpus=4)], costs=COSTS, provenance=job(1).cluster.provenance)

    def wide(seen: int) -> float:
        where = place.model_copy(
            update={"provenance": place.provenance.model_copy(update={"workers": seen, "hosts": 1})}
        )
        return width(simulate(replace(job(4), cluster=where), replications=4))

    assert wide(1) > wide(4) + 0.1


def test_messages_that_hide_may_be_seen_on_a_slower_link():
    """A job whose messages all hide is as uncertain as one where they can be seen, not as one without any."""
    mine = workload.Workload(name="mine", parameters="70 M", layers=48, step={"time": "1200 ms", "batch": 32})
    hidden = simulate(Scenario(protocols.make("horovod", ["algorithm=ring"]), mine, workers=4, steps=3), replications=2)
    few = {"parameters": "1 M", "layers": 2, "step": {"time": "1200 ms", "batch": 32}}
    small = workload.Workload(name="small", **few)
    none = simulate(Scenario(protocols.make("horovod", ["algorithm=ring"]), small, workers=4, steps=3), replications=2)
    assert hidden.samples_per_s == pytest.approx(none.samples_per_s, rel=0.1)
    assert hidden.samples_per_s / hidden.interval[0] > 2
    assert none.samples_per_s / none.interval[0] < 1.3


def test_what_is_unknown_adds_up_in_squares():
    some = extrapolation.Unknown(0.3, 0.1), extrapolation.Unknown(0.4, 0.0)
    low, high = extrapolation.widened((1.0, 1.0), 1.0, list(some))
    assert (math.log(low), math.log(high)) == pytest.approx((-0.5, 0.1))
    assert extrapolation.widened((math.nan, math.nan), 2.0, list(some))[0] == pytest.approx(2 * low)


# The law


def planted(law: Law, tables=12, rows=40, seed=0):
    """Tables whose errors follow a law: rows are off by themselves at measured sizes, and those of a table in common beyond."""
    draw, found = np.random.default_rng(seed), []
    for table in range(tables):
        common, changed = draw.normal(), float(draw.choice([0.02, 0.1, 0.3]))
        for row in range(rows):
            beyond = float(draw.integers(0, 5))
            whole, grown = law.deviation(beyond, changed), law.common(beyond, changed)
            off = common * grown + draw.normal() * (whole**2 - grown**2) ** 0.5 + 0.02 * draw.normal()
            off *= 1.0 if off > 0 else law.faster
            of_row = f"table {table}", f"{table}", str(row), beyond, math.exp(off), 1.0, 0.02, 1.0
            found.append(Held(*of_row, changed=changed))
    return found


PLANTED = Law(step=0.05, by_change=0.5, unseen=0.1, faster=0.5)


def test_a_row_that_is_far_off_is_missed_by_its_pairs_and_growth_cancels():
    """Four rows with the same error, nearly all of it growth, and one that is off by itself. At measured sizes nothing cancels."""
    offs = [1.2, 1.2, 1.2, 1.2, 0.6]
    rows = [Held("a", "b", str(place), 15.0, off, 1.0, 0.01, 1.0) for place, off in enumerate(offs)]
    found = learning.ratios(rows, Law(0.07))
    missed = found.off > found.half
    assert (len(missed), missed.sum(), (missed & found.outside).sum()) == (10, 4, 4)
    assert found.cancelled.min() > 0.9
    assert not learning.ratios([row._replace(doublings=0.0) for row in rows], Law(0.07)).cancelled.any()


def test_planted_parameters_are_recovered():
    found = learning.learned(planted(PLANTED, tables=300, rows=5))
    for beyond, changed in ((0, 0.02), (0, 0.1), (2, 0.3), (4, 0.02)):
        assert found.deviation(beyond, changed) == pytest.approx(PLANTED.deviation(beyond, changed), rel=0.25)
    assert found.faster == pytest.approx(PLANTED.faster, rel=0.25)


def test_tables_whose_steps_change_more_are_off_by_more_beyond():
    """Planted: errors of half of what steps changed by. A law that does not know the changes is as wide for all: the control."""
    draw, rows = np.random.default_rng(3), []
    for table in range(60):
        changed = float(draw.choice([0.01, 0.4]))
        common = 0.5 * changed * draw.normal()
        rows += [Held(f"table {table}", "", "", 0.0, math.exp(common), 1.0, 0.02, 1.0, changed=changed) for _ in "abc"]
    found = learning.learned(rows)
    assert found.by_change == pytest.approx(0.5, rel=0.4)
    quiet, other = (found.deviation(0.0, changed) for changed in (0.01, 0.4))
    assert (quiet < 0.05, other > 0.15) == (True, True)
    alike = learning.learned([row._replace(changed=None) for row in rows])
    assert quiet < alike.deviation(0.0) < 1.1 * other
    assert quiet < found.deviation(0.0) < 1.1 * other


def test_intervals_of_planted_tables_cover():
    """By the law of other tables; half as wide they do not: the negative control."""
    law, rows = learning.learned(planted(PLANTED, tables=40, seed=1)), planted(PLANTED, tables=60, seed=2)
    laws = {row.source: law for row in rows}
    covered = np.mean([learning.covers(row, laws[row.source]) for row in rows])
    assert 0.85 < covered < 0.96
    narrow = law._replace(step=law.step / 2, by_change=law.by_change / 2)
    assert np.mean([learning.covers(replaced(row), narrow) for row in rows]) < 0.8


def replaced(row: Held) -> Held:
    return row._replace(residual=row.residual / 2)


def test_the_learned_law_has_the_lowest_score_nearby():
    """Neither wider nor narrower intervals, on both sides or one, have a lower score, as the report counts it."""
    rows = planted(PLANTED._replace(step=0.1), tables=100, rows=3, seed=5)
    found = learning.learned(rows)

    hidden = [row._replace(changed=None) for row in rows]

    def mean_score(law: Law, of: list[Held]) -> float:
        return float(np.mean([scores.of(table, law).ours for table in learning.by_source(of).values()]))

    for name in Law._fields:
        known = hidden if name == "unseen" else rows
        least = mean_score(found, known)
        for times in (0.8, 1.25):
            assert mean_score(found._replace(**{name: times * getattr(found, name)}), known) > least


def test_no_table_makes_its_own_law(monkeypatch):
    """The law of all of them is where the search for each begins, and no more."""
    monkeypatch.setattr(learning, "learned", lambda rows, near=None: ({row.source for row in rows}, near))
    rows = planted(PLANTED, tables=3, rows=2)
    everything = {f"table {number}" for number in range(3)}
    assert learning.left_out(rows) == {name: (everything - {name}, (everything, None)) for name in everything}


def test_a_law_is_the_same_wherever_its_search_begins():
    rows = planted(PLANTED, tables=10, rows=20)
    one, other = learning.learned(rows), learning.learned(rows, near=Law(0.1, 0.1, 0.1, 0.2))
    for changed in (0.02, None, 0.3):
        assert one.deviation(2, changed) == pytest.approx(other.deviation(2, changed), rel=0.02)


def test_errors_of_one_sign_make_a_law_of_two_sides():
    """Planted: the errors of steps, those that take less a third of what they were. A symmetric law has both alike."""
    rows = planted(PLANTED._replace(faster=1.0), tables=40, rows=25, seed=4)
    even = learning.learned(rows)
    assert even.faster == pytest.approx(1.0, rel=0.4)
    skewed = learning.learned([row._replace(measured_s=max(row.measured_s, row.measured_s ** (1 / 3))) for row in rows])
    assert 0.1 < skewed.faster < 0.5


def test_candidates_and_a_link_by_name_are_a_mixture():
    known = learning_links(0.0, 1e-9)
    row = Unmeasured("row", 1.5, 1.0, [1.1, 1.5, 2.0])
    assert learning.of_candidates(row, known) == pytest.approx((1.1, 2.0))
    assert learning.of_candidates(row._replace(reading=0.1), known) == pytest.approx((0.99, 2.2))
    assert learning.of_candidates(row, LINK_OF_PAGES)[1] > 5


def test_what_may_only_take_longer_widens_that_side_alone():
    row = Held("table", "", "row", 0.0, 1.0, 1.0, 0.02, 1.0)
    low, high = learning.interval_s(row, LAW)
    same, higher = learning.interval_s(row._replace(slower=0.3), LAW)
    assert (same, higher > 1.3 * high) == (low, True)
    lower, same = learning.interval_s(row._replace(faster=0.3), LAW)
    assert (lower < low / 1.3, same) == (True, high)


def learning_links(mean, spread):
    from experiments.extrapolation.links import Links

    return Links(mean, spread)


LINK_OF_PAGES = learning_links(LINK.mean, LINK.deviation)


def test_doublings():
    assert [doublings(asked, 2) for asked in (1, 2, 4, 6, 16)] == pytest.approx([0, 0, 1, math.log2(3), 3])
    assert CORE.at(1) == pytest.approx(1 / CORE.at(-1))


def test_a_run_that_was_not_repeated_may_be_faster_by_as_much_as_slower():
    """At a size that was measured, however the steps of a table grew."""
    alone, growing = (simulate(job(16, 16, 16, repeated=(), growth=of), replications=4) for of in (None, GROWN))
    slower, faster = (abs(math.log(end / alone.samples_per_s)) for end in alone.interval)
    assert slower == pytest.approx(faster, rel=0.1)
    assert slower > interval.of_normal(LAW.step)
    assert growing.interval == alone.interval
