"""Horovod's timeline: what was fused is one reduction, and planted costs are recovered."""

import json

import pytest

from calibration.importers.horovod_timeline import costs, main, read
from sim.errors import WrongSetting

RANKS, LATENCY_S, BANDWIDTH, COPY_S = 3, 40e-6, 1e9, 2e-10  # planted
FUSED = [(1, [100, 1000], 400_000), (2, [7], 28)]  # pid, shape, bytes
ALONE = [(3, [250_000], 1_000_000)]


def ring_us(size_bytes):
    return 1e6 * 2 * (RANKS - 1) * (LATENCY_S + size_bytes / (RANKS * BANDWIDTH))


def reduction(tensors, start_us, agreed_us=500.0, late_us=300.0):
    """A reduction's events: tensors become ready one after another at rank 1, which is late, and are fused if several."""
    events, total = [], sum(size for *_, size in tensors)
    for k, (pid, _, _) in enumerate(tensors):
        events.append({"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": start_us + k, "pid": pid})
        events.append({"ph": "X", "name": "0", "ts": start_us + k, "pid": pid, "dur": 0})
    now_us = start_us + late_us
    events += [{"ph": "E", "ts": now_us, "pid": pid} for pid, *_ in tensors]
    now_us += agreed_us
    events += [{"ph": "B", "name": "ALLREDUCE", "ts": now_us, "pid": pid} for pid, *_ in tensors]
    copy_us = 1e6 * COPY_S * total if len(tensors) > 1 else 0.0
    phases = [
        ("MEMCPY_IN_FUSION_BUFFER", copy_us),
        ("GLOO_ALLREDUCE", ring_us(total)),
        ("MEMCPY_OUT_FUSION_BUFFER", copy_us),
    ]
    for name, lasts_us in phases if copy_us else phases[1:2]:
        events += [{"ph": "B", "name": name, "ts": now_us, "pid": pid} for pid, *_ in tensors]
        now_us += lasts_us
        events += [{"ph": "E", "ts": now_us, "pid": pid} for pid, *_ in tensors]
    for pid, shape, _ in tensors:
        events.append({"ph": "E", "ts": now_us, "pid": pid, "args": {"dtype": "float32", "shape": str(shape)}})
    return events


@pytest.fixture
def timeline(tmp_path):
    """A file of fused tensors, one alone, and the fused ones again."""
    name = {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "gradient"}}
    file = tmp_path / "timeline.json"
    file.write_text(json.dumps([name, *reduction(FUSED, 0.0), *reduction(ALONE, 1e5), *reduction(FUSED, 2e5)]))
    return file


def test_fused_tensors_are_one_reduction(timeline):
    found = read(timeline)
    assert [(r.tensors, r.bytes) for r in found] == [(2, 400_028), (1, 1_000_000), (2, 400_028)]
    for one in found:
        assert one.ready_s == pytest.approx(300e-6)
        assert one.agreed_s == pytest.approx(500e-6)
        assert one.moved_s == pytest.approx(1e-6 * ring_us(one.bytes))
        assert one.copied_s == pytest.approx(2 * COPY_S * one.bytes if one.tensors > 1 else 0)


def test_planted_costs_are_recovered(timeline, capsys):
    found = costs(read(timeline), RANKS)
    assert found.latency_s == pytest.approx(LATENCY_S, rel=1e-3)
    assert found.bandwidth_bytes_per_s == pytest.approx(BANDWIDTH, rel=1e-3)
    assert found.copy_s == pytest.approx(COPY_S)
    assert found.agreed_s == pytest.approx(500e-6)
    assert main([str(timeline), "--ranks", str(RANKS)]) == 0
    assert "bandwidth_bytes_per_s = 1e+09" in capsys.readouterr().out


def test_a_run_that_was_cut_short_leaves_out_its_last(timeline):
    timeline.write_text(timeline.read_text()[:-150])
    assert [r.tensors for r in read(timeline)] == [2, 1]


@pytest.mark.parametrize("text", ["", "[]", "[{}]", '{"a": 1}', '[{"ph": "B", "ts": 1}]', "nothing"])
def test_what_is_no_timeline_is_refused(tmp_path, text):
    file = tmp_path / "t.json"
    file.write_text(text)
    with pytest.raises(WrongSetting, match="HOROVOD_TIMELINE"):
        read(file)
    with pytest.raises(WrongSetting, match="can be read"):
        read(tmp_path / "missing.json")


def test_one_rank_has_no_ring(timeline):
    with pytest.raises(WrongSetting, match="--ranks"):
        costs(read(timeline), 1)
