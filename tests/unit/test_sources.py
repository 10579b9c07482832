"""The list of published sources: the split of each follows the rule that was written first, and each table is well-formed.

No prediction is made of a source that is held out: not here, and not before the end.
"""

import hashlib
import json
import math
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calibration import fit
from calibration.scaling import fitting
from experiments import evidence, figures
from experiments.extrapolation import scores, sizes, t4
from experiments.extrapolation.held import Held, Refused
from experiments.figures import CHOICE, HELD_OUT, KEPT_BACK, SECOND
from sim import run, zoo
from sim.answers.extrapolation import Unknown
from sim.platform import other_sizes
from sim.platform.named_links import LINK
from sim.sweeps.pools import Here

SOURCES = figures.sources()
TABLES = [source.name for source in SOURCES if not source.module]
NUMBERS = ["batch", "minibatches", "hosts", "gpus", "samples_per_s"]


def test_each_source_has_its_figures_and_each_table_is_listed():
    assert sorted(TABLES) == sorted(path.stem for path in (figures.FOLDER / "sizes").glob("*.csv"))
    for source in SOURCES:
        homes = "experiments", "experiments.extrapolation"
        assert not source.module or any(find_spec(f"{home}.{source.module}") for home in homes)
    assert len(SOURCES) >= 20


def digit(cluster: str, place: int) -> int:
    return int(hashlib.sha256(cluster.encode()).hexdigest()[place], 16)


def by_rule(cluster: str) -> str:
    return CHOICE if digit(cluster, 0) % 2 else HELD_OUT


WITHHELD = """
ai_summer_ddp aicr_b200 alcf_polaris azure_p100 baskerville census_scvi cori_gpu
cori_gpu_cosmoflow cori_gpu_sc20 cori_haswell cori_knl deepmd detectiontricks_14
determined_albert dlperf elasticdl frontier graphcore_bow habana_gaudi hkbu_100g_ib hkbu_100g_tcp
hkbu_10g horovod_476 horovod_900 hpcdiy_4090 imagenet_torch_49 kempner lambda_2080ti
lambda_3090_3970x lambda_a100_40gb lambda_a6000 lambda_cloud_a6000 lambda_cloud_rtx6000
lambda_h100_pcie libai litgpt_864 mit_engaging_b200 mosaic_h100 mxnet_14516 mxnet_4968 mxnet_7813
mxnet_872 mxnet_p2 mxnet_titanx oneflow_benchmark open_clip_466 opennmt_89 p3dn_maskrcnn
p3dn_raysgd paddle_4352 paddle_fleetx paddle_perf stylegan_a100 stylegan_v100 summit
tacotron2_152 torch_xpu_1623
"""


LAST = """
benchpress_160 byteps_59 byteps_79 caffe_2903 discovery_v100 espnet_3583 fastpitch_dgx1
fastpitch_dgx_a100 flagperf_a100 flagperf_r300 horovod_998 hpc_ml_k80 mmagic_879 mxnet_5845
paddle_3137 paddle_9526 paddle_benchmark_55 pytorch_20311 rcc_mnist rocm_pytorch_46
rossum_7gforce rossum_nv24 tf_models_4103 tf_multigpu_titanx uab_cheaha
"""


def test_the_split_is_that_of_the_rule():
    """Named here, too: a source that was moved after its predictions were seen would have to be moved in two files."""
    for source in SOURCES:
        kept = bool(source.published_because) and digit(source.cluster, 1) < 6
        rule = CHOICE if source.before else by_rule(source.cluster)
        assert source.split == (KEPT_BACK if kept else rule), source.name
        assert source.published_because in ("", "scaling", "benchmark"), source.name
        assert not (kept and (source.module or source.network or source.gpu)), source.name
    for split, names in ((HELD_OUT, WITHHELD), (KEPT_BACK, LAST)):
        assert sorted(source.name for source in SOURCES if source.split == split) == names.split()
    assert len(WITHHELD.split()) >= sum(not source.before and source.split != KEPT_BACK for source in SOURCES) / 3


