"""Stragglers by name, as a law that is written out, or from a file; scaled ones and several at once."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sim.base.errors import WrongSetting, from_validation, nearest
from sim.base.files import names_a_file, read_toml, text_of, validated
from sim.base.units import number_or_text
from sim.inline import MIXTURES, RECORDED
from sim.laws import KINDS, Constant, FoldedMixture, Law, Own, Replay, Stragglers, Together

LEAST_FACTOR, MOST_FACTOR = 1e-6, 1e4
DEEPEST, LONGEST = 8, 100_000  # values within one another, characters
SIGNS = "()[]{},=*+"
TOKEN = re.compile(rf"[{re.escape(SIGNS)}]|(?:[^{re.escape(SIGNS)}]|(?<=[0-9][eE])\+(?=[0-9]))+")
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
    return Written(text).read()


class Written:
    """A law on a command line: `lognormal(mean=50ms, cv=1.5)*2 + slow-ranks(rank=3, factor=1.3)`.

    It is parsed as Python, whose sums, products, calls, lists and dicts it has, and nothing is evaluated. Words, such as 50ms, are names of
    the same length there.
    """

    def __init__(self, text: str):
        self._text = text.strip()[:LONGEST]

    def read(self) -> Stragglers:
        """The law; WrongSetting if the text has no such form, or one of its laws cannot be."""
        try:
            return self._law(ast.parse("".join(_as_python(self._text)), mode="eval").body)
        except SyntaxError as error:
            at = None if "never closed" in error.msg else error.offset
            raise self._wrong(at - 1 if at else len(self._text)) from error
        except (RecursionError, MemoryError) as error:
            raise WrongSetting("--stragglers", self._text, "fewer laws") from error

    def _law(self, node: Any, deep: int = 0) -> Stragglers:
        terms: list[Any] = []
        while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            terms, node = [node.right, *terms], node.left
        if terms:
            return _together([self._law(one, deep) for one in (node, *terms)])
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return _scaled(self._law(node.left, deep), self._word(node.right), self._text)
        if not isinstance(node, ast.Call):
            return _named(self._word(node))
        if node.args:
            raise self._wrong(node.args[0].col_offset)
        name, given = self._word(node.func), [(one, one.value) for one in node.keywords]
        return _made(name, self._settings(name, given, deep))

    def _settings(self, name: str, given: Iterable[tuple[Any, Any]], deep: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in given:
            if (word := self._word(key)) in found:
                raise WrongSetting(f"--stragglers: {name}", word, "each parameter once")
            found[word] = self._value(value, deep + 1)
        return found

    def _value(self, node: Any, deep: int) -> Any:
        """A number, a text, a list of values, a table, or a law."""
        if deep > DEEPEST:
            raise WrongSetting("--stragglers", self._text, f"laws within laws, at most {DEEPEST} deep")
        if isinstance(node, ast.List):
            return [self._value(one, deep + 1) for one in node.elts]
        if isinstance(node, ast.Dict):
            return self._settings("a table", zip(node.keys, node.values, strict=True), deep)
        if isinstance(node, ast.Name) and _known(self._word(node)) is None:
            return number_or_text(self._word(node))
        return self._law(node, deep)

    def _word(self, node: Any) -> str:
        """The text of a name, or of the name of a parameter."""
        long = len(getattr(node, "id", None) or getattr(node, "arg", None) or "")
        if not long:
            raise self._wrong(getattr(node, "col_offset", 0))
        return self._text[node.col_offset : node.col_offset + long]

    def _wrong(self, at: int) -> WrongSetting:
        where = f"before {self._text[at : at + 40]!r}" if self._text[at:] else "at the end"
        examples = "lognormal(mean=50ms, cv=1.5) or niagara*0.02 + slow-ranks(rank=3, factor=1.3)"
        return WrongSetting("--stragglers", self._text, f"a law, which goes on otherwise {where}; as in {examples}")


def _as_python(text: str) -> Iterator[str]:
    """The parts of an expression of Python that is as long, with a name in place of each word; tables have colons."""
    around = [""]
    for token in TOKEN.findall(text):
        if token in "([{":
            around.append(token)
        elif token in ")]}" and len(around) > 1:
            around.pop()
        if token in SIGNS:
            yield ":" if (around[-1], token) == ("{", "=") else token
        else:
            word = token.strip()
            yield (" " * token.find(word) + "w" * len(word)).ljust(len(token))


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


def _known(name: str) -> Stragglers | None:
    return _recorded(name) if name in RECORDED else NAMED.get(name)


def _named(name: str) -> Stragglers:
    if law := _known(name):
        return law
    if "\0" not in name and os.path.exists(name):
        return of_table(read_toml(name, "--stragglers"), name)
    if name in KINDS or ":" in name:
        return _made(name, {})
    allowed = (
        f"{', '.join([*NAMED, *RECORDED])}, one of them times a factor (niagara*0.02), a law with its parameters "
        f"(lognormal(mean=50ms, cv=1.5)) of the kinds {', '.join(KINDS)}, module:Class, or a TOML file"
    )
    raise WrongSetting("--stragglers", name, allowed + nearest(name, [*NAMED, *RECORDED, *KINDS]))


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
    return validated(Own, {"name": kind, "settings": plain}, "--stragglers")


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
    return validated(found, settings, source if source != "--stragglers" else f"--stragglers: {kind}")


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


def _together(parts: list[Stragglers]) -> Stragglers:
    flat = [one for part in parts for one in (part.of if isinstance(part, Together) else [part])]
    return validated(Together, {"of": flat}, "--stragglers")


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
