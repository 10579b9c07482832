"""Run a command by its name: `trainsim run --protocol amb` is `python -m sim.run --protocol amb`."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

from sim import command
from sim.base.home import installed
from sim.version import VERSION
from trainsim.commands import COMMANDS

PROGRAM = "trainsim"
HOME = Path(__file__).resolve().parents[1]


def entry() -> None:
    """The entry point of the console script."""
    words = sys.argv[1:]
    command.run(program(words), lambda: main(words))


def program(words: list[str]) -> str:
    """The program's name at the beginning of complaints."""
    return f"{PROGRAM} {words[0]}" if words and words[0] in COMMANDS else PROGRAM


def parser() -> command.Parser:
    """The command line up to the name of the command."""
    listed = "\n".join(f"  {name:12} {one.about}" for name, one in COMMANDS.items())
    found = command.Parser(
        prog=PROGRAM,
        usage=f"{PROGRAM} COMMAND [OPTIONS]",
        description=f"Simulate distributed training, run it for real, and compare both.\n\n{listed}",
        epilog=f"{PROGRAM} COMMAND --help lists a command's options.",
    )
    found.add_argument("--version", action="version", version=f"{PROGRAM} {VERSION}")
    found.add_argument("command", nargs="?", choices=tuple(COMMANDS), metavar="COMMAND", help="one of the list above")
    return found


def main(words: list[str]) -> int:
    """Run the command that the first word names.

    Raises:
        WrongSetting: see the command.
        RunFailed: see the command.
    """
    if not words or words[0] not in COMMANDS:
        parser().parse_args(words[:1])
        parser().print_help()
        return 0
    named = COMMANDS[words[0]]
    _keep_to_ours()
    os.environ[command.CALLED] = f"{named.module}={program(words)}"
    return import_module(installed(named.module)).main(words[1:]) or 0


def _keep_to_ours() -> None:
    """Have the processes of a real run load our packages, whatever the current folder has; a checkout needs that folder."""
    if Path.cwd() != HOME:
        os.environ["PYTHONSAFEPATH"] = "1"