def test_of_the_sources_that_were_listed_together_a_third_waited_until_the_end():
    listed = [source for source in SOURCES if source.published_because]
    bad = [source for source in listed if source.published_because == "scaling"]
    for some in (listed, bad):
        assert 0.2 < sum(source.split == KEPT_BACK for source in some) / len(some) < 0.5
    assert len(listed) >= 24
    assert len(bad) >= 14


def test_sources_of_one_cluster_go_together():
    splits: dict[str, set] = {}
    for source in SOURCES:
        if source.split != KEPT_BACK:
            splits.setdefault(source.cluster, set()).add((source.split, source.before))
    assert all(len(found) == 1 for found in splits.values())
    assert len(splits["EC2 p3.16xlarge"]) == 1


@pytest.mark.parametrize("name", TABLES)
def test_a_table_names_its_source_and_what_is_not_stated(name):
    head = (figures.FOLDER / "sizes" / f"{name}.csv").read_text(encoding="utf-8").splitlines()[:3]
    assert head[0].startswith("# ")
    assert head[1].startswith("# Source: ")
    assert head[2].startswith("# Not stated: ")


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_well_formed(name):
    rows = figures.table(f"sizes/{name}")
    assert [*rows] == ["model", "million_parameters", "system", "precision", "summed_by", *NUMBERS]
    assert np.isfinite(rows[NUMBERS].to_numpy(float)).all()
    assert (rows[NUMBERS] > 0).all().all()
    assert (rows.gpus % rows.hosts == 0).all()
    assert (rows.minibatches <= rows.batch).all()
    assert set(rows.summed_by) <= {"allreduce", "servers", "sharded"}
    assert rows.gpus.nunique() >= 3
    of_zoo = rows.model.isin(zoo.names())
    assert (of_zoo | (rows.million_parameters > 0)).all()
    assert rows.million_parameters[of_zoo].isna().all()


def made(sizes_of: list[tuple[int, int]], summed_by: str = "allreduce", precision: str = "fp32") -> pd.DataFrame:
    """ResNet-50 on hosts and GPUs: 0.1 s of computing for 32 samples, and 0.2 s that each doubling of hosts adds."""
    rows = pd.DataFrame(sizes_of, columns=["hosts", "gpus"]).assign(model="resnet50", million_parameters=np.nan)
    step_s = 0.1 + 0.2 * np.log2(rows.hosts)
    same = {"system": "made", "precision": precision, "summed_by": summed_by, "batch": 32, "minibatches": 1}
    return rows.assign(**same, samples_per_s=32 * rows.gpus / step_s)


def predicted(table: pd.DataFrame) -> tuple[list[Held], list[Refused]]:
    return sizes.predicted([*sizes.of_source("made", table)], Here())


@pytest.mark.slow
def test_small_sizes_predict_large_ones():
    rows, refused = predicted(made([(1, 1), (1, 2), (1, 4), (2, 4), (8, 8)]))
    assert [(row.split.split(": ")[1], row.row, row.doublings) for row in rows] == [
        ("1 to 2 hosts, then more", "8 hosts, 8 GPUs, batch 32", 2.0),
        ("1 to 2 GPUs of a host, then more", "1 hosts, 4 GPUs, batch 32", 1.0),
    ]
    assert [row.measured_s for row in rows] == pytest.approx([0.7, 0.1])
    assert [row.trivial_s for row in rows] == pytest.approx([0.3, 0.1])
    assert rows[-1].predicted_s == pytest.approx(0.1, rel=0.04)  # computing grows a little with GPUs, as on other hosts
    assert all(row.low_s < row.predicted_s < row.high_s for row in rows)
    assert not refused


