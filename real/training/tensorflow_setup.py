"""TensorFlow, imported quietly and configured once a process: threads, and which device it may see."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sim.base.errors import RunFailed, WrongSetting

OF_TENSORFLOW = ("keras", "jax")
OF_KERAS = ("jax", "sklearn", "pandas", "matplotlib")
LET_THE_LAUNCHER_SPEAK_S = 10.0  # which takes a second on a quiet machine


def tensorflow(threads: int = 1, device: str = "cpu", gpu_index: int = 0, first=lambda tf: None):
    """The TensorFlow module, set to `threads` within an operation, as many between operations, and to one device.

    Args:
        threads: 1 or more; a process keeps its first setting.
        device: cpu hides every GPU; gpu shows only one.
        gpu_index: a rank's local rank; it is counted modulo the GPUs of the host.
        first: called with the module when it is set and has not begun, if this is the process's first call.

    Raises:
        WrongSetting: the device or GPU does not exist, or the settings differ from those TensorFlow was started with.
    """
    with _quiet():
        with without(*OF_TENSORFLOW):
            import tensorflow as tf
        _configure(tf, threads, device, gpu_index)
        first(tf)
        tf.constant(0)  # starts the runtime, which logs
        tf.compat.v1.logging.set_verbosity("ERROR")  # deprecations are its authors' business
    return tf


def _configure(tf, threads: int, device: str, gpu_index: int) -> None:
    try:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        tf.config.set_visible_devices(_visible_gpus(tf, device, gpu_index), "GPU")
    except RuntimeError as error:  # TensorFlow takes these before its first operation only
        raise WrongSetting("--threads or --device", (threads, device), "what this process started with") from error


def _visible_gpus(tf, device: str, gpu_index: int) -> list:
    if device == "cpu":
        return []
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        raise WrongSetting("--device", device, "cpu; TensorFlow finds no GPU on this host")
    chosen = gpus[gpu_index % len(gpus)]
    tf.config.experimental.set_memory_growth(chosen, True)  # ranks may share a GPU
    return [chosen]


@contextmanager
def without(*packages: str) -> Iterator[None]:
    """Within, these packages seem not to be installed, unless this process has loaded them; afterwards they can be imported.

    TensorFlow and Keras import each of `OF_TENSORFLOW` and `OF_KERAS` if it is installed. No model of this project needs them, and
    they take more than half of the processor time of a rank's imports.
    """
    absent = [name for name in packages if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]  # None: Python raises ModuleNotFoundError
    try:
        yield
    finally:
        for name in absent:
            sys.modules.pop(name, None)


@contextmanager
def failures_told(name: str) -> Iterator[None]:
    """Within, an error of TensorFlow's ends the run in a line.

    Most often another rank has died, which the launcher knows and TensorFlow does not: the launcher speaks first.

    Raises:
        RunFailed: what the library of that name said.
    """
    try:
        yield
    except Exception as error:
        import tensorflow as tf

        if not isinstance(error, tf.errors.OpError):
            raise
        time.sleep(LET_THE_LAUNCHER_SPEAK_S)
        raise RunFailed(f"{name}: {' '.join(str(error).split())[:300]}") from error


@contextmanager
def _quiet():
    """Hold back what C++ logs on standard error at start, some lines a rank; show it if the start fails."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except ImportError:
            held.seek(0)
            os.write(kept, held.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)
