"""Intervals that hold the model's ignorance: they widen with each doubling beyond what was measured, and say so; every answer has one."""

import math
from dataclasses import replace
from functools import cache

import pytest

from calibration.profiles import FREE
from sim import laws, protocols
from sim.answers.ignorance import CORE, HOST, LAW, doublings
from sim.answers.result import Result
from sim.answers.sources import HOSTS, INNER_LINKS, LINKS
from sim.base import interval
from sim.job import variants
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform import other_sizes
from sim.platform.cluster import Cluster, Growth, Host, Model, Provenance
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
    return simulated(scenario, replications=replications)


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
    half = interval.of_normal(math.hypot(3 * LAW.unchanged, LAW.deviation(3)))
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


# The law


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
