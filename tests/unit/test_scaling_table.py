"""Tables of step seconds on several numbers of hosts: planted constants are recovered, a profile simulates them, bad tables are refused."""

import re
from dataclasses import replace

import numpy as np
import pytest

from calibration import algorithms
from calibration import fit as command
from calibration.scaling import fitting, profiled, replay, steps, table
from calibration.scaling.changes import growth_of, missed_by
from calibration.scaling.fitting import BOTH_WAYS, MOST_ROUND_S, fit
from calibration.scaling.overlap import Overlap
from calibration.scaling.steps import Scaling
from calibration.scaling.table import Table
from calibration.sources import SCALING, STEPS, guessed
from sim import protocols
from sim.answers import growth
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model import workload
from sim.platform import cluster
from sim.platform.cluster import Link, slowest
from sim.simulation import simulate

MODEL = workload.NAMED["resnet50"]
BYTES = 4.0 * MODEL.parameters
OVERLAP = Overlap.of(MODEL)
PLANTED = Scaling(
    BYTES, 0.05, 0.004, 3e-9, both_ways=1.6, contention=0.05, within_s=2e-9, round_s=4e-5, overlap=OVERLAP
)

GROWN = replace(PLANTED, several=0.05, apart=0.02, doubling=0.006, uneven=0.1)


@pytest.fixture(autouse=True)
def few_simulated(monkeypatch):
    monkeypatch.setattr(replay, "MOST_ROWS", 4)


def rows(hosts=(1, 2, 3, 4), gpus=(1, 2, 4), batches=(16, 64, 128), planted=PLANTED, noise=0.0, seed=0) -> Table:
    grid = np.array([(h, g, b) for h in hosts for g in gpus for b in batches], float)
    made = Table(grid[:, 0], grid[:, 0] * grid[:, 1], grid[:, 1], grid[:, 2], *np.ones((2, len(grid))))
    factors = np.exp(noise * np.random.default_rng(seed).normal(size=len(grid)))
    return made._replace(step_s=planted.step_s(made) * factors)


def written(tmp_path, of: Table, name="table.csv"):
    lines = [f"{h:.0f},{m:.0f},{b:.0f},{s!r}" for h, _, m, b, s, _ in zip(*(c.tolist() for c in of[:6]), strict=True)]
    path = tmp_path / name
    path.write_text("\n".join(["hosts,gpus_per_host,batch,step_s", *lines]))
    return path


def test_planted_constants_are_recovered():
    found = fit(rows(noise=0.002), BYTES, OVERLAP)
    for name in ("base_s", "sample_s", "between_s", "both_ways", "contention", "within_s"):
        assert getattr(found, name) == pytest.approx(getattr(PLANTED, name), rel=0.12), name
    assert found.residual < 0.01


@pytest.mark.slow
def test_without_overlap_they_are_recovered_too_and_the_better_protocol_is_found(tmp_path):
    serial = replace(PLANTED, overlap=None)
    found = fit(rows(planted=serial), BYTES)
    assert found.between_s == pytest.approx(serial.between_s, rel=0.05)
    assert "allreduce meets the table better" in notes_of(written(tmp_path, rows(planted=serial)))
    assert "ddp meets the table better" in notes_of(written(tmp_path, rows()))


FAST = Scaling(BYTES, 0.05, 0.004, 0.4e-9, within_s=0.01e-9, round_s=3e-5, overlap=OVERLAP)


def test_a_link_that_computing_hides_is_not_as_slow_as_the_steps():
    """Planted: no row shows a message, and 32 hosts of small batches do. If steps told the link it would come out ten times too slow."""
    seen, asked = (
        rows(hosts=h, gpus=(4,), batches=b, planted=FAST, noise=0.01) for h, b in (((1, 2), (128, 256)), ((32,), (8,)))
    )
    assert np.allclose(FAST.step_s(seen) / FAST.computing_s(seen), 1, atol=0.1)
    assert FAST.step_s(asked) > 1.3 * FAST.computing_s(asked)
    assert np.abs(np.log(fit(seen, BYTES, OVERLAP).step_s(asked) / FAST.step_s(asked))) < np.log(1.5)


