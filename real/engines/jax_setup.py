"""JAX, imported and configured once a process: threads, and which device it computes on."""

from __future__ import annotations

import os

from real.training import devices
from sim.base.errors import WrongSetting

THREADS = "PJRT_NPROC"  # how many threads XLA takes on a CPU; read when its client begins
KEEP_MEMORY = (
    "XLA_PYTHON_CLIENT_PREALLOCATE"  # true takes three quarters of a GPU's memory at once, and ranks may share one
)

_begun: dict[str, int] = {}  # the threads of this process, once JAX has begun, and whether it has looked for GPUs


def jax_on(threads: int = 1, device: str = "cpu", gpu_index: int = 0):
    """The JAX module, set to so many threads, and the device to compute on.

    Args:
        threads: of XLA on the CPU, 1 or more; a process keeps its first setting.
        device: cpu or gpu. A process that begins with cpu never looks for a GPU.
        gpu_index: a rank's local rank; it is counted modulo the GPUs of the host.

    Raises:
        WrongSetting: the device or GPU does not exist, or the settings differ from those JAX was started with.
    """
    devices.check(threads, device)
    if _begun.setdefault("threads", threads) != threads:
        raise WrongSetting("--threads", threads, f"{_begun['threads']}, what this process started with")
    os.environ[THREADS] = str(threads)
    os.environ.setdefault(KEEP_MEMORY, "false")
    import jax

    return jax, _device(jax, device, gpu_index)


def _device(jax, device: str, gpu_index: int):
    if device == "cpu":
        if not _begun.setdefault("gpus", 0):
            jax.config.update("jax_platforms", "cpu")
        return jax.devices("cpu")[0]
    if _begun.setdefault("gpus", 1) == 0:
        raise WrongSetting("--device", device, "cpu, what this process started with")
    try:
        gpus = jax.devices("gpu")
    except RuntimeError as error:
        raise WrongSetting("--device", device, "cpu; JAX finds no GPU on this host") from error
    return gpus[gpu_index % len(gpus)]
