"""Reading files that a user names, and writing files whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sim.base.errors import RunFailed, WrongSetting, from_validation, of_system

MOST_BYTES = 4 * 2**20  # of a TOML file; one of a cluster of 1,000 different hosts has a tenth of a MiB
MOST_LOG_BYTES = 256 * 2**20  # of another program's file that is read whole


def text_of(setting: str, given: str | os.PathLike[str]) -> str:
    """A name, or a path, that a program gives.

    Raises:
        WrongSetting: neither: open() would take an integer for an open file.
    """
    if not isinstance(given, str | os.PathLike):
        raise WrongSetting(setting, given, "text, or a path")
    return os.fspath(given)


def check_size(setting: str, path: str | Path, most_bytes: int = MOST_LOG_BYTES) -> None:
    """Raise WrongSetting for a file that would not fit in memory."""
    if Path(path).stat().st_size > most_bytes:
        raise WrongSetting(setting, str(path), f"a file of at most {most_bytes // 2**20} MiB")


@contextmanager
def reading(what: str, path: str | Path) -> Iterator[None]:
    """Within it, that the file cannot be read is a WrongSetting about `what`."""
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, WrongSetting) or not (isinstance(error, OSError) or "\0" in str(path)):
            raise
        # pyarrow does not say what the system said of a file that is not there.
        missing = isinstance(error, FileNotFoundError)
        why = os.strerror(errno.ENOENT) if missing else getattr(error, "strerror", None) or error
        raise WrongSetting(what, str(path), f"a file that can be read ({why})") from error


def names_a_file(text: str) -> bool:
    """Whether a text that may be a name is a file, or could be nothing else: complaints are then about the file."""
    path = os.sep in text or text.lower().endswith(".toml")
    return "\0" not in text and (os.path.exists(text) or (path and "(" not in text))


def read_toml(path: str | Path, what: str) -> dict:
    """The table in a TOML file; WrongSetting if there is no such file, or it is not TOML."""
    import tomllib

    try:
        with reading(what, path), open(path, "rb") as file:
            found = file.read(MOST_BYTES + 1)
        if len(found) > MOST_BYTES:
            raise WrongSetting(what, str(path), f"a file of at most {MOST_BYTES // 2**20} MiB")
        return tomllib.loads(found.decode())
    except RecursionError as error:
        raise WrongSetting(what, str(path), "a TOML file that is not nested so deeply") from error
    except WrongSetting:
        raise
    except ValueError as error:  # no TOML, no text, or a number of too many digits
        raise WrongSetting(what, str(path), f"a TOML file ({error})") from error


def read_json(text: str | bytes, what: str, source: str, allowed: str) -> dict:
    """The object in a text of JSON; WrongSetting about the source if there is none."""
    import json

    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WrongSetting(what, source, f"{allowed} ({error})") from error
    if not isinstance(found, dict):
        raise WrongSetting(what, source, allowed)
    return found


def validated(model, table: dict, source: str):
    """`table` as a `model` (pydantic); a wrong key, unit or value is a WrongSetting about `source`."""
    from pydantic import ValidationError

    try:
        return model.model_validate(table)
    except ValidationError as error:
        raise from_validation(source, error, model) from error


def check_output(option: str, path: str | Path | None, endings: Collection[str] = ()) -> None:
    """Refuse an output file that could not be written, before anything is run for it; None is fine.

    Args:
        endings: see `check_ending`.

    Raises:
        WrongSetting: no name, a folder or a device, a name too long, another ending, or a folder that is not there or cannot be written.
    """
    if path is None:
        return
    if not str(path):
        raise WrongSetting(option, "", "the name of a file")
    path = Path(path)
    try:
        there = stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        there = True
    except (OSError, ValueError) as error:
        why = of_system(error) if isinstance(error, OSError) else error
        raise WrongSetting(option, str(path), f"a path that the system takes ({why})") from error
    if not there:
        what = "a folder" if path.is_dir() else "a device"
        raise WrongSetting(option, str(path), f"the name of a file: {what} is there")
    if path.exists() and not os.access(path, os.W_OK):
        raise WrongSetting(option, str(path), "a file that may be written: this one is read-only")
    if not path.resolve().parent.is_dir():
        raise WrongSetting(option, str(path), "a file in a folder that exists")
    check_folder(option, path, path.resolve().parent)
    check_ending(option, path, endings)


def check_ending(option: str, path: str | Path | None, endings: Collection[str]) -> None:
    """Refuse a file whose name does not end as its format's files do, before anything is run for it; None is fine.

    Args:
        endings: of all formats that can be written, such as .json; any name if empty.

    Raises:
        WrongSetting: another ending.
    """
    if path is not None and endings and Path(path).suffix not in endings:
        *others, last = endings
        raise WrongSetting(option, str(path), f"a name that ends in {', '.join(others)}{' or ' * bool(others)}{last}")


def check_folder(option: str, given: str | Path, folder: Path) -> None:
    """Raise WrongSetting about what was `given` if no file can be made in a folder, by making one that has no name."""
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise WrongSetting(option, str(given), f"in a folder that can be written ({of_system(error)})") from error


def check_outputs(outputs: Sequence[tuple[Any, ...]], inputs: Iterable[str | None]) -> None:
    """Refuse output files of which one could not be written, or would overwrite another or an input.

    Args:
        outputs: of each the option, what was given with it, and the endings of its formats, if only some can be written.
        inputs: files that the same command reads.

    Raises:
        WrongSetting: naming the option.
    """
    # Whoever reads a name with a NUL refuses that one.
    taken = {os.path.realpath(path) for path in inputs if path and "\0" not in path}
    for option, path, *_ in outputs:
        check_output(option, path)
        if path is None:
            continue
        if os.path.realpath(path) in taken:
            raise WrongSetting(option, path, "a file that this command does not read or write otherwise")
        taken.add(os.path.realpath(path))
    for option, path, *endings in outputs:
        check_ending(option, path, *endings or [()])


def write_whole(path: str | Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then put it in place in one move.

    A link stays: the file that it leads to is written. A new file has the permissions that the user's umask leaves, another one keeps its
    own.

    Raises:
        WrongSetting: the folder does not exist or cannot be written.
        RunFailed: the system does not take the file, as on a full disk; nothing of it is left.
    """
    whole = Path(os.path.realpath(path))
    temporary = whole.with_name(f".{secrets.token_hex(8)}{whole.suffix}")
    try:
        mode = 0o600 if whole.exists() else 0o666  # nobody else reads meanwhile what only its owner may
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    except OSError as error:
        raise WrongSetting(
            "output file", str(path), f"a path in a folder that can be written ({of_system(error)})"
        ) from error
    try:
        write(temporary)
        _take_over(whole, temporary)
        os.replace(temporary, whole)
    except OSError as error:
        raise RunFailed(f"{path} could not be written ({of_system(error)})") from error
    finally:
        temporary.unlink(missing_ok=True)


def _take_over(old: Path, new: Path) -> None:
    """Give a file the permissions, and as far as the system lets us the owner, of the one that it replaces, if there is one."""
    with suppress(FileNotFoundError):
        kept = old.stat()
        with suppress(PermissionError):
            os.chown(new, kept.st_uid, kept.st_gid)
        os.chmod(new, stat.S_IMODE(kept.st_mode))


def write_text(path: str | Path, text: str) -> None:
    """Write a file of UTF-8, whatever the terminal's encoding is, as `write_whole` does."""
    write_whole(path, lambda file: file.write_text(text, encoding="utf-8", errors="replace"))
