"""The choice of a cluster: a question about a job, the configurations that may answer it, a search among them, and a plan."""
