"""Engines are libraries that compute gradients and updates; ranks hand them NumPy arrays and get NumPy arrays."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sim.base.errors import WrongSetting

if TYPE_CHECKING:
    from real.training.gradients import Gradients
    from real.training.optimiser import Optimiser
    from sim.model.workload import Workload


class Engine:
    """An entry of the registry; it imports its library when it makes something.

    Attributes:
        package: the imported package.
        library: the package whose version a trace's header has.
        memory_bytes: of a rank that has loaded it.
    """

    package: str
    library: str
    memory_bytes: float

    def check(self, kind: str, workload: Workload, device: str) -> None:
        """Refuse what it cannot compute, before ranks are started; whether the host has a GPU they find out.

        Raises:
            WrongSetting: the workload has no model, or this engine not these gradients of it, or not on such a device.
        """
        raise NotImplementedError

    def gradients(self, kind: str, *settings: Any) -> Gradients:
        """The object that computes gradients.

        Args:
            kind: whole, layered (variable by variable) or rows (of sparse variables).
            settings: workload, threads, device, and which GPU.
        """
        raise NotImplementedError

    def optimiser(self, *rates: Any) -> Optimiser:
        """The object that updates parameters, with rates as of real.training.optimiser.Rates."""
        raise NotImplementedError

    def gpus(self) -> list[str]:
        """The names of this host's GPUs that this process sees."""
        return []

    def version(self) -> str:
        """The version of its library."""
        return import_module(self.library).__version__


class ByTensorFlow(Engine):
    """TensorFlow and Keras's optimisers."""

    package, library, memory_bytes = "tensorflow", "tensorflow", 0.7e9

    def check(self, kind, workload, device):
        from real.models import forward_of

        forward_of(workload)

    def gradients(self, kind, *settings):
        from real.training.gradients import Gradients
        from real.training.layered import LayeredGradients
        from real.training.sparse_gradients import SparseGradients

        return {"whole": Gradients, "layered": LayeredGradients, "rows": SparseGradients}[kind](*settings)

    def optimiser(self, *rates):
        from real.training.optimiser import Optimiser

        return Optimiser(*rates)

    def gpus(self):
        """Ranks that see one GPU know of the others."""
        import tensorflow as tf

        found = tf.config.list_physical_devices("GPU")
        return [tf.config.experimental.get_device_details(gpu).get("device_name", gpu.name) for gpu in found]


class ByNumpy(Engine):
    """NumPy, for small models: a rank starts in a fraction of a second. threadpoolctl sets the threads of its matrix products."""

    package, library, memory_bytes = "threadpoolctl", "numpy", 0.2e9

    def check(self, kind, workload, device):
        from real.engines.numpy_gradients import check_dense

        check_dense(workload, device)
        if kind == "rows":
            raise WrongSetting("--engine", "numpy", "tensorflow where gradients are of rows")

    def gradients(self, kind, *settings):
        from real.engines.numpy_gradients import NumpyGradients

        self.check(kind, settings[0], "cpu")
        return NumpyGradients(*settings)

    def optimiser(self, *rates):
        from real.engines.numpy_optimiser import NumpyOptimiser

        return NumpyOptimiser(*rates)
