"""Statistical efficiency: how many updates a model needs to reach a target, by the number of samples in each."""
