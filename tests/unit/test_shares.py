"""What share of a GPU's peak each class of models reaches: the catalogue's, as learned; and which class a model is taken for."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

from experiments import shares
from sim import protocols
from sim.answers import sources
from sim.job import named_gpus, replay
from sim.job.scenario import Scenario
from sim.model import workload
from sim.platform import catalogue, gpu
from sim.platform.cluster import Cluster, Host

learned = cache(lambda: shares.learn(shares.decoders()))


def test_the_catalogue_has_the_shares_of_decoders_that_were_learned():
    for name, one in catalogue.all_of("gpus").items():
        chip = shares.SAME_CHIP.get(name, name)
        known = one.bf16 and learned().share.get(chip)
        assert one.is_known("bf16" if one.bf16 else None, "decoder") == bool(known) or not one.bf16, name
        if known:
            found = one.reached(None, "decoder")
            assert (found.share, found.spread) == pytest.approx(known, abs=0.00051), name
    assert gpu.OTHERS_OF["decoder", "bf16"] == pytest.approx(learned().others, abs=0.00051)
    assert pytest.approx(learned().slope, abs=0.00051) == (gpu.SLOPE, gpu.SLOPE_SPREAD)


@pytest.mark.parametrize("kind", ["convolution", "encoder"])
def test_the_catalogue_has_the_shares_of_other_classes_that_were_learned(kind):
    found = shares.learn(shares.on_tensor_cores(kind == "encoder"), by_size=False)
    for where, known in found.share.items():
        name, precision = where.split()
        one = catalogue.find("gpus", name).reached(precision, kind)
        assert (one.share, one.spread) == pytest.approx(known, abs=0.00051), where
    if kind == "encoder":
        assert gpu.OTHERS_OF[kind, "tf32"] == pytest.approx(found.others, abs=0.00051)


def test_planted_shares_are_recovered():
    """Two GPUs, eight sources on each; a slope below `LARGE` that differs between sources, and a GPU on which they differ by more."""
    rng = np.random.default_rng(0)
    young = shares.YOUNG[0]
    rows = pd.DataFrame(
        [
            (
                chip,
                f"s{source}",
                million,
                np.log(share) + slope * min(0.0, np.log(million / 1000)) + off + rng.normal(0, 0.1),
            )
            for chip, share in {"a": 0.5, young: 0.25}.items()
            for source, (slope, off) in enumerate(rng.normal((0.3, 0), (0.2, 0.5 if chip == young else 0.1), (8, 2)))
            for million in (100, 300, 1000, 3000, 10_000)
        ],
        columns=["chip", "source", "million_multiplied", "log"],
    )
    found = shares.learn(rows)
    assert found.slope == (pytest.approx(0.3, abs=0.15), pytest.approx(0.2, rel=0.4))
    assert found.share["a"] == (pytest.approx(0.5, rel=0.2), pytest.approx(0.15, rel=0.4))
    assert found.share[young] == (pytest.approx(0.25, rel=0.4), pytest.approx(0.5, rel=0.5))
    assert found.others[1] > found.share["a"][1]


@pytest.mark.slow
def test_a_source_that_is_left_out_is_within_what_others_say():
    """Of all sources; half as wide an interval would not hold them. Ends are a factor 2.1 apart on the median of rows."""
    found = pd.DataFrame(shares.left_out(), columns=["source", "off", "half"])
    found["held"], found["far"] = abs(found.off) < found.half, abs(found.off) > found.half / 2
    by_source = found.groupby("source")[["off"]].median()
    assert 0.85 < found.held.mean() < 0.95
    assert 0.85 < found.groupby("source").held.mean().mean() < 0.95
    assert found.far.mean() > 0.15
    assert np.exp(2 * found.half.median()) < 2.1
    assert np.exp(abs(by_source.off).median()) < 1.25
    assert 1 / 1.05 < np.exp(by_source.off.median()) < 1.05


# Which class a model is of


def test_a_model_is_of_the_class_that_it_says_or_that_its_shapes_say():
    classes = {"resnet50": "convolution", "vit_b_16": "encoder", "bert_base": "encoder", "llama3_8b": "decoder"}
    classes |= {"lstm_lm": "other", "mlp": "other", "transformer_small": "other"}
    assert {name: workload.NAMED[name].kind for name in classes} == classes
    mine = {"name": "mine", "parameters": "8 B", "layers": 32, "flops_per_sample": "60 Tflop"}
    for more, kind in (
        ({}, "other"),
        ({"precision": "bf16"}, "decoder"),
        ({"inputs": "words", "sample_shape": [2048]}, "decoder"),
        ({"precision": "bf16", "architecture": "encoder"}, "encoder"),
    ):
        assert workload.Workload(**mine, **more).kind == kind
    convolved = mine.keys() - {"parameters", "layers"}
    kernel = {"name": "k", "shape": [3, 3, 8, 8]}
    found = workload.Workload(**{key: mine[key] for key in convolved}, precision="bf16", variables=[kernel])
    assert found.kind == "convolution"


def test_the_class_changes_no_digest():
    mine = {"name": "mine", "parameters": "8 M", "layers": 2, "flops_per_sample": "6 Gflop"}
    plain, said = (workload.Workload(**mine, **more) for more in ({}, {"architecture": "decoder"}))
    assert replay.digest(plain) == replay.digest(said)


def on(name, **more):
    mine = {"name": "mine", "parameters": "8 B", "layers": 32, "flops_per_sample": "60 Tflop", "batch": 1} | more
    cluster = Cluster(hosts=[Host(gpu=name)])
    return Scenario(
        protocols.make("allreduce"), workload.Workload(**mine), workers=1, steps=2, warmup=1, cluster=cluster
    )


def test_a_decoder_computes_in_bf16_at_its_class_s_share_and_that_is_said():
    """Where a GPU has the format, and the file says no other."""
    h100, v100 = catalogue.find("gpus", "H100"), catalogue.find("gpus", "V100")
    words = {"inputs": "words", "sample_shape": [2048]}
    job = on("H100", **words)
    assert named_gpus.flops_per_s(h100, job.workload) == pytest.approx(989e12 * h100.fp16.decoder.share)
    note = sources.notes(job)[0]
    assert "on H100 (bf16): computing is within a factor 1.4" in note
    assert note.endswith("taken as a decoder with fused attention: say architecture")
    assert "say architecture" not in sources.notes(on("H100", **words, architecture="decoder"))[0]
    assert "on V100 (fp32)" in sources.notes(on("V100", **words))[0]
    assert named_gpus.format_of(v100, job.workload) == "fp32"
    assert named_gpus.format_of(h100, on("H100", **words, precision="tf32").workload) == "tf32"


def test_small_decoders_use_less_of_a_gpu():
    h100 = catalogue.find("gpus", "H100")
    small, large, larger = (
        named_gpus.flops_per_s(h100, on("H100", precision="bf16", parameters=size).workload)
        for size in ("100 M", "1 B", "10 B")
    )
    assert small == pytest.approx(large * 0.1**gpu.SLOPE)
    assert large == larger


def test_how_little_small_decoders_use_is_known_worse_than_the_share_of_large_ones():
    spreads = [on("H100", precision="bf16", parameters=size).costs.error for size in ("100 M", "1 B", "10 B")]
    assert spreads[1] == spreads[2] == catalogue.find("gpus", "H100").fp16.decoder.spread
    assert spreads[0] == pytest.approx(np.hypot(spreads[1], gpu.SLOPE_SPREAD * np.log(10)))
