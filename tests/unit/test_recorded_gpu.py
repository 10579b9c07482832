"""trainsim.Recorder's moments on a GPU, with a stand-in for PyTorch whose events happen later than the loop records them."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from sim.recording import traces
from trainsim import Recorder

LAG = 4  # steps by which the GPU is behind
STEP_S, SHARES = 0.010, {"arrived": 0.1, "computed": 0.7, "ended": 0.9}


class Gpu:
    """Its clock: an event happens at a planted time, once the loop has gone on for some steps."""

    def __init__(self):
        self.planned: list[float] = []
        self.reached_s = -1.0

    def event(self, enable_timing: bool):
        assert enable_timing
        return Event(self)


class Event:
    def __init__(self, gpu: Gpu):
        self.gpu = gpu

    def record(self):
        self.at_s = self.gpu.planned.pop(0)

    def query(self) -> bool:
        return self.at_s <= self.gpu.reached_s

    def elapsed_time(self, other: Event) -> float:
        assert self.query()
        assert other.query()
        return 1e3 * (other.at_s - self.at_s)


class Removable:
    def __init__(self, hooks: list, hook):
        self.hooks, self.hook = hooks, hook
        hooks.append(hook)

    def remove(self):
        if self.hook in self.hooks:
            self.hooks.remove(self.hook)


class Model:
    def parameters(self):
        yield SimpleNamespace(device=SimpleNamespace(type="cuda"))

    def modules(self):
        yield self

    def named_parameters(self):
        yield "weight", SimpleNamespace(shape=(3, 4), requires_grad=True)


class SGD:
    param_groups = ({"lr": 0.1, "momentum": 0.9},)


@pytest.fixture
def gpu(monkeypatch):
    """PyTorch's names that the recorder needs; `forwards` and `updates` are its global hooks."""
    found = Gpu()
    found.forwards, found.updates = [], []
    names = {name: ModuleType(name) for name in ("torch", "torch.optim.optimizer", "torch.nn.modules.module")}
    torch = names["torch"]
    torch.__version__ = "stand-in"
    torch.get_num_threads = lambda: 1
    torch.cuda = SimpleNamespace(Event=found.event, get_device_name=lambda _: "NVIDIA A100", device_count=lambda: 2)
    names["torch.optim.optimizer"].register_optimizer_step_pre_hook = lambda hook: Removable(found.updates, hook)
    names["torch.nn.modules.module"].register_module_forward_pre_hook = lambda hook: Removable(found.forwards, hook)
    for name, module in names.items():
        monkeypatch.setitem(sys.modules, name, module)
    return found


def train(recorder: Recorder, gpu: Gpu, steps: int) -> None:
    model, optimiser = Model(), SGD()
    for step in recorder.steps(range(steps)):
        for hook in list(gpu.forwards):
            hook(model, ())
        for hook in gpu.updates:
            hook(optimiser, (), {})
        gpu.reached_s = (step - LAG) * STEP_S


def test_steps_are_those_of_the_gpu_and_nothing_waits_for_it(tmp_path, gpu, capsys, monkeypatch):
    # The anchor; before it the clock is the loop's.
    first = [0.0, SHARES["computed"] * STEP_S, SHARES["ended"] * STEP_S]
    later = [
        (step + share) * STEP_S
        for step in range(1, 12)
        for share in (SHARES["arrived"], SHARES["computed"], SHARES["ended"])
    ]
    gpu.planned = [*first, *later, 11 * STEP_S + STEP_S]
    monkeypatch.setattr("trainsim.recording.recorder.BLOCK_S", 0.0)
    recorder = Recorder(tmp_path / "run", 8, warmup=1)
    train(recorder, gpu, 12)
    assert 3 <= traces.read(tmp_path / "run").header.steps <= 12 - LAG  # those that have happened
    gpu.reached_s = 1.0
    recorder.close()
    found = traces.read(tmp_path / "run")
    assert (found.header.steps, found.header.gpus, found.header.details["gpu"]) == (11, 2, "NVIDIA A100")
    rows = found.rows[found.rows["step"] > 1]
    lasted = (rows["end_s"] - rows["start_s"]).groupby(rows["activity"]).mean()
    assert lasted["compute"] == pytest.approx(0.6 * STEP_S, abs=1e-6)
    assert lasted["input"] == pytest.approx(0.2 * STEP_S, abs=1e-6)
    assert lasted["update"] == pytest.approx(0.2 * STEP_S, abs=1e-6)
    assert not gpu.forwards
    assert not gpu.updates
    assert capsys.readouterr().err.startswith("trainsim Recorder: compute-bound: input 20%, compute 60%, update 20%")


def test_a_gpu_that_answers_no_more_costs_its_last_steps_and_no_more_than_a_second(tmp_path, gpu):
    gpu.planned = [float(number) for number in range(100)]
    recorder = Recorder(tmp_path / "run", 8, warmup=0)
    train(recorder, gpu, 6)
    gpu.reached_s = 7.0  # of the first three steps
    recorder.close()
    assert 1 <= traces.read(tmp_path / "run").header.steps <= 3
