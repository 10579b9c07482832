"""The names of our modules: `sim.run` in the source tree, `trainsim.sim.run` where a wheel has put all packages into `trainsim`.

And the libraries that only some answers need, with the extra that installs each: `pip install 'anytime-trainsim[tables]'`.
"""

from __future__ import annotations

from importlib.util import find_spec

OUTER = "trainsim"
PACKAGE = __name__.removesuffix("sim.base.home")  # "trainsim." in a wheel

DISTRIBUTION = "anytime-trainsim"
EXTRAS = {"pyarrow": "tables", "matplotlib": "plots", "tensorflow": "real", "simpy": "test"}
EXTRAS |= dict.fromkeys(("mpi4py", "sklearn", "psutil", "threadpoolctl"), "mpi")


def installed(name: str) -> str:
    """The name by which a module is imported here, of its name in the source tree; the start of a name may be given, too.

    >>> installed("sim.run"), installed("trainsim.main")
    ('sim.run', 'trainsim.main')
    """
    return name if name.partition(".")[0] == OUTER else PACKAGE + name


class MissingExtra(ModuleNotFoundError):
    """A library that is not installed; the message names the extra that has it. Commands exit with 2."""


def missing(module: str) -> MissingExtra:
    """The error for a library of EXTRAS that is not installed."""
    return MissingExtra(f"this needs {module}: pip install '{DISTRIBUTION}[{EXTRAS[module]}]'", name=module)


def need(*modules: str) -> None:
    """Raise MissingExtra, before anything is run, if a library is not installed."""
    for module in modules:
        if find_spec(module) is None:
            raise missing(module)
