"""The scenarios of a sweep: options, of which those that have several values are crossed; from GRID.toml or a command line.

On a command line commas stand between values, as in Hydra: --workers 4,8,16 --protocol fmb,amb.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator
from functools import cache, partial
from itertools import product

from sim import options, simulated_options
from sim.base.errors import WrongSetting, nearest
from sim.base.files import read_toml
from sim.base.units import assigned, parts
from sim.command import Parser

SCHEMA = "sweep/1"
KEYS = ("schema", "options", "scenarios")
MOST_SCENARIOS = 10**6
SET = "set."  # before the name of a protocol's setting
Table = dict[str, list[str]]  # the values of each option, as one would write them on a command line


@cache
def parser() -> Parser:
    """The options that a scenario may have, those of sim.run without its files; it raises ArgumentError."""
    parents = [options.job_options(), simulated_options.simulation_options()]
    return Parser(prog="sim.sweep", add_help=False, exit_on_error=False, parents=parents)


def known() -> dict[str, argparse.Action]:
    """The options by name: those of the command line with underscores."""
    return {action.dest: action for action in parser()._actions}


def read(path: str) -> list[Table]:
    """The tables of GRID.toml, each to be crossed: `options` with each of `scenarios`, or by itself.

    Raises:
        WrongSetting: no such file, another schema, an unknown option, or a value that it cannot have.
    """
    table = read_toml(path, "GRID")
    if table.get("schema") != SCHEMA:
        raise WrongSetting(f"{path}: schema", table.get("schema"), SCHEMA)
    if unknown := [key for key in table if key not in KEYS]:
        raise WrongSetting(f"{path}: {unknown[0]}", table[unknown[0]], f"{', '.join(KEYS)}{nearest(unknown[0], KEYS)}")
    base, several = table.get("options", {}), table.get("scenarios", [{}])
    if not isinstance(several, list) or not several:
        raise WrongSetting(f"{path}: scenarios", several, "one or more tables, [[scenarios]]")
    found = _table(base, f"{path}: options")
    return [found | _table(one, f"{path}: scenario {number}") for number, one in enumerate(several, 1)]


def _table(given: object, where: str) -> Table:
    """The values of each option of a table, checked; settings of the protocol are a table of their own, `set`."""
    if not isinstance(given, dict):
        raise WrongSetting(where, given, "a table of options")
    settings = given.get("set", {})
    if not isinstance(settings, dict):
        raise WrongSetting(f"{where}: set", settings, "a table of the protocol's settings")
    flat = {name: value for name, value in given.items() if name != "set"}
    flat |= {f"{SET}{name}": value for name, value in settings.items()}
    found = {name: _texts(value, f"{where}: {name}") for name, value in flat.items()}
    for name, texts in found.items():
        for text in texts:
            value_of(name, text, f"{where}: ")
    return found


def _texts(value: object, where: str) -> list[str]:
    values = value if isinstance(value, list) else [value]
    if not values:
        raise WrongSetting(where, value, "a value, or a list of one or more")
    return [_text(one, where) for one in values]


def _text(value: object, where: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise WrongSetting(where, value, "text, a number, true or false, or a list of these")


@cache
def value_of(name: str, text: str, where: str = "--") -> object:
    """The value of an option that is given as this text; a protocol checks its settings itself.

    Raises:
        WrongSetting: no such option, or not with this value.
    """
    if name.startswith(SET):
        return f"{name.removeprefix(SET)}={text}"
    if name not in known() or name == "set":
        raise WrongSetting(f"{where}{name}", text, f"{', '.join(known())}{nearest(name, known())}")
    if text == options.SEARCH and name == "variable_partitions":
        raise WrongSetting(f"{where}{name}", text, "numbers: a sweep tries those that it is given")
    try:
        return getattr(parser().parse_known_args([f"{known()[name].option_strings[-1]}={text}"])[0], name)
    except argparse.ArgumentError as error:
        allowed = error.message.partition("; allowed: ")[2]
        raise WrongSetting(f"{where}{name}", text, allowed or error.message) from error


def crossed(tables: Iterable[Table], read: options.Readers) -> list[argparse.Namespace]:
    """The options of every scenario: in each table every value of an option with every value of the others.

    Raises:
        WrongSetting: there are too many, or one names a protocol, workload, law or cluster that there is not.
    """
    tables = list(tables)
    count = sum(math.prod(map(len, table.values())) for table in tables)
    if count > MOST_SCENARIOS:
        raise WrongSetting("scenarios", f"{count:,} of them", f"at most {MOST_SCENARIOS:,}")
    for table in tables:
        for name in set(table).intersection(vars(read)):
            for text in table[name]:
                getattr(read, name)(text)
    compared = tuple(text for table in tables for text in table.get("protocol", ()))  # which have equal stragglers
    return [one for table in tables for one in _crossed(table, compared)]


def _crossed(table: Table, compared: tuple[str, ...]) -> Iterator[argparse.Namespace]:
    defaults = vars(parser().parse_args([]))
    for texts in product(*table.values()):
        values = {name: value_of(name, text) for name, text in zip(table, texts, strict=True)}
        settings = [values.pop(name) for name in table if name.startswith(SET)]
        yield argparse.Namespace(**defaults | values | {"set": settings, "compared": compared})


def _several(option: str, text: str) -> list[str]:
    """The values of an option, between commas that are not within brackets; they stay text, as those of a file are."""
    texts = list(parts(text))
    try:
        for one in texts:
            value_of(option, one)
    except WrongSetting as error:
        raise argparse.ArgumentTypeError(f"given {error.given!r}; allowed: {error.allowed}") from error
    return texts


def crossed_options() -> Parser:
    """A parent parser: the options of a scenario."""
    made = Parser(add_help=False)
    for group in filter(lambda group: group._group_actions, parser()._action_groups):
        titled = made.add_argument_group(group.title)
        for action in group._group_actions:
            _add(titled, action)
    return made


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
    group.add_argument(*action.option_strings, dest=action.dest, type=partial(_several, action.dest), **about)


def table_of(given: argparse.Namespace) -> Table:
    """The values of each option on a command line.

    Raises:
        WrongSetting: a setting that is given twice, or without a value.
    """
    found = {name: texts for name in known() if (texts := getattr(given, name)) and name != "set"}
    settings = assigned("--set", given.set, "NAME=VALUE, or NAME=VALUE,VALUE")
    return found | {f"{SET}{name}": list(parts(texts)) for name, texts in settings.items()}