def test_a_slow_link_is_found_where_computing_hides_half_of_it():
    """Ethernet of 1 Gbit/s, at half of its rate: forty times as slow as what is known before."""
    slow = replace(FAST, between_s=16e-9, within_s=2e-9)
    found = fit(rows(hosts=(1, 2, 4), gpus=(1, 2), batches=(512, 640), planted=slow, noise=0.01), BYTES, OVERLAP)
    asked = rows(hosts=(16,), gpus=(2,), batches=(64,), planted=slow)
    assert found.between_s == pytest.approx(slow.between_s, rel=0.1)
    assert found.step_s(asked) == pytest.approx(asked.step_s, rel=0.1)


def test_what_gpus_of_a_host_share_once_does_not_grow_with_them():
    """RTX 6000 Ada, BERT base (Lambda Labs): two GPUs take 7 % longer than one, and eight no longer than two."""
    samples_per_s, gpus = np.array([136.0, 255, 513, 1039]), np.array([1.0, 2, 4, 8])
    host = Table(np.ones(4), gpus, gpus, np.full(4, 96.0), gpus * 96 / samples_per_s, np.ones(4))
    model = workload.NAMED["bert_base"]
    found = fit(host.where(gpus <= 2), 4.0 * model.parameters, Overlap.of(model))
    more = host.where(gpus > 2)
    assert found.step_s(more) == pytest.approx(more.step_s, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "planted"), [("several", 0.15), ("apart", 0.1), ("doubling", 0.04)])
def test_planted_growth_of_computing_is_recovered_and_none_is_invented(name, planted):
    """And 16 hosts are predicted from 4; without growth they are, too, and a fit whose growth is struck out misses them: the control."""
    for share in (0.0, planted):
        grown = replace(FAST, **{name: share})
        seen, asked = (rows(h, (1, 2, 4), (128, 256), grown, noise=0.003) for h in ((1, 2, 3, 4, 8), (16,)))
        found = fit(seen, BYTES, OVERLAP)
        assert getattr(found, name) == pytest.approx(share, abs=0.025)
        assert found.step_s(asked) == pytest.approx(grown.step_s(asked), rel=0.025)
    assert np.abs(np.log(replace(found, **{name: 0.0}).step_s(asked) / asked.step_s)).min() > 0.05


def test_a_profile_computes_longer_among_others():
    """The simulator has the growth of computing, once, and no longer alone: its rows are those of the closed form."""
    grown = replace(PLANTED, several=0.3, apart=0.2, doubling=0.05)
    of = rows(hosts=(1, 2), gpus=(1, 2), batches=(256,), planted=grown)
    made = profiled._made(grown, of, MODEL, "x", None)
    settings = profiled.settings_of(grown.algorithm, "ddp")
    assert np.abs(replay.off(made, MODEL, "ddp", settings, of)).max() < 0.03
    flat = profiled._made(PLANTED, of, MODEL, "x", None)
    off = replay.off(flat, MODEL, "ddp", settings, of)
    assert (abs(off[0]) < 0.01, off[1] < -0.25) == (True, True)


def test_what_constants_do_not_explain_is_said_and_never_fitted_away(tmp_path):
    """Planted: steps of two hosts take 30 % longer than any constants say. Where none do, rows are off by next to nothing: the control."""
    of = rows(hosts=(1, 2, 4, 8), gpus=(4,), batches=(64, 128), planted=FAST)
    smooth = of._replace(step_s=of.step_s * np.where(of.hosts == 2, 1.3, 1.0))
    off = []
    for name, table_of in (("odd", smooth), ("even", of)):
        known = profiled.profile(str(written(tmp_path, table_of, f"{name}.csv")), "x", "resnet50", "ddp")
        (said,) = (note for note in known.provenance.notes if "simulated with the profile" in note)
        off.append(float(said.partition("off by ")[2].partition("%")[0]))
        assert known.costs["resnet50"].error * 100 == pytest.approx(off[-1], rel=0.6, abs=1.0)
    assert off[0] > 5
    assert off[1] < 3


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
    assert grown.unchanged > 5 * flat.unchanged
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


