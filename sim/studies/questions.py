"""The questions that `sim.run` answers besides how fast a job goes: `--what-if` and `--why`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from sim import options
from sim.command import Parser, add_options

if TYPE_CHECKING:
    from sim.answers.result import Result
    from sim.job.scenario import Scenario
    from sim.studies.failures import Lost
    from sim.studies.what_if import Compared
    from sim.studies.why import Why

CAUSES = 8  # simulations that --why takes at most besides those of changes


def question_options() -> Parser:
    """A parent parser."""
    parser = Parser(add_help=False)
    table = """
        --what-if  NAME=VALUE,...  list  compare with a changed job on the same random numbers: an option (workers=64), a setting of the
            protocol, or a path into the cluster (network.bandwidth='25 Gbit/s', hosts.0.count=16); price=USD: what it costs once; may be
            repeated
        --why  -  flag  the gain without each cause of the step time, and changes that would help
        --explain  -  flag  the numbers that the answer rests on, the source of each, and what to measure first (`basis` of --json)
        --failures  'mtbf=30 d, ...'  text  the cost of failing hosts: mtbf (of a host), restart (5 min), checkpoint (10 s), every (of
            training between two; the best if not given), run (24 h)
    """
    add_options(parser.add_argument_group("questions"), table)
    return parser


class Questions:
    """The questions that were asked about a job.

    Args:
        given: the options.
        read: reads the files and names in them.

    Raises:
        WrongSetting: a change that cannot be.
    """

    def __init__(self, given: argparse.Namespace, read: options.Readers):
        from sim.studies import failures

        self._given, self._read = given, read
        self._failures = failures.read(given.failures) if given.failures else None
        self.changed = changed(given, read)

    def simulations(self, scenario: Scenario) -> int:
        """About how many simulations the answers take."""
        if not self._given.why:
            return len(self.changed)
        from sim.studies.why import candidates

        return len(self.changed) + 2 * (CAUSES + len(list(candidates(scenario))))

    def answers(self, base: Result, simulate: Callable[[Scenario, int | None], Result]) -> Answers:
        """Simulate whatever the questions need.

        Args:
            base: of the job.
            simulate: another job, on the same random numbers; so many runs, or as many as of the base.
        """
        from sim.studies import failures
        from sim.studies.what_if import compare

        compared = [compare(text, base, simulate(other, None), real=True) for text, other in self.changed]
        lost = failures.lost(base.scenario, self._failures) if self._failures else None
        if not self._given.why:
            return Answers(compared, lost)
        from sim.studies import changes
        from sim.studies.why import why

        return Answers(compared, lost, why(base, simulate, lambda text: changes.applied(text, self._given, self._read)))


def changed(given: argparse.Namespace, read: options.Readers) -> list[tuple[str, Scenario]]:
    """The job with each change of --what-if, beside its text.

    Raises:
        WrongSetting: a change that cannot be.
    """
    from sim.studies import changes

    return [(text, changes.applied(text, given, read)) for text in given.what_if]


@dataclass(frozen=True)
class Answers:
    """The answers to the questions.

    Args:
        compared: each change beside the job.
        lost: to failures; None if it was not asked.
        why: None if it was not asked.
    """

    compared: list[Compared]
    lost: Lost | None = None
    why: Why | None = None

    def as_json(self) -> dict:
        """The keys that they add to the JSON answer."""
        what_if = {"what_if": [one.as_json() for one in self.compared]} if self.compared else {}
        lost = {"failures": asdict(self.lost)} if self.lost else {}
        return what_if | lost | ({"why": self.why.as_json()} if self.why else {})

    def show(self, base: dict) -> None:
        """Print them, beside the base's JSON answer."""
        from sim.studies import failures, what_if

        if self.lost:
            print(failures.told(self.lost, base["samples_per_s"]))
        if self.why:
            self.why.show()
        if self.compared:
            what_if.show(self.compared, base)
