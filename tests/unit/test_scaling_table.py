"""Tables of step seconds on several numbers of hosts: planted constants are recovered, a profile simulates them, bad tables are refused."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scaling_tables import BYTES, LIKE, MODEL, OVERLAP, notes, off, profile, written
from scaling_tables import table as of_places

from calibration import fit as command
from calibration.scaling import fitting, profiled, steps, table
from calibration.scaling.changes import falls, growth_of, missed_by, origins
from calibration.scaling.fitting import BOTH_WAYS, fit
from calibration.scaling.overlap import Overlap
from calibration.scaling.steps import Scaling
from calibration.scaling.table import Table
from calibration.sources import SCALING, STEPS, guessed
from sim.answers import growth
from sim.base.errors import WrongSetting
from sim.model import workload
from sim.platform.cluster import Link, slowest
from sim.platform.named_links import LINK
from sim.platform.other_sizes import link

PLANTED = Scaling(
    BYTES, 0.05, 0.004, 3e-9, both_ways=1.6, contention=0.05, within_s=2e-9, round_s=4e-5, overlap=OVERLAP
)

GROWN = replace(PLANTED, several=0.05, apart=0.02, doubling=0.006, uneven=0.1)


def rows(hosts=(1, 2, 3, 4), gpus=(1, 2, 4), batches=(16, 64, 128), planted=PLANTED, noise=0.0, seed=0) -> Table:
    made = of_places([(h, g, b) for h in hosts for g in gpus for b in batches])
    factors = np.exp(noise * np.random.default_rng(seed).normal(size=made.size))
    return made._replace(step_s=planted.step_s(made) * factors)


def test_planted_constants_are_recovered():
    found = fit(rows(noise=0.002), LIKE)
    for name in ("base_s", "sample_s", "between_s", "both_ways", "contention", "within_s"):
        assert getattr(found, name) == pytest.approx(getattr(PLANTED, name), rel=0.12), name
    assert found.residual < 0.01


@pytest.mark.slow
def test_without_overlap_they_are_recovered_too_and_the_better_protocol_is_found(tmp_path):
    serial = replace(PLANTED, overlap=None)
    found = fit(rows(planted=serial), Scaling(BYTES))
    assert found.between_s == pytest.approx(serial.between_s, rel=0.05)
    assert "allreduce meets the table better" in notes(profile(tmp_path, rows(planted=serial)))
    assert "ddp meets the table better" in notes(profile(tmp_path, rows()))


FAST = Scaling(BYTES, 0.05, 0.004, 0.4e-9, within_s=0.01e-9, round_s=3e-5, overlap=OVERLAP)


def test_a_link_that_computing_hides_is_not_as_slow_as_the_steps():
    """Planted: no row shows a message, and 32 hosts of small batches do. If steps told the link it would come out ten times too slow."""
    seen, asked = (
        rows(hosts=h, gpus=(4,), batches=b, planted=FAST, noise=0.01) for h, b in (((1, 2), (128, 256)), ((32,), (8,)))
    )
    assert np.allclose(FAST.step_s(seen) / FAST.computing_s(seen), 1, atol=0.1)
    assert FAST.step_s(asked) > 1.3 * FAST.computing_s(asked)
    assert np.abs(np.log(fit(seen, LIKE).step_s(asked) / FAST.step_s(asked))) < np.log(1.5)


def test_a_slow_link_is_found_where_computing_hides_half_of_it():
    """Ethernet of 1 Gbit/s, at half of its rate: forty times as slow as what is known before."""
    slow = replace(FAST, between_s=16e-9, within_s=2e-9)
    found = fit(rows(hosts=(1, 2, 4), gpus=(1, 2), batches=(512, 640), planted=slow, noise=0.01), LIKE)
    asked = rows(hosts=(16,), gpus=(2,), batches=(64,), planted=slow)
    assert found.between_s == pytest.approx(slow.between_s, rel=0.1)
    assert found.step_s(asked) == pytest.approx(asked.step_s, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "planted"), [("several", 0.15), ("apart", 0.1), ("doubling", 0.04)])
def test_planted_growth_of_computing_is_recovered_and_none_is_invented(name, planted):
    """And 16 hosts are predicted from 4; without growth they are, too, and a fit whose growth is struck out misses them: the control."""
    for share in (0.0, planted):
        grown = replace(FAST, **{name: share})
        seen, asked = (rows(h, (1, 2, 4), (128, 256), grown, noise=0.003) for h in ((1, 2, 3, 4, 8), (16,)))
        found = fit(seen, LIKE)
        assert getattr(found, name) == pytest.approx(share, abs=0.025)
        assert found.step_s(asked) == pytest.approx(grown.step_s(asked), rel=0.025)
    assert np.abs(np.log(replace(found, **{name: 0.0}).step_s(asked) / asked.step_s)).min() > 0.05


@pytest.mark.slow
def test_what_constants_do_not_explain_is_said_and_never_fitted_away(tmp_path):
    """Planted: steps of two hosts take 30 % longer than any constants say. Where none do, rows are off by next to nothing: the control."""
    of = rows(hosts=(1, 2, 4, 8), gpus=(4,), batches=(64, 128), planted=FAST)
    smooth = of._replace(step_s=of.step_s * np.where(of.hosts == 2, 1.3, 1.0))
    said = []
    for table_of in (smooth, of):
        known = profile(tmp_path, table_of, "ddp")
        said.append(float(re.search(r"of the rows are off by ([\d.]+)%", notes(known))[1]))
        assert known.costs["resnet50"].error * 100 == pytest.approx(said[-1], rel=0.6, abs=1.0)
    assert said[0] > 5
    assert said[1] < 3


def test_changes_are_from_one_size_to_the_next():
    """Steps that are a tenth longer with each doubling, and ones that stay."""
    of = rows(hosts=(1, 2, 4, 8), gpus=(1,), batches=(64,))
    grown = of._replace(step_s=1.1 ** np.log2(of.hosts))
    assert missed_by(grown) == pytest.approx(np.log(1.1))
    assert missed_by(of._replace(step_s=np.ones(of.size))) == 0
    assert missed_by(of.where(of.hosts == 2)) is None


def test_growth_counts_from_one_size_to_the_next_and_the_first_less():
    """Steps of 30 % more with each doubling beside ones that stay; one size says nothing, and two have both predictions weigh the same."""
    of = rows(hosts=(1, 2, 4, 8), gpus=(1,), batches=(64,))

    def fitted(some: Table) -> Scaling:
        return Scaling(BYTES, 0.0, float(some.step_s.mean() / 64), 0.0)

    grown, flat = (growth_of(of._replace(step_s=step_s), fitted) for step_s in (1.3 ** np.log2(of.hosts), np.ones(4)))
    assert grown.per_doubling == pytest.approx(np.log(1.3) * ((growth.LAW.first_host**2 + 2) / 3) ** 0.5)
    assert flat.per_doubling == 0
    assert grown.unchanged > 4 * flat.unchanged
    twice, five = (growth_of(of._replace(step_s=times ** np.log2(of.hosts)), fitted) for times in (2.0, 5.0))
    assert twice.per_doubling == pytest.approx(
        five.per_doubling
    )  # what one thing shared costs does not more than double
    assert growth_of(of.where(of.hosts < 4), fitted).simulated_weight == 0.5
    assert growth_of(of.where(of.hosts == 2), fitted) is None


def test_the_prediction_that_told_larger_sizes_weighs_more():
    """A fit that knows that each size takes a third longer, and one that says so where nothing changes: the control."""
    of = rows(hosts=(1, 2, 4, 8, 16, 32), gpus=(1,), batches=(64,))
    longer = Scaling(BYTES, 0.0, 1 / 64, 0.0, doubling=float(np.log2(4 / 3)))
    right, wrong = (
        growth_of(of._replace(step_s=step_s), lambda _: longer) for step_s in (longer.step_s(of), np.ones(6))
    )
    assert right.simulated_weight > 0.6
    assert wrong.simulated_weight < 0.4
    assert right.simulated < right.unchanged


def test_a_profile_has_what_the_largest_size_took(tmp_path):
    """Each batch by itself. Batches that fall with hosts have the fewest of the largest size: those of all sizes have none."""
    of = rows(hosts=(1, 2, 4), gpus=(1,), batches=(64, 128), planted=FAST)
    slow = of._replace(step_s=of.step_s * np.where((of.hosts == 4) & (of.batch == 64), 1.2, 1.0))
    grown = profile(tmp_path, slow, "ddp").provenance.growth
    (_, few, off), (_, many, other) = grown.offs
    assert (few, many) == (64, 128)
    assert 0.02 < off - other < 0.05
    assert grown.fewest == 0
    fallen = of.where(of.batch * of.hosts == np.where(of.hosts == 1, 128, 256))
    assert fallen.batch.tolist() == [128, 128, 64]
    found = profile(tmp_path, fallen, "ddp").provenance.growth
    assert found.fewest == 64
    assert found.power == pytest.approx(np.log2(fallen.step_s[1] / fallen.step_s[2]), abs=1e-3)
    assert 0.3 < found.power < 0.98


def test_sizes_of_falling_batches_are_told_by_samples():
    """Planted: a sample takes a tenth longer with each doubling. The fit has a second a step besides, and both begin at a measured step."""
    hosts = np.array([1.0, 2.0, 4.0, 8.0])
    of = of_places([(size, 1, 256 / size) for size in hosts], step_s=256 / hosts * 1.1 ** np.log2(hosts))
    first, *more = origins(of, lambda _: Scaling(BYTES, base_s=1.0, sample_s=1.0))
    assert first.grown == pytest.approx(np.log(1.1) ** 2)
    for batch, one in zip((64, 32), more, strict=True):
        assert one.unchanged == pytest.approx(np.log(1.1))
        assert one.simulated == pytest.approx(np.log(1.1 * (1 + 2 * batch) / 2 / (1 + batch)))
    assert falls(of) == (32, pytest.approx(1 - np.log2(1.1)))
    assert falls(of.where(hosts < 3)) == (128, pytest.approx(1 - growth.LAW.first_host * np.log2(1.1)))


@pytest.mark.slow
def test_a_profile_says_how_its_table_grew(tmp_path):
    of = rows(hosts=(1, 2, 4, 8), gpus=(1,), batches=(64, 128), planted=replace(FAST, between_s=1e-15))
    flat, grown = (
        profile(tmp_path, of._replace(step_s=of.step_s * times ** np.log2(of.hosts)), "allreduce")
        for times in (1.0, 1.3)
    )
    assert grown.provenance.growth.per_doubling > 5 * flat.provenance.growth.per_doubling
    assert f"steps grew by {grown.provenance.growth.per_doubling:.1%} with a doubling" in notes(grown)


def test_a_fit_is_judged_by_the_link_that_delays_its_sums():
    """Steps of 124 M parameters on hosts of 8 GPUs, in proportion to their minibatches: either link could be the slower."""
    model = workload.Workload.model_validate(
        {"name": "decoder", "parameters": "124 M", "layers": 20, "step": {"time": "1 s", "batch": 1}}
    )
    hosts = np.array([1.0, 2.0, 4.0])
    minibatches = 8 / hosts
    of = Table(hosts, 8 * hosts, np.full(3, 8.0), 12 * minibatches, np.array([0.231, 0.121, 0.063]), minibatches)
    assert fit(of, Scaling(4.0 * model.parameters, overlap=Overlap.of(model))).misses(of) < 0.1


def test_growth_on_the_second_host_is_computing_as_likely_as_a_link():
    """Planted: two hosts take 17 % longer, minibatches hide the link. Not all of it is the link's, which would grow on."""
    hosts = np.array([1.0, 2.0])
    of = Table(hosts, 8 * hosts, np.full(2, 8.0), 4224 / hosts, np.array([78.2, 45.7]), 192 / hosts)
    found = fit(of, LIKE)
    assert found.apart > 0.08


