"""A rank of the event world, in parts: what it computes, sums, sends and draws."""
