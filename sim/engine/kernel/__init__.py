"""The compiled kernel: flat arrays, events in order, and programs of ranks."""
