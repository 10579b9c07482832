"""The engine: programs lowered from protocols' texts, run by one compiled kernel over flat arrays."""
