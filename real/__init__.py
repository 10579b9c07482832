"""The same protocols run for real: gradients by TensorFlow, messages by MPI, a clock on the wall."""
