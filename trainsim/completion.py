"""`trainsim completion bash`: a script by which a shell completes commands, options, files and names. It is made by shtab."""

from __future__ import annotations

import argparse
from importlib import import_module

from sim import command

SHELLS = ("bash", "zsh", "tcsh")
FILES = ("FILE", "PATH", "FOLDER")  # in the metavar of an option that takes one


def parser() -> command.Parser:
    """The command line."""
    found = command.Parser(
        prog="trainsim completion",
        description="Print what makes a shell complete these commands, as in `source <(trainsim completion bash)`.",
    )
    found.add_argument("shell", choices=SHELLS, help="which one")
    return found


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    given = parser().parse_args(argv)
    import shtab

    print(shtab.complete(_all_commands(), given.shell))
    return 0


def _all_commands() -> argparse.ArgumentParser:
    """A parser of all commands, each with its options: what shtab reads."""
    from trainsim.commands import COMMANDS
    from trainsim.main import PROGRAM

    whole = argparse.ArgumentParser(prog=PROGRAM)
    commands = whole.add_subparsers(dest="command", parser_class=argparse.ArgumentParser)
    for name, one in COMMANDS.items():
        options = import_module(one.module).parser()
        added = commands.add_parser(name, help=one.about, parents=[options], add_help=False)
        for action in added._actions:
            _complete(action)
    return whole


def _complete(action: argparse.Action) -> None:
    """Say how the value of an option is completed, where shtab cannot see it."""
    import shtab

    if any(word in str(action.metavar or "") for word in FILES):
        action.complete = shtab.FILE  # type: ignore[attr-defined]
    elif action.dest in _names() and action.choices is None:
        action.choices = _names()[action.dest]


def _names() -> dict[str, list[str]]:
    """Names that options take besides others."""
    from sim.model.variable_placement import STRATEGIES
    from sim.protocols import PROTOCOLS

    return {"protocol": list(PROTOCOLS), "placement": list(STRATEGIES)}
