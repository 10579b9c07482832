"""Laws of random quantities and of stragglers: each knows its mean and formula, and refuses bad parameters.

One object serves the simulator's draws and the real run's induced sleeps. A law is a distribution (sim.laws.base.Law). Stragglers
are sequences by step for each worker, of seconds and of factors; a law is the case in which all draws are independent.
"""

from sim.laws.base import Law, Steps, Stragglers, joined
from sim.laws.checked import Own
from sim.laws.distributions import (
    LAWS,
    AnyLaw,
    Component,
    Constant,
    Empirical,
    Exponential,
    FoldedMixture,
    Gamma,
    LogNormal,
    Normal,
    Pareto,
    ShiftedExponential,
    Weibull,
)
from sim.laws.sequences import KINDS, AnyStragglers, Independent, Markov, Persistent, Replay, SlowRanks, Together
