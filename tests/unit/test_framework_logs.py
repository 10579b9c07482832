"""Logs of frameworks (calibration.fit --from steps): lines as each prints them, made of planted steps."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.importers import steps, table_names
from calibration.importers.about import About
from calibration.importers.logged_steps import Steps
from sim.base.errors import WrongSetting

STEP_S = 0.412 + 0.002 * np.sin(np.arange(20))
ONE, SAMPLES, TOKENS = (
    {"batch": 32},
    {"ranks": 8, "batch": 32},
    {"ranks": 8, "items": 4096},
)  # of a rank, if the rate is one's
ALL = {"ranks": 8, "batch": 32, "items": 256}
PRINTED = {  # what each framework prints of a step, by its number, seconds, and rates of a rank and of all
    "Megatron-LM": (
        " [2026-03-01 10:00:01] iteration {n:8}/    1000 | consumed samples:  2560 | elapsed time per iteration (ms): {ms:.1f} | "
        "throughput per GPU (TFLOP/s/GPU): 180.1 | learning rate: 1.0E-04 | global batch size:   256 | lm loss: 6.1E+00 |"
    ),
    "Megatron-DeepSpeed": (
        " iteration {n:8}/ 1000 | consumed samples: 10 | elapsed time per iteration (s): {s:.4f} | samples per second: {all:.3f} |"
    ),
    "GPT-NeoX": "samples/sec: {all:.3f} | iteration {n:6}/  320000 | elapsed time per iteration (ms): {ms:.1f} | lm loss: 1.0 |",
    "DeepSpeed": (
        "[2026-03-01 10:00:01,124] [INFO] [timer.py:260:stop] epoch=0/micro_step=40/global_step={n}, RunningAvgSamplesPerSec=9.01, "
        "CurrSamplesPerSec={all:.6f}, MemAllocated=4.3GB, MaxMemAllocated=38.5GB"
    ),
    "ms-swift": (
        "{{'loss': 1.49, 'train_speed(iter/s)': {rate:.6f}, 'epoch': 0.01, 'global_step/max_steps': '{n}/400', 'elapsed_time': '0m 3s'}}"
    ),
    "torchtitan": (
        "[rank0]:[titan] 2026-05-18 16:07:10,100 - root - INFO - step: {n:2}  loss:  9.0000  "
        "memory:  9.46GiB(64.99%)  tps: {tokens:,.0f}  mfu: 31.2%"
    ),
    "NeMo": (
        "Training epoch 0, iteration {n}/149 | lr: 3e-05 | consumed_samples: 121 | global_batch_size: 1 | global_step: {n} | "
        "reduced_train_loss: 1.233 | train_step_timing in s: {s:.5f} | val_loss: 4.106"
    ),
    "MaxText": "completed step: {n}, seconds: {s:.4f}, TFLOP/s/device: 134.924, Tokens/s/device: 8672.758, total_weights: 19, loss: 10.3",
    "MaxText without seconds": "step: {n}, Tokens/s/device: {tokens:.3f}, loss: 10.3",
    "Keras": "{n}/1000 [=====>....] - ETA: 3:35 - 7s {ms:.0f}ms/step - loss: 1.0181",
    "Keras 3": "\x1b[1m{n}/1000\x1b[0m \x1b[32m━━━━\x1b[0m\x1b[37m━━\x1b[0m \x1b[1m20s\x1b[0m {ms:.0f}ms/step - accuracy: 0.1 - loss: 2.3",
    "tf_cnn_benchmarks": "{n}\timages/sec: {mine:.1f} +/- 0.4 (jitter = 1.8)\t8.734",
    "TensorFlow's estimator": "INFO:tensorflow:global_step/sec: {rate:.6f}",
    "TF-Slim": "INFO:tensorflow:global step {n}: loss = 79.3501 ({s:.3f} sec/step)",
    "TensorFlow's CIFAR-10": "2026-03-28 14:51:04.380095: step {n}, loss = 2.85 (729.8 examples/sec; {s:.3f} sec/batch)",
    "MXNet": "INFO:root:Epoch[1] Batch [{n}]\tSpeed: {mine:.2f} samples/sec\taccuracy=0.519345",
    "MXNet, dates": "2026-08-12 20:15:43,819 Node[0] Epoch[5] Batch [{n}]    Speed: {mine:.2f} samples/sec    Train-accuracy=0.84",
    "DLRM under docker compose": "trainer-1  | Finished training it {n}/39063 of epoch 0, {ms:.2f} ms/it, loss 0.528127",
    "MLPerf": (
        ':::MLLOG {{"namespace": "", "time_ms": 1652000000000, "event_type": "POINT_IN_TIME", "key": "tracked_stats", '
        '"value": {{"throughput": {all:.3f}}}, "metadata": {{"file": "a.py", "lineno": 5, "step": {n}}}}}'
    ),
    "MLPerf, by time": (
        ':::MLLOG {{"namespace": "", "time_ms": {since_ms:.0f}, "event_type": "POINT_IN_TIME", "key": "train_loss", '
        '"value": 5.6, "metadata": {{"file": "a.py", "lineno": 5, "step": {n}}}}}'
    ),
    "mmdetection": (
        '{{"mode": "train", "epoch": 1, "iter": {n}, "lr": 1e-05, "memory": 9810, "data_time": 1.9, "loss": 2.1, "time": {s:.5f}}}'
    ),
    "mmdetection, text": (
        "2026-05-07 13:52:50,708 - mmdet - INFO - Epoch [1][{n}/14659]\tlr: 0.01000, eta: 1 day, 12:32:12, time: {s:.4f}, data_time: 0.056"
    ),
    "mmengine": (
        "05/07 13:52:50 - mmengine - INFO - Epoch(train)  [1][{n}/7330]  lr: 2.0e-04  "
        "eta: 1:00:00  time: {s:.4f}  data_time: 0.05  loss: 1.2"
    ),
    "nanoGPT": "iter {n}: loss 4.2000, time {ms:.2f}ms, mfu 30.10%",
    "build-nanogpt": "step {n:4} | loss: 9.5 | lr 1e-4 | norm: 2.3 | dt: {ms:.2f}ms | tok/sec: 127000.5",
    "llm.c": "step {n:4}/18865 | train loss 8.1 | norm 2.1 | lr 1e-4 | {ms:.2f} ms | 45.6% bf16 MFU | 127000 tok/s",
    "modded-nanogpt": "step:{n}/5100 train_time:{since_ms:.0f}ms step_avg:9.00ms",
    "Lightning": "Epoch 0:  22%|##        | {n}/180 [00:17<01:02,  {rate:.4f}it/s, v_num=193315]",
    "tqdm, slow": "  1%|#         | {n}/1000 [00:04<06:48,  {s:.4f}s/it]",
    "Trainer's summary": "{{'train_runtime': 123.4, 'train_samples_per_second': 9.5, 'train_steps_per_second': {rate:.6f}, 'epoch': 1.0}}",
    "fairseq": (
        '{{"epoch": 27, "update": 26.2, "wps": "1195.4", "ups": "{rate:.5f}", "wpb": "738.1", "num_updates": "{n}", "wall": "30542"}}'
    ),
    "fairseq, text": "| epoch 001:   {n} / 160368 loss=9.255, wps=57.3, ups={rate:.5f}, wpb=1613, num_updates={n}, wall=1236",
    "torchvision": (
        "Epoch: [0]  [ {n}/5004]  eta: 0:30:12  lr: 0.1  img/s: 621.3  loss: 6.9 (6.9)  time: {s:.4f}  data: 0.0002  max mem: 123"
    ),
    "PyTorch's ImageNet": "Epoch: [0][ {n}/5005]\tTime  {s:.3f} ( 0.450)\tData  0.001 ( 0.002)\tLoss 6.9e+00 (7.0e+00)",
    "timm": "Train: 0 [  {n}/1251 (  4%)]  Loss: 6.9 (6.9)  Time: {s:.3f}s,  621.12/s  (0.420s,  610.3/s)  LR: 1.0e-04",
    "torchtune": "Step {n} | loss:2.5 lr:2e-5 tokens_per_second_per_gpu:{tokens:.3f} peak_memory_active:9.1",
    "DeepSpeed, old": "[timer.py:157:stop] 0/{n}, SamplesPerSec={all:.4f}, MemAllocated=4.3GB",
    "MLPerf's throughput": ':::MLLOG {{"time_ms": 1, "key": "throughput", "value": {all:.3f}, "metadata": {{"epoch_num": {n}}}}}',
    "Lightning, dense": "Epoch 0:  22%|##        | {n}/180 [00:17<01:02,{rate:.4f}it/s]",
    "Horovod's example": "Iter #{n}: {mine:.1f} img/sec per GPU",
    "detectron2": "[10/01 10:00:00 d2.utils.events]:  eta: 0:30:00  iter: {n}  total_loss: 1.2  time: {s:.4f}  data_time: 0.003",
    "Paddle": "[2026-01-01] global step {n}, epoch: 0, batch: 9, avg_reader_cost: 0.1 sec, avg_batch_cost: {s:.4f} sec, ips: 19.4 images/s",
    "OpenPCDet": (
        "Train:    1/3 ( 33%) [  {n}/323 ( 15%)]  Time cost: 00:15/01:25  Data time: 0.00(0.02)  "
        "Forward time: 0.31(0.29)  Batch time: {s:.3f}(0.31)"
    ),
}
GIVEN = {  # what is said besides
    **dict.fromkeys(("DeepSpeed", "MLPerf", "DeepSpeed, old", "MLPerf's throughput", "Horovod's example"), SAMPLES),
    **dict.fromkeys(("torchtitan", "MaxText without seconds", "torchtune"), TOKENS),
    **dict.fromkeys(("tf_cnn_benchmarks", "MXNet", "MXNet, dates"), ONE),
}
AROUND = [
    "+ torchrun train.py --lr 0.1, --steps 20",
    "Using cuda, 8 GPUs",
    "loading dataset, 3 shards",
    "Saved checkpoint to x/, 20 files",
]


def printed(line: str, every: int = 1) -> str:
    since_s, lines = np.cumsum(STEP_S) * every, []
    for at, step_s in enumerate(STEP_S):
        number = every * (at + 1)
        rates = {"mine": 32 / step_s, "all": 256 / step_s, "tokens": 4096 / step_s, "rate": 1 / step_s}
        lines.append(line.format(n=number, s=step_s, ms=1e3 * step_s, since_ms=1e3 * since_s[at], **rates))
    return "\n".join([*AROUND[:3], *lines, AROUND[3]]) + "\n"


def read(tmp_path, text: str, name: str = "job.log", **said) -> Steps:
    (tmp_path / name).write_text(text)
    return steps.logged(tmp_path / name, About("mlp", **said))


@pytest.mark.parametrize(
    ("name", "every"),
    [*((name, 1) for name in PRINTED), *((name, 10) for name in ("Megatron-LM", "Lightning", "torchtitan", "MXNet"))],
)
def test_steps_are_those_that_were_printed(tmp_path, name, every):
    line, said = PRINTED[name], GIVEN.get(name, {})
    found = read(tmp_path, printed(line, every), **said)
    assert np.median(found.length_s) == pytest.approx(np.median(STEP_S), rel=0.005)
    assert len(found.length_s) >= 19
    assert found.ranks == said.get("ranks", 1)
    assert any("of 24 lines read" in note for note in found.notes)
    if every > 1 and name in ("Megatron-LM", "Lightning"):
        assert any("how single steps vary" in note for note in found.notes)


@pytest.mark.parametrize(
    ("name", "said", "missing"),
    [
        ("torchtitan", {"ranks": 8, "batch": 32}, "tokens of a step, of a rank: .* tokens a second of a rank"),
        ("MXNet", {"ranks": 8, "batch": 32}, "samples of a step, of the process that prints it"),
        ("tf_cnn_benchmarks", {"ranks": 8, "batch": 32}, "samples of a step, of the process that prints it"),
    ],
)
def test_what_a_rate_counts_is_asked_for(tmp_path, name, said, missing):
    with pytest.raises(WrongSetting, match=f"--items-per-step: missing; needed: {missing}"):
        read(tmp_path, printed(PRINTED[name]), **said)


def test_each_rank_has_its_lines(tmp_path):
    line = PRINTED["Megatron-LM"]
    lines = [one for one in printed(line).splitlines() if "iteration" in one]
    both = "\n".join(f"[rank{rank}]:{one}" for one in lines for rank in (0, 1))
    assert read(tmp_path, both).ranks == 2
    assert read(tmp_path, both + "\n[rank0]:" + lines[0]).ranks == 1


@pytest.mark.parametrize(
    "line", ["Epoch {n}/10, loss: 2.3, time: 36.2s", "Epoch [{n}/10], loss: 2.3, time: 36.2s", "epoch {n}: time: 36.2"]
)
def test_times_of_epochs_are_no_steps(tmp_path, line):
    with pytest.raises(WrongSetting, match="or lines with times or rates of steps"):
        read(tmp_path, printed(line))


def test_a_rate_of_each_rank_that_prints_is_its_own(tmp_path):
    lines = [one for one in printed(PRINTED["tf_cnn_benchmarks"]).splitlines() if "jitter" in one]
    both = "\n".join(f"[1,{rank}]<stdout>:{one}" for one in lines for rank in (0, 1))
    assert read(tmp_path, both, batch=32).length_s == pytest.approx(STEP_S, rel=0.01)


def test_a_log_has_its_own_unit(tmp_path):
    with pytest.raises(WrongSetting, match="--unit: given 'ms'"):
        read(tmp_path, printed(PRINTED["Megatron-LM"]), names=table_names.names_of(None, "ms"))


def test_a_log_without_times_of_steps_is_said_in_a_line_that_quotes_none_of_it(tmp_path):
    with pytest.raises(WrongSetting) as caught:
        read(tmp_path, "\n".join(AROUND))
    assert "or lines with times or rates of steps, such as those of Megatron, DeepSpeed, Trainer" in str(caught.value)
    assert "torchrun" not in str(caught.value)
