"""Command lines and files for test_fuzz: sensible, extreme and nonsensical, from the parsers and the models of files themselves."""

import argparse
from collections.abc import Iterator
from typing import get_args, get_origin

import tomli_w
from hypothesis import strategies as draw
from pydantic import BaseModel

from sim import protocols
from sim.sweeps.grid import _several, known

NONSENSE = (
    *("", " ", "inf", "-inf", "nan", "1e300", "1e-320", "-1", "0", "0.5", "9" * 400, "0x10", "True", "[1, 2]", "{}"),
    *("a\nb", "\udcff", "名", "n" * 5000, "--", "-x", "*", "%s", "a=b", "9**9**9 s", "1/0 s", "((( s", "5 km", "80 ms"),
    *("none*2", "p3.8xlarge*0", "*4", "niagara*inf", "x:y", "folder", "broken.toml", "empty", "nowhere/x", "/dev/full"),
    *("cluster.toml", "t.jsonl", "cells.json", "x.json", "x.npz", "json:loads", "sim.texts.amb:AnytimeMinibatch"),
)
SENSIBLE = {  # of options that are neither numbers nor choices
    "protocol": tuple(protocols.PROTOCOLS),
    "workload": ("workload.toml", "mlp", "bigram"),
    "cluster": ("cluster.toml", "p3.8xlarge*2"),
    "stragglers": ("none", "niagara*0.01", "law.toml", "gamma(mean=5ms, cv=1)", "slow-ranks(rank=1, seconds=1ms)"),
    "placement": ("round-robin", "greedy"),
    "network": ("1 Gbit/s, 50 us", "100 Mbit/s"),
    "servers_on": ("own", "workers"),
    "failures": ("mtbf=30 s", "mtbf=30 d, restart=5 min, every=1 h", "mtbf=9 d, preemption=1 d"),
    "variable_partitions": ("1", "2", "search"),
    "set": ("time_limit_s=0.1", "partitions=2", "staleness=1", "algorithm=ring", "barrier=true", "fused=False"),
    "trace": ("a.jsonl", "a.parquet"),
    "TRACE": ("t.jsonl",),
    "FILE": ("cells.json",),
    "plot": ("a.svg",),
    "report": ("a.html",),
    "output": ("a.json", "a.toml", "a.svg"),
    "probe": ("probe.json",),
    "parameters": ("a.npz",),
    "data": ("synthetic", "digits"),
    "testbed": ("100 Mbit/s",),
    "out": ("results",),
    "name": ("here",),
    "GRID": ("grid.toml",),
}
EXTREME = (  # where numbers belong; the last three are the ends of most ranges
    *("0", "-1", "1e3", "1000000000", "1e300", "inf", "nan", "1e-320", "9" * 400, "１"),
    *("1000000", "1000000000000", str(2**64 - 1)),
)
FITTING_VALUES = (0, 1, 2, 0.001, 0.5, "1 ms", "1 Gbit/s", "64 KiB", True, False, "a", [1], {"base_s": 0.001})
GRID = {
    "schema": "sweep/1",
    "options": {"workload": "mlp", "workers": [1, 2], "steps": 3, "warmup": 1, "replications": 1},
    "scenarios": [{"protocol": ["fmb", "ps-async"]}, {"protocol": "amb", "set": {"partitions": [1, 2]}}],
}
ODD_VALUES = (  # of keys in a file
    *(float("inf"), float("-inf"), float("nan"), 1e300, -1.0, 0.0, 1e-320, -1, 0, 1, 2, 10**30, 2**63, True, False),
    *("", "a", "inf", "1", "9**9**9 s", "1/0 s", "((( s", "50 us", "10 Gbit/s", "n" * 2000, "none", "constant"),
    *([], [1, 2], [[]], [{}], {}, {"a": 1}, {"mean_s": 1.0}, {"base_s": -1.0}, {"kind": "lognormal", "cv": 1e9}),
)


def sensible(action: argparse.Action) -> tuple[str, ...]:
    """Values that an option may have; one that is crossed, two of them."""
    if getattr(action.type, "func", None) is _several:
        one = sensible(known()[action.type.args[0]])
        return (*one, ",".join(one[:2]))
    if action.choices:
        return tuple(map(str, action.choices))
    name = action.dest if action.option_strings else action.metavar
    return {int: ("1", "2", "3"), float: ("0.5", "1")}.get(action.type) or SENSIBLE.get(name, ("a",))


