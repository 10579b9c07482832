"""Profiles for programs: they are fitted, predict jobs and are checked."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibration import check as checking
from calibration import fit as fitting
from sim import options, simulated_options
from sim.base.errors import WrongSetting, nearest
from sim.base.files import text_of
from sim.command import Parser
from sim.platform import cluster
from sim.platform.cluster import Cluster
from sim.simulation import simulate
from sim.sweeps import grid

if TYPE_CHECKING:
    import pandas as pd

    from calibration.comparison import Checked
    from sim.answers.result import Result
    from sim.job.scenario import Scenario

OF_THE_CALL = ("cluster", "world", "within", "replications")  # options of sim.run that `job` has not
# Options that are given otherwise, or not at all.
NO_KEYWORDS = ("help", "traces", "output", "name", "source", "profile", "tolerance", "json")


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


class Profile(Cluster):
    """A cluster with what its ranks cost and how the runs were trained that it was fitted on: a job that can be predicted."""

    @classmethod
    def read(cls, path: str | Path) -> Profile:
        """The profile in a file that calibration.fit or real.calibrate wrote.

        Raises:
            WrongSetting: no such file, or none of a cluster.
        """
        return cls.of(cluster.read(path))

    @classmethod
    def of(cls, made: Cluster) -> Profile:
        """The profile that a cluster is."""
        return cls.model_construct(made.model_fields_set, **dict(made))

    def job(self, **asked: object) -> Scenario:
        """The job of the fitted runs, but for what is asked.

        Args:
            asked: options of sim.run by their names with underscores, such as hosts=8, batch=64, protocol="ddp".

        Raises:
            WrongSetting: an unknown option, or a job that cannot be.
        """
        read, values = options.Readers(), dict(asked)
        if elsewhere := [name for name in OF_THE_CALL if name in values]:
            raise WrongSetting(elsewhere[0], values[elsewhere[0]], "an option of the job on this cluster")
        settings = values.pop("set", [])
        given = {name: grid.value_of(name, str(value), "") for name, value in values.items() if value is not None}
        read.cluster = lambda _, gpus_per_host=None: self  # type: ignore[assignment]
        defaults = vars(grid.parser().parse_args([]))
        return simulated_options.scenario(Namespace(**defaults | given | {"set": settings, "cluster": self.name}), read)

    def predict(
        self,
        *,
        world: str = "auto",
        replications: int | None = None,
        within_s: float = simulated_options.WITHIN_S,
        **asked: Any,
    ) -> Result:
        """The simulated job of the fitted runs, but for what is asked: `profile.predict(hosts=8, batch=64).samples_per_s`.

        Args:
            world, replications, within_s: see sim.simulate.
            asked: see `job`.

        Raises:
            WrongSetting: see `job` and sim.simulate.
            RunFailed: see sim.simulate.
        """
        return simulate(self.job(**asked), world, replications, within_s=within_s)

    def check(self, *traces: str | Path, source: str | None = None, **options: Any) -> Jobs:
        """Runs that were not fitted, beside what this predicts of them; see trainsim.check."""
        return check(self, *traces, source=source, **options)

    def summary(self) -> str:
        """What was fitted, from what, and how well, in the lines that calibration.fit prints."""
        return "\n".join(fitting.summary(self))

    def __repr__(self) -> str:
        return f"{self.name}: {self.summary()}"

    __str__ = __repr__


def fit(*traces: str | Path, name: str = "fitted", source: str | None = None, **options: Any) -> Profile:
    """The calibrated profile of recorded runs: the cluster that they ran on, with what its ranks cost.

    Args:
        traces: files of runs, or whatever else calibration.fit takes, such as "nccl-tests=links.txt".
        name: of the cluster.
        source: the format of files that do not say theirs, as `--from` of calibration.fit takes it; None if their contents do.
        options: those of calibration.fit by their names with underscores, such as workload="resnet50" or link="25 Gbit/s, 20 us".

    Raises:
        WrongSetting: an unknown option, a value that it cannot have, or a file that cannot be read or holds nothing to fit.
    """
    if not text_of("name", name):
        raise WrongSetting("name", name, "a name, such as fitted")
    given = _options(fitting.parser(), traces, source, options)
    return Profile.of(fitting.fitted(Namespace(**given, output=name, name=name)))


def check(profile: Cluster | str | Path, *traces: str | Path, source: str | None = None, **options: Any) -> Jobs:
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


def _options(
    parser: Parser, traces: Iterable[str | Path], source: str | None, options: dict[str, Any]
) -> dict[str, Any]:
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
    if source is not None and source not in kinds:
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
