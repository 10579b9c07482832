"""Simulate a training job: `python -m sim.run --protocol amb`."""

from __future__ import annotations

import argparse
import math
import sys
import threading
import time
from contextlib import contextmanager, nullcontext
from dataclasses import replace

from sim import command, options
from sim.errors import WrongSetting
from sim.progress import Progress, advance
from sim.ranges import LONGEST_S
from sim.simulation import WORLDS, Simulated, simulate

WITHIN_S = 10.0
LATE = "sim.run: still at the least that makes an answer; fewer --workers take less time, Ctrl-C gives up"


def parser() -> command.Parser:
    """The command line."""
    parser = command.Parser(prog="sim.run", description="Simulate a training job.", parents=[options.job_options()])
    parser.add_argument("--world", default="auto", choices=WORLDS, help="auto: vector where it is exact")
    parser.add_argument(
        "--servers-on",
        default="own",
        metavar="HOSTS",
        help="own: servers take slots before workers do; workers: they sit beside the workers",
    )
    parser.add_argument(
        "--within",
        type=float,
        metavar="SECONDS",
        help="answer in about so many seconds, from fewer runs or steps, warm-up's too, if need be "
        f"(default: {WITHIN_S:g}, or however long it takes with --replications or a file to write)",
    )
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    given = parser().parse_args(argv)
    clock_s = time.perf_counter()
    options.check_files(given)
    scenario = options.scenario(given, servers_on=given.servers_on)
    scenario.check_computing()
    found = None
    if given.variable_partitions == options.SEARCH:
        from sim.partitions import searched

        found = searched(scenario)
        scenario = replace(scenario, variable_partitions=found.best)
    replications = options.replications(given, None)
    timeline, within_s = horovod_timeline(given, scenario), within(given)
    compares = not given.json and scenario.stragglers.mean > 0
    each_s = within_s / (1 + compares)
    with waiting(within_s, replications and replications * (1 + compares)):
        done = simulate(scenario, given.world, replications, wants_trace(given), timeline, each_s, advance)
        if timeline:
            timeline.write(given.horovod_timeline)
        free = None
        if compares and time.perf_counter() - clock_s < within_s:
            world = "event" if done.world == "event" else "auto"
            runs = len(done.outcome.step_s)
            free = simulate(scenario.without_stragglers(), world, runs, within_s=each_s, done=advance).outcome
    report(given, scenario, done, free, clock_s, found)
    return 0


def within(given: argparse.Namespace) -> float:
    """Seconds to answer in.

    Raises:
        WrongSetting: a number that is not above 0.
    """
    if given.within is None:
        whole = given.replications is not None or wants_trace(given) or given.horovod_timeline
        return math.inf if whole else WITHIN_S
    if not 0 < given.within <= LONGEST_S:
        raise WrongSetting("--within", given.within, f"seconds above 0, up to {LONGEST_S:,}")
    return given.within


@contextmanager
def waiting(within_s: float, runs: int | None = None):
    """Shows on a terminal that something is going on, and says so if it goes on for twice as long as it may.

    What may take longer than usual says how far it is; of so many `runs`, if that is known and nothing cuts them short.
    """
    late = threading.Timer(min(2 * within_s, threading.TIMEOUT_MAX), lambda: print(LATE, file=sys.stderr, flush=True))
    late.daemon = True
    late.start()
    try:
        with _spinner() if within_s <= WITHIN_S else Progress("simulating", runs if within_s == math.inf else None):
            yield
    finally:
        late.cancel()


def _spinner():
    if not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status("simulating")


def wants_trace(given: argparse.Namespace) -> bool:
    """Whether a file is asked for that is made of one."""
    return bool(given.trace or given.timeline or given.plot)


def horovod_timeline(given: argparse.Namespace, scenario):
    """What is to become the file of --horovod-timeline; None if it was not asked for.

    Raises:
        WrongSetting: another protocol than horovod.
    """
    if not given.horovod_timeline:
        return None
    if scenario.protocol.name != "horovod":
        raise WrongSetting("--horovod-timeline", scenario.protocol.name, "--protocol horovod")
    from sim.horovod_timeline import Timeline

    return Timeline(scenario)


def report(given: argparse.Namespace, scenario, done: Simulated, free, clock_s: float, found) -> None:
    """Write the files asked for, and answer on stdout; `found` is what a search for partitions found, if there was one."""
    from sim import summary
    from sim.notes import notes

    world, replications, outcome, trace = done
    if trace is not None:
        options.write_outputs(given, trace)
    said = notes(scenario, outcome, world, trace) + ([str(found)] if found else [])
    said += cut_short(scenario, outcome, replications)
    answer = summary.as_json(scenario, world, outcome, time.perf_counter() - clock_s, found, replications, said)
    if given.json:
        import json

        print(json.dumps(answer))
        return
    baseline = summary.as_json(scenario.without_stragglers(), world, free, 0.0) if free is not None else None
    summary.show(answer, scenario, baseline)


def cut_short(scenario, outcome, replications: int) -> list[str]:
    """A note, if there was no time for all that was asked for."""
    (runs, steps), warmup = outcome.step_s.shape, outcome.warmup
    if (runs, steps, warmup) == (replications, scenario.steps, scenario.warmup):
        return []
    done = f"{runs} of {replications} runs"
    if (steps, warmup) != (scenario.steps, scenario.warmup):
        done = f"{steps} of {scenario.steps} steps of one run"
    if warmup < scenario.warmup:
        done += f" (warm-up: {warmup} of {scenario.warmup})"
    return [f"{done}, for want of time; --within SECONDS gives it more"]


if __name__ == "__main__":
    command.run("sim.run", main)
