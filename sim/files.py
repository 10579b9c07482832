"""Reading files that a user names, and writing files whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sim.errors import WrongSetting, from_validation

MOST_BYTES = 4 * 2**20  # of a TOML file; one of a cluster of 1,000 different hosts has a tenth of a MiB


@contextmanager
def reading(what: str, path: str | Path) -> Iterator[None]:
    """Within it, that the file cannot be read is a wrong setting, `what`.

    Raises:
        WrongSetting: no such file, no permission, a folder, and the like.
    """
    try:
        yield
    except OSError as error:
        # pyarrow does not say what the system said of a file that is not there.
        why = os.strerror(errno.ENOENT) if isinstance(error, FileNotFoundError) else error.strerror or error
        raise WrongSetting(what, str(path), f"a file that can be read ({why})") from error


def read_toml(path: str | Path, what: str) -> dict:
    """The table in a TOML file.

    Raises:
        WrongSetting: no such file, or not TOML.
    """
    import tomllib

    try:
        with reading(what, path):
            return tomllib.loads(_read(path, what).decode())
    except RecursionError as error:
        raise WrongSetting(what, str(path), "a TOML file that is not nested so deeply") from error
    except WrongSetting:
        raise
    except ValueError as error:  # no TOML, no text, or a number of too many digits
        raise WrongSetting(what, str(path), f"a TOML file ({error})") from error


def _read(path: str | Path, what: str) -> bytes:
    with open(path, "rb") as file:
        found = file.read(MOST_BYTES + 1)
    if len(found) > MOST_BYTES:
        raise WrongSetting(what, str(path), f"a file of at most {MOST_BYTES // 2**20} MiB")
    return found


def validated(model, table: dict, source: str):
    """`table` as a `model` (pydantic); what is wrong with it is said of `source`.

    Raises:
        WrongSetting: an unknown key, a missing one, a wrong unit or value.
    """
    from pydantic import ValidationError

    try:
        return model.model_validate(table)
    except ValidationError as error:
        raise from_validation(source, error) from error


def check_output(option: str, path: str | Path | None) -> None:
    """Refuse an output file that could not be written, before anything is run for it; None is fine.

    Raises:
        WrongSetting: its folder is not there, or cannot be written.
    """
    if path is None:
        return
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise WrongSetting(option, str(path), "a file in a folder that exists")
    if not os.access(folder, os.W_OK):
        raise WrongSetting(option, str(path), "a file in a folder that can be written")


def write_whole(path: str | Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a temporary file beside `path`, then put it in place in one move.

    Raises:
        WrongSetting: the folder does not exist or cannot be written.
    """
    path = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}.", suffix=path.suffix)
    except OSError as error:
        raise WrongSetting(
            "output file", str(path), f"a path in a folder that can be written ({error.strerror})"
        ) from error
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