def test_a_profile_says_how_its_table_grew(tmp_path):
    """A table that grows by 30 % a doubling has a slow end far beyond; one whose steps stay has none; at measured sizes neither."""
    of, far = rows(hosts=(1, 2, 4, 8), gpus=(1,), batches=(64, 128), planted=FAST), {}
    for name, times in (("grown", 1.3), ("flat", 1.0)):
        alike = replace(FAST, between_s=1e-15).step_s(of) * times ** np.log2(of.hosts)
        made = profiled.profile(
            str(written(tmp_path, of._replace(step_s=alike), f"{name}.csv")), "x", "resnet50", "allreduce"
        )
        grown = made.provenance.growth
        assert any(f"steps grew by {grown.per_doubling:.1%} with a doubling" in note for note in made.provenance.notes)
        text = protocols.make("allreduce", list(made.provenance.settings))
        for hosts in (8, 32):
            place = made.model_copy(update={"hosts": (made.hosts[0].model_copy(update={"count": hosts}),)})
            job = Scenario(text, MODEL, hosts, 3, 1, batch=64, cluster=place).without_stragglers()
            found = simulate(job, "event", 2)
            far[name, hosts] = found.samples_per_s / found.interval[0]
    assert far["grown", 32] > 1.5
    assert far["flat", 32] < 1.3
    assert far["grown", 32] > 1.1 * far["grown", 8]


@pytest.mark.slow
def test_accumulated_gradients_hide_messages_behind_the_last_minibatch(tmp_path):
    """Planted: the link is found by rows of 8 minibatches; as one minibatch of all samples they hide it: the negative control."""
    made = rows(hosts=(1, 2, 4), gpus=(1, 4), batches=(128, 512))
    made = made._replace(minibatches=np.full(made.size, 8.0))
    made = made._replace(step_s=PLANTED.step_s(made))
    found = fit(made, BYTES, OVERLAP)
    assert found.between_s == pytest.approx(PLANTED.between_s, rel=0.25)
    path = written(tmp_path, made)
    lines = path.read_text().splitlines()
    for name in ("minibatches", "accumulation"):
        path.write_text("\n".join([f"{lines[0]},{name}", *(f"{line},8" for line in lines[1:])]))
        assert (table.read(path).minibatches == 8).all()
    said = notes_of(path)
    assert "12 of 12 rows accumulate gradients of up to 8 minibatches" in said
    assert "--protocol ddp" in said
    assert "--set accumulate=N" in said
    assert float(re.search(r"of the rows are off by ([\d.]+)%", said)[1]) < 5
    alone = fit(made._replace(minibatches=np.ones(made.size)), BYTES, OVERLAP)
    assert alone.between_s > 1.7 * found.between_s


def test_a_fit_is_judged_by_the_link_that_delays_its_sums():
    """Steps of 124 M parameters on hosts of 8 GPUs, in proportion to their minibatches: either link could be the slower."""
    model = workload.Workload.model_validate(
        {"name": "decoder", "parameters": "124 M", "layers": 20, "step": {"time": "1 s", "batch": 1}}
    )
    hosts = np.array([1.0, 2.0, 4.0])
    minibatches = 8 / hosts
    of = Table(hosts, 8 * hosts, np.full(3, 8.0), 12 * minibatches, np.array([0.231, 0.121, 0.063]), minibatches)
    assert fit(of, 4.0 * model.parameters, Overlap.of(model)).misses(of) < 0.1


def test_growth_on_the_second_host_is_computing_as_likely_as_a_link():
    """Planted: two hosts take 17 % longer, minibatches hide the link. Not all of it is the link's, which would grow on."""
    hosts = np.array([1.0, 2.0])
    of = Table(hosts, 8 * hosts, np.full(2, 8.0), 4224 / hosts, np.array([78.2, 45.7]), 192 / hosts)
    found = fit(of, BYTES, OVERLAP)
    assert found.apart > 0.08


