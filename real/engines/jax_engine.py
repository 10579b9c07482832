"""JAX as an engine."""

from __future__ import annotations


class ByJax:
    """JAX, whose computations XLA compiles."""

    package, memory_bytes = "jax", 0.5e9

    def check(self, kind, workload, device):
        """As any engine."""
        from real.models import forward_of

        forward_of(workload)

    def gradients(self, kind, *settings):
        """As any engine."""
        from real.engines.jax_gradients import JaxGradients
        from real.engines.jax_layered import JaxLayeredGradients
        from real.engines.jax_rows import JaxSparseGradients

        return {"whole": JaxGradients, "layered": JaxLayeredGradients, "rows": JaxSparseGradients}[kind](*settings)

    def optimiser(self, threads, *rates):
        """As any engine."""
        from real.engines.jax_optimiser import JaxOptimiser

        return JaxOptimiser(*rates, threads=threads)

    def gpus(self):
        """As any engine."""
        import jax

        return [device.device_kind for device in jax.devices("gpu")]

    def version(self):
        """As any engine."""
        import jax

        return jax.__version__