@pytest.mark.slow
@pytest.mark.parametrize(("seen", "asked"), [((1, 2), 4), ((1, 3, 4), 2)])
def test_rows_of_two_hosts_alone_or_of_none_do_not_tell_both_ways(seen, asked):
    """Whether a byte takes as long on two hosts, or twice as long, the step of other rows is in the interval; and of fitted rows known."""
    other = rows(hosts=(asked,), batches=(16,))
    for both_ways in (1.0, 2.0):
        planted = replace(PLANTED, both_ways=both_ways)
        found = fit(rows(hosts=seen, planted=planted, noise=0.01), LIKE)
        assert found.both_ways == pytest.approx(BOTH_WAYS, rel=0.15)  # links are known before, a little
        off = np.abs(np.log(found.step_s(other) / planted.step_s(other)))
        assert both_ways == 1.0 or (off > 0.05).any()
        assert (off < 1.645 * found.unknown(other) + 0.03).all()
        assert (found.unknown(rows(hosts=seen[1:], batches=(16,))) < 0.05).all()
    assert (fit(rows(noise=0.01), LIKE).unknown(other) < 0.05).all()


@pytest.mark.slow
def test_the_covariance_covers_planted_steps():
    """Of tables with noise, nine times in ten; a third of it does not: the negative control."""
    asked = rows(hosts=(2, 3, 4), gpus=(2,), batches=(16, 128))
    distances = []
    for seed in range(12):
        found = fit(rows(batches=(16, 128), noise=0.05, seed=seed), LIKE)
        distances.append(np.log(found.step_s(asked) / asked.step_s) / found.unknown(asked))
    inside = [np.mean(np.abs(distances) < limit) for limit in (1.645, 1.645 / 3)]
    assert inside[0] > 0.85
    assert inside[1] < 0.8