def test_what_grows_with_gpus_of_a_host_is_no_cost_of_a_round(monkeypatch):
    """Planted without hosts beyond 2; if a round may cost 10 ms it takes that up, and 16 hosts are too slow: the control."""
    seen, more = rows(hosts=(1, 2), noise=0.01), rows(hosts=(16,), gpus=(4,), batches=(16,))
    found = replace(fit(seen, BYTES, OVERLAP), both_ways=1.6, between_s=3e-9)
    assert 0 < found.round_s <= MOST_ROUND_S
    assert found.contention == pytest.approx(0.05, abs=0.02)
    assert found.step_s(more) == pytest.approx(more.step_s, rel=0.1)
    monkeypatch.setattr(steps, "TREE_S", 1.0)
    assert replace(found, contention=0.0, round_s=1e-3).step_s(more) > 1.5 * more.step_s


def notes_of(path) -> str:
    return " ".join(profiled.profile(str(path), "x", "resnet50").provenance.notes)


@pytest.mark.slow
@pytest.mark.parametrize(("seen", "asked"), [((1, 2), 4), ((1, 3, 4), 2)])
def test_rows_of_two_hosts_alone_or_of_none_do_not_tell_both_ways(seen, asked):
    """Whether a byte takes as long on two hosts, or twice as long, the step of other rows is in the interval; and of fitted rows known."""
    other = rows(hosts=(asked,), batches=(16,))
    for both_ways in (1.0, 2.0):
        planted = replace(PLANTED, both_ways=both_ways)
        found = fit(rows(hosts=seen, planted=planted, noise=0.01), BYTES, OVERLAP)
        assert found.both_ways == pytest.approx(BOTH_WAYS, rel=0.15)  # links are known before, a little
        off = np.abs(np.log(found.step_s(other) / planted.step_s(other)))
        assert both_ways == 1.0 or (off > 0.05).any()
        assert (off < 1.645 * found.unknown(other) + 0.03).all()
        assert (found.unknown(rows(hosts=seen[1:], batches=(16,))) < 0.05).all()
    assert (fit(rows(noise=0.01), BYTES, OVERLAP).unknown(other) < 0.05).all()


@pytest.mark.slow
def test_the_covariance_covers_planted_steps():
    """Of tables with noise, nine times in ten; a third of it does not: the negative control."""
    asked = rows(hosts=(2, 3, 4), gpus=(2,), batches=(16, 128))
    distances = []
    for seed in range(12):
        found = fit(rows(batches=(16, 128), noise=0.05, seed=seed), BYTES, OVERLAP)
        distances.append(np.log(found.step_s(asked) / asked.step_s) / found.unknown(asked))
    inside = [np.mean(np.abs(distances) < limit) for limit in (1.645, 1.645 / 3)]
    assert inside[0] > 0.85
    assert inside[1] < 0.8


@pytest.mark.slow
def test_fewer_rows_than_constants_have_a_fit_without_a_residual(tmp_path):
    """Fitted rows come back, and what they do not tell is in the interval, whose width is not zero."""
    few = rows().where(np.arange(36) % 9 == 4)
    made = profiled.profile(str(written(tmp_path, few)), "x", "resnet50")
    assert made.provenance.repeated == ()
    said = " ".join(made.provenance.notes)
    assert "4 rows for 8 constants leave no residual" in said
    assert "simulated with the profile, 4 of the rows are off by" in said
    settings = ["algorithm=ring"]
    assert np.abs(replay.off(made, MODEL, "ddp", settings, few)).max() < 0.05
    place = made.model_copy(update={"hosts": (made.hosts[0].model_copy(update={"count": 2, "cores": 2, "gpus": 2}),)})
    job = Scenario(protocols.make("ddp", settings), MODEL, 4, 3, 1, batch=64, cluster=place).without_stragglers()
    low, high = simulate(job, replications=2).interval
    assert high / low > 1.1


