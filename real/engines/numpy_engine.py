"""NumPy as an engine, of small models: the core has it, and a rank starts in a fraction of a second."""

from __future__ import annotations

from sim.base.errors import WrongSetting

OTHERS = "tensorflow, jax where gradients are of single variables or rows"


class ByNumpy:
    """NumPy; threadpoolctl sets the threads of the library that multiplies its matrices."""

    package, memory_bytes = "threadpoolctl", 0.2e9

    def check(self, kind, workload, device):
        """As any engine."""
        from real.engines.numpy_gradients import check_dense

        check_dense(workload, device)
        if kind != "whole":
            raise WrongSetting("--engine", "numpy", OTHERS)

    def gradients(self, kind, workload, threads=1, device="cpu", gpu_index=0):
        """As any engine."""
        from real.engines.numpy_gradients import NumpyGradients

        self.check(kind, workload, device)
        return NumpyGradients(workload, threads, device, gpu_index)

    def optimiser(self, threads, *rates):
        """As any engine; an update needs no library of threads."""
        from real.engines.numpy_optimiser import NumpyOptimiser

        return NumpyOptimiser(*rates)

    def gpus(self):
        """As any engine."""
        return []

    def version(self):
        """As any engine."""
        import numpy

        return numpy.__version__
