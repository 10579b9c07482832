"""A job whole: the scenario, the head of its trace, and the way from either to the other."""
