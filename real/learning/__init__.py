"""Training in simulated time: the event world's order and times, and real gradients of the versions that ranks hold."""
