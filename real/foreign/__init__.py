"""Other people's runtimes, run for real and recorded in our traces."""