@pytest.mark.slow
def test_predictions_are_those_of_the_two_commands(tmp_path, monkeypatch, capsys):
    """Of a user who writes the fitted rows and the model into files, and asks for more steps, which are alike, and fewer runs."""
    monkeypatch.chdir(tmp_path)
    table = made([(1, 1), (2, 2), (4, 4)]).assign(model="other", million_parameters=50.0)
    (row, *_), _ = predicted(table)
    Path("model.toml").write_text('name = "other"\nparameters = "50 M"\nlayers = 20\n[step]\ntime = "1 s"\nbatch = 1\n')
    Path("table.csv").write_text("hosts,gpus_per_host,batch,step_s\n1,1,32,0.1\n2,1,32,0.3\n")
    fit.main(["table.csv", "--from", "scaling", "--workload", "model.toml", "-o", "profile.toml"])
    capsys.readouterr()
    sizes_of = ["--hosts", "4", "--per-host", "1", "--batch", "32"]
    run.main(["--cluster", "profile.toml", *sizes_of, "--steps", "5", "--replications", "3", "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert (row.hosts, row.gpus, row.measured_s) == (4, 4, pytest.approx(0.5))
    rates = answer["samples_per_s"], *answer["interval"]["samples_per_s"]
    ours = [4 * 32 / seconds for seconds in (row.predicted_s, row.high_s, row.low_s)]
    assert ours == pytest.approx(rates, rel=1e-3)


@pytest.mark.slow
def test_what_the_commands_refuse_is_counted():
    """Steps that fall to a tenth with more hosts have no fit."""
    table = made([(1, 1), (2, 2), (4, 4)])
    rows, (refused,) = predicted(table.assign(samples_per_s=table.samples_per_s * [1, 30, 900]))
    assert not rows
    assert (refused.rows, refused.why.partition(": given")[0]) == (1, "table.csv: step_s")
    assert "1 rows are not predicted: table.csv: step_s" in next(evidence._refused(CHOICE, [refused]))


@pytest.mark.slow
def test_computing_of_further_minibatches_comes_besides():
    """As the fit says of a table that accumulates gradients; the answer is of one minibatch."""
    table = made([(1, 1), (1, 2), (1, 4)]).assign(minibatches=4)
    ((row,), _), ((single,), _) = predicted(table), predicted(table.assign(batch=8, samples_per_s=table.samples_per_s))
    assert row.predicted_s == pytest.approx(row.measured_s, rel=0.05)
    assert row.predicted_s == pytest.approx(4 * single.predicted_s, rel=0.05)


def test_series_are_fitted_apart_and_what_is_no_allreduce_not_at_all():
    some = [(1, 1), (1, 2), (1, 4)]
    both = pd.concat(
        [made(some), made(some, precision="amp"), made(some, "sharded", "bf16"), made(some, "servers", "fp16")]
    )
    series = {one.called for one in sizes.of_source("made", both)}
    assert series == {"resnet50, made, fp32", "resnet50, made, amp"}
    (two,) = sizes.of_source("made", made([(1, 1), (1, 8), (4, 32)]))  # two sizes to fit, and one more
    assert not list(sizes.splits(two.rows))


def test_of_many_series_some_are_predicted_and_of_many_gpus_the_rows_beyond_the_fewest_sizes():
    rows = [(1, 1), (1, 2), (1, 4), (2, 8), (4, 32), (8, 128)]
    tables = pd.concat([made(rows, precision=f"bf{number}") for number in range(20)])
    found = sizes.spread(sizes.of_source("made", tables))
    assert [one.called.split()[-1] for one in found] == [f"bf{number}" for number in (0, 3, 7, 11, 15, 19)]
    hosts = [(one.said, one.out.gpus.tolist()) for one in sizes.splits(found[0].rows) if "of a host" not in one.said]
    assert hosts == [("1 to 2 hosts, then more", [32.0, 128.0])]


def held(source="made", measured_s=0.1, **about) -> Held:
    """Predicted to take 0.1 s, 0.05 to 0.2; 0.1 s where nothing changes, give or take 1 %."""
    row = Held(source, "1 to 2 hosts, then more", 4, 16, 32, 1.0, measured_s, 0.1, 0.05, 0.2, 0.1, 0.01)
    return row._replace(**about)


def test_sources_and_not_rows_say_how_sure_a_coverage_is():
    """A source whose hundred rows are held and one whose only row is not are half and half; two sources might all be like either."""
    rows = [held("held")] * 100 + [held("missed", 1.0)]
    shown, *_ = scores.marks("choice", rows)
    assert shown.endswith("99.0%, 50.0% (95 % confidence: 0.0% to 100.0%) on the average of sources")
    shown, *_ = scores.marks("choice", [held(str(number)) for number in range(5)])
    assert "100.0% (95 % confidence: 100.0% to 100.0%)" in shown


def test_marks_count_slow_misses_and_what_a_prediction_adds_to_nothing_changes():
    """Two misses of which one is slower; half of a doubling is foreseen; of the row that hardly changes a tenth is invented."""
    grows, stays = held("grows", 0.2, predicted_s=0.15), held("stays", 0.1, predicted_s=0.11)
    assert scores.too_slow([held(measured_s=1.0), held(measured_s=0.01), stays]) == 0.5
    assert math.isnan(scores.too_slow([stays]))
    assert [scores.where_it_matters([grows, stays], matters) for matters in (True, False)] == [[grows], [stays]]
    lines = list(scores.marks("choice", [grows, stays]))
    assert lines[-2].startswith(
        "where nothing changes is off by more than 10% (1 rows of 1 sources): error over its error 0.50"
    )
    assert lines[-1].startswith(
        "where nothing changes is off by less than 10% (1 rows of 1 sources): error less its error +10.0%"
    )


def test_a_rule_without_an_interval_is_none_and_a_narrow_one_that_misses_has_a_high_score():
    assert scores.ours([held()]) == pytest.approx(math.log(4))
    assert scores.of_unchanged([held(measured_s=0.2)]) > 10
    assert scores.of_unchanged([held()]) < 0.1
    assert math.isnan(scores.of_unchanged([held(trivial_off=None)]))


def test_a_row_that_is_far_off_is_missed_by_its_pairs_and_what_both_share_cancels():
    """Four rows with the same error, all of it shared, and one that is off by itself."""
    unknown = (Unknown(0.7, 0.7, shared=(("growth", 0.69, 0.69),)),)
    rows = [held(measured_s=off, unknown=unknown) for off in (0.19, 0.19, 0.19, 0.19, 0.3)]
    found = scores.ratios(rows)
    missed = found.off > found.half
    assert (len(missed), missed.sum(), (missed & (found.outside > 0)).sum()) == (10, 4, 4)
    assert not (scores.ratios([row._replace(unknown=(Unknown(0.7, 0.7),)) for row in rows]).off > found.half * 5).any()


def test_sources_that_are_held_out_are_predicted_only_if_it_is_asked_for(monkeypatch):
    """Made rows stand for all sources here."""
    asked = []
    monkeypatch.setattr(sizes, "series_of", lambda split: asked.append(split) or [])
    monkeypatch.setattr(sizes, "predicted", lambda *_: ([held()], []))
    _, shown = evidence.of_splits(held_out=None)
    assert asked == [CHOICE]
    assert shown[0].title == "Further sources, choice"
    _, shown = evidence.of_splits(held_out=True)
    assert asked[1:] == [CHOICE, HELD_OUT, KEPT_BACK, SECOND]
    assert any(
        str(part).startswith("1 further sources, held out: 90 % intervals hold of rows 100.0%") for part in shown
    )


def test_networks_are_named_of_choices_alone_and_what_is_known_of_them_ends_at_the_wire():
    named = [source for source in figures.sources() if source.network]
    assert len(named) >= 10
    for source in named:
        assert source.split == CHOICE, source.name
        known, wire = fitting.named(link := other_sizes.link(source.network, source.name)), link.bandwidth_bytes_per_s
        assert known.low * wire == pytest.approx(1)
        assert known.start * wire == pytest.approx(math.exp(LINK.mean))


def test_series_of_a_named_network_say_it_as_link_does(monkeypatch):
    """Made rows stand for the sources' own here."""
    monkeypatch.setattr(figures, "table", lambda name: made([(1, 4), (2, 8), (4, 16)] if "p3" in name else [(1, 4)]))
    monkeypatch.setattr(t4, "even", lambda name: sizes.steps(made([(1, 4)])))
    found = sizes.with_networks(CHOICE)
    networks = {source.name: source.network for source in SOURCES if source.network and "p3" in source.name}
    assert {one.source: one.link for one in found} == networks
    assert networks