@pytest.mark.parametrize(
    "steps",
    [
        "2,1,4,0.002\n2,1,8,0.001\n2,4,4,0.001\n4,4,4,0.001\n",
        pytest.param("1,8,64,0.4\n2,8,64,0.2\n4,8,64,0.1\n", marks=pytest.mark.slow),
    ],
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
    said = " ".join(made.provenance.notes)
    assert "meets the table better" in said
    assert re.search(r"(\d\d)\.\d% and \d\d", said)


@pytest.mark.parametrize(
    "heading",
    [
        *(
            f"hosts,gpus_per_host,batch,{name}"
            for name in ("step_ms", "time_ms", "ms/step", "Step time (ms)", "ms_per_iter")
        ),
        "Nodes,GPUs per node,Batch size,msec/batch",
        "sep=,\nnodes,GPUs/node,batch,iter_ms",
    ],
)
def test_a_step_has_the_unit_that_its_name_says_and_the_table_is_known_by_its_heading(tmp_path, heading):
    """Further times are those of no step: since a start, of computing, or rates."""
    path = tmp_path / "x.csv"
    path.write_text(f"{heading},elapsed_s,compute_ms,images/s,ms/image\n1,1,4,410,9,90,9,9\n2,4,8,500,9,90,9,9\n")
    found = table.read(path)
    assert found.step_s == pytest.approx([0.41, 0.5])
    assert (found.hosts.tolist(), found.gpus.tolist(), found.batch.tolist()) == ([1, 2], [1, 8], [4, 8])
    assert guessed(str(path)) == SCALING


@pytest.mark.parametrize(
    ("heading", "rates"),
    [
        ("hosts,gpus,batch,samples_per_s", (100, 800)),
        ("Nodes,GPUs,batch size,images/sec", (100, 800)),
        ("nodes,total GPUs,batch,examples per s", (100, 800)),
        ("hosts,gpus,batch,img/s/GPU", (100, 50)),
        ("hosts,gpus,batch,images_per_sec_per_gpu", (100, 50)),
    ],
)
def test_a_rate_is_of_all_gpus_or_of_one_as_its_name_says(tmp_path, heading, rates):
    path = tmp_path / "x.csv"
    path.write_text(f"{heading}\n1,1,32,{rates[0]}\n2,16,32,{rates[1]}\n")
    found = table.read(path)
    assert found.most.tolist() == [1, 8]
    assert found.step_s == pytest.approx([0.32, 0.64])
    assert guessed(str(path)) == SCALING
    assert "read: 320 ms on 1 GPU to 640 ms on 16 GPUs" in profiled.profile(str(path), "x", "resnet50").provenance.notes


def test_gpus_of_all_hosts_are_those_of_each_times_these(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("nodes,gpus,batch,step_s\n1,8,32,0.1\n2,16,32,0.2\n")
    assert table.read(path).most.tolist() == [8, 8]
    path.write_text("nodes,gpus,batch,step_s\n1,8,32,0.1\n3,16,32,0.2\n")
    with pytest.raises(WrongSetting, match=r"row 2: given .*hosts and GPUs whole"):
        table.read(path)


@pytest.mark.parametrize("line", ["4 nodes, 8 gpus per node", "step,host,gpu,seconds", "hosts: a, b; gpus: 8"])
def test_a_log_that_speaks_of_hosts_and_gpus_is_no_table_of_sizes(tmp_path, line):
    path = tmp_path / "x.log"
    path.write_text(f"{line}\n0,1,2,0.3\n")
    assert guessed(str(path)) == STEPS


@pytest.mark.parametrize(
    "columns",
    [
        "hosts,time_ms,wait_s",
        "hosts,time",
        "hosts,elapsed_ms",
        "hosts,images/ms",
        "hosts,nodes",
        "hosts,nodes,step_ms",
        "hosts,ms/image",
    ],
)
def test_a_step_that_no_one_column_has_with_its_unit_is_asked_for(tmp_path, columns):
    path = tmp_path / "x.csv"
    path.write_text(f"gpus_per_host,batch,{columns}\n1,4,1,410,{410 if columns.count(',') > 1 else ''}\n")
    with pytest.raises(
        WrongSetting, match=r"columns: given.*step_s, each once; or one column of another unit, as step_ms"
    ):
        table.read(path)


@pytest.mark.slow
def test_one_arrangement_of_several_hosts_leaves_the_algorithm_unknown(tmp_path):
    one = rows(hosts=(1, 4), gpus=(4,))
    assert "--set algorithm=unknown" in notes_of(written(tmp_path, one))
    assert "--set algorithm=ring" in notes_of(written(tmp_path, rows(hosts=(1, 2, 4))))


@pytest.mark.slow
def test_the_scatter_of_links_tells_how_slow_the_slowest_of_many_is():
    """Planted: each row's ring has links of its own. Scatter of all steps alike, and rows of two hosts, tell nothing."""
    planted = replace(PLANTED, uneven=0.2, between_s=4e-9)
    drawn = np.random.default_rng(1)
    of = rows(hosts=(1, 2, 3, 4), batches=(16, 24, 32, 48, 64, 96, 128), planted=planted)
    slowest = np.array([drawn.normal(size=1 if h < 3 else int(h)).max() for h in of.hosts])
    slower = np.where(of.hosts > 1, np.exp(0.2 * slowest), 1.0)
    alike = replace(planted, uneven=0.0)
    step_s = np.array([_one(alike, of, row, times) for row, times in enumerate(slower)])
    of = of._replace(step_s=step_s * np.exp(0.01 * drawn.normal(size=of.size)))
    found = fit(of, BYTES, OVERLAP)
    assert found.uneven == pytest.approx(0.2, rel=0.35)
    more = rows(hosts=(64,), gpus=(1,), batches=(16,), planted=planted)
    assert found.step_s(more) == pytest.approx(more.step_s, rel=0.15)
    assert replace(found, uneven=0.0).step_s(more) < 0.8 * more.step_s
    assert fit(rows(hosts=(1, 2), noise=0.1), BYTES, OVERLAP).uneven == 0
    assert fit(rows(batches=(16, 24, 32, 48, 64, 96, 128), noise=0.1), BYTES, OVERLAP).uneven < 0.1


def _one(of: Scaling, rows: Table, row: int, times: float) -> float:
    """The step of one row where a byte takes so many times as long."""
    only = rows.where(np.arange(rows.size) == row)
    return float(replace(of, between_s=of.between_s * times).step_s(only)[0])


def test_the_slowest_of_several_links():
    """Known: 1 / sqrt(pi) of two, and the slowest of none but one is any."""
    assert slowest(1) == pytest.approx((0.0, 1.0), abs=2e-3)
    assert slowest(2) == pytest.approx((np.pi**-0.5, (1 - 1 / np.pi) ** 0.5), abs=2e-3)
    drawn = np.random.default_rng(0).normal(size=(4000, 1000)).max(axis=1)
    assert slowest(1000) == pytest.approx((drawn.mean(), drawn.std()), abs=0.02)


def test_messages_that_take_longer_become_visible():
    some = rows(hosts=(4,), gpus=(4,), batches=(16, 512))
    slower = replace(PLANTED, between_s=3 * PLANTED.between_s).step_s(some) / PLANTED.step_s(some)
    assert slower[0] > 1.5 > slower[1] > 1


@pytest.mark.parametrize("algorithm", sorted({*algorithms.prior(4, 4)}))
@pytest.mark.parametrize("protocol", profiled.PROTOCOLS)
def test_the_closed_form_is_the_simulator_s_within_1_percent(protocol, algorithm, monkeypatch):
    """Messages that hide, those that just show, and those that dominate.

    Of hosts with one GPU a ring's rounds are shorter, of those with four a tree's.
    """
    for module in (steps, profiled):
        monkeypatch.setattr(module, "TREE_S", 3e-3)
        monkeypatch.setattr(module, "INNER_S", 0.5e-3)
    monkeypatch.setattr(replay, "MOST_ROWS", 99)
    overlap = OVERLAP if protocol == "ddp" else None
    for byte_s, round_s in ((0.2e-9, 4e-5), (3e-9, 1e-3)):
        planted = replace(GROWN, overlap=overlap, algorithm=algorithm, between_s=byte_s, round_s=round_s)
        of = rows(hosts=(1, 2, 3, 4, 6, 8), gpus=(1, 4), batches=(8, 256), planted=planted)
        made = profiled._made(planted, of, MODEL, "x", None)
        off = replay.off(made, MODEL, protocol, profiled.settings_of(algorithm, protocol), of)
        assert off.size == of.size
        assert np.abs(off).max() < 0.01
        if overlap:  # all gradients in one sum: the control
            after = replay.off(made, MODEL, protocol, [f"algorithm={algorithm}", "bucket_mb=inf"], of)
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


@pytest.mark.slow
def test_a_profile_simulates_its_table(tmp_path, capsys):
    """Two hosts' both ways, GPUs of a host and uneven links are simulated as in the closed form."""
    source, made = written(tmp_path, rows(noise=0.01)), tmp_path / "made.toml"
    command.main([str(source), "--from", "scaling", "--workload", "resnet50", "-o", str(made)])
    assert "--protocol ddp --set algorithm=ring" in capsys.readouterr().out
    known = cluster.read(str(made))
    assert (known.provenance.hosts, known.provenance.workers, known.provenance.repeated) == (4, 16, ())
    link = known.network
    assert [hosts for hosts, _ in link.spread_by_hosts][:4] == [1, 2, 3, 4]
    assert link.spread_at(64) > link.spread_at(4) > 0
    settings, of = profiled.settings_of(PLANTED.algorithm, "ddp"), rows(hosts=(4,), gpus=(1, 4), batches=(16,))
    for change, row, least in (("uneven", 0, 1.3), ("contention", 1, 1.3), ("contention", 0, None)):
        changed = known.model_copy(update={"network": link.model_copy(update={change: 0.4})})
        one = of.where(np.arange(2) == row)
        times = np.exp(
            replay.off(changed, MODEL, "ddp", settings, one) - replay.off(known, MODEL, "ddp", settings, one)
        )
        assert times == pytest.approx(1.0) if least is None else times > least


GOOD = ["hosts,gpus_per_host,batch,step_s", "1,1,16,0.1", "2,1,16,0.2", "2,2,32,0.3"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "a table with the columns hosts, gpus_per_host, batch, step_s"),
        (GOOD[:1], "rows: given 0"),
        (["hosts,batch,step_s", "1,16,0.1"], "columns: given"),
        ([*GOOD, "2,1,16,nan"], "row 4: given '2"),
        ([*GOOD, "2,1,16,inf"], "row 4"),
        ([*GOOD, "2,1,16,0"], "row 4"),
        ([*GOOD, "2.5,1,16,0.2"], "row 4"),
        ([*GOOD, "many,1,16,0.2"], "row 4: given 'many, 1"),
        ([*GOOD, "2,1"], "row 4"),
        ([*GOOD, "1e9,1,16,0.2"], "row 4"),
        (GOOD[:2], "rows: given 1"),
        ([GOOD[0], *["1,1,16,0.1"] * 2], "one batch on one number of GPUs"),
        ([GOOD[0], *["1,1,16,0.1"] * 3], "one batch on one number of GPUs"),
        ([f"{GOOD[0]},minibatches", "1,1,16,0.1,1", "2,1,16,0.2,32"], "minibatches up to batch, whole"),
        ([f"{GOOD[0]},accumulation", "1,1,16,0.1,1.5"], "row 1: given '1.0, 1.0, 16.0, 0.1, 1.5'"),
    ],
)
def test_a_bad_table_is_refused_in_a_line(tmp_path, lines, said):
    path = tmp_path / "bad.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(WrongSetting) as raised:
        profiled.profile(str(path), "x", "resnet50")
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_bytes_that_are_no_table_are_refused(tmp_path):
    for name, content in (("x.csv", b"\x00\xff" * 99), ("x.parquet", b"PAR1" + b"\x00" * 9)):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(WrongSetting):
            table.read(tmp_path / name)
    with pytest.raises(WrongSetting):
        table.read(tmp_path / "none.csv")


