"""Which cluster to choose: a question about a job, the configurations that may answer it, a search among them, and a plan."""