@pytest.mark.slow
def test_fewer_rows_than_constants_have_a_fit_without_a_residual(tmp_path):
    """Fitted rows come back, and what they do not tell of messages is in the interval."""
    few = rows().where(np.arange(36) % 9 == 4)
    made = profile(tmp_path, few)
    assert made.provenance.repeated == ()
    assert "4 rows for 8 constants leave no residual" in notes(made)
    assert "simulated with the profile, 4 of the rows are off by" in notes(made)
    assert np.abs(off(made, "ddp", few)).max() < 0.05
    assert made.network.spread_at(2) > 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    "steps", ["2,1,4,0.002\n2,1,8,0.001\n2,4,4,0.001\n4,4,4,0.001\n", "1,8,64,0.4\n2,8,64,0.2\n4,8,64,0.1\n"]
)
def test_steps_that_no_law_explains_are_refused_in_a_line(tmp_path, steps):
    """More hosts at one batch of a GPU are not faster."""
    path = tmp_path / "x.csv"
    path.write_text(f"hosts,gpus_per_host,batch,step_s\n{steps}")
    with pytest.raises(WrongSetting, match="step_s: given 'steps that the nearest law misses by a factor"):
        profiled.profile(str(path), "x", "bert_base")


def test_steps_that_grow_at_once_have_a_fit_that_says_how_far_off_its_constants_are(tmp_path):
    """Of GPUs of a host, beyond eight of which something else is full: no mistake of the table's."""
    path = tmp_path / "x.csv"
    path.write_text("hosts,gpus_per_host,batch,step_s\n1,1,32,1.8\n1,2,32,1.8\n1,4,32,2.0\n1,8,32,2.7\n1,16,32,9.0\n")
    made = profiled.profile(str(path), "x", "inception_v3")
    assert "meets the table better" in notes(made)
    assert re.search(r"(\d\d)\.\d% and \d\d", notes(made))