@pytest.mark.slow
def test_order_and_further_columns_change_nothing(tmp_path):
    of = rows()
    order = np.random.default_rng(0).permutation(of.size)
    path = written(tmp_path, of.where(order))
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0] + ",note", *(f"{line},x" for line in lines[1:])]))
    kept = [profiled.profile(str(one), "x", "resnet50") for one in (path, written(tmp_path, of, "sorted.csv"))]
    assert kept[0].network.bandwidth_bytes_per_s == pytest.approx(kept[1].network.bandwidth_bytes_per_s, rel=1e-3)


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
    path = written(tmp_path, rows(hosts=(1,)))
    from sim.platform.other_sizes import link

    found = profiled.profile(str(path), "x", "resnet50", link=link("25 Gbit/s, 20 us", "--link"))
    assert found.network.bandwidth_bytes_per_s == 25e9 / 8
    assert not found.provenance.links_measured
    assert "assumed" in notes_of(path)


def test_a_network_by_name_is_what_is_known_of_a_byte_before_rows(tmp_path):
    """Rows of two hosts of which computing hides all messages tell no rate. None is faster than the wire."""
    from sim.platform.named_links import LINK
    from sim.platform.other_sizes import link

    hidden = rows(hosts=(1, 2), gpus=(1,), batches=(512, 1024), planted=FAST)
    path = str(written(tmp_path, hidden))
    wires = {text: link(text, "--link") for text in ("25 Gbit/s", "200 Gbit/s")}
    found = {text: profiled.profile(path, "x", "resnet50", "ddp", link=wire) for text, wire in wires.items()}
    for text, made in found.items():
        times = wires[text].bandwidth_bytes_per_s / made.network.bandwidth_bytes_per_s
        assert 1 <= times < 2 * np.exp(LINK.mean)
        assert any(f"times as long as {text} says" in note for note in made.provenance.notes)
        assert made.provenance.links_measured
    alone = profiled.profile(path, "x", "resnet50", "ddp")
    widths = [one.network.spread_at(16) for one in (found["25 Gbit/s"], alone)]
    assert widths[0] < 0.7 * widths[1]


