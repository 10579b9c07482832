"""Modules of `sim` that a user's protocols and laws import, by names of `trainsim`: trainsim.language.text is sim.language.text.

They are the same modules, not copies of them. So a user's file has the same imports beside a source tree and beside a wheel.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

PACKAGES = ("base", "language", "laws", "protocols", "texts")
BEGINS = tuple(f"{__package__}.{package}" for package in PACKAGES)


def _original(name: str) -> str:
    """The name of the module that is called so."""
    from sim.base.home import installed

    return installed(f"sim.{name.partition('.')[2]}")


class Finder(MetaPathFinder, Loader):
    """Finds them for `import`."""

    def find_spec(self, fullname: str, _path=None, _target=None) -> ModuleSpec | None:
        """Where a module with such a name comes from; None for others."""
        if not fullname.startswith(BEGINS) or ".".join(fullname.split(".")[:2]) not in BEGINS:
            return None
        from importlib.util import find_spec

        return None if find_spec(_original(fullname)) is None else ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module itself, which keeps what it knows of where it came from."""
        found = import_module(_original(spec.name))
        spec.loader_state = found.__spec__
        return found

    def exec_module(self, module: ModuleType) -> None:
        """Undo what the import system changed; the module has been executed under its own name."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


def add() -> None:
    """Have `import` find them, from now on; before all else, or it would make copies."""
    sys.meta_path.insert(0, Finder())
