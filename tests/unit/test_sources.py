"""The list of published sources: the split of each follows the rule that was written first, and each table is well-formed.

No prediction is made of a source that is held out: not here, and not before the end.
"""

import hashlib
import math
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calibration.scaling import fitting
from experiments import evidence, figures
from experiments.extrapolation import scores, sizes
from experiments.extrapolation.held import Held
from experiments.figures import CHOICE, HELD_OUT, LISTED
from experiments.kit import kept
from sim import zoo
from sim.answers.ignorance import LAW, Law
from sim.platform import other_sizes
from sim.platform.named_links import LINK

DATA = Path(__file__).parents[2] / "docs" / "data" / "evidence.json"
SOURCES = figures.sources()
TABLES = [source.name for source in SOURCES if not source.module]
NUMBERS = ["batch", "minibatches", "hosts", "gpus", "samples_per_s"]


def test_each_source_has_its_figures_and_each_table_is_listed():
    assert sorted(TABLES) == sorted(path.stem for path in (figures.FOLDER / "sizes").glob("*.csv"))
    for source in SOURCES:
        assert not source.module or import_module(f"experiments.extrapolation.{source.module}")
    assert len(SOURCES) >= 20


def digit(cluster: str, place: int) -> int:
    return int(hashlib.sha256(cluster.encode()).hexdigest()[place], 16)


def by_rule(cluster: str) -> str:
    return CHOICE if digit(cluster, 0) % 2 else HELD_OUT


WITHHELD = """
aicr_b200 alcf_polaris azure_p100 baskerville cori_gpu cori_gpu_cosmoflow cori_gpu_sc20
cori_haswell cori_knl deepmd dlperf elasticdl frontier habana_gaudi hkbu_100g_ib hkbu_100g_tcp
hkbu_10g horovod_476 horovod_900 hpcdiy_4090 imagenet_torch_49 kempner lambda_2080ti
lambda_3090_3970x lambda_a100_40gb lambda_a6000 lambda_cloud_a6000 lambda_cloud_rtx6000
lambda_h100_pcie libai litgpt_864 mit_engaging_b200 mosaic_h100 mxnet_14516 mxnet_4968 mxnet_7813
mxnet_872 mxnet_p2 mxnet_titanx oneflow_benchmark open_clip_466 opennmt_89 p3dn_maskrcnn
p3dn_raysgd paddle_4352 paddle_fleetx paddle_perf stylegan_a100 stylegan_v100 summit
tacotron2_152 torch_xpu_1623
"""


KEPT_BACK = """
benchpress_160 byteps_59 caffe_2903 espnet_3583 fastpitch_dgx1 fastpitch_dgx_a100 horovod_998
mmagic_879 mxnet_5845 paddle_3137 rossum_7gforce rossum_nv24
"""


def test_the_split_is_that_of_the_rule():
    """Named here, too: a source that was moved after its predictions were seen would have to be moved in two files."""
    for source in SOURCES:
        assert (source.becomes or source.split) == (CHOICE if source.before else by_rule(source.cluster)), source.name
    held = [source.name for source in SOURCES if source.split == HELD_OUT]
    assert sorted(held) == WITHHELD.split()
    assert len(held) >= sum(not source.before and source.split != LISTED for source in SOURCES) / 3


def test_sources_that_are_listed_follow_their_rule_and_are_predicted_by_nobody(monkeypatch):
    monkeypatch.setattr(sizes, "of_source", lambda name, *_: iter([name]))
    predicted = {*sizes.of_split(CHOICE), *sizes.of_split(HELD_OUT)}
    for source in SOURCES:
        listed = source.split == LISTED
        assert bool(source.becomes) == listed, source.name
        assert source.kept_back == (bool(source.published_because) and digit(source.cluster, 1) < 6), source.name
        assert source.kept_back or not listed, source.name
        assert source.published_because in ("", "scaling", "benchmark"), source.name
        elsewhere = source.module or source.network or source.gpu or source.name in predicted
        assert not (listed and elsewhere), source.name


def test_a_third_of_the_sources_that_were_listed_wait_until_the_end():
    listed = [source for source in SOURCES if source.published_because]
    assert sorted(source.name for source in listed if source.kept_back) == KEPT_BACK.split()
    bad = [source for source in listed if source.published_because == "scaling"]
    for some in (listed, bad):
        assert 0.2 < sum(source.kept_back for source in some) / len(some) < 0.5
    assert len(listed) >= 24
    assert len(bad) >= 14


def test_sources_of_one_cluster_go_together():
    splits: dict[str, set] = {}
    for source in SOURCES:
        splits.setdefault(source.cluster, set()).add((source.becomes or source.split, source.before))
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


def test_small_sizes_predict_large_ones():
    rows = list(sizes.of_source("made", made([(1, 1), (1, 4), (1, 8), (2, 16), (8, 64)])))
    assert [(row.split.split(": ")[1], row.row, row.doublings) for row in rows] == [
        ("1 to 2 hosts, then more", "8 hosts, 64 GPUs, batch 32", 2.0),
        ("1 to 4 GPUs of a host, then more", "1 hosts, 8 GPUs, batch 32", 1.0),
    ]
    assert [row.measured_s for row in rows] == pytest.approx([0.7, 0.1])
    assert [row.trivial_s for row in rows] == pytest.approx([0.3, 0.1])
    assert rows[-1].predicted_s == pytest.approx(0.1, rel=0.04)  # computing grows a little with GPUs, as on other hosts


