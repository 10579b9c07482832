"""Ctrl-C while one of our programs begins, imports or ends: one line and exit code 130.

Python would print a traceback of the import or of its own end, or drop the exception: one that is raised in a callback of the import system
is ignored. While a command works, Ctrl-C is a KeyboardInterrupt, as usual.
"""

from __future__ import annotations

import os
import signal
import sys

EXIT_CODE = 130  # 128 + SIGINT, as shells count
SCRIPT = "trainsim"
PACKAGES = ("sim", "real", "calibration", "experiments", SCRIPT)
WITH_VALUE = ("-X", "-W")  # options of Python
IMPORTING = "<frozen importlib"  # file of the frames of the import system


def program(words: list[str]) -> str | None:
    """The program of ours that Python was started with; None for others, which import `sim` and handle Ctrl-C by themselves.

    Args:
        words: the command line after Python's own name, as in sys.orig_argv.
    """
    left = iter(words)
    for word in left:
        if word in WITH_VALUE:
            next(left, None)
        elif word == "-m":
            module = next(left, "")
            return module if module.partition(".")[0] in PACKAGES else None
        elif not word.startswith("-"):
            return SCRIPT if os.path.basename(word) == SCRIPT else None
    return None


def _end(*_) -> None:
    """End the process here: an exception could be swallowed by whatever is being imported."""
    try:
        os.write(2, f"{PROGRAM}: interrupted\n".encode())
    finally:
        os._exit(EXIT_CODE)


def _raise(_, frame) -> None:
    """Raise KeyboardInterrupt where it arrives."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(IMPORTING):
            _end()
        frame = frame.f_back
    raise KeyboardInterrupt


def _take(handler) -> None:
    """Take Ctrl-C by `handler`, unless it is taken otherwise: a program that ignores it, as under nohup, goes on ignoring it."""
    if PROGRAM and signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _end, _raise):
        signal.signal(signal.SIGINT, handler)


def end_at_once() -> None:
    """From now on Ctrl-C ends this process, if it is a program of ours."""
    _take(_end)


def are_raised() -> None:
    """From now on Ctrl-C is a KeyboardInterrupt, except in an import."""
    _take(_raise)


PROGRAM = program(sys.orig_argv[1:])
