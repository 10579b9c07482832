"""The files of a rank in the folder of a recorded run: its rows, what is known of it, and the model; each is whole up to its last block.

sim.recording.recorded reads them.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from sim.base.errors import WrongSetting, of_system
from sim.base.files import write_text
from sim.recording.parts import MODEL_FILE, facts_file, part_file

BLOCK_S = 0.5  # a crash loses at most what happened since


class Files:
    """The files of one rank.

    Args:
        folder: of the run; it is made if it is not there.

    Raises:
        WrongSetting: it cannot be made or written, or the same rank of another run has been recorded there.
    """

    def __init__(self, folder: Path, rank: int):
        self.folder, self.rank = folder, rank
        self._lines: list[str] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
            self._file: int | None = os.open(part_file(folder, rank), flags, 0o666)
        except FileExistsError as error:
            if not folder.is_dir():
                raise WrongSetting("Recorder", str(folder), "a folder: a file of this name is there") from error
            allowed = f"a folder in which no run was recorded: rank {rank} of one is there"
            raise WrongSetting("Recorder", str(folder), allowed) from error
        except (OSError, ValueError) as error:
            why = of_system(error) if isinstance(error, OSError) else error
            raise WrongSetting("Recorder", str(folder), f"a folder that can be written ({why})") from error

    def add(self, rows: list[tuple]) -> None:
        """Keep some rows for the next block."""
        for start_s, end_s, rank, step, activity, samples, size, peer, version in rows:
            self._lines.append(
                f'[{start_s:.7f},{end_s:.7f},{rank},{step},"{activity}",{samples},{size},{peer},{version}]\n'
            )

    def flush(self) -> None:
        """Write what has not been written.

        Raises:
            OSError: it cannot be.
        """
        if self._file is None:
            return
        block, self._lines = "".join(self._lines).encode(), []
        while block:
            block = block[os.write(self._file, block) :]

    def tell(self, facts: dict[str, Any]) -> None:
        """Write what is known of the rank, in place of what was."""
        write_text(facts_file(self.folder, self.rank), json.dumps(facts, indent=1) + "\n")

    def describe(
        self, name: str, variables: list[tuple[str, tuple[int, ...]]], batch: int, optimiser: str | None
    ) -> None:
        """Write the model that is trained as a workload, which commands take by --workload."""
        lines = ['schema = "workload/1"', f"name = {json.dumps(name)}", f"batch = {max(1, batch)}"]
        lines += [f"optimiser = {json.dumps(optimiser)}"] if optimiser else []
        lines += ["variables = ["]
        lines += [
            f"    {{ name = {json.dumps(of)}, shape = {json.dumps(list(shape) or [1])} }}," for of, shape in variables
        ]
        write_text(self.folder / MODEL_FILE, "\n".join([*lines, "]", ""]))

    def close(self) -> None:
        """Write the rest; nothing is taken any more."""
        try:
            self.flush()
        finally:
            if self._file is not None:
                os.close(self._file)
            self._file = None
