"""Experiments, each named by the question it answers."""

import sim  # noqa: F401  first of all, for Ctrl-C while modules are imported
