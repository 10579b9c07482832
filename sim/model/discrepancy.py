"""Times as long as a model of costs says that computing takes, by where ranks are: a model discrepancy.

The constants of a fit smooth what was measured. This factor brings each measured number of hosts, or of workers on one host, to its mean
(Kennedy and O'Hagan, "Bayesian calibration of computer models", J. R. Statist. Soc. B, 2001).
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from sim.base.ranges import Ranks

Times = Annotated[float, Field(ge=0.1, le=10, allow_inf_nan=False)]
Discrepancy = tuple[tuple[Ranks, Ranks, Times], ...]  # hosts, workers, times


def times(known: Discrepancy, workers, hosts):
    """The factor where so many workers compute on so many hosts, numbers or arrays.

    Between two measured numbers of hosts, or of workers on one host, its logarithm is a line in that of the number. Beyond them it is
    that of the nearest. Where one host alone was measured, several have that of its most workers; where several were, one has that of the
    fewest.

    >>> known = ((1, 1, 1.0), (1, 4, 1.1), (2, 8, 1.2))
    >>> [round(float(times(known, *where)), 3) for where in ((1, 1), (2, 1), (8, 1), (16, 4))]
    [1.0, 1.049, 1.1, 1.2]
    """
    if not known:
        return 1.0
    places, ranks, factors = np.log(np.array(sorted(known))).T
    one = places == 0
    alone = np.interp(np.log(workers), ranks[one], factors[one]) if one.any() else factors[0]
    apart = factors[-1] if one.all() else np.interp(np.log(hosts), places[~one], factors[~one])
    return np.exp(np.where(np.asarray(hosts) > 1, apart, alone))
