"""Figures that others measured, as tables; each file says where they come from. They travel with the package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

FOLDER = Path(__file__).parent


def table(name: str) -> pd.DataFrame:
    """The table in NAME.csv."""
    import pandas as pd

    return pd.read_csv(FOLDER / f"{name}.csv", comment="#")
