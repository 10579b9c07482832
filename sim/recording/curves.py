"""Loss and accuracy of a run against time, steps and samples, and the time at which a target is reached.

Time is the wall time since the run's common start, simulated or real. Warm-up is inside, and so are earlier evaluations.
An evaluation counts at the moment at which its parameters were made, and its own seconds make later ones later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from sim.base.errors import WrongSetting
from sim.base.models import read_only

if TYPE_CHECKING:
    import pandas as pd

    from sim.recording.traces import Trace

TARGETS = "accuracy=0.9 or loss=0.3: an accuracy above 0 and up to 1, or a loss above 0"


@dataclass(frozen=True)
class Curves:
    """The evaluations of one run in order, each array of shape (evaluations,).

    Args:
        step: updates of rank 0 behind the evaluated parameters, warm-up included: 1 after the first.
        time_s: when the last of these updates ended, of a text without a master at the last rank, seconds since the run's common start;
            0 before any.
        samples: whose gradients these updates applied, warm-up included; of a user's text without a master, those of all ranks.
        loss: mean over the test samples.
        accuracy: share of the test samples that are classified correctly, 0 to 1.
    """

    step: np.ndarray
    time_s: np.ndarray
    samples: np.ndarray
    loss: np.ndarray
    accuracy: np.ndarray

    def __post_init__(self):
        read_only(self)


@dataclass(frozen=True)
class Target:
    """What training is to reach.

    Args:
        of: what is compared.
        value: an accuracy is at least this, a loss at most.
    """

    of: Literal["accuracy", "loss"]
    value: float

    @classmethod
    def read(cls, text: str, setting: str = "--until") -> Target:
        """The target that a user wrote.

        Args:
            setting: which a complaint names.

        Raises:
            WrongSetting: no such target, or a value that cannot be reached.

        >>> Target.read("accuracy=0.9")
        Target(of='accuracy', value=0.9)
        """
        name, _, number = text.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = np.nan
        if not 0 < value <= {"accuracy": 1.0, "loss": np.finfo(float).max}.get(name, -1.0):
            raise WrongSetting(setting, text, TARGETS)
        return cls(cast(Literal["accuracy", "loss"], name), value)

    def met(self, loss: np.ndarray, accuracy: np.ndarray) -> np.ndarray:
        """Whether evaluations reach it, of one shape; NaN, as of a run that diverged, never does."""
        return accuracy >= self.value if self.of == "accuracy" else loss <= self.value


def curves(trace: Trace, source: str = "trace") -> Curves:
    """The evaluations of a trace; empty arrays if it has none.

    `header.evaluations` has loss and accuracy, the activities `evaluate` have the times, in the same order. The parameters are those of
    the last `update` of rank 0 that had ended when the evaluation began. Some runtimes evaluate at another rank than the one that updates.

    Args:
        source: the file, as a complaint names it.

    Raises:
        WrongSetting: more or fewer evaluations than activities.
    """
    found = np.array(trace.header.evaluations, float).reshape(-1, 3)
    starts_s = trace.rows.loc[trace.rows["activity"] == "evaluate", "start_s"].to_numpy(float)
    if len(found) and len(found) != len(starts_s):
        given = f"{len(found)} evaluations in its header, {len(starts_s)} activities `evaluate`"
        raise WrongSetting(source, given, "as many of both")
    updates = trace.rows[trace.rows["activity"] == "update"]
    if trace.header.by_all_ranks:
        return _of_all_ranks(trace, found, starts_s[: len(found)], updates)
    updates = updates[updates["rank"] == 0]
    ends_s = updates["end_s"].to_numpy(float)
    behind = np.searchsorted(ends_s, starts_s[: len(found)], side="right")
    step, time_s = np.append(0, updates["step"].to_numpy(int) + 1)[behind], np.append(0.0, ends_s)[behind]
    samples = np.append(0, np.cumsum(updates["samples"].to_numpy(int)))[behind]
    return Curves(step, time_s, samples, *found.T[1:])


def _of_all_ranks(trace: Trace, found: np.ndarray, starts_s: np.ndarray, updates: pd.DataFrame) -> Curves:
    """The same where steps are those of all ranks: an evaluation counts when the last of them has updated in its step."""
    from sim.recording.conformance import rounds_of

    step, samples = found[:, 0].astype(int) + 1, rounds_of(trace).samples
    ends_s = updates.groupby("step")["end_s"].max().reindex(step - 1).fillna(0.0).to_numpy(float)
    applied = np.append(0, np.cumsum(samples))[np.minimum(step, len(samples))]
    return Curves(step, np.maximum(starts_s, ends_s), applied, *found.T[1:])


def reached(curves: Curves, target: Target | str) -> float:
    """Seconds until the first evaluation that reaches a target; NaN if none does.

    Args:
        target: or its text, such as "accuracy=0.9".

    Raises:
        WrongSetting: a text that is no target.
    """
    target = Target.read(target) if isinstance(target, str) else target
    met = target.met(curves.loss, curves.accuracy)
    return float(curves.time_s[met.argmax()]) if met.any() else np.nan
