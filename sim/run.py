"""Simulate a training job: `python -m sim.run --protocol amb`."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

from sim import command, options
from sim.errors import WrongSetting

REPLICATIONS = {"vector": 20, "event": 10}  # the event world takes longer


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
    timeline = horovod_timeline(given, scenario)
    outcome, trace = simulate(scenario, world, replications, wants_trace(given), timeline)
    if timeline:
        timeline.write(given.horovod_timeline)
    free = None
    if not given.json and scenario.stragglers.mean > 0:
        free, _ = simulate(scenario.without_stragglers(), world, replications)
    report(given, scenario, world, outcome, trace, free, clock_s, found)
    return 0


def choose_world(given: argparse.Namespace, scenario) -> str:
    """The world asked for; of itself, the vector world where it can run the scenario."""
    from sim.worlds import vector

    if given.world == "auto":
        return "event" if vector.refusal(scenario) else "vector"
    return given.world


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


def simulate(scenario, world: str, replications: int, want_trace: bool = False, timeline=None):
    """Outcome of all replications, and the trace of the first, which the event world makes; None if it was not needed.

    Args:
        timeline: told of the first, in the event world.
    """
    from sim.outcome import join, of_trace
    from sim.worlds import event, vector

    if world == "vector":
        return vector.run(scenario, replications), event.run(scenario) if want_trace else None
    first = event.run(scenario, timeline=timeline)
    others = (of_trace(event.run(scenario, replication)) for replication in range(1, replications))
    return join([of_trace(first), *others]), first


def report(given: argparse.Namespace, scenario, world: str, outcome, trace, free, clock_s: float, found) -> None:
    """Write the files asked for, and answer on stdout; `found` is what a search for partitions found, if there was one."""
    from sim import summary
    from sim.notes import notes

    if trace is not None:
        options.write_outputs(given, trace)
    answer = summary.as_json(scenario, world, outcome, time.perf_counter() - clock_s, found)
    if given.json:
        import json

        print(json.dumps(answer))
        return
    baseline = summary.as_json(scenario.without_stragglers(), world, free, 0.0) if free is not None else None
    said = notes(scenario, outcome, world, trace) + ([str(found)] if found else [])
    summary.show(answer, scenario, baseline, said)


if __name__ == "__main__":
    command.run("sim.run", main)
