"""The command `trainsim`: one name for all commands; each is also run by its module, as `python -m sim.run`.

Programs that train get the recorder from here: `from trainsim import Recorder`. It loads nothing but Python's own library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainsim.recording.recorder import Recorder

__all__ = ["Recorder"]


def __getattr__(name: str):
    if name == "Recorder":
        from trainsim.recording.recorder import Recorder

        return Recorder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
