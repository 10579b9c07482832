"""Fit and check, for programs."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibration import check as checking
from calibration import fit as fitting
from calibration.sources import TRACE
from sim.base.errors import WrongSetting
from sim.base.files import text_of
from sim.base.nearest import nearest
from sim.command import Parser
from sim.platform.cluster import Cluster

if TYPE_CHECKING:
    import pandas as pd

    from calibration.comparison import Checked

NO_KEYWORDS = (
    "help",
    "traces",
    "output",
    "name",
    "source",
    "profile",
    "tolerance",
    "json",
)  # given otherwise, or not at all


class Jobs(list["Checked"]):
    """Jobs that were measured, beside what a profile predicts of them.

    Args:
        found: a job each.
        notes: caveats.
    """

    def __init__(self, found: Iterable[Checked], notes: Iterable[str] = ()):
        super().__init__(found)
        self.notes = list(notes)

    def to_frame(self) -> pd.DataFrame:
        """A row for each job: the fields of calibration.comparison.Checked, seconds of a step among them, and `error`."""
        import pandas as pd

        return pd.DataFrame([{"error": one.error} | asdict(one) for one in self])


def fit(*traces: str | Path, name: str = "fitted", source: str = TRACE, **options: Any) -> Cluster:
    """The calibrated profile of recorded runs: the cluster that they ran on, with what its ranks cost.

    Args:
        traces: files of runs, or whatever else calibration.fit takes, such as "nccl-tests=links.txt".
        name: of the cluster.
        source: the format of files that do not say theirs, as `--from` of calibration.fit takes it.
        options: those of calibration.fit by their names with underscores, such as workload="resnet50" or link="25 Gbit/s, 20 us".

    Raises:
        WrongSetting: an unknown option, a value that it cannot have, or a file that cannot be read or holds nothing to fit.
    """
    if not text_of("name", name):
        raise WrongSetting("name", name, "a name, such as fitted")
    given = _options(fitting.parser(), traces, source, options)
    return fitting.fitted(Namespace(**given, output=name, name=name))


def check(profile: Cluster | str | Path, *traces: str | Path, source: str = TRACE, **options: Any) -> Jobs:
    """Real runs beside what a profile predicts of them.

    Args:
        profile: a calibrated profile, or its file.
        traces: files of runs that were not fitted; repeats of one job are judged by their mean.
        source, options: see `fit`; those of calibration.check.

    Raises:
        WrongSetting: see `fit`; or a run that the profile's cluster cannot have.
    """
    given = Namespace(**_options(checking.parser(), traces, source, options), profile=profile)
    return Jobs(*checking.checked(given, profile if isinstance(profile, Cluster) else None))


def _options(parser: Parser, traces: Iterable[str | Path], source: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a parser with their defaults, some of them given as keywords."""
    actions = {one.dest: one for one in parser._actions}
    known = {name: one for name, one in actions.items() if name not in NO_KEYWORDS}
    for name, value in options.items():
        if name not in known:
            raise WrongSetting(name, value, f"{', '.join(known)}{nearest(name, known)}")
        _check_kind(name, value, int if known[name].type is int else str)
    if not traces:
        raise WrongSetting("traces", None, "at least one file of a run")
    kinds = actions["source"].choices or ()
    if source not in kinds:
        raise WrongSetting("source", source, f"{', '.join(kinds)}{nearest(source, kinds)}")
    defaults = {name: action.default for name, action in known.items()}
    return defaults | options | {"traces": [str(path) for path in traces], "source": source}


def _check_kind(option: str, value: object, kind: type) -> None:
    """Refuse a value of another kind than the option's; None is fine."""
    if option == "set":
        if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
            return
        raise WrongSetting(option, value, "a list of NAME=VALUE")
    kinds: tuple[type, ...] = (int,) if kind is int else (str, os.PathLike)
    if value is not None and (isinstance(value, bool) or not isinstance(value, kinds)):
        raise WrongSetting(option, value, "an integer" if kind is int else "text")
