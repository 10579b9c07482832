"""`trainsim completion bash`: a script by which a shell completes commands, options, files and names. It is made by shtab."""

from __future__ import annotations

import argparse
from functools import cache
from importlib import import_module

from sim import command
from sim.base.home import installed

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

    preamble = {"bash": "".join(map(_of_bash, _names())), "zsh": "".join(map(_of_zsh, _names()))}
    print(shtab.complete(_all_commands(), given.shell, preamble=preamble.get(given.shell, "")))
    return 0


def _all_commands() -> argparse.ArgumentParser:
    """A parser of all commands, each with its options: what shtab reads."""
    from trainsim.commands import COMMANDS
    from trainsim.main import PROGRAM

    whole = argparse.ArgumentParser(prog=PROGRAM)
    commands = whole.add_subparsers(dest="command", parser_class=argparse.ArgumentParser)
    for name, one in COMMANDS.items():
        options = import_module(installed(one.module)).parser()
        added = commands.add_parser(name, help=one.about, parents=[options], add_help=False)
        for action in added._actions:
            _complete(action)
    return whole


def _complete(action: argparse.Action) -> None:
    """Say how the value of an option is completed, where shtab cannot see it."""
    import shtab

    if action.dest in _names() and action.choices is None:
        action.complete = {shell: _function(action.dest) for shell in ("bash", "zsh")} | {"tcsh": "f"}  # type: ignore[attr-defined]
    elif any(word in str(action.metavar or "") for word in FILES):
        action.complete = shtab.FILE  # type: ignore[attr-defined]


def _function(dest: str) -> str:
    return f"_trainsim_{dest}"


def _of_bash(dest: str) -> str:
    """The function that completes an option: names, and files besides."""
    return f'{_function(dest)}() {{ compgen -W \'{" ".join(_names()[dest])}\' -- "$1"; compgen -f -- "$1"; }}\n'


def _of_zsh(dest: str) -> str:
    names = " ".join(_names()[dest])
    return f"{_function(dest)}() {{ _alternative 'names:name:({names})' 'files:file:_files'; }}\n"


@cache
def _names() -> dict[str, list[str]]:
    """Names without blanks that options take, by the option."""
    from sim import inline, zoo
    from sim.model.variable_placement import STRATEGIES
    from sim.platform import catalogue
    from sim.protocols import PROTOCOLS

    return {
        "protocol": list(PROTOCOLS),
        "placement": list(STRATEGIES),
        "workload": zoo.names(),
        "stragglers": [*inline.NAMES, *inline.RECORDED],
        "cluster": [name for name in catalogue.all_of("hosts") if " " not in name],
    }