@pytest.mark.parametrize(
    ("heading", "steps"),
    [
        ("hosts,gpus_per_host,batch,Step time (ms)", (1, 4, 410, 500)),
        ("hosts,gpus_per_host,batch,ms_per_iter", (1, 4, 410, 500)),
        ("Nodes,GPUs per node,Batch size,msec/batch", (1, 4, 410, 500)),
        ("sep=,\nnodes,GPUs/node,batch,iter_ms", (1, 4, 410, 500)),
        ("nodes,gpus,batch,step_s", (1, 8, 0.41, 0.5)),
        ("hosts,gpus,batch,samples_per_s", (1, 8, 4 / 0.41, 64 / 0.5)),
        ("nodes,total GPUs,batch,examples per s", (1, 8, 4 / 0.41, 64 / 0.5)),
        ("hosts,gpus,batch,img/s/GPU", (1, 8, 4 / 0.41, 8 / 0.5)),
    ],
)
def test_a_step_has_the_unit_that_its_name_says_and_gpus_are_of_a_host_or_of_all(tmp_path, heading, steps):
    """Further times are those of no step: since a start, of computing, or of a sample."""
    path = tmp_path / "x.csv"
    one, many, *given = steps
    rows = f"1,{one},4,{given[0]!r},9,90,9", f"2,{many},8,{given[1]!r},9,90,9"
    path.write_text("\n".join([f"{heading},elapsed_s,compute_ms,ms/image", *rows]))
    found = table.read(path)
    assert found.step_s == pytest.approx([0.41, 0.5])
    assert (found.hosts.tolist(), found.gpus.tolist(), found.batch.tolist()) == ([1, 2], [1, 8], [4, 8])
    assert guessed(str(path)) == SCALING


