"""Examples in docstrings are run, and print what they say."""

import doctest
from importlib import import_module

import pytest
from processes import ROOT

PACKAGES = ("sim", "real", "calibration", "experiments", "trainsim")
WITH_EXAMPLES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
    if ">>> " in path.read_text()
]


def test_there_are_examples():
    assert {"sim.protocols", "sim.stragglers", "sim.base.units"} <= set(WITH_EXAMPLES)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_print_what_they_say(name):
    found = doctest.testmod(import_module(name))
    assert found.attempted > 0
    assert found.failed == 0
