"""The table of commands: a name, the module whose `main` it runs, and a line about it. Modules load when their command is run."""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """A command.

    Args:
        module: has `main(argv)`, which returns an exit code or None, and `parser()`.
        about: a line for help.
    """

    module: str
    about: str


COMMANDS = {
    "run": Command("sim.run", "simulate a training job: throughput, step times, why, what if"),
    "plan": Command("sim.plan", "choose a cluster before paying for it"),
    "sweep": Command("sim.sweep", "simulate many jobs, and keep a row of each"),
    "real": Command("real.run", "run a training job for real: MPI, TensorFlow, Horovod"),
    "learn": Command("real.learn", "train a job in simulated time: time to an accuracy"),
    "campaign": Command("real.campaign", "many real runs in one launch"),
    "calibrate": Command("real.calibrate", "probe, runs, fit and check of this machine or cluster in one command"),
    "probe": Command("real.probe", "measure links and sleeps, for fit"),
    "fit": Command("calibration.fit", "make a calibrated profile from traces of real runs"),
    "check": Command("calibration.check", "compare real runs with what a profile predicts of them"),
    "slow": Command("calibration.slow", "name the rank that holds up a run, why, and what it costs"),
    "laws": Command("calibration.laws", "fit laws of stragglers to measured seconds"),
    "protocol": Command("sim.protocols.check", "check a protocol of your own"),
    "plot": Command("sim.plot", "draw a trace"),
    "timeline": Command("sim.timeline", "turn traces into a timeline for Perfetto"),
    "hosts": Command("sim.hosts", "list or show hosts, GPUs and links"),
    "workloads": Command("sim.workloads", "list or show models, or make one from a model's file"),
    "experiments": Command("experiments.run", "run an experiment: predictions beside measurements"),
    "list": Command("trainsim.listing", "list protocols, laws, collectives, experiments"),
}