@draw.composite
def lines(pick, parser: argparse.ArgumentParser, base: dict[str, tuple[str, ...]]) -> list[str]:
    """A command line: `base`, values by dest, with up to four options that are added, changed or nonsense."""
    actions = [action for action in parser._actions if action.dest != "help"]
    changed = {a.dest: pick(words(a)) for a in pick(draw.lists(draw.sampled_from(actions), max_size=4))}
    more = [[]] * 30 + [["--no-such-option"], ["stray"], ["--help"], ["--json", "--json"]]
    return line_of(parser, base | changed) + pick(draw.sampled_from(more))


def line_of(parser: argparse.ArgumentParser, given: dict[str, tuple[str, ...]]) -> list[str]:
    """The command line on which options have values, by dest."""
    line: list[str] = []
    for action in parser._actions:
        values = given.get(action.dest, ())
        if not action.option_strings:
            line = [*values, *line]
        elif action.nargs == 0:
            line += action.option_strings[-1:] * (action.dest in given)
        else:
            line += [f"{action.option_strings[-1]}={value}" for value in values]
    return line


def each_number(parser: argparse.ArgumentParser, base: dict[str, tuple[str, ...]]) -> Iterator[list[str]]:
    """Command lines of which one number is extreme: every option with every such value."""
    for action in parser._actions:
        if is_number(action):
            for value in EXTREME:
                yield line_of(parser, base | {action.dest: (value,)})


def is_number(action: argparse.Action) -> bool:
    """Whether an option is one, or several."""
    one = known()[action.type.args[0]] if getattr(action.type, "func", None) is _several else action
    return one.type in (int, float)


def words(action: argparse.Action):
    """What is given with an option: mostly one value that makes sense."""
    fits, extreme = draw.sampled_from(sensible(action)), draw.sampled_from(EXTREME)
    odd = extreme | draw.sampled_from(NONSENSE) if is_number(action) else draw.sampled_from(NONSENSE)
    one = draw.integers(0, 9).flatmap(lambda die: odd if die < 3 else fits)
    return draw.integers(0, 30).flatmap(lambda die: draw.tuples(one, one) if die == 0 else draw.tuples(one))


def keys(model: type[BaseModel]) -> Iterator[tuple[str, ...]]:
    """The path of every key that a file may have, by the fields of its model; of tables by name, one that is called mlp."""
    for name, field in model.model_fields.items():
        path = (field.alias or name,)
        yield path
        for part, by_name in _models(field.annotation):
            below = (*path, "mlp") if by_name else path
            for further in keys(part):
                yield (*below, *further)


