"""Placement by TensorFlow itself: which server `replica_device_setter` gives each variable of models with batch normalisation."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sim.model import variable_placement as placement
from sim.model.workload import NAMED

sys.path.append(str(Path(__file__).parents[2] / "tools"))
import zoo_from_keras

pytestmark = pytest.mark.tensorflow


class Greedy:
    """tf.contrib.training.GreedyLoadBalancingStrategy with byte_size_load_fn, which TensorFlow 2 has no more."""

    def __init__(self, servers: int):
        self._loads = [0] * servers

    def __call__(self, op) -> int:
        import tensorflow as tf

        server = min(range(len(self._loads)), key=self._loads.__getitem__)
        size = 1
        for dimension in op.get_attr("shape").dim:
            size *= dimension.size
        self._loads[server] += size * tf.as_dtype(op.get_attr("dtype")).size
        return server


def servers_by_tensorflow(workload, servers: int, strategy: str, first: tuple[str, ...] = ()) -> list[int]:
    """The task of each variable; those called `first` are made before the model's."""
    import tensorflow as tf

    tf1 = tf.compat.v1
    chosen = {"round-robin": None, "greedy": Greedy(servers)}[strategy]
    setter = tf1.train.replica_device_setter(ps_tasks=servers, worker_device="/job:worker/task:0", ps_strategy=chosen)
    with tf.Graph().as_default(), tf1.device(setter):
        for name in first:
            tf1.get_variable(name, (), tf.int64, trainable=False)
        made = [tf1.get_variable(v.name, v.shape, trainable=v.trained) for v in workload.created]
    return [tf.DeviceSpec.from_string(variable.device).task for variable in made]


@pytest.mark.parametrize("strategy", placement.STRATEGIES)
@pytest.mark.parametrize(("name", "servers"), [("resnet50", 7), ("inception_v3", 4), ("vgg16", 7)])
def test_trained_variables_lie_where_tensorflow_puts_them(name, strategy, servers):
    workload = NAMED[name]
    tasks = servers_by_tensorflow(workload, servers, strategy)
    trained = [task for variable, task in zip(workload.created, tasks, strict=True) if variable.trained]
    assert [server for _, server in placement.placed(workload.created, servers, strategy)] == trained


@pytest.mark.parametrize("name", ["resnet50", "inception_v3"])
def test_the_order_of_creation_is_tensorflow_s(name):
    """The zoo's, line by line: a model built anew has its variables made in that order."""
    _, variables = zoo_from_keras.created(lambda: zoo_from_keras.of_keras(name))
    found = [(v["name"], tuple(v["shape"]), v.get("trained", True)) for v in variables]
    assert found == [(v.name, v.shape, v.trained) for v in NAMED[name].created]


def test_a_global_step_that_comes_first_takes_a_turn():
    """All others move on by a server; their shares stay as they are, and no workload therefore has one."""
    alone = servers_by_tensorflow(NAMED["resnet50"], 4, "round-robin")
    behind = servers_by_tensorflow(NAMED["resnet50"], 4, "round-robin", first=("global_step",))
    assert behind == [(server + 1) % 4 for server in alone]