def test_series_are_fitted_apart_and_what_is_no_allreduce_not_at_all():
    some = [(1, 1), (1, 2), (1, 4)]
    both = pd.concat(
        [made(some), made(some, precision="amp"), made(some, "sharded", "bf16"), made(some, "servers", "fp16")]
    )
    series = {row.split.split(":")[0] for row in sizes.of_source("made", both)}
    assert series == {"resnet50, made, fp32", "resnet50, made, amp"}
    assert not list(sizes.of_source("made", made([(1, 1), (1, 8), (4, 32)])))  # two sizes to fit, and one more


def test_another_model_has_the_parameters_that_its_table_says():
    assert sizes.workload("jasper", 333.0).parameters == pytest.approx(333e6, rel=1e-3)


def test_sources_and_not_rows_say_how_sure_a_coverage_is():
    """A source whose hundred rows are held and one whose only row is not are half and half; two sources might all be like either."""
    held, missed = (Held("held", "", "row", 1.0, took_s, 0.1, 0.0, 0.1) for took_s in (0.1, 1.0))
    rows = {"held": [held] * 100, "missed": [missed._replace(source="missed")]}
    laws = dict.fromkeys(rows, LAW)
    assert evidence._of_sources(rows, laws) == "50.0% on the average of sources (95 % confidence: 0.0% to 100.0%)"
    alike = {str(number): [held] for number in range(5)}
    assert "100.0% to 100.0%" in evidence._of_sources(alike, dict.fromkeys(("held", *alike), LAW))


def test_a_rule_without_an_interval_is_none_and_a_wide_one_has_a_high_score():
    """Both cover a row that is 10 % off; a source's own score is lower than those of rules that are off by more, or wider."""
    row = Held("made", "", "row", 1.0, 0.11, 0.1, 0.05, 0.2, changed=0.3, trivial_off=0.01, ideal_s=0.11, ideal_off=0.5)
    found = scores.of([row], Law(0.05))
    assert found.best
    assert [found.unchanged > 10, 2 > found.ideal > 1, found.ours < 0.5] == [True] * 3
    assert math.isnan(scores.of([row._replace(trivial_off=None)], LAW).unchanged)
    variance = 0.05**2 * 2 + 0.05**2  # of the law, a doubling beyond, and of the row itself
    assert scores.too_wide([row], Law(0.05)) == pytest.approx(1.645 * variance**0.5 / math.log(1.1), rel=0.01)
    assert scores.of_one_factor([[row]])[0] == pytest.approx(1.1, rel=0.01)


def test_the_products_law_is_that_of_all_sources_as_kept():
    said = next(part for part in kept.read(DATA).shown if isinstance(part, str) and part.startswith("the law of all"))
    assert said.endswith(f": {LAW}")


def test_sources_that_are_held_out_are_predicted_only_if_it_is_asked_for(monkeypatch):
    """Made rows stand for all sources here."""
    asked = []

    def of_split(split: str):
        asked.append(split)
        return [Held("made", "1 to 2 hosts", "4 hosts", 1.0, 0.1, 0.1, 0.0, 0.1)]

    monkeypatch.setattr(sizes, "of_split", of_split)
    assert not list(evidence.further(LAW, held_out=None))
    assert not asked
    shown = list(evidence.further(LAW, held_out=True))
    assert asked == [HELD_OUT]
    assert shown[0].title == "Further sources, held out"
    assert shown[1].startswith("1 further sources, held out: 90 % intervals hold of rows 100.0%")
    assert shown[2].startswith("mean error 0.0% (nothing changes: 0.0%)")


def test_networks_are_named_of_choices_alone_and_what_is_known_of_them_ends_at_the_wire():
    named = [source for source in figures.sources() if source.network]
    assert len(named) >= 10
    for source in named:
        assert source.split == CHOICE, source.name
        known, wire = fitting.named(link := other_sizes.link(source.network, source.name)), link.bandwidth_bytes_per_s
        assert known.low * wire == pytest.approx(1)
        assert known.start * wire == pytest.approx(math.exp(LINK.mean))


def test_rows_of_a_named_network_are_those_of_several_hosts(monkeypatch):
    """Made rows stand for the sources' own here."""
    rows = [Held("made", "1 to 2", f"{hosts} hosts, 8 GPUs", 1.0, 0.1, 0.1, 0.0, 0.1) for hosts in (1, 4)]
    given = []
    monkeypatch.setattr(sizes, "of_source", lambda name, table, between: given.append(between) or iter(rows))
    found = dict(sizes.with_networks(CHOICE))
    assert {source.name for source in found} == {source.name for source in figures.sources() if source.network}
    assert list(found.values()) == [rows[1:]] * len(found)
    assert {known.spread for known in given} == {LINK.deviation}
