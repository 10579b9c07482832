"""What a real run writes as it goes."""
