"""What PyTorch does in a recorded loop: hooks on optimisers and on DistributedDataParallel; on a GPU, events in place of a clock.

Nothing here imports PyTorch: the loop has, or else this module is not loaded. The first forward pass shows the model. The communication
hook averages gradients as DistributedDataParallel does without one, and notes when it begins and ends. On a GPU moments are events on the
current stream (torch.cuda.Event). A step is written when its events have happened, which the recorder asks and never waits for.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any

from trainsim.recording.loops import Guard
from trainsim.recording.operations import UNSEEN, Operations
from trainsim.recording.steps import Call, Iteration

if TYPE_CHECKING:
    from trainsim.recording.recorder import Recorder

MILLI = 1e-3
TOLD = (1, 3)  # updates at which the model is told: DistributedDataParallel makes its buckets anew after the first step
LAST_S = 1.0  # at the end, for what a GPU is still doing
WRAPPED = ("module", "_orig_mod")  # attributes of what wraps a model: DistributedDataParallel, torch.compile
SUMMING = "DistributedDataParallel"
# Optimisers as sim.base.ranges has them; others take the memory of the usual one.
OPTIMISERS = ("RMSprop", "Adagrad", "Lion", "Adam", "AdamW", "LAMB")


class Torch:
    """The hooks of one recorder.

    Args:
        recorder: whose loop has imported PyTorch.
    """

    def __init__(self, recorder: Recorder):
        self._recorder, self._torch = recorder, sys.modules["torch"]
        self._summing: Any = None
        self._model: Any = None
        self._updates, self._samples = 0, 0
        self._operations: Operations | None = None
        self._counted: dict[str, Any] = {}
        self._anchor: tuple[Any, float] | None = None
        optimizer, module = sys.modules["torch.optim.optimizer"], sys.modules["torch.nn.modules.module"]
        register = getattr(optimizer, "register_optimizer_step_pre_hook", None)
        self.sees_updates = register is not None
        self._hooks = [register(self._before_update)] if register else []
        self._of_forward = module.register_module_forward_pre_hook(self._before_forward)
        recorder.learn_version("torch", str(self._torch.__version__))

    # ---- hooks

    def _before_forward(self, module: Any, _: Any) -> None:
        """The first forward pass shows the model; nothing is looked at afterwards."""
        self._of_forward.remove()
        with Guard(self._recorder):
            parts = list(module.modules())
            self._summing = next((one for one in parts if type(one).__name__ == SUMMING), None)
            self._model = _unwrapped(self._summing or module)
            self._look_at_device()
            if self._summing is not None:
                self._hook_sums()
            if self._recorder.warmup and not any(_is_unseen(one) for one in parts):
                with suppress(ImportError, AttributeError):  # a version that counts none
                    self._operations = Operations()

    def done(self, iteration: Iteration | None = None) -> None:
        """An iteration is over: the operations of the first, which is not timed, are counted."""
        counting, self._operations = self._operations, None
        if counting is not None:
            counting.stop()
            if iteration is not None:
                self._counted = counting.facts(iteration.samples)

    def _before_update(self, optimiser: Any, *_: Any) -> None:
        recorder = self._recorder
        iteration = recorder.iteration
        if iteration is None:
            return
        try:
            if iteration.computed is None:  # the first optimiser of this step
                self._samples, recorder.samples_since = recorder.samples_since, 0
            iteration.computed = recorder.now()
            self._updates += 1
            if self._updates <= TOLD[-1] and self._updates in TOLD and self._model is not None:
                self._tell(optimiser, iteration)
        except Exception as error:
            recorder.give_up(error)

    def _hook_sums(self) -> None:
        """Time the allreduces of gradients, unless the user has a communication hook of his own."""
        recorder, group, sum_all = self._recorder, self._summing.process_group, self._torch.distributed.all_reduce
        share = (
            1.0 / group.size()
        )  # a factor, as in DistributedDataParallel without a hook: gradients are the same to the last bit

        def timed(state, bucket):
            tensor, call = bucket.buffer(), None
            with Guard(recorder):
                call = Call(recorder.now(), tensor.numel() * tensor.element_size(), items=tensor.numel())
                if recorder.iteration is not None:
                    recorder.iteration.calls.append(call)

            def summed(future):
                with Guard(recorder):
                    if call is not None:
                        call.end = recorder.now()
                return future.value()[0]

            return sum_all(tensor.mul_(share), group=state, async_op=True).get_future().then(summed)

        try:
            self._summing.register_comm_hook(group, timed)
        except RuntimeError:  # it takes one hook, and the user has registered one
            recorder.learn(summing=None)
            recorder.warn("the model has a communication hook of its own: messages are not seen")
            return
        recorder.learn(
            summing={
                "bucket_bytes": int(getattr(self._summing, "bucket_bytes_cap", 25 * 2**20)),
                "backend": str(self._torch.distributed.get_backend(group)),
            }
        )

    def _tell(self, optimiser: Any, iteration: Iteration) -> None:
        """Tell the recorder what is trained, by which optimiser; a bucket is one variable, because it is summed as one."""
        kind, settings = type(optimiser).__name__, optimiser.param_groups[0]
        name = next((one.lower() for one in OPTIMISERS if one == kind), None)
        if kind == "SGD":
            name = "momentum" if settings.get("momentum") else "sgd"
        variables = [(of, tuple(one.shape)) for of, one in self._model.named_parameters() if one.requires_grad]
        if iteration.calls:
            variables = [(f"bucket_{at}", (call.items,)) for at, call in enumerate(reversed(iteration.calls))]
        rates = {
            "learning_rate": float(settings.get("lr", 0.0)),
            "weight_decay": float(settings.get("weight_decay", 0.0)),
        }
        self._recorder.learn(optimiser=kind, threads=int(self._torch.get_num_threads()), **rates)
        self._recorder.describe(type(self._model).__name__, variables, name, self._samples, self._counted)

    # ---- the clock of a GPU

    def _look_at_device(self) -> None:
        first = next(self._model.parameters(), None)
        if first is None or first.device.type != "cuda":
            self._recorder.learn(device="cpu")
            return
        cuda = self._torch.cuda
        self._anchor = (self._event(), perf_counter())
        self._recorder.learn(device="gpu", gpu=str(cuda.get_device_name(first.device)), gpus=int(cuda.device_count()))
        self._recorder.now = self._event

    def _event(self) -> Any:
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def resolve(self, iterations: list[Iteration]) -> bool:
        """Turn the events of a step into seconds, if all have happened."""
        if self._anchor is None:
            return True
        places = [(*place, getattr(*place)) for one in iterations for place in one.places()]
        events = [place for place in places if not isinstance(place[2], float | None)]
        if not all(event.query() for _, _, event in events):
            return False
        for holder, name, event in events:
            setattr(holder, name, self._anchor[1] + MILLI * self._anchor[0].elapsed_time(event))
        return True

    def close(self) -> None:
        """Take the hooks away, and give a GPU a moment to end what it does."""
        self.done()
        for hook in (*self._hooks, self._of_forward):
            hook.remove()
        if self._anchor is None:
            return
        last, until_s = self._event(), time.monotonic() + LAST_S
        while not last.query() and time.monotonic() < until_s:
            time.sleep(0.01)


def _unwrapped(module: Any) -> Any:
    """The model within what wraps it."""
    while type(module).__name__ in (SUMMING, "OptimizedModule"):
        module = next(getattr(module, name) for name in WRAPPED if name in module._modules)
    return module


def _is_unseen(module: Any) -> bool:
    """Whether its operations cannot be counted: compiled, or computed by other threads."""
    return type(module).__name__ in UNSEEN or getattr(module, "_compiled_call_impl", None) is not None