@pytest.mark.parametrize("line", ["4 nodes, 8 gpus per node", "step,host,gpu,seconds", "hosts: a, b; gpus: 8"])
def test_a_log_that_speaks_of_hosts_and_gpus_is_no_table_of_sizes(tmp_path, line):
    path = tmp_path / "x.log"
    path.write_text(f"{line}\n0,1,2,0.3\n")
    assert guessed(str(path)) == STEPS


@pytest.mark.parametrize(
    "columns", ["hosts,time_ms,wait_s", "hosts,time", "hosts,elapsed_ms", "hosts,images/ms", "hosts,nodes,step_ms"]
)
def test_a_step_that_no_one_column_has_with_its_unit_is_asked_for(tmp_path, columns):
    path = tmp_path / "x.csv"
    path.write_text(f"gpus_per_host,batch,{columns}\n1,4,1,410,{410 if columns.count(',') > 1 else ''}\n")
    with pytest.raises(
        WrongSetting, match=r"columns: given.*step_s, each once; or one column of another unit, as step_ms"
    ):
        table.read(path)


@pytest.mark.slow
def test_the_scatter_of_links_tells_how_slow_the_slowest_of_many_is():
    """Planted: each row's ring has links of its own. Scatter of all steps alike, and rows of two hosts, tell nothing."""
    planted = replace(PLANTED, uneven=0.2, between_s=4e-9)
    drawn = np.random.default_rng(1)
    of = rows(hosts=(1, 2, 3, 4), batches=(16, 24, 32, 48, 64, 96, 128), planted=planted)
    slowest = np.array([drawn.normal(size=1 if h < 3 else int(h)).max() for h in of.hosts])
    slower = np.where(of.hosts > 1, np.exp(0.2 * slowest), 1.0)
    step_s = replace(planted, uneven=0.0, between_s=slower * planted.between_s).step_s(of)
    of = of._replace(step_s=step_s * np.exp(0.01 * drawn.normal(size=of.size)))
    found = fit(of, LIKE)
    assert found.uneven == pytest.approx(0.2, rel=0.35)
    more = rows(hosts=(64,), gpus=(1,), batches=(16,), planted=planted)
    assert found.step_s(more) == pytest.approx(more.step_s, rel=0.15)
    assert replace(found, uneven=0.0).step_s(more) < 0.8 * more.step_s
    assert fit(rows(hosts=(1, 2), noise=0.1), LIKE).uneven == 0
    assert fit(rows(batches=(16, 24, 32, 48, 64, 96, 128), noise=0.1), LIKE).uneven < 0.1


