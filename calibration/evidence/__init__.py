"""Evidence from traces, before anything is fitted."""
