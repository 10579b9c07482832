"""A tensor of a model's file, and the lines that say what is counted as something else or left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from math import prod
from typing import Literal, NamedTuple

from sim.base.errors import WrongSetting, printable

Status = Literal["trained", "not trained", "left out"]
SAID: dict[Status, str] = {"trained": "counted as trained", "not trained": "not trained", "left out": "left out"}
POINTER = b"version "  # https://git-lfs.github.com/spec/v1
MOST_NAMES = 3  # of tensors in a line


class Tensor(NamedTuple):
    """One tensor.

    Args:
        name, shape: as in the file; a number alone has the shape ().
        status: what it is taken for.
        why: a reason for a status that is not plain; tensors of one reason are counted together.
    """

    name: str
    shape: tuple[int, ...]
    status: Status = "trained"
    why: str = ""

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def variable(self) -> dict:
        """As a workload's file says it; a number alone is a variable of one."""
        made = {"name": self.name, "shape": list(self.shape or (1,))}
        return made if self.status == "trained" else {**made, "trained": False}


def refuse_pointer(path: str, start: bytes) -> None:
    """Refuse what Git LFS leaves in place of a large file.

    Args:
        start: the file's first bytes, 8 or more.

    Raises:
        WrongSetting: it is that.
    """
    if start[:8] == POINTER:
        raise WrongSetting("from", path, "the file itself; this is a pointer of Git LFS, which git lfs pull replaces")


def said(tensors: Iterable[Tensor]) -> Iterator[str]:
    """A line for each reason, with numbers."""
    ordered = sorted((one for one in tensors if one.why), key=lambda one: (one.status, one.why))
    for (status, why), group in groupby(ordered, key=lambda one: (one.status, one.why)):
        alike = list(group)
        names = ", ".join(printable(one.name) for one in alike[:MOST_NAMES])
        more = ", ..." if len(alike) > MOST_NAMES else ""
        numbers = sum(one.size for one in alike)
        yield f"{SAID[status]}: {several(numbers, 'number')} in {several(len(alike), 'tensor')}, {why}: {names}{more}"


def several(count: int, what: str) -> str:
    """Things counted, as text."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def apart(tensors: Iterable[Tensor]) -> Iterator[Tensor]:
    """The same with names that are unique: one that came before has a number at its end."""
    seen: dict[str, int] = {}
    for one in tensors:
        seen[one.name] = times = seen.get(one.name, 0) + 1
        yield one if times == 1 else one._replace(name=f"{one.name}#{times}")
