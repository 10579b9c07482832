"""Beyond the sizes of a table, an answer is as wide as the table's own growth, skewed to the slow side, and its median."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scaling_tables import table

from calibration.scaling.changes import growth_of
from calibration.scaling.steps import Scaling
from calibration.scaling.table import Table
from sim import protocols
from sim.answers import bounds, growth, paired, quantities
from sim.job.scenario import Scenario
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform.cluster import Cluster, Growth, Host, Link, Model, Provenance
from sim.simulation import simulate

MODEL = workload.NAMED["resnet50"]
GROWN = Growth(per_doubling=0.2, simulated=0.2, unchanged=0.3, simulated_weight=0.6)


def job(
    hosts: int, each: int = 1, known: Growth | None = GROWN, seen: tuple[int, int] = (4, 4), settings=()
) -> Scenario:
    """A job on hosts whose links are slow enough that simulated steps grow; fitted up to `seen` hosts and workers."""
    origin = Provenance(hosts=seen[0], workers=seen[1], models={"resnet50": Model.of(MODEL)}, growth=known)
    cluster = Cluster(
        hosts=(Host(count=hosts, cores=each, gpus=each),),
        network=Link(bandwidth_bytes_per_s=1e9),
        costs={"resnet50": Costs(compute=Line(base_s=0.1))},
        provenance=origin,
    )
    text = protocols.make("allreduce", ["algorithm=ring", *settings])
    return Scenario(text, MODEL, hosts * each, 2, 1, batch=32, cluster=cluster).without_stragglers()


def answered(asked: Scenario):
    return simulate(asked, "auto", 2)


def test_quantiles_are_those_of_the_density():
    parts = [growth.Part(0.3, 0.0, 0.2), growth.Part(0.7, -0.4, 0.1)]
    at = np.linspace(-20, 40, 600_001)
    density = sum(one.weight * np.exp(growth.LAW.log_density(at - one.at, one.scale)) for one in parts)
    below = np.cumsum(density) / density.sum()
    for level in (0.05, 0.5, 0.95):
        assert growth.quantile(parts, level) == pytest.approx(np.interp(level, below, at), abs=1e-3)


@pytest.mark.parametrize("weight", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_more_distance_never_narrows(weight):
    known = GROWN.model_copy(update={"simulated_weight": weight})
    for unchanged in (None, -0.7, 0.0, 0.3):
        found = [growth.after(known, doublings, unchanged) for doublings in (0.3, 0.6, 1, 2, 4, 7)]
        widths = [one.slower + one.faster for one in found]
        assert widths == sorted(widths)
        assert widths[-1] > 1.2 * widths[0]
        assert unchanged or all(one.slower > 2 * one.faster for one in found)


def test_an_answer_is_the_mixtures_median_and_has_its_ends():
    plain, grown = (answered(job(16, known=known)) for known in (None, GROWN))
    smaller = answered(job(4, known=None))
    told = growth.told(job(16), math.log(smaller.step_s.mean() / plain.step_s.mean()))
    assert grown.step_s == pytest.approx(plain.step_s * math.exp(told.longer))
    logs = [math.log(grown.samples_per_s / end) for end in grown.interval]
    assert logs == pytest.approx([told.slower, -told.faster])
    assert answered(job(16, known=GROWN)).outcome.ends[growth.BEYOND] == pytest.approx(told[1:])
    assert simulate(job(16), "auto", 1).samples_per_s == pytest.approx(grown.samples_per_s)


def test_a_batch_of_the_largest_size_takes_what_it_took_there():
    """By so much larger sizes are off, too: that of the batch, on the nearest number of GPUs; of another batch, the mean."""
    plain = answered(job(16)).step_s.mean()
    known = GROWN.model_copy(update={"offs": ((1, 32, 0.3), (4, 32, 0.7), (1, 64, -0.1))})
    assert answered(job(16, known=known)).step_s.mean() == pytest.approx(plain * math.exp(0.3))
    assert known.off(3, 32) == 0.7
    assert known.off(1, 16) == pytest.approx(0.1)
    assert GROWN.off(1, 32) == 0


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_where_batches_fell_with_sizes_steps_go_on_to_fall(power):
    """Of 32 samples at the largest size, 8 take a quarter, or a half. Without, they take what is simulated there: the control."""
    known = {"fewest": 32, "power": power, "offs": ((1, 32, 0.2),), "simulated_weight": 0.0, "unchanged": 1e-6}
    falls = GROWN.model_copy(update=known)
    whole_s = answered(job(4, known=None)).step_s.mean() * math.exp(0.2)
    few = replace(job(16, known=falls), batch=8)
    assert growth.at_largest(few).batch == 32
    assert answered(few).step_s.mean() == pytest.approx(whole_s / 4**power, rel=1e-3)
    level = replace(job(16, known=falls.model_copy(update={"fewest": 0})), batch=8)
    assert growth.at_largest(level).batch == 8
    assert answered(level).step_s.mean() > 1.5 * whole_s / 4**power
    assert bounds.least(few).samples_per_s() >= answered(few).samples_per_s > bounds.least(level).samples_per_s()


@pytest.mark.parametrize("unchanged", [-0.7, -0.1, 0.0])
def test_after_two_numbers_of_hosts_a_step_is_no_longer_than_both_predictions_say(unchanged):
    """Its ends stay. After more sizes it is longer: the control."""
    found, drifting = (growth.after(GROWN.model_copy(update={"drifts": one}), 1.0, unchanged) for one in (False, True))
    assert unchanged <= found.longer <= 0 < drifting.longer
    assert found.longer + found.slower == pytest.approx(drifting.longer + drifting.slower)
    assert found.longer - found.faster == pytest.approx(drifting.longer - drifting.faster)


@pytest.mark.parametrize(
    ("places", "drifts"),
    [([(1, 4), (2, 4)], False), ([(2, 4), (8, 4)], False), ([(1, 1), (1, 2)], True), ([(1, 4), (2, 4), (4, 4)], True)],
)
def test_steps_of_two_numbers_of_hosts_do_not_drift(places, drifts):
    of = table([(hosts, each, 32) for hosts, each in places])
    assert growth_of(of, lambda _: Scaling(1.0, sample_s=0.03)).drifts == drifts


def test_within_the_sizes_of_the_table_nothing_grows():
    for asked in (job(4), job(2)):
        free = replace(asked, cluster=job(len(set(asked.hosts)), known=None).cluster)
        assert growth.told(asked) is None
        assert growth.told(job(1, 4, seen=(1, 2)))  # twice the GPUs of a host are beyond them
        assert answered(asked).step_s == pytest.approx(answered(free).step_s)
        assert growth.BEYOND not in answered(asked).outcome.ends


def test_the_largest_size_has_as_many_ranks_a_host():
    for asked, hosts, workers in (
        (job(16), 4, 4),
        (job(8, 4, seen=(4, 32)), 4, 16),
        (job(1, 8, seen=(1, 2)), 1, 2),
        (job(2, 8, seen=(1, 8)), 1, 8),
    ):
        found = growth.at_largest(asked)
        assert (len(set(found.hosts)), found.workers) == (hosts, workers)
        assert growth.at_largest(found) is None


def test_a_change_of_a_job_has_the_same_growth():
    """A faster network at the same size: what is not known of growth cancels. Of another size it does not: the control."""
    base = job(16)
    faster = replace(base, cluster=base.cluster.model_copy(update={"network": Link(bandwidth_bytes_per_s=1e10)}))
    alone = growth.told(base).slower
    same, other = (paired.unknown(answered(base), answered(one)) for one in (faster, job(64)))
    assert max(same) < 0.5 * alone
    assert max(other) > max(same)


def test_no_bound_is_above_what_a_table_says():
    for unchanged_weight in (0.0, 0.5, 1.0):
        known = GROWN.model_copy(update={"simulated_weight": 1 - unchanged_weight, "offs": ((1, 32, -0.1),)})
        for hosts in (4, 6, 16):
            asked = job(hosts, known=known)
            assert bounds.least(asked).samples_per_s() >= answered(asked).samples_per_s


def test_a_bound_at_another_batch_is_that_of_the_job_with_it():
    """Hosts of two kinds, too, of which there is no job at the largest size."""
    asked = job(16, known=GROWN.model_copy(update={"offs": ((1, 32, -0.1), (1, 8, -0.7))}))
    (host,) = asked.cluster.hosts
    kinds = (host.model_copy(update={"count": 8}), host.model_copy(update={"count": 8, "cores": 2}))
    for one in (asked, asked.on(hosts=kinds)):
        assert bounds.least(one, 8) == pytest.approx(bounds.least(replace(one, batch=8)))
    assert growth.at_largest(one) is None


def test_intervals_of_planted_tables_hold_their_next_sizes():
    """Steps that grow by as much as their table's, now more and now less; a third as wide they do not: the negative control."""
    draw, held, narrow = np.random.default_rng(0), [], []
    sizes = np.array([2.0, 4.0, 8.0, 16.0, 64.0])
    for _ in range(300):
        each = draw.choice([0.02, 0.1, 0.3])
        grown = np.cumsum([0.0, *(each * draw.exponential(size=4) * np.diff(np.log2(sizes)) ** 0.5)])
        rows = Table(sizes, sizes, np.ones(5), np.full(5, 32.0), np.exp(grown), np.ones(5))
        seen = rows.where(sizes < 64)
        known = growth_of(seen, lambda some: Scaling(1.0, 0.0, float(some.step_s[-1] / 32), 0.0))
        told = growth.after(known, 2.0, 0.0)
        off = grown[4] - grown[3] - told.longer
        held.append(-told.faster <= off <= told.slower)
        narrow.append(-told.faster / 3 <= off <= told.slower / 3)
    assert 0.85 < np.mean(held) < 0.99
    assert np.mean(narrow) < 0.75


def test_a_minibatch_of_a_table_is_known_however_many_are_accumulated():
    """Of one batch that was measured, another one is not known: the control."""
    base = job(4)
    known = base.cluster.provenance.model_copy(update={"batches": {"resnet50": (32, 32)}})
    costs = {"resnet50": Costs(compute=Line(base_s=0.1, slope_s=0.01))}
    place = base.cluster.model_copy(update={"provenance": known, "costs": costs})
    for accumulated, batch, unknown in ((4, 128, False), (1, 32, False), (1, 128, True)):
        text = protocols.make("ddp", ["algorithm=ring", f"accumulate={accumulated}"])
        asked = replace(base, protocol=text, batch=batch, cluster=place)
        assert any("batch 32" in one.source for one in quantities.of(asked)) == unknown