def _models(annotation, by_name: bool = False) -> Iterator[tuple[type[BaseModel], bool]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, by_name
    for part in get_args(annotation):
        yield from _models(part, by_name or get_origin(annotation) is dict)


def ends(model: type[BaseModel]) -> dict[tuple[str, ...], tuple[float, ...]]:
    """The ends of the range of every number of a file, by the path of its key."""
    found = {}
    for name, field in model.model_fields.items():
        path = (field.alias or name,)
        said = [getattr(rule, end, None) for rule in _rules(field) for end in ("ge", "gt", "le")]
        if limits := tuple(value for value in said if isinstance(value, int | float)):
            found[path] = limits
        for part, by_name in _models(field.annotation):
            below = (*path, "mlp") if by_name else path
            found |= {(*below, *further): limits for further, limits in ends(part).items()}
    return found


def _rules(field) -> Iterator:
    """The rules of a field: its own, and those of types that it may have."""
    yield from field.metadata
    for part in get_args(field.annotation):
        yield from (rule for one in getattr(part, "__metadata__", ()) for rule in (one, *getattr(one, "metadata", ())))


@draw.composite
def texts(pick, model: type[BaseModel], good: dict) -> str:
    """A TOML file: a good one of which up to three keys are missing, have odd values, or those at the ends of their ranges."""
    table, limits = _copy(good), ends(model)
    for path in pick(draw.lists(draw.sampled_from(list(keys(model))), max_size=3)):
        pool = pick(draw.sampled_from([ODD_VALUES, FITTING_VALUES, limits.get(path, FITTING_VALUES)]))
        _put(table, path, pick(draw.sampled_from(pool)), gone=pick(draw.integers(0, 9)) == 0)
    return tomli_w.dumps(table)


DRAWS = (  # what a law of one's own may give by mistake
    *("-1.0", "rng.normal(0.01, 0.02, size)", "rng.random(size)", "np.full(size, np.nan)", "np.inf", "1e300"),
    *("None", "'a'", "np.zeros(3)", "np.zeros(size).tolist()", "1j", "object()", "1 / 0", "np.zeros((size, 2))"),
    *("np.array(['a'] * 9)", "iter(())", "True", "np.zeros(size, int)", "rng", "self.mean * np.ones(size)", "exit()"),
)


@draw.composite
def laws(pick) -> str:
    """A module with a law of one's own, Odd, that may be wrong."""
    given = pick(draw.sampled_from(DRAWS))
    mean = pick(draw.sampled_from(["0.01", "-1.0", "np.nan", "None", "1 / 0", "'a'"]))
    base = pick(draw.sampled_from(["Law", "Law", "Law", "Stragglers", "object"]))
    method = pick(draw.sampled_from(["draw(self, rng, size)", "draw(self, rng, size)", "draw(self)", "other(self)"]))
    lines = ["import numpy as np", "from sim.laws import Law, Stragglers"]
    lines += [f"class Odd({base}):", f"    def {method}:", f"        return {given}"]
    if pick(draw.integers(0, 3)):
        lines += ["    @property", "    def mean(self):", f"        return {mean}"]
    return "\n".join(lines) + "\n"


WHOLE = ["--trace", "cell.parquet", "--workers", "1"]
ODD_CELLS = ({}, 1, None, "a", [], [[]], [{}], [1], ["--help"], ["--trace", "a\0b"], [*WHOLE, "stray"], WHOLE)
CELLS = draw.sampled_from(ODD_CELLS) | draw.lists(draw.sampled_from(ODD_CELLS), max_size=3)

SURROUNDINGS = {  # of a process, besides its command line
    "MPLBACKEND": ("nope", "", "agg", "module://nope", "tkagg"),
    "COLUMNS": ("0", "1", "-1", "x", "\u00b2", "9" * 30, "200"),
    "LINES": ("0", "\u00b2", "x"),
    "TERM": ("", "dumb", "xterm-256color", "x"),
    "NO_COLOR": ("", "1"),
    "FORCE_COLOR": ("", "1", "x"),
    "TRAINSIM_CALLED": ("", "=", "x", "sim.run=a b", "sim.run=\u2603"),
    "HOME": ("", "/nowhere", "/proc"),
    "XDG_CACHE_HOME": ("", "/nowhere", "/proc", "x"),
    "TMPDIR": ("", "/nowhere"),
}


@draw.composite
def surroundings(pick) -> dict[str, str]:
    """Some variables of the environment."""
    names = pick(draw.lists(draw.sampled_from(sorted(SURROUNDINGS)), max_size=3, unique=True))
    return {name: pick(draw.sampled_from(SURROUNDINGS[name])) for name in names}


@draw.composite
def grids(pick, names: list[str]) -> str:
    """A grid: a good one, of which up to three options are missing, odd or unknown."""
    table = _copy(GRID)
    below = [*((name,) for name in names), ("set", "partitions"), ("set", "time_limit_s")]
    places = [("schema",), *((where, *path) for where in ("options", "scenarios") for path in ((), *below))]
    for path in pick(draw.lists(draw.sampled_from(places), max_size=3)):
        pool = draw.sampled_from(ODD_VALUES) | draw.lists(draw.sampled_from(FITTING_VALUES), max_size=3)
        _put(table, path, pick(pool), gone=pick(draw.integers(0, 9)) == 0)
    return tomli_w.dumps(table)


def _copy(value):
    if isinstance(value, dict):
        return {name: _copy(item) for name, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _put(table, path: tuple[str, ...], value, gone: bool) -> None:
    """Set what `path` leads to, or take it away; of a list the first."""
    for name in path[:-1]:
        below = table.setdefault(name, {})
        below = below[0] if isinstance(below, list) and below else below
        if not isinstance(below, dict):
            table[name] = below = {}
        table = below
    table.pop(path[-1], None) if gone else table.__setitem__(path[-1], _copy(value))
