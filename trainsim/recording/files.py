"""The files of a rank in the folder of a recorded run: its rows, what is known of it, and the model; each is whole up to its last block.

sim.recording.recorded reads them.
"""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

from sim.base.activity import MODEL_FILE, facts_file, part_file
from sim.base.errors import RunFailed, WrongSetting, of_system
from sim.base.files import write_text

NEW = "a folder in which no run was recorded"
Variables = list[tuple[str, tuple[int, ...]]]  # names and shapes
BLOCK_S = 0.5  # a crash loses at most what happened since


class Files:
    """The files of one rank. No file stays open, because a program may close all descriptors: each block is appended by name.

    Args:
        folder: of the run; it is made if it is not there.
        facts: what is known of the rank.

    Raises:
        WrongSetting: it cannot be made or written, or the same rank of another run has been recorded there.
    """

    def __init__(self, folder: Path, rank: int, facts: dict[str, Any]):
        self.rank = rank
        self._lines: list[str] = []
        self._written = 0  # bytes
        try:
            self.folder = folder.absolute()  # the program may change its own
            self._part = part_file(self.folder, rank)
            self.folder.mkdir(parents=True, exist_ok=True)
            for other in (facts_file(self.folder, rank), *([self.folder / MODEL_FILE] if rank == 0 else [])):
                if os.path.lexists(other):
                    raise WrongSetting("Recorder", str(folder), f"{NEW}: {other.name} is there")
            os.close(os.open(self._part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666))
        except FileExistsError as error:
            if not folder.is_dir():
                raise WrongSetting("Recorder", str(folder), "a folder: a file of this name is there") from error
            raise WrongSetting("Recorder", str(folder), f"{NEW}: rank {rank} of one is there") from error
        except WrongSetting:
            raise
        except (OSError, ValueError) as error:
            raise _unwritable(folder, error) from error
        try:
            self.tell(facts)
        except (OSError, RunFailed, WrongSetting) as error:
            self._part.unlink(missing_ok=True)
            raise _unwritable(folder, error) from error

    def add(self, rows: list[tuple]) -> None:
        """Keep some rows for the next block."""
        for start_s, end_s, rank, step, activity, samples, size, peer, version in rows:
            self._lines.append(
                f'[{start_s:.7f},{end_s:.7f},{rank},{step},"{activity}",{samples},{size},{peer},{version}]\n'
            )

    def flush(self) -> None:
        """Write what has not been written.

        Raises:
            OSError: it cannot be, or the file is another one now.
        """
        block, self._lines = "".join(self._lines).encode(), []
        if not block:
            return
        file = os.open(self._part, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            self._check(os.fstat(file))
            while block:
                count = os.write(file, block)
                self._written += count
                block = block[count:]
        finally:
            os.close(file)

    def tell(self, facts: dict[str, Any]) -> None:
        """Write what is known of the rank, in place of what was; it raises as `flush` does."""
        self._check(os.stat(self._part))
        write_text(facts_file(self.folder, self.rank), json.dumps(facts, indent=1) + "\n")

    def _check(self, found: os.stat_result) -> None:
        if found.st_size != self._written:
            raise OSError(errno.ESTALE, f"{self._part} was changed by another program")

    def describe(self, name: str, variables: Variables, batch: int, said: dict[str, Any]) -> None:
        """Write the model that is trained as a workload, which commands take by --workload; with what else is `said` of it, by key."""
        lines = ['schema = "workload/1"', f"name = {json.dumps(name)}", f"batch = {max(1, batch)}"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in said.items()]
        lines += ["variables = ["]
        lines += [
            f"    {{ name = {json.dumps(of)}, shape = {json.dumps(list(shape) or [1])} }}," for of, shape in variables
        ]
        write_text(self.folder / MODEL_FILE, "\n".join([*lines, "]", ""]))


def _unwritable(folder: Path, error: Exception) -> WrongSetting:
    why = of_system(error) if isinstance(error, OSError) else error
    return WrongSetting("Recorder", str(folder), f"a folder that can be written ({why})")
