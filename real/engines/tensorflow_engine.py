"""TensorFlow as an engine: real.training's own gradients and optimisers."""

from __future__ import annotations


class ByTensorFlow:
    """TensorFlow and Keras's optimisers."""

    package, memory_bytes = "tensorflow", 0.7e9

    def check(self, kind, workload, device):
        """As any engine."""
        from real.models import forward_of

        forward_of(workload)

    def gradients(self, kind, *settings):
        """As any engine."""
        from real.training.gradients import Gradients
        from real.training.layered import LayeredGradients
        from real.training.sparse_gradients import SparseGradients

        return {"whole": Gradients, "layered": LayeredGradients, "rows": SparseGradients}[kind](*settings)

    def optimiser(self, threads, *rates):
        """As any engine; the process has its threads from the gradients."""
        from real.training.optimiser import Optimiser

        return Optimiser(*rates)

    def gpus(self):
        """As any engine; ranks that see one GPU know of the others."""
        import tensorflow as tf

        found = tf.config.list_physical_devices("GPU")
        return [tf.config.experimental.get_device_details(gpu).get("device_name", gpu.name) for gpu in found]

    def version(self):
        """As any engine."""
        import tensorflow as tf

        return tf.__version__
