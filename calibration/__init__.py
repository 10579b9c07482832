"""Learn from traces what a cluster's ranks cost, and write it as a profile that the simulator reads."""

import sim  # noqa: F401  first of all, for Ctrl-C while modules are imported
