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

REPLICATIONS = {"vector": 20, "event": 10}  # the event world takes longer
WITHIN_S = 10.0
LATE = "sim.run: still at the least that makes an answer; fewer --workers take less time, Ctrl-C gives up"


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = command.Parser(prog="sim.run", description="Simulate a training job.", parents=[options.job_options()])
    parser.add_argument(
        "--world", default="auto", choices=("auto", "event", "vector"), help="auto: vector where it is exact"
    )
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
        f"({WITHIN_S:g}; however long it takes with --replications or a file to write)",
    )
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    given = parse(argv)
    clock_s = time.perf_counter()
    options.check_outputs(given)
    scenario = options.scenario(given, servers_on=given.servers_on)
    found = None
    if given.variable_partitions == options.SEARCH:
        from sim.partitions import searched

        found = searched(scenario)
        scenario = replace(scenario, variable_partitions=found.best)
    world = choose_world(given, scenario)
    replications = options.replications(given, REPLICATIONS[world])
    timeline, within_s = horovod_timeline(given, scenario), within(given)
    compares = not given.json and scenario.stragglers.mean > 0
    each_s = within_s / (1 + compares)
    with waiting(within_s):
        outcome, trace = simulate(scenario, world, replications, wants_trace(given), timeline, each_s)
        if timeline:
            timeline.write(given.horovod_timeline)
        free = None
        if compares and time.perf_counter() - clock_s < within_s:
            free, _ = simulate(scenario.without_stragglers(), world, len(outcome.step_s), within_s=each_s)
    report(given, scenario, world, outcome, trace, free, clock_s, found)
    return 0


def choose_world(given: argparse.Namespace, scenario) -> str:
    """The world asked for; of itself, the vector world where it can run the scenario."""
    from sim.worlds import vector

    if given.world == "auto":
        return "event" if vector.refusal(scenario) else "vector"
    return given.world


def within(given: argparse.Namespace) -> float:
    """Seconds to answer in.

    Raises:
        WrongSetting: a number that is not above 0.
    """
    if given.within is None:
        whole = given.replications is not None or wants_trace(given) or given.horovod_timeline
        return math.inf if whole else WITHIN_S
    if not given.within > 0:
        raise WrongSetting("--within", given.within, "seconds above 0")
    return given.within


@contextmanager
def waiting(within_s: float):
    """Shows who looks at a terminal that something is going on; and says so if it goes on for twice as long as it may."""
    late = threading.Timer(min(2 * within_s, threading.TIMEOUT_MAX), lambda: print(LATE, file=sys.stderr, flush=True))
    late.daemon = True
    late.start()
    try:
        with _spinner():
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


def simulate(
    scenario, world: str, replications: int, want_trace: bool = False, timeline=None, within_s: float = math.inf
):
    """Outcome of all replications, and the trace of the first, which the event world makes; None if it was not needed.

    Args:
        timeline: told of the first, in the event world.
        within_s: seconds after which there are no more replications, and the first ends early.
    """
    from sim.outcome import join, of_trace
    from sim.worlds import event, vector

    start_s = time.monotonic()
    if world == "vector":
        outcomes = [vector.run(scenario, within_s=within_s)]
        took_s = time.monotonic() - start_s
        more = int(min(replications - 1, within_s / took_s - 1))
        outcomes += [vector.run(scenario, more, first=1)] if more > 0 else []
        trace = event.run(scenario) if want_trace else None
        return join(outcomes), trace
    trace = event.run(scenario, timeline=timeline, within_s=within_s)
    outcomes = [of_trace(trace)]
    took_s = time.monotonic() - start_s
    whole = len(outcomes[0].step_s[0]) == scenario.steps and outcomes[0].warmup == scenario.warmup
    while whole and len(outcomes) < replications and time.monotonic() - start_s + took_s < within_s:
        outcomes.append(of_trace(event.run(scenario, len(outcomes))))
    return join(outcomes), trace


def report(given: argparse.Namespace, scenario, world: str, outcome, trace, free, clock_s: float, found) -> None:
    """Write the files asked for, and answer on stdout; `found` is what a search for partitions found, if there was one."""
    from sim import summary
    from sim.notes import notes

    if trace is not None:
        options.write_outputs(given, trace)
    replications = options.replications(given, REPLICATIONS[world])
    answer = summary.as_json(scenario, world, outcome, time.perf_counter() - clock_s, found)
    if given.json:
        import json

        print(json.dumps(answer))
        return
    baseline = summary.as_json(scenario.without_stragglers(), world, free, 0.0) if free is not None else None
    said = (
        notes(scenario, outcome, world, trace)
        + ([str(found)] if found else [])
        + cut_short(scenario, outcome, replications)
    )
    summary.show(answer, scenario, baseline, said)


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
