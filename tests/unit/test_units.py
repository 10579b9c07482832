"""A quantity is a number and a unit, nothing else."""

import pytest

from sim.base.errors import WrongSetting
from sim.base.units import quantity

QUANTITIES = [
    ("50 us", "second", 50e-6),
    ("80ms", "second", 0.08),
    ("+1.5e-3 s", "second", 1.5e-3),
    (".5 s", "second", 0.5),
    ("2 hours", "second", 7200),
    ("3 µs", "second", 3e-6),
    ("10 Gbit/s", "byte/second", 1.25e9),
    ("100 Mbit/s", "byte/second", 12.5e6),
    ("4 MiB", "byte", 4 * 2**20),
    ("0.8 ns/byte", "second/byte", 0.8e-9),
    ("3 Gflop", "flop", 3e9),
    ("1.2 TFLOP", "flop", 1.2e12),
    (7, "second", 7),
]
NONE = [
    *("9**9**9 s", "((( s", "1 + 1 s", "2 * s", "s", "5", " ", "5 s s", "5 s2", "5 s**2", "5 s/s/s", "5 km", "5 Gbit"),
    *("5 nan", "inf s", "0x10 s", "1_000 s", "__import__('os') s", "5 s\n6 s", "٥ s", "5 " + "s" * 1000, True),
]


@pytest.mark.parametrize(("text", "unit", "value"), QUANTITIES)
def test_a_number_and_a_unit(text, unit, value):
    assert quantity(text, unit, "50 us") == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("text", NONE)
def test_nothing_else(text):
    with pytest.raises(WrongSetting, match="quantity such as"):
        quantity(text, "second", "50 us")
