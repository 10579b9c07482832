"""Laws of random quantities and of stragglers: each knows its mean and formula, and refuses bad parameters.

One object serves the simulator's draws and the real run's induced sleeps. A law is a distribution (sim.laws.base.Law). Stragglers
are sequences by step for each worker, of seconds and of factors; a law is the case in which all draws are independent.
"""

from sim.laws.base import Law, Stragglers
from sim.laws.constant import Constant
from sim.laws.empirical import Empirical
from sim.laws.exponential import Exponential
from sim.laws.folded_mixture import Component, FoldedMixture
from sim.laws.gamma import Gamma
from sim.laws.independent import Independent
from sim.laws.kinds import LAWS, AnyLaw
from sim.laws.lognormal import LogNormal
from sim.laws.markov import Markov
from sim.laws.normal import Normal
from sim.laws.own import Own
from sim.laws.pareto import Pareto
from sim.laws.persistent import Persistent
from sim.laws.replay import Replay
from sim.laws.shifted_exponential import ShiftedExponential
from sim.laws.slow_ranks import SlowRanks
from sim.laws.steps import Steps, joined
from sim.laws.together import KINDS, AnyStragglers, Together
from sim.laws.weibull import Weibull

__all__ = [
    "KINDS",
    "LAWS",
    "AnyLaw",
    "AnyStragglers",
    "Component",
    "Constant",
    "Empirical",
    "Exponential",
    "FoldedMixture",
    "Gamma",
    "Independent",
    "Law",
    "LogNormal",
    "Markov",
    "Normal",
    "Own",
    "Pareto",
    "Persistent",
    "Replay",
    "ShiftedExponential",
    "SlowRanks",
    "Steps",
    "Stragglers",
    "Together",
    "Weibull",
    "joined",
]
