"""What came of a simulation, and what is said of it."""
