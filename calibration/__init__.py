"""Learn from traces what a cluster's ranks cost, and write it as a profile that the simulator reads."""
