"""The report on fitted laws, and the files that hold them."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import numpy as np

from calibration.laws import ranking, ranks, sources
from calibration.laws.ranking import FEWEST, Fitted
from sim.base.errors import WrongSetting
from sim.base.files import write_text
from sim.base.home import installed
from sim.laws import Constant, Empirical, Independent, Law, Persistent, SlowRanks, Stragglers, Together
from sim.laws.distributions import MOST_VALUES

REJECTED = 0.05
# Words of a column that has no seconds.
FACTORS = {*("factor", "factors", "ratio", "slowdown"), *("speed", "speedup", "relative")}


def run(given: argparse.Namespace) -> None:
    """Fit, print, and write.

    Raises:
        WrongSetting: see `sources.read`; or too few values.
    """
    if given.unit is None:
        if FACTORS & set(re.split(r"[^a-z]+", (given.column or "").lower())):
            raise WrongSetting("--as", None, f"factor, or seconds: {given.column} sounds like factors")
        given.unit = "seconds"
    measured = sources.read(given.file, given.column, given.by)
    values = measured.all
    if len(values) < FEWEST:
        raise WrongSetting(given.file, f"{len(values)} values above 0", f"at least {FEWEST}")
    if np.ptp(values):
        law, lines = _fitted(given, measured)
    elif measured.zeros and given.unit == "seconds":
        law, lines = _kept(measured.with_zeros), _of_zeros(measured)
    else:
        law, lines = Constant(value=float(values[0])), [f"all are {_number(values[0])}: constant"]
    if given.output:
        _write(given, law)
        lines.append(f"{given.output}: python -m {installed('sim.run')} --stragglers {given.output}")
    print("\n".join([_headline(given.file, measured, given.unit), *lines]))


def _fitted(given: argparse.Namespace, measured: sources.Measured) -> tuple[Stragglers, list[str]]:
    """The law that slows workers down, and the lines about it."""
    known = measured.by_rank and min(map(len, measured.values.values())) >= ranks.FEWEST_STEPS
    found = ranks.varies(measured.values) if known and not measured.zeros else None
    slow = found.slow if found else {}
    values = np.concatenate([series / slow.get(rank, 1.0) for rank, series in measured.values.items()])
    laws, notes = ranking.ranked(values)
    if not laws:
        raise WrongSetting(given.file, notes[0], "values that some law can have")
    lines = [*_ranking(laws), *notes, *(_of_ranks(found) if found else [])]
    if measured.zeros and given.unit == "seconds":
        return _kept(measured.with_zeros), [*lines, *_of_zeros(measured)]
    law = _kept(values) if laws[0].p_value < REJECTED else laws[0].law
    return _stragglers(law, found, given.unit, float(np.median(values))), lines


def _stragglers(law: Law, found: ranks.Varies | None, unit: str, median: float) -> Stragglers:
    """A law of sleeps, or of factors on computing, with the values' persistence; with the slow ranks, if it is of factors.

    Slow ranks are no part of sleeps, because what they have more is in proportion to their computing.

    Args:
        law: of the values, in seconds.
        found: how they vary; None if it is not known whose they are.
        unit: seconds or factor.
        median: of the values, seconds; a factor of 1.
    """
    drawn = {"seconds": law} if unit == "seconds" else {"factor": law.scaled(1 / median)}
    if found and found.persists:
        main: Stragglers = Persistent(persistence=round(found.persistence, 4), **drawn)
    else:
        main = law if unit == "seconds" else Independent(**drawn)
    slow = found.slow if found and unit == "factor" else {}
    parts = [SlowRanks(rank=(rank,), factor=round(ratio, 4)) for rank, ratio in slow.items()]
    return Together(of=(main, *parts)) if parts else main


def _kept(values: np.ndarray) -> Empirical:
    """All values, or as many of their quantiles as a law may have."""
    at = np.linspace(0, len(values) - 1, min(len(values), MOST_VALUES)).round().astype(int)
    return Empirical(values=np.sort(values)[at].tolist())


def _of_zeros(measured: sources.Measured) -> list[str]:
    mean_s, share = measured.with_zeros.mean(), measured.zeros / len(measured.with_zeros)
    said = f"{share:.1%} of the values are 0: the laws above are of the others"
    said += f"; what is written is empirical, of all, with the mean {_number(mean_s)}"
    return [said, "whether stragglers last, or ranks are slow, is not tested with zeros among the values"]


def _headline(path: str, measured: sources.Measured, unit: str) -> str:
    values = measured.with_zeros if unit == "seconds" else measured.all
    middle, high, most = map(_number, np.quantile(values, (0.5, 0.95, 1)))
    said = f"{path}: {len(values):,} values, median {middle}, p95 {high}, largest {most}"
    if measured.by_rank:
        said += f"; {len(measured.values)} ranks"
    if not measured.zeros:
        return said
    of_zeros = f"{measured.zeros:,} of them 0, the mean {_number(values.mean())}"
    return f"{said}; {of_zeros if unit == 'seconds' else f'{measured.zeros:,} zeros left out, which are no factors'}"


def _ranking(laws: list[Fitted]) -> list[str]:
    """A table, in which AIC is above the smallest, and the best."""
    heads = f"{'law':19} {'AIC':>9} {'distance':>9} {'p':>6}  parameters, and their 90 % intervals"
    said, first = [heads], laws[0]
    for one in laws:
        ends = one.intervals.items()
        each = (f"{name} {getattr(one.law, name):.4g} ({low:.4g} to {high:.4g})" for name, (low, high) in ends)
        figures = f"{one.aic - first.aic:>+9.1f} {one.distance:>9.3f} {one.p_value:>6.3f}"
        said.append(f"{one.law.kind:19} {figures}  {', '.join(each)}")
    said.append(f"best by AIC: {first.law.kind}")
    if first.p_value < REJECTED:
        clearly = f"clearly not {first.law.kind} (p {first.p_value:.3f})"
        said.append(f"but values are {clearly}: what is written is empirical, of all of them")
    return said


def _of_ranks(found: ranks.Varies) -> list[str]:
    slow = ", ".join(f"rank {rank} ({ratio:.3f} times the median rank)" for rank, ratio in found.slow.items())
    apart = "; their slowness is not in the laws above" if found.slow else ""
    said = [f"slow throughout: {slow or 'no rank'} (F test, p {found.ranks_p:.3g}){apart}"]
    if found.slow:
        laws = " + ".join(f"slow-ranks(rank={rank}, factor={ratio:.4g})" for rank, ratio in found.slow.items())
        said.append(f'simulate their slowness with --stragglers "{laws}"')
    lasting = "stragglers last" if found.persists else "each step draws anew"
    said.append(f"{lasting}: autocorrelation {found.persistence:.3f} from step to step (p {found.persistence_p:.3f})")
    return said


def _write(given: argparse.Namespace, law: Stragglers) -> None:
    import tomli_w

    table = law.model_dump(mode="json", exclude_none=True)
    text = f"# Fitted by calibration.laws to {Path(given.file).name}.\n{tomli_w.dumps(table)}"
    write_text(given.output, text)


def _number(value: float) -> str:
    return f"{value:.4g}"
