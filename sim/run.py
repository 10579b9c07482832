"""Simulate a training job: `python -m sim.run --protocol amb`."""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from typing import TYPE_CHECKING

from sim import command, options, report, simulated_options
from sim.base.progress import Progress, advance
from sim.studies import questions

if TYPE_CHECKING:
    from sim.answers.result import Result
    from sim.job.scenario import Scenario


def parser() -> command.Parser:
    """The command line."""
    parents = [options.job_options(), options.answer_options()]
    parents += [simulated_options.simulation_options(), questions.question_options()]
    made = command.Parser(prog="sim.run", description="Simulate a training job.", parents=parents)
    table = "--report  FILE  text  the answer as a page for a browser, with all that was asked, .html"
    command.add_options(made, table)
    return made


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    given = parser().parse_args(argv)
    began_s = time.monotonic()
    options.check_files(given)
    read = options.Readers()
    from sim.job import measured_steps

    scenario, search = simulated_options.scenario(given, read), None
    asked = questions.Questions(given, read)
    measured_steps.check_one_kind([scenario, *(job for _, job in asked.changed)])
    if given.variable_partitions == options.SEARCH:
        from sim.studies.partition_search import searched

        search = searched(scenario)
        given.variable_partitions = search.best  # of all jobs that are compared
        scenario, asked = replace(scenario, variable_partitions=search.best), questions.Questions(given, read)
    found, free, answers = simulated(given, scenario, asked, began_s)
    found = replace(found, search=search, assumed=simulated_options.assumed(given, read, scenario.workers))
    answer, shown = found.answer() | answers.as_json(), partial(show, given, found, free, answers)
    if given.report:
        job = f"{scenario.protocol.name}, {scenario.workload.name}"
        title = f"{job}, {scenario.workers} workers, batch {scenario.batch}"
        report.write(given.report, title, shown, command.line("sim.run", argv), answer)
    if given.trace:
        found.kept_trace.write(given.trace)
    if given.json:
        print(json.dumps(answer))
    else:
        shown()
    return 0


def simulated(given: argparse.Namespace, scenario: Scenario, asked: questions.Questions, began_s: float):
    """The result; comparisons for a page by their names, as far as there is time; and the answers to the questions."""
    from sim.simulation import simulate

    runs, within_s = options.replications(given, None), simulated_options.within_s(given, whole=bool(given.trace))
    others = {} if given.json else compared(scenario)
    further = len(others) + asked.simulations(scenario)
    shares, free = shared_out(time.monotonic() + within_s, further), {}
    with Progress("simulating", runs * (1 + further) if runs and within_s == math.inf else None):
        own_s = within_s / (2 if further else 1)
        found = simulate(scenario, given.world, runs, want_trace=bool(given.trace), within_s=own_s, done=advance)

        def alike(job: Scenario, several: int | None = None) -> Result:
            return simulate(job, given.world, several or found.done.runs, within_s=next(shares), done=advance)

        for said, other in others.items():
            if time.monotonic() - began_s < within_s:
                free[said] = alike(other)
        return found, free, asked.answers(found, alike)


def shared_out(until_s: float, count: int) -> Iterator[float]:
    """What is left of the seconds until then for each of so many simulations that follow one another; there may be fewer, or more."""
    for left in chain(range(count, 0, -1), repeat(1)):
        yield max(0.0, until_s - time.monotonic()) / left


def compared(scenario: Scenario) -> dict[str, Scenario]:
    """The jobs whose throughput tells what stragglers cost, by what is said of them: without sleeps, slow ranks and slow hosts."""
    from sim.answers import summary
    from sim.job import variants

    free, median = scenario.without_stragglers(), variants.at_the_median(scenario)
    others = {summary.STRAGGLERS_COST: free} if scenario.slowed else {}
    others |= {summary.SLOW_RANKS_COST: median} if scenario.workers > 1 and median != free else {}
    fewer = variants.without_slowest(scenario)
    return others | ({summary.SLOW_HOSTS_COST: fewer} if fewer else {})


def show(given: argparse.Namespace, found, free, answers: questions.Answers) -> None:
    """Print the answer; `free` are the results that it is compared with."""
    from sim.answers import basis, summary
    from sim.answers.notes import explained

    answer, unsaid = found.answer(), () if given.explain else explained(found.scenario)
    summary.show(answer, found.scenario, {said: other.answer() for said, other in free.items()}, unsaid)
    if given.explain:
        basis.show(found.basis)
    answers.show(answer)


if __name__ == "__main__":
    command.run("sim.run", main)
