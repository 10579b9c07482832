"""The end of every command: exit code 2 and one line for a wrong setting, 1 for a failed run or a user's protocol, 130 for Ctrl-C."""

from __future__ import annotations

import argparse
import errno
import os
import re
import resource
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib import import_module

from sim.base import home, own, terminal
from sim.base.errors import RunFailed, WrongSetting, nearest, of_system, printable
from sim.base.home import installed

CALLED = "TRAINSIM_CALLED"  # in the environment: PROGRAM=NAME, if a program was not started by its module's name
# Errors of writing that name no file.
OF_STDOUT = errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF

LEAST_COLUMNS, PIPED_COLUMNS = 60, 120  # of help
INTERRUPTED = 130  # 128 + SIGINT, as shells count
LEAST_ROOM = 380 * 2**20  # bytes of addresses
NO_ROOM = "failed to map", "can't start new thread"  # said of a library, or by one, for want of addresses

_UNREAD: ContextVar[bool] = ContextVar("unread", default=False)  # whether the reader of stdout has gone away


def called(program: str) -> str:
    """The user's name of a program: `trainsim run` for sim.run if it was started by that name."""
    known, _, name = os.environ.get(CALLED, "").partition("=")
    return name if known == program and name else program


def number(kind: type, allowed: str) -> Callable[[str], int | float]:
    """A reader of numbers for argparse whose complaint has the allowed values."""

    def read(text: str):
        try:
            return kind(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"given {text!r}; allowed: {allowed}") from error

    return read


def _text(given: str) -> str:
    """Read an option that is no number; an empty one is a variable that a shell did not know."""
    if not given or "\0" in given:
        raise argparse.ArgumentTypeError(f"given {given!r}; allowed: text that is not empty, and has no NUL")
    return given


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


class Parser(argparse.ArgumentParser):
    """argparse whose complaint is one line, in the words of sim.base.errors.WrongSetting."""

    def __init__(self, prog: str | None = None, **settings):
        super().__init__(prog=prog and called(prog), allow_abbrev=False, formatter_class=Help, **settings)
        self.given: set[str] = set()  # by the command line that is being parsed
        self.register("action", None, Once)
        self.register("action", "store", Once)
        self.register("type", None, _text)
        self.register("type", int, number(int, "an integer"))
        self.register("type", float, number(float, "a number"))

    def parse_known_args(self, args=None, namespace=None):
        """Parse as argparse does, and forget the options of an earlier line."""
        self.given = set()
        return super().parse_known_args(args, namespace)

    def parse_args(self, args=None, namespace=None):
        """Parse as argparse does, and name the option nearest to an unknown one."""
        found, further = self.parse_known_args(args, namespace)
        if further:
            hint = nearest(further[0].partition("=")[0], self._option_string_actions)
            apart = "is one argument too many, or stands apart from the others"
            self.error(f"{further[0]!r} {f'is no option{hint}' if further[0].startswith('-') else apart}")
        return found

    def _get_values(self, action, arg_strings):
        if action.option_strings and arg_strings == ["--"]:  # of which argparse makes no value at all
            raise argparse.ArgumentError(action, "given '--'; allowed: a value")
        return super()._get_values(action, arg_strings)

    def error(self, message):
        """End with one line and exit code 2."""
        self.exit(2, f"{self.prog}: {message.removeprefix('argument ')} (--help lists the options)\n")

    def _print_message(self, message, file=None):
        """Print, as argparse does; it would pass over a stdout that is full or closed."""
        if file is not sys.stdout:
            super()._print_message(message, file)
            return
        print(message, end="", flush=True)

    def _check_value(self, action, value):
        if action.choices is not None and value not in action.choices:
            known = ", ".join(map(str, action.choices))
            hint = nearest(value, action.choices)
            raise argparse.ArgumentError(action, f"given {value!r}; allowed: {known}{hint}")


