"""README.md and the pages of docs/ as programs: their files are written, their commands run, their outputs compared.

A fence says what it is by its first line. ```` ```toml mine.toml ```` is a file. ```` ```console ```` holds commands, each behind `$ `, and
what they print, where `...` stands for anything; with `varies` behind it what is printed is not compared, and with `long` nothing is
run, but parsed. ```` ```python ```` without a name is a program. All run in one folder, in the order of the page, but for pages of
which one goes on where another ended (`CHAINS`).

As a program, `python tests/documents.py FILE...` writes what commands print now into the pages.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONG_S = 3600
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^( *)```(\w+)([^\n`]*)\n(.*?)^\1```", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Fence:
    """A fence: its language, the words behind it, and what is in it."""

    language: str
    words: tuple[str, ...]
    text: str

    @property
    def file(self) -> str | None:
        """The file that it is, if it is one."""
        return next((word for word in self.words if "." in word), None)

    def commands(self) -> list[tuple[str, str]]:
        """Commands, without their comments, with what they print."""
        if self.language != "console":
            return []
        parts = re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]
        return [_command(part) for part in parts]


def _command(part: str) -> tuple[str, str]:
    lines = part.splitlines()
    count = next(index for index, line in enumerate(lines) if not line.endswith("\\")) + 1
    said = "".join(f"{line}\n" for line in lines[count:])
    joined = " ".join(line.rstrip("\\").strip() for line in lines[:count])
    return re.sub(r"\s{2,}#.*", "", joined), said


def fences(page: Path) -> list[Fence]:
    """Those of a page, in order."""
    found = FENCE.findall(page.read_text())
    return [
        Fence(language, tuple(words.split()), _dedented(text, len(indent))) for indent, language, words, text in found
    ]


def _dedented(text: str, by: int) -> str:
    return "".join(f"{line[by:]}\n" for line in text.splitlines())


def run(line: str, folder: Path, columns: int = 80) -> subprocess.CompletedProcess:
    """Run a command of a page in a folder, beside the examples; `python` is this one, and `trainsim` its module."""
    if not (folder / "examples").exists():
        (folder / "examples").symlink_to(ROOT / "examples")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]), "COLUMNS": str(columns)}
    line = re.sub(r"^trainsim ", "python -m trainsim ", line)
    if not any(option in line for option in ("--replications", "--within")):
        line = re.sub(r"-m (sim\.|trainsim )run", rf"\g<0> --within {LONG_S}", line)  # a busy machine answers from less
    line = re.sub(r"^python ", f"{shlex.quote(sys.executable)} ", line)
    return subprocess.run(
        line, shell=True, capture_output=True, text=True, cwd=folder, env=environment, timeout=1200, check=False
    )


def play(page: Path, folder: Path) -> list[str]:
    """Do all that a page says; what went otherwise, a line each."""
    wrong = []
    for fence in fences(page):
        if fence.file:
            (folder / fence.file).write_text(fence.text)
        elif fence.language == "python":
            (folder / "program_of_the_page.py").write_text(fence.text)
            wrong += _ended(run("python program_of_the_page.py", folder), "the program")
        elif "long" not in fence.words:
            for line, said in fence.commands():
                wrong += _as_said(line, said if "varies" not in fence.words else "...", folder)
    return wrong


def _as_said(line: str, said: str, folder: Path) -> list[str]:
    done = run(line, folder)
    if wrong := _ended(done, line):
        return wrong
    if not said.strip() or alike(done.stdout, said):
        return []
    return [f"{line} prints\n{done.stdout}\nand not\n{said}"]


def _ended(done: subprocess.CompletedProcess, what: str) -> list[str]:
    return [f"{what} ends with {done.returncode}: {done.stderr}"] if done.returncode else []


def alike(printed: str, said: str) -> bool:
    """Whether a text is what a page says, but for seconds that something took, spaces, and what `...` stands for."""
    parts = [re.escape(_spaced(part)) for part in said.split("...")]
    return re.fullmatch(r"\s*" + r".*".join(parts) + r"\s*", _spaced(printed), re.DOTALL) is not None


def _spaced(text: str) -> str:
    return " ".join(re.sub(r"wall time +\S+ \S+", "wall time", text).split())


def write(page: Path) -> None:
    """Put behind each command of a page what it prints now, unless something there stands for anything."""
    text = page.read_text()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for fence in fences(page):
            if fence.file:
                (folder / fence.file).write_text(fence.text)
            for line, said in fence.commands() if "long" not in fence.words else []:  # what varies is run for the files
                done = run(line, folder)
                print(
                    f"{page.name}: {line}: {done.returncode} {done.stderr[-300:] if done.returncode else ''}",
                    flush=True,
                )
                if "..." not in said and "varies" not in fence.words:
                    text = _put(text, line, done.stdout)
    page.write_text(text)


def _put(text: str, line: str, printed: str) -> str:
    """The page with a command's output."""
    lines, begin = text.splitlines(keepends=True), None
    for index, one in enumerate(lines):
        if one.startswith("$ ") and _command(one[2:] + _continued(lines, index))[0] == line:
            begin = index + 1 + _continued(lines, index).count("\n")
            break
    if begin is None:
        return text
    end = next(i for i in range(begin, len(lines)) if lines[i].startswith(("$ ", "```")))
    said = "".join(f"{one.rstrip()}\n" for one in printed.splitlines())
    return "".join([*lines[:begin], said, *lines[end:]])


def _continued(lines: list[str], index: int) -> str:
    """The lines that a command goes on in."""
    found = ""
    while lines[index].endswith("\\\n"):
        index += 1
        found += lines[index]
    return found


if __name__ == "__main__":
    for given in sys.argv[1:]:
        write(Path(given))
