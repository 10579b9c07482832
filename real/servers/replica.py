"""One worker's graph: between-graph replication as in TensorFlow 1, with clocks between its phases.

The clocks are nodes (tf.timestamp). They wait for the operations that they time, and nothing waits for them. The step is therefore
TensorFlow's own: variables are fetched while the first layers compute, and gradients leave as soon as they are there.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from real.models import forward_of, initial
from real.training.trainee import Training
from sim.job.scenario import Scenario
from sim.model.variable_placement import STRATEGIES
from sim.model.workload import Variable

KERAS = {"momentum": 0.9, "rho": 0.9, "epsilon": 1e-7}  # what real.training.optimiser has


class Replica:
    """The graph of worker `task`; build it under a tf.Graph.

    Args:
        replication: the number of the run.
        container: keeps the variables of one run apart from those of the runs before it on the same servers.

    Attributes:
        step: what a worker fetches: a dict of tensors.
        parameters: each variable, whole, by name.
        x, y: placeholders, (samples, *sample_shape) float32 and (samples,) int32.
        tokens: of SyncReplicasOptimizer, else None.
    """

    def __init__(self, scenario: Scenario, training: Training, replication: int, task: int, container: str):
        import tensorflow as tf

        self._tf, self._tf1 = tf, tf.compat.v1
        self._scenario, self._training, self._replication = scenario, training, replication
        self.servers = scenario.servers
        self._worker = f"/job:worker/task:{task}"
        self.graph, self.tokens = tf.Graph(), None
        tf1, workload = self._tf1, scenario.workload
        setter = tf1.train.replica_device_setter(
            ps_tasks=scenario.servers, worker_device=self._worker, ps_strategy=Placement(scenario)
        )
        with self.graph.as_default(), self.graph.container(container), tf1.device(setter):
            with tf1.device(None), tf1.device(ps(0)):  # the placement counts variables of the model only
                self.version = tf1.train.create_global_step()
            self.variables = self._variables()
            self.x = tf1.placeholder(tf.float32, (None, *workload.sample_shape), "x")
            self.y = tf1.placeholder(tf.int32, (None,), "y")
            self._build()

    def server_of(self, node) -> int:
        """The server that a node is on; -1 if it is on a worker."""
        device = self._tf.DeviceSpec.from_string(node.device or "")
        return device.task if device.job == "ps" else -1

    def _variables(self) -> list:
        """The list of parts of each variable of the workload; TensorFlow partitions and places them."""
        tf1, workload, parts = self._tf1, self._scenario.workload, self._scenario.variable_partitions
        start = initial(workload, self._scenario.seed, self._replication)
        values = np.split(start, np.cumsum([v.size for v in workload.variables])[:-1])
        partitioner = tf1.fixed_size_partitioner(parts) if parts > 1 else None
        with tf1.variable_scope("model", partitioner=partitioner):
            made = [
                tf1.get_variable(v.name.replace("/", "_"), v.shape, initializer=_start(value.reshape(v.shape)))
                for v, value in zip(workload.variables, values, strict=True)
            ]
        return [list(v) if parts > 1 else [v] for v in made]

    def _build(self) -> None:
        tf, tf1 = self._tf, self._tf1
        parts = [part for variable in self.variables for part in variable]
        began = self._clock([])
        version = self._here(self.version.read_value())
        here = {part.name: self._here(part.read_value()) for part in parts}
        pulled = [
            self._clock([here[part.name] for part in parts if self.server_of(part) == server])
            for server in range(self.servers)
        ]
        whole = [
            tf.concat([here[part.name] for part in v], 0) if len(v) > 1 else here[v[0].name] for v in self.variables
        ]
        self.parameters = dict(zip([v.name for v in self._scenario.workload.variables], whole, strict=True))
        self.logits = forward_of(self._scenario.workload)(whole, self.x)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(self.y, self.logits))
        decay = tf.add_n([tf.nn.l2_loss(value) for value in here.values()])
        gradients = tf1.gradients(loss + self._training.weight_decay * decay, list(here.values()))
        computed = self._clock(gradients)
        arrived = [
            self._clock_at(ps(k), [g for g, part in zip(gradients, parts, strict=True) if self.server_of(part) == k])
            for k in range(self.servers)
        ]
        known = set(self.graph.get_operations())
        train = self._optimiser().apply_gradients(list(zip(gradients, parts, strict=True)), global_step=self.version)
        new = [op for op in self.graph.get_operations() if op not in known]
        applied = [
            self._clock_at(ps(k), [op for op in new if self._is(op, self._last, k)]) for k in range(self.servers)
        ]
        with tf.control_dependencies([train]):
            after = tf.identity(self._local_step() if self.tokens else self.version.read_value())
        self.step = {
            "train": train,
            "loss": loss,
            "version": version,
            "after": after,
            "began": began,
            "pulled": pulled,
            "computed": computed,
            "arrived": arrived,
            "applied": applied,
        }
        with tf1.device(self._worker):
            self.right = tf.math.count_nonzero(tf.equal(tf.argmax(self.logits, 1, output_type=tf.int32), self.y))

    def _optimiser(self):
        """The optimiser that trains; wrapped, if the protocol is synchronous."""
        tf1, training, protocol = self._tf1, self._training, self._scenario.protocol
        inner = optimiser(tf1, training, self.version)
        if protocol.way == "asynchronous":
            return inner
        workers = self._scenario.workers
        self.tokens = tf1.train.SyncReplicasOptimizer(inner, protocol.gradients_per_update(workers), workers)
        return self.tokens

    def _local_step(self):
        """The token that this worker took last."""
        return next(v for v in self.graph.get_collection("local_variables") if "sync_rep_local_step" in v.name)

    @cached_property
    def update(self) -> dict:
        """The tensors that the chief's loop fetches: one update of all servers of as many gradients as it needs, and its clocks."""
        enqueue = self.tokens.get_chief_queue_runner().enqueue_ops[0]
        with self.graph.as_default():
            types = {"taken": "TakeGradient", "updated": "ResourceApply"}
            clocks = {
                name: [
                    self._clock_at(
                        ps(k),
                        [op for op in self.graph.get_operations() if self._is(op, kind, k) and _before(op, enqueue)],
                    )
                    for k in range(self.servers)
                ]
                for name, kind in types.items()
            }
        return {"made": enqueue, **clocks}

    @property
    def _last(self) -> str:
        """The operation at the server that takes a gradient: an accumulator's, or the optimiser's."""
        return "AccumulatorApplyGradient" if self.tokens else "ResourceApply"

    def _is(self, op, kind: str, server: int) -> bool:
        return kind in op.type and self.server_of(op) == server

    def _here(self, tensor):
        """A copy of the tensor on this worker."""
        with self._tf1.device(self._worker):
            return self._tf.identity(tensor)

    def _clock(self, after: list):
        """This worker's wall clock, seconds, read when the tensors `after` are there."""
        return self._clock_at(self._worker, after)

    def _clock_at(self, device: str, after: list):
        """A task's wall clock, read there when `after` (tensors, or operations of that task) are there."""
        tf = self._tf
        with self._tf1.device(f"{device}/cpu:0"):
            there = [node if isinstance(node, tf.Operation) else tf.identity(node) for node in after]
            with tf.control_dependencies(there):
                return tf.timestamp()


