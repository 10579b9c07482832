"""The files that a real run writes as it goes."""
