"""A loop over batches that is recorded, and what keeps the recorder's own mistakes away from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainsim.recording.recorder import Recorder


class Loop:
    """The batches of a loader; it has a length if the loader has one."""

    def __init__(self, recorder: Recorder, loader: Iterable):
        self._recorder, self._loader = recorder, loader

    def __len__(self):
        return len(self._loader)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator:
        recorder, turn, whole = self._recorder, object(), False
        recorder.begin(turn)
        try:
            for batch in self._loader:
                recorder.arrived(turn, batch)
                yield batch
                recorder.done(turn)
            whole = True
        finally:
            recorder.end(turn, whole)


class Guard:
    """Within it, whatever goes wrong with recording ends the recording, and not the training."""

    __slots__ = ("_recorder",)

    def __init__(self, recorder: Recorder):
        self._recorder = recorder

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind, error, _) -> bool:
        if kind is None or not issubclass(kind, Exception):
            return False
        self._recorder.give_up(error)
        return True