def test_the_slowest_of_several_links():
    """Known: 1 / sqrt(pi) of two, and the slowest of none but one is any."""
    assert slowest(1) == pytest.approx((0.0, 1.0), abs=2e-3)
    assert slowest(2) == pytest.approx((np.pi**-0.5, (1 - 1 / np.pi) ** 0.5), abs=2e-3)
    drawn = np.random.default_rng(0).normal(size=(4000, 1000)).max(axis=1)
    assert slowest(1000) == pytest.approx((drawn.mean(), drawn.std()), abs=0.02)


@pytest.mark.parametrize("protocol", profiled.PROTOCOLS)
def test_the_closed_form_is_the_simulator_s_within_1_percent(protocol, monkeypatch):
    """Messages that hide, those that just show, and those that dominate.

    Of hosts with one GPU a ring's rounds are shorter, of those with four a tree's.
    """
    for module in (steps, profiled):
        monkeypatch.setattr(module, "TREE_S", 3e-3)
        monkeypatch.setattr(module, "INNER_S", 0.5e-3)
    overlap = OVERLAP if protocol == "ddp" else None
    for byte_s, round_s in ((0.2e-9, 4e-5), (3e-9, 1e-3)):
        planted = replace(GROWN, overlap=overlap, between_s=byte_s, round_s=round_s)
        of = rows(hosts=(1, 3, 8), gpus=(1, 4), batches=(8, 256), planted=planted)
        made = profiled._made(planted, of, MODEL, "x", None)
        assert np.abs(off(made, protocol, of)).max() < 0.01
        if overlap:  # all gradients in one sum: the control
            after = off(made, protocol, of, "algorithm=ring", "bucket_mb=inf")
            assert np.abs(after).max() > 0.01


@pytest.mark.parametrize(("hosts", "each"), [(1, 8), (2, 1), (2, 8), (32, 8)])
def test_a_ring_s_rounds_take_no_longer_than_those_of_trees(hosts, each):
    """Of 256 GPUs a ring has 510 rounds, and trees 10 between hosts and 14 within one."""
    link = Link(gap_s=1e-5, tree_s=5e-5, tree_inner_s=8e-6)
    rounds, tree_s = 2 * (hosts * each - 1), 2 * (np.log2(hosts) * 5e-5 + (each - 1) * 8e-6)
    least_s = min(rounds * 1e-5, tree_s) if hosts > 1 else rounds * 1e-5
    assert rounds * link.among(hosts, each, ring=True).gap_s == pytest.approx(least_s)
    assert link.among(hosts, each, ring=False) == link
    assert link.model_copy(update={"tree_s": None}).among(hosts, each, ring=True).gap_s == 1e-5


GOOD = ["hosts,gpus_per_host,batch,step_s", "1,1,16,0.1", "2,1,16,0.2", "2,2,32,0.3"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "a table with the columns hosts, gpus_per_host, batch, step_s"),
        (GOOD[:1], "rows: given 0"),
        (["hosts,batch,step_s", "1,16,0.1"], "columns: given"),
        ([*GOOD, "2,1,16,"], "row 4: given 'hosts=2.0, gpus_per_host=1.0, batch=16.0, step_s=nan"),
        ([*GOOD, "2,1,16,0"], "row 4"),
        ([*GOOD, "2.5,1,16,0.2"], "row 4"),
        (["nodes,gpus,batch,images/s", '1,8,32,"1,200"', "2,16,32,2400"], "images/s: row 1: given 'images/s=1,200'"),
        (["nodes,gpus,batch,step_s", "1,8,32,0.1", "3,16,32,0.2"], "hosts and GPUs whole"),
        ([*GOOD, "many,1,16,0.2"], "row 4: given 'hosts=many, gpus"),
        ([*GOOD, "2,1"], "row 4"),
        ([*GOOD, "1e9,1,16,0.2"], "row 4"),
        (GOOD[:2], "rows: given 1"),
        ([GOOD[0], *["1,1,16,0.1"] * 2], "one batch on one number of GPUs"),
        ([f"{GOOD[0]},minibatches", "1,1,16,0.1,1", "2,1,16,0.2,32"], "minibatches up to batch, whole"),
        ([f"{GOOD[0]},accumulation", "1,1,16,0.1,1.5"], "batch=16.0, step_s=0.1, minibatches=1.5'"),
    ],
)
def test_a_bad_table_is_refused_in_a_line(tmp_path, lines, said):
    path = tmp_path / "bad.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(WrongSetting) as raised:
        profiled.profile(str(path), "x", "resnet50")
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--probe", "x.json"], "nothing without --from trace"),
        (["--ranks", "3"], "--ranks"),
        (["--batch", "3"], "--batch"),
        (["--protocol", "fmb"], "--protocol: given 'fmb'; allowed: ddp, allreduce"),
        (["--link", "fast"], "--link"),
    ],
)
def test_options_of_other_formats_are_refused(tmp_path, options, said):
    path = written(tmp_path, rows(hosts=(1, 2), gpus=(1,), batches=(16, 64)))
    with pytest.raises(WrongSetting, match=said):
        command.main(
            [str(path), "--from", "scaling", "-o", str(tmp_path / "o.toml"), "--workload", "resnet50", *options]
        )
    assert not (tmp_path / "o.toml").exists()


