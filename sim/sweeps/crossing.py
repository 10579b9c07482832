"""Options of which each may have several values, with commas between them, as in Hydra: `--workers 4,8,16 --protocol fmb,amb`."""

from __future__ import annotations

import argparse
from typing import NamedTuple

from sim.base.errors import WrongSetting
from sim.base.units import parts
from sim.command import Parser
from sim.sweeps import grid


class Several(NamedTuple):
    """Reads the values of an option; they stay text, as those of a file are.

    Args:
        one: the option of a single scenario.
    """

    one: argparse.Action

    def __call__(self, text: str) -> list[str]:
        """The values between commas that are not within brackets.

        Raises:
            argparse.ArgumentTypeError: the option does not take one of them.
        """
        texts = list(parts(text))
        try:
            for one in texts:
                grid.value_of(self.one.dest, one)
        except WrongSetting as error:
            raise argparse.ArgumentTypeError(f"given {error.given!r}; allowed: {error.allowed}") from error
        return texts


def crossed_options() -> Parser:
    """A parent parser: the options of a scenario."""
    parser = Parser(add_help=False)
    for group in filter(lambda group: group._group_actions, grid.parser()._action_groups):
        titled = parser.add_argument_group(group.title)
        for action in group._group_actions:
            _add(titled, action)
    return parser


def _add(group, action: argparse.Action) -> None:
    """The same option, but of several values."""
    about: dict = {"metavar": action.metavar or "|".join(action.choices or ()), "help": action.help}
    if action.dest == "variable_partitions":
        about["help"] = "parts to cut each variable into"  # no search
    if action.dest == "set":
        group.add_argument("--set", action="append", default=[], **about)
        return
    if action.default is not None and "(default" not in (action.help or ""):
        about["help"] += f" (default: {action.default})"
    group.add_argument(*action.option_strings, dest=action.dest, type=Several(action), **about)


def table_of(given: argparse.Namespace) -> grid.Table:
    """The values of each option on a command line.

    Raises:
        WrongSetting: a setting that is given twice, or without a value.
    """
    found = {name: texts for name in grid.known() if (texts := getattr(given, name)) and name != "set"}
    for assignment in given.set:
        name, equals, texts = assignment.partition("=")
        if not (name and equals and texts):
            raise WrongSetting("--set", assignment, "NAME=VALUE, or NAME=VALUE,VALUE")
        if f"{grid.SET}{name}" in found:
            raise WrongSetting("--set", assignment, f"each setting once: {name} was given before")
        found[f"{grid.SET}{name}"] = list(parts(texts))
    return found
