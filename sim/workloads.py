"""`python -m sim.workloads list`, `show NAME` and `from FILE`: the models that are known, and one from the file of somebody else's."""

from __future__ import annotations

import argparse

from sim import command
from sim.base.errors import WrongSetting
from sim.base.files import check_outputs
from sim.model import workload_text


def parser() -> command.Parser:
    """The command line."""
    parser = command.Parser(prog="sim.workloads", description="List models, show one, or make one of a file.")
    parser.add_argument("what", choices=("list", "show", "from"))
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME|FILE",
        help="show: a model or its TOML file; from: the config.json of a decoder on Hugging Face",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="from: the TOML file to write (stdout if not given)")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    given = parser().parse_args(argv)
    if (given.name is None) != (given.what == "list"):
        allowed = "list alone" if given.name else "a NAME, as list names them, or a FILE"
        raise WrongSetting(given.what, given.name, allowed)
    if given.output and given.what != "from":
        raise WrongSetting("--output", given.output, "with from")
    from sim.model.workload import NAMED, read

    if given.what == "from":
        convert(given)
        return 0
    for model in NAMED.values() if given.what == "list" else [read(given.name)]:
        print(workload_text.line(model).rstrip())
        if given.what == "show":
            print(*map(workload_text.of_variable, model.created), sep="\n")
    return 0


def convert(given: argparse.Namespace) -> None:
    """Write the model in somebody else's file as TOML."""
    from sim.model import modules

    check_outputs([("--output", given.output, (".toml",))], [given.name])
    model, notes = modules.read(given.name)
    if given.output:
        model.write(given.output)
    else:
        print(workload_text.of(model), end="")
    for note in notes:
        print(f"{'note:' if given.output else '#'} {note}")


if __name__ == "__main__":
    command.run("sim.workloads", main)
