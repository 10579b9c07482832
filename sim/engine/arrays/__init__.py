"""The arrays of a run: what the kernel reads and writes, made of a scenario."""
