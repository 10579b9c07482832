"""The coverage of planted parameters by intervals: `python -m calibration.laws.coverage`."""

from __future__ import annotations

import numpy as np

from calibration.laws.families import FAMILIES
from calibration.laws.ranking import LEVEL
from sim import command
from sim.base.ranges import check_integer
from sim.laws import Gamma, Law, LogNormal, Normal, Pareto, ShiftedExponential, Weibull

PLANTED = (
    Normal(mean=0.25, std=0.05),
    LogNormal(mean=0.05, cv=1.5),
    ShiftedExponential(shift=0.02, mean=0.03),
    Gamma(mean=0.05, cv=0.8),
    Weibull(mean=0.05, shape=0.7),
    Pareto(least=0.02, shape=2.5),
)


def parser() -> command.Parser:
    """The command line."""
    parser = command.Parser(
        prog="calibration.laws.coverage", description="How often 90 % intervals cover planted parameters."
    )
    parser.add_argument("--repeats", type=int, default=200, metavar="N", help="data sets of each law")
    parser.add_argument("--values", type=int, default=100, metavar="N", help="values in each of them")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the values")
    return parser


def covered(law: Law, repeats: int, values: int, rng: np.random.Generator) -> dict[str, float]:
    """The share of data sets whose interval has the planted value, of each parameter."""
    family, hits = FAMILIES[law.kind], {}
    for _ in range(repeats):
        drawn = law.draw(rng, values)
        for name, (low, high) in family.intervals(family.fit(drawn), drawn, LEVEL).items():
            hits[name] = hits.get(name, 0) + (low <= getattr(law, name) <= high)
    return {name: count / repeats for name, count in hits.items()}


def main(argv: list[str] | None = None) -> int:
    """Run the command.

    Raises:
        WrongSetting: a number out of its range.
    """
    given = parser().parse_args(argv)
    for name, least, most in (("repeats", 1, 10**5), ("values", 8, 10**6), ("seed", 0, 2**63)):
        check_integer(f"--{name}", getattr(given, name), least, most)
    rng = np.random.default_rng(given.seed)
    print(
        f"{given.repeats} data sets of {given.values} values of each law; 90 % intervals cover the planted parameter in"
    )
    for law in PLANTED:
        found = covered(law, given.repeats, given.values, rng)
        said = ", ".join(f"{name} ({getattr(law, name):g}) {share:.1%}" for name, share in found.items())
        print(f"{law.kind:20} {said}", flush=True)
    return 0


if __name__ == "__main__":
    command.run("calibration.laws.coverage", main)
