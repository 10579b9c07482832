"""Quantities as people write them ("50 us", "10 Gbit/s", "4 MiB"), as seconds, bytes and bytes per second."""

from __future__ import annotations

from functools import cache
from typing import Annotated

from pydantic import BeforeValidator, Field

from sim.errors import WrongSetting


@cache
def _registry():
    import pint

    registry = pint.UnitRegistry(cache_folder=None)
    registry.define("Gbit = 1e9 * bit")
    registry.define("Mbit = 1e6 * bit")
    return registry


def quantity(text: str | float, unit: str, example: str) -> float:
    """`text` in `unit`; a bare number is taken to be in `unit` already.

    Raises:
        WrongSetting: the text is no quantity, or one of another dimension.
    """
    if not isinstance(text, str):
        return text
    import pint

    try:
        return float(_registry().Quantity(text).to(unit).magnitude)
    except (pint.PintError, ValueError, TypeError, AttributeError, AssertionError) as error:
        raise WrongSetting("quantity", text, f'a quantity such as "{example}", or a number of {unit}') from error


def _unit(unit: str, example: str):
    return BeforeValidator(lambda value: quantity(value, unit, example))


Seconds = Annotated[float, _unit("second", "50 us"), Field(ge=0, allow_inf_nan=False)]
SecondsPerByte = Annotated[float, _unit("second/byte", "0.8 ns/byte"), Field(ge=0, allow_inf_nan=False)]
BytesPerSecond = Annotated[float, _unit("byte/second", "10 Gbit/s"), Field(gt=0)]
