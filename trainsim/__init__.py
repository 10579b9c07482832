"""The command `trainsim`: one name for all commands; each is also run by its module, as `python -m sim.run`."""

import sim  # noqa: F401  first of all, for Ctrl-C while modules are imported
