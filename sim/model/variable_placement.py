"""The placement of variables on parameter servers by TensorFlow's rules.

TensorFlow puts untrained variables, the moving means and variances of batch normalisation, on servers like any others. They take a
turn of round-robin, and greedy placement counts their bytes. The simulator places them alike, and does nothing else with them. A
training step does not need them: each worker sends the means and variances of its batch to them (TensorFlow 1, moving_averages.py).
These bytes are
not modelled, because they are few: at most 0.3 % of a gradient in the models of the zoo. A global step takes a turn, too. Created
first, it would move every variable on by one server and leave the shares unchanged; no workload therefore has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from sim.base.errors import WrongSetting, nearest
from sim.base.ranges import MOST_VARIABLES

if TYPE_CHECKING:
    from sim.model.workload import Variable


def round_robin(variables: Sequence[Variable], servers: int) -> list[int]:
    """The server of each variable: one after another in creation order (tf.compat.v1.train.replica_device_setter)."""
    return [index % servers for index in range(len(variables))]


def greedy(variables: Sequence[Variable], servers: int) -> list[int]:
    """The server of each variable: the one that holds the fewest bytes (GreedyLoadBalancingStrategy, byte_size_load_fn)."""
    loads, chosen = [0] * servers, []
    for variable in variables:
        server = loads.index(min(loads))
        loads[server] += variable.size
        chosen.append(server)
    return chosen


STRATEGIES = {"round-robin": round_robin, "greedy": greedy}


def partitioned(variables: Sequence[Variable], parts: int) -> list[Variable]:
    """Every variable cut along its first axis into `parts` near-equal parts (tf.compat.v1.fixed_size_partitioner).

    As in TensorFlow, the first parts have one row more, and a variable of fewer rows than parts is not cut further. Untrained
    variables stay whole, as in tf.compat.v1.layers.batch_normalization.
    """
    cut = []
    for variable in variables:
        if not variable.trained:
            cut.append(variable)
            continue
        rows, count = variable.shape[0], min(parts, variable.shape[0])
        sizes = [rows // count + (part < rows % count) for part in range(count)]
        cut += [variable.part(i, size) for i, size in enumerate(sizes)]
    return cut


def placed(variables: Sequence[Variable], servers: int, strategy: str, parts: int = 1) -> list[tuple[Variable, int]]:
    """Every trained variable, or its parts, with its server, in creation order; untrained ones take a turn too.

    Raises:
        WrongSetting: an unknown strategy, too many parts, or a server that would hold no variable at all.
    """
    check_strategy(strategy)
    count = sum(min(parts, v.shape[0]) if v.trained else 1 for v in variables)
    if count > MOST_VARIABLES:
        allowed = f"fewer: these make {count:,} parts of variables, and {MOST_VARIABLES:,} are the most"
        raise WrongSetting("--variable-partitions", parts, allowed)
    if servers > count:
        allowed = f"at most {count}: one for each variable, or more --variable-partitions"
        raise WrongSetting("--servers", servers, allowed)
    cut = partitioned(variables, parts) if parts > 1 else list(variables)
    every = zip(cut, STRATEGIES[strategy](cut, servers), strict=True)
    return [(variable, server) for variable, server in every if variable.trained]


@lru_cache(maxsize=64)  # many jobs have the same servers
def server_slices(variables: tuple[Variable, ...], servers: int, strategy: str, parts: int) -> list[list[slice]]:
    """The pieces of the flat parameter vector that each server holds, shape (servers, pieces); together they are all of it.

    A server to which untrained variables alone fall has no piece.

    Raises:
        WrongSetting: an unknown strategy, or a server that would hold no variable at all.
    """
    held: list[list] = [[] for _ in range(servers)]
    start = 0
    for variable, server in placed(variables, servers, strategy, parts):
        held[server].append(slice(start, start + variable.size))
        start += variable.size
    return held


def check_strategy(name: str) -> None:
    """Raise WrongSetting for what is no strategy, also where nothing is placed."""
    if name not in STRATEGIES:
        raise WrongSetting("--placement", name, ", ".join(STRATEGIES) + nearest(name, STRATEGIES))
