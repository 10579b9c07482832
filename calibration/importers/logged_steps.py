"""The steps that a table has, of all ranks or of some, in order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calibration.evidence import common_steps
from calibration.importers import step_tables
from calibration.importers.rounds import shortened
from calibration.importers.stretches import STRETCH
from sim.base.errors import WrongSetting
from sim.base.ranges import check_integer

if TYPE_CHECKING:
    import pandas as pd

    from calibration.importers.about import About

MOST_ROWS = 10**6  # steps of all ranks, of ranks that did not log


class Steps(NamedTuple):
    """The logged steps.

    Args:
        length_s: of each step, shape (steps,).
        compute_s: seconds that each rank computed, shape (steps, ranks); None if that was not logged.
        samples: of each rank and step; None if they were not logged.
        ranks: of the run.
        notes: how the table was read.
    """

    length_s: np.ndarray
    compute_s: np.ndarray | None
    samples: int | None
    ranks: int
    notes: tuple[str, ...] = ()


def logged(path: str | Path, about: About) -> Steps:
    """The steps in a table.

    Raises:
        WrongSetting: see `read`.
    """
    table, notes = step_tables.read(Path(path), about)
    table, of_last = _complete(table)
    found, every = _steps(table, str(path))
    said = [f"every {every}th step was logged"] * (every > 1)
    if about.ranks is not None:
        check_integer("--ranks", about.ranks, found.ranks, max(found.ranks, MOST_ROWS // len(found.length_s)))
        if found.ranks < about.ranks:
            like = "it" if found.ranks == 1 else "them"
            said.append(f"{found.ranks} of {about.ranks} ranks logged: the others are taken to be like {like}")
        found = of_all(found, about.ranks)
    said.append(f"the first step, {found.length_s[0]:.4g} s, is left out of the costs, as warm-up")
    return found._replace(notes=(*notes, *of_last, *said))


def _complete(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Without the last step of each stretch, if it alone lacks ranks: the log was cut within it, or is being written."""
    sizes = table.groupby([STRETCH, "step"]).size().rename("logged").reset_index()
    ranks = table["rank"].nunique()
    last = sizes[~sizes.duplicated(STRETCH, keep="last")]
    cut = last[last["logged"] < ranks]
    if len(sizes) - len(cut) < 2 or (sizes.drop(cut.index)["logged"] != ranks).any() or not len(cut):
        return table, []
    which_last = [(" before a new start" * (at < sizes.index[-1]), one) for at, one in cut["logged"].items()]
    said = [f"the last step{start} left out: {one} of {ranks} ranks logged it" for start, one in which_last]
    which = table.set_index([STRETCH, "step"]).index.isin(cut.set_index([STRETCH, "step"]).index)
    return table[~which], said


def of_all(found: Steps, ranks: int) -> Steps:
    """The steps of all ranks of a run of which some logged: the others are like these, at other moments."""
    known = found.compute_s
    if known is None or ranks == found.ranks:
        return found._replace(ranks=ranks)
    compute_s = common_steps.of_all(known, ranks)
    length_s = np.maximum(found.length_s, compute_s.max(axis=1))
    return found._replace(length_s=length_s, compute_s=compute_s, ranks=ranks)


def _steps(table: pd.DataFrame, source: str) -> tuple[Steps, int]:
    """The steps of all ranks, in order, and how many lie between two that were logged.

    Raises:
        WrongSetting: ranks or steps are missing or there twice, or counts of samples differ.
    """
    ranks = np.unique(table["rank"])
    steps = table[[STRETCH, "step"]].drop_duplicates().sort_values([STRETCH, "step"])
    if len(table) != len(steps) * len(ranks) or table.duplicated([STRETCH, "step", "rank"]).any():
        allowed = f"{len(steps) * len(ranks)}: each of {len(ranks)} ranks once in each of {len(steps)} steps"
        raise WrongSetting(f"{source}: rows", len(table), allowed)
    if ranks[0] not in (0, 1) or ranks[-1] - ranks[0] != len(ranks) - 1:
        raise WrongSetting(f"{source}: ranks", shortened(list(ranks)), "0, 1, 2, ... (or from 1 on), each of them")
    apart = np.unique(steps.groupby(STRETCH)["step"].diff().dropna())
    if table.attrs["gaps"]:  # steps that were left out
        apart = apart[:1] if (apart % apart[:1] == 0).all() else apart
    if len(steps) < 2 or len(apart) > 1 or (apart.max(initial=1) > 1 and len(steps) < 3):
        raise WrongSetting(f"{source}: steps", shortened(list(steps["step"])), "at least two, one after another")
    ordered = table.sort_values([STRETCH, "step", "rank"]).drop(columns=STRETCH)
    by_step = {name: ordered[name].to_numpy().reshape(len(steps), len(ranks)) for name in ordered.columns}
    samples, compute_s = by_step.get("samples"), by_step.get("compute_s")
    if samples is not None and (np.ptp(samples) > 0 or samples[0, 0] == 0):
        given = shortened([f"{count:g}" for count in np.unique(samples)])
        raise WrongSetting(f"{source}: samples", given, "one number above 0 for all: fixed minibatches")
    length_s = np.median(by_step["seconds"], axis=1)
    if compute_s is not None:
        length_s = np.maximum(length_s, compute_s.max(axis=1))
    every, each = int(apart[0]) if len(apart) else 1, None if samples is None else int(samples[0, 0])
    return Steps(length_s, compute_s, each, len(ranks)), every
