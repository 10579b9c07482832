"""The simulated worlds that run a protocol's text: event (everything) and vector (fast, no sharing)."""
