"""Libraries that only some answers need, and the extra that installs each: `pip install 'anytime-trainsim[tables]'`."""

from __future__ import annotations

from importlib.util import find_spec

DISTRIBUTION = "anytime-trainsim"
EXTRAS = {
    "pyarrow": "tables",
    "matplotlib": "plots",
    "safetensors": "models",
    "shtab": "completion",
    "tensorflow": "real",
    "mpi4py": "mpi",
    "sklearn": "mpi",
    "psutil": "mpi",
    "threadpoolctl": "mpi",
    "simpy": "test",
}


class MissingExtra(ModuleNotFoundError):
    """A library that is not installed; the message names the extra that has it. Commands exit with 2."""


def missing(module: str) -> MissingExtra:
    """The error for a library of EXTRAS that is not installed."""
    return MissingExtra(f"this needs {module}: pip install '{DISTRIBUTION}[{EXTRAS[module]}]'", name=module)


def need(*modules: str) -> None:
    """Refuse, before anything is run, what needs libraries that are not installed.

    Raises:
        MissingExtra: one of them is not.
    """
    for module in modules:
        if find_spec(module) is None:
            raise missing(module)


def told(error: ImportError) -> str | None:
    """The line for a failed import; None if it is not of a library of EXTRAS."""
    return str(missing(error.name)) if error.name in EXTRAS else None
