"""Quantities as people write them ("50 us", "10 Gbit/s", "4 MiB"): a number and a unit, nothing else; and lists with commas."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import cache

from sim.base.errors import WrongSetting

HOUR_S = 3600.0

NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
UNIT = r"[^\W\d_]+(?:/[^\W\d_]+)?"  # letters, or two times letters with a stroke between
QUANTITY = re.compile(rf"\s*({NUMBER})\s*({UNIT})\s*")

TIMES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "B": 10**9, "T": 10**12}  # B as in a model of "7 B"
COUNT = re.compile(rf"\s*({NUMBER})\s*([kMGBT]?)\s*")
MOST_COUNTED = 10**18
BRACKETS = {"(": ")", "[": "]", "{": "}"}


@cache
def _registry():
    import pint

    registry: pint.UnitRegistry = pint.UnitRegistry(cache_folder=None)
    registry.define("Gbit = 1e9 * bit")
    registry.define("Mbit = 1e6 * bit")
    registry.define("flop = [operations] = flop = FLOP")
    return registry


def quantity(text: str | float, unit: str, example: str) -> float:
    """`text` in `unit`; a bare number is taken to be in `unit` already.

    Raises:
        WrongSetting: the text is no quantity, or one of another dimension.

    >>> quantity("25 Gbit/s", "byte/second", "10 Gbit/s")
    3125000000.0
    """
    if not isinstance(text, str | bool):
        return text
    written = QUANTITY.fullmatch(text) if isinstance(text, str) else None
    if not written:
        raise _wrong(text, unit, example)
    return float(written[1]) * _in(written[2], unit, text, example)


def count(text: str | int, example: str) -> int:
    """A whole number, or one with a prefix: "120 M".

    Raises:
        WrongSetting: the text is no such number.

    >>> count("1.2 k", "120 M")
    1200
    """
    allowed = f'a whole number, or one with k, M, G (or B) or T, such as "{example}"'
    if isinstance(text, bool | bytes):
        raise WrongSetting("number", text, allowed)
    if not isinstance(text, str):
        return text
    written = COUNT.fullmatch(text)
    if not written or abs(float(written[1])) > MOST_COUNTED:
        raise WrongSetting("number", text, allowed)
    value = Decimal(written[1]) * TIMES[written[2]]
    if value != value.to_integral_value():
        raise WrongSetting("number", text, allowed)
    return int(value)


def number_or_text(text: str) -> int | float | str:
    """A number without a unit where the text is one; else the text.

    >>> number_or_text("1e3"), number_or_text("50ms")
    (1000.0, '50ms')
    """
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _in(written: str, unit: str, text: str, example: str) -> float:
    """The size of the `written` unit in multiples of `unit`."""
    import pint

    try:
        return float(_registry().Quantity(1.0, written).to(unit).magnitude)
    except (pint.PintError, ValueError, TypeError, AttributeError, AssertionError) as error:
        raise _wrong(text, unit, example) from error


def _wrong(text: object, unit: str, example: str) -> WrongSetting:
    return WrongSetting("quantity", text, f'a quantity such as "{example}", or a number ({unit})')


def parts(text: str) -> Iterator[str]:
    """Cut at commas, but not within quotes and brackets.

    >>> list(parts("none,lognormal(mean=50ms, cv=1.5)"))
    ['none', 'lognormal(mean=50ms, cv=1.5)']
    """
    part = ""
    closing: list[str] = []
    for letter in text:
        if closing and letter == closing[-1]:
            closing.pop()
        elif letter in "\"'" and not (closing and closing[-1] in "\"'"):
            closing.append(letter)
        elif letter in BRACKETS and not (closing and closing[-1] in "\"'"):
            closing.append(BRACKETS[letter])
        if letter == "," and not closing:
            yield part
            part = ""
        else:
            part += letter
    yield part


def assigned(
    option: str, texts: Iterable[str], allowed: str = "NAME=VALUE", sign: str = "=", of_all: bool = False
) -> dict[str, str]:
    """What each name is given in texts of NAME=VALUE, or with another sign.

    Args:
        of_all: whether VALUE alone is that of all, whose name is empty.

    Raises:
        WrongSetting: a text has no name or no value, or a name is there twice.
    """
    found: dict[str, str] = {}
    for text in map(str.strip, texts):
        alone = of_all and sign not in text
        name, value = ("", text) if alone else map(str.strip, text.partition(sign)[::2])
        if not (value and (name or alone)):
            raise WrongSetting(option, text, allowed)
        if name in found:
            raise WrongSetting(option, text, f"each name once: {name or 'that of all'} was given before")
        found[name] = value
    return found
