"""The operations of one iteration of a PyTorch loop, by the formulas of torch.utils.flop_counter, and what they say of the model.

Operations that PyTorch has no formula for, such as those of kernels of one's own, count nothing.
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import suppress
from typing import Any

GRADIENT = 3  # a step's operations over those of a forward pass (sim.model.nominal.TRAINING)
UNSEEN = ("OptimizedModule", "DataParallel")  # modules of torch.compile, and those whose threads compute
FORMATS = {"bfloat16": "bf16", "float16": "fp16"}
ATTENTION, OF_CPU = "_scaled_dot_product", "_for_cpu"
ON_GPU = " on a GPU"
MOST_OF_ALL = 0.5
DIGITS = 6


class Operations:
    """Counts from when it is made until `stop`.

    Raises:
        ImportError, AttributeError: a version of PyTorch that counts none.
    """

    def __init__(self) -> None:
        from torch.utils import flop_counter
        from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

        formulas, operations = flop_counter.flop_registry, self

        class Counting(TorchDispatchMode):
            supports_higher_order_operators = True

            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                kwargs = kwargs or {}
                if not hasattr(func, "overloadpacket"):  # of a higher order: what it calls comes by itself
                    return NotImplemented
                found = func(*args, **kwargs)
                with suppress(Exception):  # a formula that does not know the shapes
                    operations.count(func, args, kwargs, found, formulas)
                return found

        self._by_format: Counter[str] = Counter()
        self._convolved, self._is_causal, self._stopped = 0, False, False
        self._mode, self._current = Counting(), _get_current_dispatch_mode
        self._mode.__enter__()

    def stop(self) -> None:
        """Count no more; a mode that the loop has entered meanwhile stays, and so does ours below it, which then does nothing."""
        self._stopped = True
        if self._current() is self._mode:
            self._mode.__exit__(None, None, None)

    def facts(self, samples: int) -> dict[str, Any]:
        """What is told of the model after so many samples: keys of a workload, none of them if nothing was counted."""
        whole = sum(self._by_format.values())
        if not whole:
            return {}
        found: dict[str, Any] = {"flops_per_sample": float(f"{whole / GRADIENT / samples:.{DIGITS}g}")}
        is_convolution = self._convolved > MOST_OF_ALL * whole
        if is_convolution or self._is_causal:
            found["architecture"] = "convolution" if is_convolution else "decoder"
        most = max(self._by_format, key=self._by_format.__getitem__)
        if half := FORMATS.get(most.removesuffix(ON_GPU)):
            found["precision"] = half
        elif most == f"float32{ON_GPU}" and not _tensor_cores(is_convolution):
            found["precision"] = "fp32"
        return found

    def count(self, func: Any, args: tuple, kwargs: dict, found: Any, formulas: dict) -> None:
        """Count one that was computed."""
        if self._stopped:
            return
        packet = func.overloadpacket
        name = packet.__name__
        if name.startswith(ATTENTION):
            self._is_causal |= "is_causal" in _true(func, args, kwargs)
            packet = getattr(sys.modules["torch"].ops.aten, name.replace(OF_CPU, ""))
        formula = formulas.get(packet)
        if formula is None:
            return
        operations = int(formula(*args, **kwargs, out_val=found))
        first = next(one for one in args if hasattr(one, "dtype"))
        self._by_format[str(first.dtype).removeprefix("torch.") + ON_GPU * bool(first.is_cuda)] += operations
        self._convolved += operations * name.startswith("convolution")


def _true(func: Any, args: tuple, kwargs: dict) -> set[str]:
    """The arguments that are True, by their names."""
    names = [one.name for one in func._schema.arguments]
    return {name for name, value in [*zip(names, args, strict=False), *kwargs.items()] if value is True}


def _tensor_cores(is_convolution: bool) -> bool:
    """Whether numbers of 32 bits may pass tensor cores, as TF32; also if PyTorch does not say."""
    with suppress(Exception):  # PyTorch raises where settings were made in two ways
        backends = sys.modules["torch"].backends
        return bool((backends.cudnn if is_convolution else backends.cuda.matmul).allow_tf32)
    return True
