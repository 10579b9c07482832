"""An example of every kind of law and of stragglers, for tests over the registry."""

from sim import laws, stragglers

LAWS = {
    "constant": laws.Constant(value=2.5),
    "normal": laws.Normal(mean=1, std=1.5),
    "lognormal": laws.LogNormal(mean=3, cv=0.4),
    "exponential": laws.Exponential(mean=3),
    "shifted-exponential": laws.ShiftedExponential(shift=1, mean=3),
    "gamma": laws.Gamma(mean=2, cv=0.7),
    "weibull": laws.Weibull(mean=2, shape=0.8),
    "pareto": laws.Pareto(mean=1.4, shape=3.5),
    "folded-mixture": stragglers.NAMED["niagara"],
    "empirical": laws.Empirical(values=(1, 5, 2, 9)),
}
SEQUENCES = {
    "independent": laws.Independent(seconds=LAWS["gamma"]),
    "markov": laws.Markov(seconds="50 ms", p_slow=0.1, p_recover=0.3),
    "persistent": laws.Persistent(seconds=LAWS["lognormal"], persistence=0.8),
    "slow-ranks": laws.SlowRanks(seconds=LAWS["gamma"], rank=2),
    "replay": laws.Replay(values=((0.1, 0.2, 0.3), (0.0, 0.5, 0.0))),
    "together": laws.Together(of=(LAWS["gamma"], LAWS["gamma"], laws.Constant(value=1))),
}
FACTORS = {
    "independent": laws.Independent(factor=laws.LogNormal(mean=1.2, cv=0.3)),
    "markov": laws.Markov(factor=2, p_slow=0.1, p_recover=0.3),
    "persistent": laws.Persistent(factor=laws.Gamma(mean=1.5, cv=0.2), persistence=0.8),
    "slow-ranks": laws.SlowRanks(factor=1.3, rank=(1, 3)),
    "replay": laws.Replay(values=((1.0, 1.5), (2.0, 1.0)), unit="factor"),
    "together": laws.Together(of=(laws.Independent(factor=1.5), laws.Markov(factor=2, p_slow=0.1, p_recover=0.3))),
}
EVERY = {**LAWS, **SEQUENCES, **{f"{name}, factor": one for name, one in FACTORS.items()}}
