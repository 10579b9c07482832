"""The command `trainsim`: one name for all commands; each is also run by its module, as `python -m sim.run`."""
