"""A link that is known by name alone stands at the median of what was reached, for all that asks, and its interval has two sides."""

import math

import pytest

from experiments.extrapolation import links, one_host
from sim import protocols
from sim.answers import bounds, extrapolation, quantities
from sim.answers.quantities import BETWEEN
from sim.answers.quantities import WITHIN as WITHIN_HOSTS
from sim.answers.sources import INNER_LINKS, LINKS
from sim.job.scenario import Scenario
from sim.model import workload
from sim.platform import catalogue, cluster, named_links, other_sizes
from sim.platform.cluster import Cluster, Host, Link
from sim.platform.named_links import LINK, LOCAL
from sim.simulation import simulate
from sim.studies import changes

STEP = {"time": "1 ms", "batch": 1}
MODEL = workload.Workload.model_validate({"name": "mine", "parameters": "100 M", "layers": 1, "step": STEP})
TIMES, WITHIN = math.exp(LINK.mean), math.exp(LOCAL.mean)


def ring(network: Link, local: Link | None = None, hosts: int = 4, each: int = 1) -> Scenario:
    place = Cluster(hosts=[Host(count=hosts, cores=each, gpus=each)], network=network, local=local or Link())
    text = protocols.make("allreduce", ["algorithm=ring"])
    return Scenario(text, MODEL, hosts * each, 2, 0, cluster=place).without_stragglers()


def step_s(job: Scenario, world: str = "event") -> float:
    return float(simulate(job, world, 1).step_s.mean())


def test_a_name_is_as_a_number_that_is_so_many_times_less():
    named, given = Link(named=True), Link(bandwidth_bytes_per_s=Link().bandwidth_bytes_per_s / TIMES)
    assert step_s(ring(named)) == pytest.approx(step_s(ring(given)), rel=1e-9)
    assert step_s(ring(Link())) < 0.7 * step_s(ring(named))
    here, as_number = (ring(Link(), link, 1, 4) for link in (named, Link(bandwidth_bytes_per_s=1.25e9 / WITHIN)))
    assert step_s(here) == pytest.approx(step_s(as_number), rel=1e-9)


def test_a_bound_of_a_step_is_one_of_what_is_simulated():
    """Of messages nearly all: the bound is near, and below."""
    job = ring(Link(named=True))
    found = simulate(job, "auto", 1).samples_per_s
    assert 0.95 * bounds.least(job).samples_per_s() < found <= bounds.least(job).samples_per_s()


def test_names_are_those_of_the_catalogue_and_of_what_is_assumed(tmp_path):
    place = cluster.read("p3.16xlarge*2")
    assert (place.network.named, place.local.named, catalogue.find("links", "PCIe 3 x16").named) == (True, True, True)
    assert cluster.one_rank_a_host(2).network.named
    other = changes.with_values(place, {"network.bandwidth": "100 Gbit/s"})
    assert (other.network.named, other_sizes.on_network(place, "100 Gbit/s").network.named) == (True, True)
    file = tmp_path / "mine.toml"
    file.write_text(
        'schema = "cluster/1"\nhosts = [{ count = 2 }]\nnetwork = { bandwidth_bytes_per_s = "25 Gbit/s" }\n'
    )
    assert not cluster.read(str(file)).network.named


def of_links(job: Scenario) -> extrapolation.Unknown:
    found = extrapolation.unknowns(job, simulate(job, "auto", 1).outcome)
    return next(one for one in found if one.number in (LINKS, INNER_LINKS))


def test_an_interval_has_two_sides_and_none_beyond_the_wire():
    """Of a step that is messages alone: from the wire's rate to the upper end of what was reached."""
    assert LINK.at(-1) < 1 < LOCAL.at(-1)
    between, within, given = (
        of_links(job)
        for job in (
            ring(Link(named=True)),
            ring(Link(), Link(named=True, bandwidth_bytes_per_s=1e8), 1, 4),
            ring(Link()),
        )
    )
    ends = math.log(LINK.at(1) / TIMES), math.log(TIMES)
    assert (between.slower, between.faster) == pytest.approx(ends, rel=0.02)
    half = math.log(LOCAL.at(1) / WITHIN)
    assert (within.slower, within.faster) == pytest.approx((half, half), rel=0.02)
    assert (given.slower, given.faster) == pytest.approx((math.log(LINK.at(1)), 0.0), rel=0.02)


def test_over_several_hosts_each_link_is_unknown_by_itself():
    """A slow link within hosts beside a fast network hides all that is not known of the network, and the other way round."""
    slow, fast = Link(named=True, bandwidth_bytes_per_s=1e8), Link(named=True, bandwidth_bytes_per_s=1e12)
    for network, local, shows, most in (
        (fast, slow, WITHIN_HOSTS, LOCAL.at(1) / WITHIN),
        (slow, fast, BETWEEN, LINK.at(1) / TIMES),
    ):
        ends = simulate(ring(network, local, 2, 2), "auto", 2).outcome.ends
        assert [key for key, off in ends.items() if max(off) > 0.01] == [shows]
        assert ends[shows][0] == pytest.approx(math.log(most), rel=0.05)


def test_a_link_that_no_pcie_is_as_fast_as_is_known_by_tests_of_its_kind():
    """NVLink's bus bandwidths are two thirds of its rate or more; PCIe's sums take up to 41 times as long as its rate says."""
    assert pytest.approx(links.learned(one_host.direct()), abs=0.006) == named_links.DIRECT
    for name, most in (
        ("NVLink 1", 2),
        ("NVLink 4", 2),
        ("Infinity Fabric 4", 2),
        ("PCIe 3 x16", 50),
        ("PCIe 5 x16", 50),
    ):
        link = catalogue.find("links", name)
        job = ring(Link(), link, 1, 4)
        known = named_links.within(link)
        assert link.bandwidth_bytes_per_s / job.local.bandwidth_bytes_per_s == pytest.approx(math.exp(known.mean))
        assert most / 2 < known.at(1) <= most
        slower = next(one for one in quantities.of(job) if one.key == WITHIN_HOSTS).put(job, quantities.END)
        assert slower.local.bandwidth_bytes_per_s == pytest.approx(link.bandwidth_bytes_per_s / known.at(1))