@pytest.mark.parametrize("slow", ["1 Gbit/s", "8 bit/s"])
def test_a_network_whose_name_is_slower_than_rows_show_is_refused(tmp_path, slow):
    """Planted: 3 ns a byte, 2.7 Gbit/s."""
    from sim.platform.other_sizes import link

    path = str(written(tmp_path, rows(hosts=(1, 2, 3), gpus=(1,), batches=(16, 64))))
    with pytest.raises(
        WrongSetting,
        match=r"--link: given .*; allowed: a network as fast as the rows show: they reach [23]\.\d* Gbit/s",
    ):
        profiled.profile(path, "x", "resnet50", link=link(slow, "--link"))


def test_a_link_that_rows_hide_is_no_slower_than_they_allow(monkeypatch):
    """No slope tells it: by its slopes alone it is as unknown as before any row (the control). At its slow end rows would show messages."""
    seen = rows(hosts=(1, 2), gpus=(4,), batches=(128, 256), planted=FAST, noise=0.01)
    place = [*steps.CONSTANTS].index("between_s")

    def known() -> tuple[Scaling, float]:
        found = fit(seen, BYTES, OVERLAP)
        return found, found.covariance[place, place] ** 0.5 / found.between_s

    found, spread = known()
    end = np.exp(1.645 * spread)
    assert spread < 0.8 * fitting.WIDE
    assert found.between_s / end < FAST.between_s < found.between_s * end
    slowest = replace(found, between_s=found.between_s * end)
    assert (slowest.step_s(seen) / seen.step_s).max() > 1.1
    monkeypatch.setattr(fitting, "_no_slower", lambda covariance, byte_s, costs: covariance)
    assert known()[1] > 0.9 * fitting.WIDE