class Placement:
    """A ps_strategy for replica_device_setter: the task of each variable by the scenario's placement.

    TensorFlow 2's tf.compat.v1 has no GreedyLoadBalancingStrategy any more. It calls this for each variable as it is made.
    """

    def __init__(self, scenario: Scenario):
        self._place, self._servers, self._made = STRATEGIES[scenario.placement], scenario.servers, []

    def __call__(self, op) -> int:
        """The number of the server of the next variable that is created."""
        dimensions = [d.size for d in op.node_def.attr["shape"].shape.dim]
        self._made.append(Variable(name=op.name, shape=dimensions or [1]))
        return self._place(self._made, self._servers)[-1]


def ps(server: int) -> str:
    """The device of a server."""
    return f"/job:ps/task:{server}"


def optimiser(tf1, training: Training, version):
    """TensorFlow 1's optimiser with the settings of real.training.optimiser's."""
    rate = training.rate
    if training.decay_steps:
        rate = tf1.train.exponential_decay(rate, version, training.decay_steps, training.decay_rate)
    return {
        "sgd": lambda: tf1.train.GradientDescentOptimizer(rate),
        "mom": lambda: tf1.train.MomentumOptimizer(rate, KERAS["momentum"]),
        "rms": lambda: tf1.train.RMSPropOptimizer(rate, KERAS["rho"], epsilon=KERAS["epsilon"]),
        "adm": lambda: tf1.train.AdamOptimizer(rate, epsilon=KERAS["epsilon"]),
    }[training.optimiser]()


def _start(value: np.ndarray):
    """An initialiser that gives each part of a partitioned variable its rows of `value`."""

    def start(shape, dtype=None, partition_info=None):
        import tensorflow as tf

        first = partition_info.var_offset[0] if partition_info else 0
        return tf.constant(value[first : first + shape[0]], dtype)

    return start


def _before(op, last) -> bool:
    """Whether `op` is among what must run before `last`."""
    todo, seen = [last], set()
    while todo:
        node = todo.pop()
        if node is op:
            return True
        if node not in seen:
            seen.add(node)
            todo += [*node.control_inputs, *(tensor.op for tensor in node.inputs)]
    return False
