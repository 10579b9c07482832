"""This process's tf.compat.v1.train.Server: one for its lifetime."""

from __future__ import annotations

import os
import socket
import stat
import sys
from contextlib import suppress

from real.servers.tasks import Tasks


def start(tasks: Tasks, threads: int, device: str = "cpu"):
    """Start the server of this task.

    TensorFlow has no way to stop one; it ends with its process.
    """
    import tensorflow as tf

    tf1 = tf.compat.v1
    spec = tf1.train.ClusterSpec({"ps": list(tasks.ps_hosts), "worker": list(tasks.worker_hosts)})
    server = tf1.train.Server(spec, job_name=tasks.job, task_index=tasks.task, config=config(threads, device))
    if tasks.on_loopback:
        tie_to_loopback(tasks.port)
    return server


def config(threads: int, device: str = "cpu", peers: tuple[str, ...] = ()):
    """A session's ConfigProto.

    Args:
        peers: devices that the session uses, by TensorFlow's names; all if none. With all, a session waits for every worker.
    """
    import tensorflow as tf

    made = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=threads,
        inter_op_parallelism_threads=max(2, threads),
        allow_soft_placement=True,
        device_count={"GPU": 0} if device == "cpu" else {},
        device_filters=list(peers),
    )
    # The clocks in the graph wait for identities; pruned, they would wait for something else.
    from tensorflow.core.protobuf import rewriter_config_pb2

    made.graph_options.rewrite_options.dependency_optimization = rewriter_config_pb2.RewriterConfig.OFF
    return made


def tie_to_loopback(port: int) -> None:
    """Have the kernel drop connections to this port from outside; TensorFlow always listens on every interface."""
    if not sys.platform.startswith("linux"):
        return
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(name))) as listener:
                if listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) and listener.getsockname()[1] == port:
                    listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
