"""trainsim.Recorder in PyTorch's loops, in processes of their own; PyTorch is there where `make torch` has installed it."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from processes import ROOT

from calibration import check, fit
from sim.model import workload
from sim.platform import cluster
from sim.recording import traces

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed: make torch"),
]
LOOP = """
import sys, torch
from trainsim import Recorder
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.Linear(4, 1))
optimiser = torch.optim.Adam(model.parameters())
recorder = Recorder(sys.argv[1], warmup=1)
def train(x, update=True):
    model(x).mean().backward()
    if update:
        optimiser.step()
        optimiser.zero_grad()
"""


def python(*words: str, code: int = 0) -> None:
    """A process of Python that finds the project, and ends with this code."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    line = [sys.executable, *words]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == code, done.stderr


def played(tmp_path: Path, program: str, code: int = 0) -> traces.Trace:
    python("-c", LOOP + program, str(tmp_path / "run"), code=code)
    return traces.read(tmp_path / "run")


def ddp(folder: Path, batch: int, epochs: int = 2) -> str:
    """A run of two processes over gloo, on loopback."""
    words = ["--nproc-per-node", "2", str(ROOT / "examples" / "pytorch" / "train.py")]
    launcher = ["-m", "torch.distributed.run", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    python(*launcher, *words, str(folder), str(batch), str(epochs))
    return str(folder)


def test_two_processes_are_recorded_fitted_and_checked(tmp_path):
    fitted = [ddp(tmp_path / name, batch) for name, batch in (("a", 64), ("b", 128))]
    found = traces.read(fitted[0])
    head, rows = found.header, found.rows
    assert (head.protocol, head.world, head.ranks, head.batch, head.complete) == ("ddp", "torch", 2, 64, True)
    sums = rows[rows["activity"] == "receive"].groupby(["rank", "step"])["bytes"].sum()
    whole = 4 * sum(one["shape"][0] for one in head.model["variables"])
    assert (sums == whole).all()
    assert whole == 4 * (784 * 1024 + 1024 + 1024 * 1024 + 1024 + 1024 * 10 + 10)
    assert (rows[rows["activity"] == "update"].groupby("rank").size() == 40).all()
    assert (rows["end_s"] >= rows["start_s"]).all()
    profile = str(tmp_path / "p.toml")
    assert fit.main([*fitted, "--link", "100 Gbit/s, 20 us", "-o", profile]) == 0
    assert cluster.read(profile).local.bandwidth_bytes_per_s > 1e6
    other = ddp(tmp_path / "d", 96)
    assert check.main([profile, other, "--tolerance", "5"]) == 0  # the machine may be busy
    assert check.main([profile, other, "--tolerance", "0"]) == 1


def test_one_process_shows_its_model_and_its_updates(tmp_path):
    found = played(tmp_path, "for x in recorder.steps([torch.ones(5, 8)] * 9): train(x)")
    assert (found.header.protocol, found.header.workers, found.header.batch) == ("allreduce", 1, 5)
    assert [one["name"] for one in found.header.model["variables"]] == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert found.header.model["optimiser"] == "adam"
    assert found.header.training.engine == "torch"
    assert (found.rows.groupby("activity").size()[["input", "compute", "update"]] == 9).all()


def test_minibatches_of_one_update_are_one_step(tmp_path):
    found = played(tmp_path, "for n, x in enumerate(recorder.steps([torch.ones(5, 8)] * 12)): train(x, n % 3 == 2)")
    assert (found.header.warmup, found.header.steps, found.header.batch) == (1, 3, 15)
    assert found.header.model["batch"] == 15  # what a simulation of the recorded model takes


def test_a_clock_that_fails_within_an_allreduce_ends_no_training(tmp_path):
    program = """
from torch import distributed
distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
model = torch.nn.parallel.DistributedDataParallel(model)
def broken():
    raise RuntimeError("no clock")
for n, x in enumerate(recorder.steps([torch.ones(5, 8)] * 9)):
    if n == 6:
        recorder.now = broken
    train(x)
"""
    found = played(tmp_path, program)
    assert found.header.steps <= 6
    assert not found.header.complete


def test_a_loop_that_raises_keeps_what_it_did(tmp_path):
    loop = "for n, x in enumerate(recorder.steps([torch.ones(5, 8)] * 12)): train(x if n < 7 else None)"
    found = played(tmp_path, loop, code=1)
    assert (found.header.steps, found.header.complete) == (6, False)


def test_a_communication_hook_of_the_users_own_stays(tmp_path):
    program = """
from torch import distributed
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
model = torch.nn.parallel.DistributedDataParallel(model)
model.register_comm_hook(None, default_hooks.fp16_compress_hook)
for x in recorder.steps([torch.ones(5, 8)] * 4): train(x)
"""
    found = played(tmp_path, program)
    assert any("hook of its own" in note for note in found.header.details["notes"])
    assert "receive" not in set(found.rows["activity"])


@pytest.mark.skipif(not (find_spec("lightning") or find_spec("pytorch_lightning")), reason="Lightning is not installed")
def test_lightning(tmp_path):
    program = """
try:
    import lightning.pytorch as pl
except ModuleNotFoundError:
    import pytorch_lightning as pl
class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = model
    def training_step(self, batch, _):
        return self.model(batch).mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.ones(40, 8), batch_size=5)
pl.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
    callbacks=[recorder.lightning()]).fit(Net(), loader)
"""
    found = played(tmp_path, program)
    assert (found.header.steps, found.header.batch) == (15, 5)


@pytest.mark.skipif(not (find_spec("transformers") and find_spec("accelerate")), reason="transformers is not installed")
def test_transformers(tmp_path):
    program = """
import transformers
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = model
    def forward(self, x, labels=None):
        return {"loss": self.model(x).mean()}
data = [{"x": torch.ones(8), "labels": torch.zeros(1)} for _ in range(40)]
asked = transformers.TrainingArguments(sys.argv[1] + "-out", per_device_train_batch_size=5, gradient_accumulation_steps=2,
    num_train_epochs=2, report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True)
transformers.Trainer(Net(), asked, train_dataset=data, callbacks=[recorder.transformers()]).train()
"""
    found = played(tmp_path, program)
    assert (found.header.warmup + found.header.steps, found.header.batch) == (8, 10)


COUNTED = """
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(50, 32), nn.Linear(32, 50)
    def forward(self, x):
        h = self.words(x).view(4, 16, 4, 8).transpose(1, 2)
        return self.out(scaled_dot_product_attention(h, h, h, is_causal=True).transpose(1, 2).reshape(4, 16, 32))
def broken(*_, **__):
    raise ValueError("a formula that knows no such shapes")
def loop(name, model, x, warmup=2, format=torch.float32, left=0):
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    with Recorder(sys.argv[1] + "-" + name, warmup=warmup) as recorder:
        for n, x in enumerate(recorder.steps([x] * 6)):
            with torch.autocast("cpu", dtype=format, enabled=format != torch.float32):
                model(x).float().mean().backward()
            optimiser.step()
            optimiser.zero_grad()
            if left and n == left:
                break
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None
linear = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
loop("linear", linear, torch.randn(4, 64))
loop("timed", linear, torch.randn(4, 64), warmup=0)
loop("left", linear, torch.randn(4, 64), left=3)
loop("half", linear, torch.randn(4, 64), format=torch.bfloat16)
loop("kernels", nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(288, 10)), torch.randn(4, 3, 8, 8))
loop("causal", Attention(), torch.randint(50, (4, 16)))
loop("compiled", torch.compile(linear, backend="eager"), torch.randn(4, 64))
compiled = []
def backend(graph, _):
    compiled.append(graph)
    return graph.forward
part = torch.compile(nn.functional.relu, backend=backend)
class Partly(nn.Sequential):
    def forward(self, x):
        return part(super().forward(x))
loop("partly", Partly(nn.Linear(64, 10)), torch.randn(4, 64))
assert compiled, "a part that is compiled after the operations were counted"
from torch.utils import flop_counter
flop_counter.flop_registry = dict.fromkeys(flop_counter.flop_registry, broken)
loop("broken", linear, torch.randn(4, 64))
for x in recorder.steps([torch.ones(5, 8)] * 4): train(x)
"""


def test_the_operations_of_a_step_are_counted_and_the_class_of_the_model_seen(tmp_path):
    played(tmp_path, COUNTED)
    found = {name: workload.read(str(tmp_path / f"run-{name}" / "workload.toml")) for name in
             ("linear", "timed", "left", "half", "kernels", "causal", "compiled", "partly", "broken")}  # fmt: skip
    of_step = 3 * 2 * (64 * 128 + 128 * 10) - 2 * 64 * 128  # the first layer has no gradient of its input
    attention = 4 * 2 * 2 * 16 * 16 * 8  # of 4 heads, forward; five such products back
    counted = {name: one.flops_per_sample for name, one in found.items()}
    assert counted["linear"] == pytest.approx(of_step / 3, rel=1e-5)
    assert counted["left"] == counted["half"] == counted["linear"]
    assert counted["causal"] == pytest.approx((3 * 16 * 2 * 32 * 50 + 3.5 * attention) / 3, rel=1e-5)
    assert counted["partly"] == pytest.approx(2 * 2 * 64 * 10 / 3, rel=1e-5)
    assert [counted[name] for name in ("timed", "compiled", "broken")] == [None] * 3
    assert [found[name].architecture for name in ("linear", "kernels", "causal")] == [None, "convolution", "decoder"]
    assert [found[name].precision for name in ("linear", "half")] == [None, "bf16"]
    assert traces.read(tmp_path / "run-broken").header.steps == 4
