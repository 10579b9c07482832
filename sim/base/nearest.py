"""Additions to argparse: help without empty defaults, options that are given once, and the nearest name for a wrong one."""

from __future__ import annotations

import argparse
import difflib
import shutil
import textwrap
from collections.abc import Iterable

LEAST_COLUMNS, PIPED_COLUMNS = 60, 120
NEAR = 0.5  # of two names: the share of letters that they have in common, in order


class Help(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal. An option's default follows its text, unless the text has it or there is none."""

    def __init__(self, prog):
        columns = shutil.get_terminal_size((PIPED_COLUMNS, 24)).columns
        super().__init__(prog, max_help_position=32, width=max(LEAST_COLUMNS, columns) - 2)

    def _split_lines(self, text, width):
        """Names with hyphens stay whole."""
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)

    def _get_help_string(self, action):
        none = action.default is None or action.default is False or action.default in ([], argparse.SUPPRESS)
        if none or "(default" in action.help:
            return action.help
        return f"{action.help} (default: %(default)s)"


class Once(argparse.Action):
    """Stores the value of an option, which a second one would silently replace."""

    def __call__(self, parser, namespace, values, option_string=None):
        """Store it, or refuse a second one."""
        if option_string and self.dest in parser.given:
            raise argparse.ArgumentError(self, f"given twice, the second time {values!r}; allowed: once")
        parser.given.add(self.dest)
        setattr(namespace, self.dest, values)


def nearest(given: object, known: Iterable[object], most: int = 1) -> str:
    """The known names that were probably meant, as a question to add to a refusal; empty if none is near.

    >>> nearest("abm", ["amb", "fmb"]), nearest("abm", ["amb", "fmb", "abc"], 2)
    (' (did you mean amb?)', ' (did you mean amb or abc?)')
    """
    names = {str(name).lower(): str(name) for name in known}
    found = [names[near] for near in difflib.get_close_matches(str(given).lower(), names, n=most, cutoff=NEAR)]
    return f" (did you mean {' or '.join(found)}?)" if found else ""
