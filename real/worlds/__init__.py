"""The worlds that run a protocol's text for real."""