@pytest.mark.slow
def test_one_host_alone_takes_the_link_that_is_given(tmp_path):
    found = profile(tmp_path, rows(hosts=(1,)), link=link("25 Gbit/s, 20 us", "--link"))
    assert found.network.bandwidth_bytes_per_s == 25e9 / 8
    assert not found.provenance.links_measured
    assert "assumed" in notes(profile(tmp_path, rows(hosts=(1,))))


def test_a_network_by_name_is_what_is_known_of_a_byte_before_rows(tmp_path):
    """Rows of two hosts of which computing hides all messages tell no rate. None is faster than the wire."""
    hidden = rows(hosts=(1, 2), gpus=(1,), batches=(512, 1024), planted=FAST)
    wires = {text: link(text, "--link") for text in ("25 Gbit/s", "200 Gbit/s")}
    found = {text: profile(tmp_path, hidden, "ddp", link=wire) for text, wire in wires.items()}
    for text, made in found.items():
        times = wires[text].bandwidth_bytes_per_s / made.network.bandwidth_bytes_per_s
        assert 1 <= times < 2 * np.exp(LINK.mean)
        assert f"times as long as {text} says" in notes(made)
        assert made.provenance.links_measured
    alone = profile(tmp_path, hidden, "ddp")
    widths = [one.network.spread_at(16) for one in (found["25 Gbit/s"], alone)]
    assert widths[0] < 0.7 * widths[1]


@pytest.mark.parametrize("slow", ["1 Gbit/s", "8 bit/s"])
def test_a_network_whose_name_is_slower_than_rows_show_is_refused(tmp_path, slow):
    """Planted: 3 ns a byte, 2.7 Gbit/s."""
    seen = rows(hosts=(1, 2, 3), gpus=(1,), batches=(16, 64))
    with pytest.raises(
        WrongSetting,
        match=r"--link: given .*; allowed: a network as fast as the rows show: they reach [23]\.\d* Gbit/s",
    ):
        profile(tmp_path, seen, link=link(slow, "--link"))


def test_a_link_that_rows_hide_is_no_slower_than_they_allow(monkeypatch):
    """No slope tells it: by its slopes alone it is as unknown as before any row (the control). At its slow end rows would show messages."""
    seen = rows(hosts=(1, 2), gpus=(4,), batches=(128, 256), planted=FAST, noise=0.01)
    place = [*steps.CONSTANTS].index("between_s")

    def known() -> tuple[Scaling, float]:
        found = fit(seen, LIKE)
        return found, found.covariance[place, place] ** 0.5 / found.between_s

    found, spread = known()
    end = np.exp(1.645 * spread)
    assert spread < 0.8 * fitting.WIDE
    assert found.between_s / end < FAST.between_s < found.between_s * end
    slowest = replace(found, between_s=found.between_s * end)
    assert (slowest.step_s(seen) / seen.step_s).max() > 1.1
    monkeypatch.setattr(fitting, "_no_slower", lambda covariance, byte_s, costs: covariance)
    assert known()[1] > 0.9 * fitting.WIDE
