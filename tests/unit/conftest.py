"""Fixtures of several files."""

import subprocess
from importlib import import_module

import pytest

from sim import command
from sim.language.engine import job


@pytest.fixture
def installed():
    """The engine answers where it is asked for by its name; or the test is skipped."""
    if job._kernel is None:
        pytest.skip("the engine is not compiled: python -m sim.language.engine.building")


@pytest.fixture
def here(capsys):
    """Runs a command without a process of its own, which takes half a second to start."""

    def run_here(module: str, *options) -> subprocess.CompletedProcess:
        words, code = [str(option) for option in options], 0
        try:
            command.run(module, lambda: import_module(module).main(words))
        except SystemExit as end:
            code = end.code or 0
        return subprocess.CompletedProcess([module, *words], code, *capsys.readouterr())

    return run_here
