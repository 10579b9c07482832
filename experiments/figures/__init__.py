"""Figures that others measured, as tables; each file says where they come from. They travel with the package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

FOLDER = Path(__file__).parent
CHOICE, HELD_OUT, KEPT_BACK = "choice", "held out", "kept back"
SECOND = "kept back of the second list"


class Source(NamedTuple):
    """Who measured, and whether it may be looked at.

    Args:
        cluster: the machines; sources of one cluster are in one split.
        split: CHOICE, or HELD_OUT of every choice, or KEPT_BACK: predicted once, after all choices.
        module: of experiments.extrapolation, which has its figures; empty if they are in sizes/NAME.csv.
        before: whether its cluster was in a choice before the list was made.
        network: of a host, as it is called; empty if nobody says.
        gpu: by its name in the catalogue, of rates of one GPU that no share of a peak was learned from; empty of other sources.
        published_because: of sources that were listed together, "scaling" if rows were published because it was bad, or "benchmark".
        listed: the number of the list that it came with.
    """

    name: str
    cluster: str
    split: str
    module: str = ""
    before: bool = False
    network: str = ""
    gpu: str = ""
    published_because: str = ""
    listed: int = 1

    @property
    def predicted_with(self) -> str:
        """The split that it is predicted with: those of the second list that were kept back are one."""
        return SECOND if self.split == KEPT_BACK and self.listed > 1 else self.split


def table(name: str) -> pd.DataFrame:
    """The table in NAME.csv."""
    import pandas as pd

    return pd.read_csv(FOLDER / f"{name}.csv", comment="#")


def sources() -> list[Source]:
    """All sources, as sources.toml lists them, which says the rule of their splits."""
    import tomllib

    listed = tomllib.loads((FOLDER / "sources.toml").read_text(encoding="utf-8"))
    return [Source(name, **given) for name, given in listed.items()]