def add_options(group, table: str, **readers: Callable) -> None:
    """Add options to a parser, or to a group of one: each is a line of a table, whose columns are two spaces or more apart.

    The columns are the name, with :DESTINATION where that is another; what stands for the value; the kind; and the help, which goes on
    in lines that are indented. A kind is text, int, float or one of `readers`, with =DEFAULT where there is one; flag, of an option
    without a value; or list, of one that may be repeated.
    """
    kinds: dict[str, Callable] = {"text": str, "int": int, "float": float, **readers}
    for entry in re.sub(r"\n +", " ", textwrap.dedent(table).strip()).splitlines():
        name, metavar, given, about = re.split(" {2,}", entry, maxsplit=3)
        (option, _, dest), (kind, _, default) = name.partition(":"), given.partition("=")
        further: dict = {"help": about, "dest": dest or option.removeprefix("--").replace("-", "_")}
        if kind == "flag":
            group.add_argument(option, action="store_true", **further)
        elif kind == "list":
            group.add_argument(option, action="append", default=[], metavar=metavar, **further)
        else:
            read = kinds[kind]
            further |= {"type": None if read is str else read, "default": read(default) if default else None}
            group.add_argument(option, metavar=metavar, **further)


def line(program: str, argv: list[str] | None) -> str:
    """The command line, as a shell takes it."""
    import shlex

    return shlex.join(["python", "-m", installed(program), *(sys.argv[1:] if argv is None else argv)])


def run(program: str, main: Callable[[], int | None]) -> None:
    """Run `main` and leave the process with its exit code, once all that it printed is where it goes."""
    terminal.prepare()
    code, line = _end(main)
    with suppress(OSError):
        if line:
            print(printable(f"{called(program)}: {line}"), file=sys.stderr)
    try:
        sys.stdout.flush()
    except OSError:  # otherwise Python tries again at its end, and prints a message of its own
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


@contextmanager
def printing() -> Iterator[None]:
    """Print within it what files are written after: they are, even if the reader of stdout has gone away, as `| head` does.

    The command ends with 1 then, later. Rich ends it at once (rich.console.Console.on_broken_pipe).
    """
    try:
        yield
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):
        _UNREAD.set(True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end(main: Callable[[], int | None]) -> tuple[int, str]:
    """The exit code of `main`, and the line about its error, if there is one."""
    try:
        _load_while_there_is_room()
        return _answered(main), ""
    except WrongSetting as error:
        return 2, str(error)
    except KeyboardInterrupt:
        return INTERRUPTED, "interrupted"
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name in home.EXTRAS:
            return 2, str(home.missing(error.name))
        line = failure(error)
        if line is None:
            raise
        return 1, line


def _load_while_there_is_room() -> None:
    """Load SciPy first where the address space is limited: without memory OpenBLAS tries for ever, and no signal ends that.

    Raises:
        WrongSetting: the limit leaves no room for it.
    """
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        if limit < LEAST_ROOM:
            raise WrongSetting("ulimit -v", limit // 1024, f"at least {LEAST_ROOM // 1024}: libraries need as much")
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        import_module("scipy.special")


def failure(error: BaseException) -> str | None:
    """The line for a failure of a run, of a user's own protocol or of the system; None for a mistake of ours."""
    if isinstance(error, RunFailed):
        return str(error)
    no_room = isinstance(error, ImportError | RuntimeError) and any(words in str(error) for words in NO_ROOM)
    if no_room or isinstance(error, MemoryError):  # of a job that is larger than its estimate
        return f"not enough memory ({str(error) or 'for the next object'})"
    if isinstance(error, BrokenPipeError):  # the reader of our output went away, as `| head` does
        return ""
    if place := own.place(error):
        return f"{place}: {own.complaint(error)}"
    if isinstance(error, OSError):
        where = error.filename or ("stdout" if error.errno in OF_STDOUT else _lost_folder())
        return ": ".join(str(part) for part in (where, of_system(error)) if part)
    return None


def _lost_folder() -> str | None:
    """Words for the current folder if there is none any more: what fails then names no file."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return "the current folder"
    return None


def _answered(main: Callable[[], int | None]) -> int:
    _UNREAD.set(False)
    try:
        code = main() or int(_UNREAD.get())
    except SystemExit as end:  # argparse's, after --help or a complaint
        code = end.code if isinstance(end.code, int) else 0
    sys.stdout.flush()
    return code
