"""The options that only real runs have."""

from __future__ import annotations

import argparse
from dataclasses import fields
from typing import TYPE_CHECKING

from real import engines
from real.training.optimiser import LEARNING_RATES, WEIGHT_DECAY
from sim.base.errors import WrongSetting
from sim.base.ranges import MOST_RANKS

if TYPE_CHECKING:
    from real.training.trainee import Training
    from sim.job.scenario import Scenario


def add_learning_options(parser: argparse.ArgumentParser):
    """Options of training; their group."""
    group = parser.add_argument_group("the training")
    group.add_argument(
        "--data",
        metavar="NAME|PATH",
        help="digits (real, 8x8, resized; the default), synthetic, words (the default of models that read them), or files: an .npz, "
        "a folder of MNIST's or CIFAR-10's",
    )
    group.add_argument("--optimiser", default="rms", choices=tuple(LEARNING_RATES), help="optimiser of the update")
    group.add_argument(
        "--learning-rate", type=float, metavar="X", help="learning rate of the first step (default: the optimiser's)"
    )
    group.add_argument(
        "--decay-steps",
        type=int,
        default=0,
        metavar="N",
        help="multiply the learning rate by --decay-rate every N steps",
    )
    group.add_argument(
        "--decay-rate", type=float, default=1.0, metavar="X", help="factor on the learning rate, see --decay-steps"
    )
    group.add_argument(
        "--weight-decay",
        type=float,
        default=WEIGHT_DECAY,
        metavar="X",
        help=f"times half the squared parameters is added to the loss (default: {WEIGHT_DECAY:g})",
    )
    group.add_argument(
        "--engine",
        default=engines.DEFAULT,
        choices=tuple(engines.ENGINES),
        help="library that computes gradients and updates",
    )
    group.add_argument(
        "--device",
        default="cpu",
        choices=("cpu", "gpu"),
        help="where to compute; each rank takes the GPU of its local rank",
    )
    group.add_argument("--threads", type=int, default=1, metavar="N", help="threads of the engine, for each rank")
    return group


def add_training_options(parser: argparse.ArgumentParser) -> None:
    """Options of training in ranks of their own, and of progress."""
    group = add_learning_options(parser)
    group.add_argument(
        "--cpu-master",
        dest="master_on_cpu",
        action="store_true",
        help="with --device gpu, keep the master on the CPU",
    )
    group.add_argument("--parameters", metavar="FILE", help="write the final parameters of the first run, .npz")
    group.add_argument("--quiet", action="store_true", help="print no progress")


def scenario(options: argparse.Namespace) -> Scenario:
    """The job that the options describe, on whatever hosts the launcher gives its ranks.

    Raises:
        WrongSetting: naming the option.
    """
    from sim import options as shared
    from sim.platform.cluster import Cluster, Host

    here = Cluster(
        name="the launcher's hosts", hosts=(Host(name="localhost", slots=MOST_RANKS),)
    )  # the launcher knows better how many
    described = shared.scenario(options, here)
    if described.protocol.text_class.layerwise:
        _check_layerwise(described)
    if described.gathered_variables:
        from real.training.row_optimiser import check_by_rows

        check_by_rows(options.optimiser)
    if described.traffic.sends_rows:
        _check_rows(described, options.optimiser)
    return described


def _check_layerwise(described: Scenario) -> None:
    """Refuse what variables that travel one by one cannot do.

    Raises:
        WrongSetting: naming it.
    """
    if described.protocol.local_aggregation:
        allowed = "false: no thread of a busy worker adds up the gradients of others; simulated only (sim.run)"
        raise WrongSetting("--set local_aggregation", True, allowed)
    if described.traffic.sends_rows:
        allowed = (
            f"a model without sparse variables for {described.protocol.name}: their rows are simulated only (sim.run)"
        )
        raise WrongSetting("--workload", described.workload.name, allowed)


def _check_rows(described: Scenario, optimiser: str) -> None:
    """Refuse what servers of rows cannot do.

    Raises:
        WrongSetting: naming it.
    """
    from real.training.row_optimiser import check_by_rows

    if any(not variable.rows for variable in described.served):
        allowed = f"hybrid for {described.workload.name}: servers that hold dense variables beside sparse ones are simulated only"
        raise WrongSetting("--protocol", described.protocol.name, allowed)
    check_by_rows(optimiser)


def training(options: argparse.Namespace) -> Training:
    """The training that the options describe."""
    from real.training.trainee import Training

    return Training(**{field.name: getattr(options, field.name) for field in fields(Training)})
