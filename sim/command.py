"""How every command ends: a wrong setting is one line and exit 2, a failed run, or a user's protocol's, 1, Ctrl-C 130."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

from sim.errors import RunFailed, WrongSetting


def number(kind: type, allowed: str) -> Callable[[str], int | float]:
    """What argparse reads a number with, so that it says what is allowed."""

    def read(text: str):
        try:
            return kind(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"given {text!r}; allowed: {allowed}") from error

    return read


def _text(given: str) -> str:
    """Of an option that is no number: an empty one is a variable that a shell did not know."""
    if not given:
        raise argparse.ArgumentTypeError("given ''; allowed: text that is not empty")
    return given


class Parser(argparse.ArgumentParser):
    """argparse whose complaint is one line, in the words of sim.errors.WrongSetting where a number is none."""

    def __init__(self, **settings):
        settings.setdefault("formatter_class", argparse.ArgumentDefaultsHelpFormatter)
        super().__init__(allow_abbrev=False, **settings)
        self.register("type", None, _text)
        self.register("type", int, number(int, "an integer"))
        self.register("type", float, number(float, "a number"))

    def error(self, message):
        self.exit(2, f"{self.prog}: {message.removeprefix('argument ')} (--help lists the options)\n")


def run(program: str, main: Callable[[], int | None]) -> None:
    """Run `main` and leave the process with its exit code."""
    try:
        sys.exit(main() or 0)
    except WrongSetting as error:
        print(f"{program}: {error}", file=sys.stderr)
        sys.exit(2)
    except RunFailed as error:
        print(f"{program}: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output went away, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:  # in a user's own protocol, or one of ours
        from sim.protocols import own

        if not (place := own.place(error)):
            raise
        print(f"{program}: {place}: {own.complaint(error)}", file=sys.stderr)
        sys.exit(1)
