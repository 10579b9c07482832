"""`trainsim list KIND`: what there is by name, a line each; with a NAME all that is known of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import fields
from inspect import cleandoc
from typing import NamedTuple

from sim import command
from sim.base.errors import WrongSetting, nearest


class Entry(NamedTuple):
    """Something that has a name.

    Args:
        line: about it.
        settings: each as name=default.
        about: all that its documentation says.
    """

    line: str
    settings: tuple[str, ...] = ()
    about: str = ""


def parser() -> command.Parser:
    """The command line."""
    found = command.Parser(prog="trainsim list", description="List the names of a kind, or show one of them.")
    found.add_argument("kind", nargs="?", choices=tuple(KINDS), help="what to list; none: the kinds")
    found.add_argument("name", nargs="?", metavar="NAME", help="show everything about it")
    return found


def main(argv: list[str] | None = None) -> int:
    """Run the command.

    Raises:
        WrongSetting: there is nothing of this name.
    """
    given = parser().parse_args(argv)
    if given.kind is None:
        print(*(f"{kind:12} {about}" for kind, (about, _) in KINDS.items()), sep="\n")
        return 0
    entries = KINDS[given.kind][1]()
    if given.name is None:
        for name, entry in entries.items():
            print(*_lines(name, entry), sep="\n")
        return 0
    if given.name not in entries:
        raise WrongSetting(given.kind, given.name, f"{', '.join(entries)}{nearest(given.name, entries)}")
    entry = entries[given.name]
    print(*_lines(given.name, entry), sep="\n")
    if entry.about:
        print("", entry.about, sep="\n")
    return 0


def _lines(name: str, entry: Entry) -> list[str]:
    settings = [f"{'':20} {', '.join(entry.settings)}"] if entry.settings else []
    return [entry.line if entry.line.startswith(name) else f"{name:20} {entry.line}", *settings]


def _first(text: str | None) -> str:
    return cleandoc(text or "").partition("\n")[0]


def protocols() -> dict[str, Entry]:
    """Protocols by name, with what --set may set."""
    from sim.protocols import PROTOCOLS
    from sim.protocols.own import about, default_of

    found = {}
    for name, protocol in PROTOCOLS.items():
        line = _first(sys.modules[protocol.__module__].__doc__)
        found[name] = Entry(line, tuple(map(default_of, fields(protocol))), about(protocol.text_class))
    return found


def laws() -> dict[str, Entry]:
    """Stragglers that have a name, and kinds of laws with their parameters."""
    from sim import stragglers
    from sim.laws import KINDS as OF_LAWS

    found = {
        name: Entry(f"{law.model_dump()['kind']}, mean {law.mean:.3g} s") for name, law in stragglers.NAMED.items()
    }
    found |= {name: Entry(RECORDED) for name in stragglers.RECORDED}
    for kind, law in OF_LAWS.items():
        parameters = {name: field for name, field in law.model_fields.items() if name != "kind"}
        settings = [f"{name}={'...' if f.is_required() else f.default}" for name, f in parameters.items()]
        found[kind] = Entry(_first(law.__doc__), tuple(settings), cleandoc(law.__doc__ or ""))
    return found


def collectives() -> dict[str, Entry]:
    """Algorithms of allreduce, for --set algorithm=NAME."""
    from sim.language.collectives import ALGORITHMS

    auto = "What the library takes: NCCL's ring or trees among GPUs, Open MPI's choice on cores; for real, MPI's."
    entries = {name: Entry(_first(one.__doc__), about=cleandoc(one.__doc__ or "")) for name, one in ALGORITHMS.items()}
    return entries | {"auto": Entry(auto)}


def experiments() -> dict[str, Entry]:
    """Experiments by the question that each answers."""
    from experiments.run import QUESTIONS

    return {name: Entry(f"{question.asked} ({question.takes})") for name, question in QUESTIONS.items()}


RECORDED = "ranks of a job with stragglers that ByteDance recorded (Lin et al., OSDI 2025)."
KINDS: dict[str, tuple[str, Callable[[], dict[str, Entry]]]] = {
    "protocols": ("of training, for --protocol, with what --set may set", protocols),
    "laws": ("of stragglers, for --stragglers, with their parameters", laws),
    "collectives": ("algorithms of allreduce, for --set algorithm=NAME", collectives),
    "experiments": ("predictions beside measurements, for trainsim experiments", experiments),
}
