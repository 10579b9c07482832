"""Stragglers by name, as a law that is written out, or from a file; scaled ones and several at once."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from sim.base.errors import WrongSetting, from_validation
from sim.base.files import names_a_file, read_toml, text_of
from sim.base.nearest import nearest
from sim.inline import MIXTURES, RECORDED, Inline
from sim.laws import KINDS, Constant, FoldedMixture, Law, Own, Replay, Stragglers, Together

LEAST_FACTOR, MOST_FACTOR = 1e-6, 1e4
TRACES = Path(__file__).parent / "recorded"  # laws that were derived from traces, see tools/bytedance.py


def _mixture(*rows: tuple[float, float, float]) -> FoldedMixture:
    return FoldedMixture.model_validate({"components": [{"mean_s": m, "std_s": s, "weight": w} for m, s, w in rows]})


NAMED: dict[str, Law] = {
    "none": Constant(value=0),
    **{name: _mixture(*rows) for name, rows in MIXTURES.items()},
}


def read(text: str | os.PathLike[str]) -> Stragglers:
    """The stragglers called `text`: a name, a law with its parameters, a user's own, or a TOML file.

    A product with a number has sleeps longer by it. A sum has all of its parts.

    Raises:
        WrongSetting: none of that, or not with these parameters.

    >>> read("lognormal(mean=50ms, cv=1.5)")
    LogNormal(kind='lognormal', mean=0.05, cv=1.5)
    >>> read("niagara*0.01").mean < read("niagara").mean
    True
    """
    text = text_of("--stragglers", text)
    if text not in NAMED and names_a_file(text) and "*" not in text:
        return of_table(read_toml(text, "--stragglers"), text)
    return Inline(text, _named, _made, lambda law, factor: _scaled(law, factor, text), _together).read()


def of_table(table: dict, source: str) -> Stragglers:
    """The stragglers that a table in a file describes, by its `kind`; without one, a folded mixture.

    Args:
        source: the path of the file; files that the table names are in its folder.

    Raises:
        WrongSetting: another kind, or wrong parameters.
    """
    given = dict(table)
    if isinstance(given.get("file"), str):
        given["file"] = str(Path(source).parent / given["file"])
    return _of_kind(given.pop("kind", "folded-mixture"), given, source)


def _named(name: str, quiet: bool = False) -> Stragglers | None:
    if name in NAMED:
        return NAMED[name]
    if name in RECORDED:
        return _recorded(name)
    if quiet:
        return None
    if _is_file(name):
        return of_table(read_toml(name, "--stragglers"), name)
    if name in KINDS or ":" in name:
        return _made(name, {})
    allowed = (
        f"{', '.join([*NAMED, *RECORDED])}, one of them times a factor (niagara*0.02), a law with its parameters "
        f"(lognormal(mean=50ms, cv=1.5)) of the kinds {', '.join(KINDS)}, module:Class, or a TOML file"
    )
    raise WrongSetting("--stragglers", name, allowed + nearest(name, [*NAMED, *RECORDED, *KINDS]))


def _is_file(name: str) -> bool:
    return "\0" not in name and os.path.exists(name)


@cache
def _recorded(name: str) -> Stragglers:
    return of_table(read_toml(TRACES / RECORDED[name], "--stragglers"), name)


def _made(kind: str, settings: dict) -> Stragglers:
    if isinstance(factor := settings.get("factor"), int | float) and 0 < factor < 1:
        allowed = f"1 or more: computing takes so many times as long, {1 / factor:.3g} times at {factor:g} of the speed"
        raise WrongSetting(f"--stragglers: {kind}: factor", factor, allowed)
    if ":" not in kind:
        return _of_kind(kind, settings, "--stragglers")
    plain = [(key, value) for key, value in settings.items() if isinstance(value, bool | int | float | str)]
    if len(plain) < len(settings):
        raise WrongSetting(f"--stragglers: {kind}", str(settings), "numbers and texts as parameters")
    return _validated(Own, {"name": kind, "settings": plain}, "--stragglers")


def _of_kind(kind: object, settings: dict, source: str) -> Stragglers:
    if not isinstance(kind, str) or kind not in KINDS:
        raise WrongSetting(f"{source}: kind", kind, ", ".join(KINDS) + nearest(kind, KINDS))
    found = KINDS[kind]
    known = [name for name in found.model_fields if name != "kind"]
    known += ["file", "column"] * (found is Replay)
    for name in settings:
        if name not in known:
            raise WrongSetting(
                f"{source}: {kind}", name, f"{', '.join(known) or 'no parameters'}{nearest(name, known)}"
            )
    if found is Replay and "file" in settings:
        settings = _replayed(settings, source)
    return _validated(found, settings, source if source != "--stragglers" else f"--stragglers: {kind}")


def _replayed(settings: dict, source: str) -> dict:
    """The settings with the values of the file in place of its name."""
    from sim.base.tables import matrix
    from sim.recording import traces

    given, unit = dict(settings), settings.get("unit", "seconds")
    if "values" in given:
        raise WrongSetting(f"{source}: replay", "file and values", "one of both")
    path, column = given.pop("file"), given.pop("column", unit)
    for name, value in (("file", path), ("column", column)):
        if not isinstance(value, str):
            raise WrongSetting(f"{source}: replay: {name}", value, "a text")
    if traces.is_trace(path):
        return given | {"values": _slept(path)}
    return given | {"values": matrix(path, column, f"{source}: replay: file")}


def _slept(path: str) -> list[list[float]]:
    """The sleeps of a trace's ranks, in the steps that all of them made; shape (ranks, steps)."""
    from sim.recording import traces

    found = traces.by_rank_and_step(traces.read(path), traces.SLEEP).dropna(axis="columns")
    if not found.size:
        raise WrongSetting(path, "no step that all ranks made", "a trace whose ranks made steps together")
    return found.to_numpy().tolist()


def _validated(kind: type[Stragglers], settings: dict, source: str) -> Stragglers:
    try:
        return kind.model_validate(settings)
    except ValidationError as error:
        raise from_validation(source, error) from error


def _together(parts: list[Stragglers]) -> Stragglers:
    flat = [one for part in parts for one in (part.of if isinstance(part, Together) else [part])]
    return _validated(Together, {"of": flat}, "--stragglers")


def _scaled(law: Stragglers, factor: str, text: str) -> Stragglers:
    try:
        value = float(factor)
    except ValueError:
        value = 0
    if law == NAMED["none"]:
        raise WrongSetting("--stragglers", text, "no factor of a law without sleeps")
    if not LEAST_FACTOR <= value <= MOST_FACTOR:
        raise WrongSetting(
            "--stragglers", text, f"a factor from {LEAST_FACTOR:g} to {MOST_FACTOR:g}, as in niagara*0.02"
        )
    try:
        return law.scaled(value)
    except ValidationError as error:
        raise from_validation(f"--stragglers {text}", error) from error
    except ValueError as error:
        raise WrongSetting("--stragglers", text, str(error)) from error
