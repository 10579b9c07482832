"""Gradients, updates and data of one rank, by TensorFlow."""
