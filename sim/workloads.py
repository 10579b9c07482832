"""`python -m sim.workloads list`, `show NAME` and `from FILE`: the models that are known, and one from the file of somebody else's."""

from __future__ import annotations

from pathlib import Path

from sim import command
from sim.base.errors import WrongSetting, printable
from sim.base.files import MOST_BYTES, check_ending, check_outputs, write_text
from sim.model import workload_text

NOTE = """\
# Made of {name}: {numbers} in {variables}, taken as trained.{more}
"""
STEP = """ Say what computing takes:
# step = {{ time = "250 ms", batch = 32, gpu = "A100" }}, a step of one process that you measured and its GPU,
# or flops_per_sample = "3 Gflop", of a forward pass."""


def parser() -> command.Parser:
    """The command line."""
    parser = command.Parser(prog="sim.workloads", description="List models, show one, or make one of a file.")
    parser.add_argument("what", choices=("list", "show", "from"))
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME|FILE",
        help="show: a model or its TOML file; from: a .safetensors, .safetensors.index.json, .keras, .h5, .onnx file, or config.json",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="from: the TOML file to write (stdout if not given)")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    given = parser().parse_args(argv)
    if (given.name is None) != (given.what == "list"):
        raise WrongSetting(
            given.what, given.name, "list alone" if given.name else "a NAME, as list names them, or a FILE"
        )
    if given.output and given.what != "from":
        raise WrongSetting("--output", given.output, "with from")
    {"list": _list, "show": _show, "from": _from}[given.what](given)
    return 0


def _list(given) -> None:
    from sim.model.workload import NAMED

    for model in NAMED.values():
        print(workload_text.line(model).rstrip())


def _show(given) -> None:
    from sim.model.workload import read

    model = read(given.name)
    print(workload_text.line(model).rstrip())
    for variable in model.created:
        print(workload_text.of_variable(variable))


def _from(given) -> None:
    check_outputs([("--output", given.output)], [given.name])
    check_ending("--output", given.output, (".toml",))
    text, notes = made_of(given.name)
    if given.output:
        write_text(given.output, text)
        for note in notes:
            print(f"note: {note}")
    else:
        print(text, end="")


def made_of(path: str) -> tuple[str, list[str]]:
    """The text of a workload with the variables that a file of a model has, and notes, which its first lines have too.

    Raises:
        WrongSetting: no such file, of no format that is known, or damaged; or a model that cannot be.
    """
    from sim.base.files import validated
    from sim.model.files.tensors import several
    from sim.model.model_files import read
    from sim.model.workload import SCHEMA, Workload

    found = read(path)
    table = {"schema": SCHEMA, "name": _name(path), **(found.keys or {})}
    model = validated(Workload, {**table, "variables": found.variables}, path)
    name = Path(path).name.encode("ascii", "replace").decode()
    numbers, variables = several(model.parameters, "number"), several(len(model.variables), "variable")
    notes = [f"note: {note}".encode("ascii", "replace").decode() for note in found.notes]
    more = "" if found.keys else STEP
    head = NOTE.format(name=printable(name), numbers=numbers, variables=variables, more=more) + "".join(
        f"# {note}\n" for note in notes
    )
    text = head + workload_text.toml(table, found.variables)
    if len(text.encode()) > MOST_BYTES:
        raise WrongSetting("from", path, f"a model whose description has at most {MOST_BYTES // 2**20} MiB")
    return text, found.notes


def _name(path: str) -> str:
    """The file's name without its endings; its folder's, of a config.json."""
    name = Path(path).name.removesuffix(".index.json").rpartition(".")[0]
    return Path(path).resolve().parent.name or name if name == "config" else name


if __name__ == "__main__":
    command.run("sim.workloads", main)
