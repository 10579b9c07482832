"""Quantiles of values against those of laws: a law that fits lies on the diagonal."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from calibration.laws.ranking import Fitted
from sim.base.files import write_whole
from sim.recording.panels import check_path

__all__ = ["check_path", "quantiles"]
SHOWN, POINTS = 4, 400  # laws, and quantiles of each
MARKS = "os^D"


def quantiles(values: np.ndarray, laws: list[Fitted], path: str | Path) -> None:
    """Write the picture of the best laws.

    Args:
        values: shape (count,), above 0.

    Raises:
        WrongSetting: another ending, or a folder that cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    check_path(path)
    shares = (np.arange(count := min(POINTS, len(values))) + 0.5) / count
    figure = Figure(figsize=(5.5, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    measured = np.quantile(values, shares)
    for mark, one in zip(MARKS, laws[:SHOWN], strict=False):
        drawn = [one.law.quantile(share) for share in shares]
        axes.plot(
            drawn,
            measured,
            mark,
            markersize=3,
            fillstyle="none",
            label=f"{one.law.kind}, AIC +{one.aic - laws[0].aic:.1f}",
        )
    ends = measured[[0, -1]]
    axes.plot(ends, ends, color="black", linewidth=1)
    axes.set(
        xlabel="quantile of the law, seconds", ylabel="quantile of the values, seconds", xscale="log", yscale="log"
    )
    axes.legend(frameon=False)
    write_whole(path, figure.savefig)
