"""Where the compiled kernel is kept, so that one process of a machine compiles it and all others load it.

A folder is named by all that it is made of: its sources, numba, Python and the processor. So no function is ever loaded that is older
than those that it calls; numba asks for its own file alone.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from sim.base.deadline import postponed

SOURCES = Path(__file__).parent / "kernel"
ALL = "all"  # a file that is there once every function is, with the stamps of their sources


def can_compile() -> bool:
    """Whether numba fits the other libraries, and is not told to leave functions as they are (NUMBA_DISABLE_JIT)."""
    try:
        with postponed():
            from numba import config
    except ImportError:  # where it is of another version than NumPy needs
        return False
    return not getattr(config, "DISABLE_JIT", False)


@cache
def folder() -> Path | None:
    """The folder for this process; None where the system takes none."""
    import llvmlite.binding
    import numba

    sources = [path.read_bytes() for path in sorted(SOURCES.glob("*.py"))]
    if not sources:  # in an archive
        return None
    cpu = llvmlite.binding.get_host_cpu_name(), llvmlite.binding.get_host_cpu_features().flatten()
    name = f"loops-{_digest(*sources)}-{_digest(numba.__version__, sys.version, *cpu)}"
    places = [base / name for base in _bases()]
    found = next((place for place in places if _takes_files(place)), None)
    if found is not None and not _is_whole(found):
        _take_over([place for place in places if place != found and _is_whole(place)], found)
    return found


def _stamps() -> str:
    """By which numba knows sources: one that has been copied it compiles anew, in the middle of a job, whatever is in it."""
    return repr([(path.name, path.stat().st_mtime, path.stat().st_size) for path in sorted(SOURCES.glob("*.py"))])


def _is_whole(place: Path) -> bool:
    try:
        return (place / ALL).read_text() == _stamps()
    except OSError:
        return False


def _take_over(places: list[Path], found: Path) -> None:
    """Copy what is kept in a folder that cannot be written, as in an installation of somebody else's: numba asks for one that can."""
    if not places:
        return
    copied = Path(tempfile.mkdtemp(dir=found.parent))
    try:
        shutil.copytree(places[0], copied, dirs_exist_ok=True)
        copied.rename(found)  # all or nothing, for other processes
    except (OSError, shutil.Error):  # another process was there first
        shutil.rmtree(copied, ignore_errors=True)


def _bases() -> Iterator[Path]:
    """Folders for it, the best first; numba's, if it is loaded."""
    where, numba = _digest(str(SOURCES)), sys.modules.get("numba")  # of several installations
    if given := numba.config.CACHE_DIR if numba else os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(given) / where
    yield SOURCES / "__pycache__"
    yield Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "trainsim" / where


def _takes_files(place: Path) -> bool:
    try:
        place.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=place).close()
    except (OSError, RuntimeError):  # as without a home
        return False
    return True


def _digest(*parts: bytes | str) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part if isinstance(part, bytes) else part.encode())
        found.update(b"\0")
    return found.hexdigest()[:12]


@contextmanager
def in_folder() -> Iterator[bool]:
    """Functions that are defined within it are kept in the folder; whether there is one."""
    config, place = _config(), folder()
    before = config.CACHE_DIR
    config.CACHE_DIR = before if place is None else str(place)
    try:
        yield place is not None
    finally:
        config.CACHE_DIR = before


def _config() -> Any:
    """Numba's settings, of which it declares no types."""
    import numba

    return numba.config


def is_kept() -> bool:
    """Whether it need only be loaded. Where no folder is whole, numba, which takes half a second to import, is not asked which it is."""
    if not any(found for base in _bases() for found in base.glob(f"loops-*/{ALL}")):
        return False
    place = folder() if can_compile() else None
    return place is not None and _is_whole(place)


def keep(compile_all: Callable[[], object]) -> bool:
    """Compile the kernel, unless it is kept or another process of this machine does; whether it can be used now.

    Args:
        compile_all: uses each function of it.
    """
    if not can_compile():
        return False
    place = folder()
    if place is None or is_kept():
        return True
    with (place / "lock").open("w") as lock:
        if not _locked(lock):
            return False
        if not is_kept():
            print("compiling the engine (a minute of a core), once on this machine", file=sys.stderr, flush=True)
            _forget_others(place)
            compile_all()
            (place / ALL).write_text(_stamps())
    return True


def _locked(lock) -> bool:
    """Lock a file, until it is closed or the process ends; False if another process has it."""
    import fcntl

    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: two processes may compile the same
        pass
    return True


def _forget_others(place: Path) -> None:
    """Remove the folders of other sources, for any processor."""
    sources = place.name.rpartition("-")[0]
    for other in place.parent.glob("loops-*"):
        if other.name.rpartition("-")[0] != sources:
            shutil.rmtree(other, ignore_errors=True)
