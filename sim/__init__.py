"""Simulate distributed training: ranks on the hosts of a cluster run a protocol; a trace records their activities.

Programs import what they use from `trainsim`.
"""

import sys

PROGRAMS = ("sim", "real", "calibration", "experiments")


def _in_a_line(kind, error, trace, usual=sys.excepthook) -> None:
    """Print an exception that nobody took: Ctrl-C while a program of ours is imported is one line."""
    if issubclass(kind, KeyboardInterrupt):
        print(f"{sys.orig_argv[2]}: interrupted", file=sys.stderr)
    else:
        usual(kind, error, trace)


if sys.orig_argv[1:2] == ["-m"] and sys.orig_argv[2].partition(".")[0] in PROGRAMS:
    sys.excepthook = _in_a_line
