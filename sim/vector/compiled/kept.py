"""Where compiled loops are kept, so that one process of a machine compiles them and all others load them.

A folder is named by all that loops are made of: their sources, numbers of other modules, numba, Python and the processor. So none is
ever loaded that is older than its sources; numba asks for the file of a loop alone, and not for those that it calls.
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

from sim.vector.compiled import can_compile

SOURCES = Path(__file__).parent
ALL = "all"  # a file that is there once every loop is, with the stamps of their sources


@cache
def folder(of: Path | None = None) -> Path | None:
    """The folder of this process's loops, which are in these sources; None where the system takes none."""
    import llvmlite.binding
    import numba

    numbers = "" if of else _numbers()
    of = of or SOURCES
    sources = [path.read_bytes() for path in sorted(of.glob("*.py"))]
    if not sources:  # in an archive
        return None
    cpu = llvmlite.binding.get_host_cpu_name(), llvmlite.binding.get_host_cpu_features().flatten()
    name = f"loops-{_digest(*sources, numbers)}-{_digest(numba.__version__, sys.version, *cpu)}"
    places = [base / name for base in _bases(of)]
    found = next((place for place in places if _takes_files(place)), None)
    if found is not None and not _is_whole(found, of):
        _take_over([place for place in places if place != found and _is_whole(place, of)], found)
    return found


def _stamps(of: Path) -> str:
    """By which numba knows sources: one that has been copied it compiles anew, in the middle of a job, whatever is in it."""
    return repr([(path.name, path.stat().st_mtime, path.stat().st_size) for path in sorted(of.glob("*.py"))])


def _is_whole(place: Path, of: Path) -> bool:
    try:
        return (place / ALL).read_text() == _stamps(of)
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


def _bases(of: Path) -> Iterator[Path]:
    """Folders for it, the best first."""
    where = _digest(str(of))  # of several installations
    if given := _config().CACHE_DIR:
        yield Path(given) / where
    yield of / "__pycache__"
    yield Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "trainsim" / where


def _takes_files(place: Path) -> bool:
    try:
        place.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=place).close()
    except (OSError, RuntimeError):  # as without a home
        return False
    return True


def _numbers() -> str:
    from sim.vector.compiled import constants

    return repr({name: getattr(constants, name) for name in constants.__all__})


def _digest(*parts: bytes | str) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part if isinstance(part, bytes) else part.encode())
        found.update(b"\0")
    return found.hexdigest()[:12]


@contextmanager
def in_folder(of: Path | None = None) -> Iterator[bool]:
    """Loops that are defined within it are kept in the folder; whether there is one."""
    config, place = _config(), folder(of)
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


def are_kept(of: Path | None = None) -> bool:
    """Whether they need only be loaded."""
    place = folder(of) if can_compile() else None
    return place is not None and _is_whole(place, of or SOURCES)


def keep(of: Path | None = None, play_all: Callable[[], object] | None = None, what: str = "loops") -> bool:
    """Compile all loops, unless they are kept or another process of this machine compiles them; whether they can be used now.

    Args:
        of: their sources, by default the vector world's.
        play_all: uses each of them; by default those of the vector world.
        what: they are, for the line of progress.
    """
    if not can_compile():
        return False
    place = folder(of)
    if place is None or are_kept(of):
        return True
    from sim.vector.compiled import every

    with (place / "lock").open("w") as lock:
        if not _locked(lock):
            return False
        if not are_kept(of):
            print(f"compiling {what}, once on this machine", file=sys.stderr, flush=True)
            _forget_others(place)
            (play_all or every.play_all)()
            (place / ALL).write_text(_stamps(of or SOURCES))
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
