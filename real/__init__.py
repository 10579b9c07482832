"""The same protocols run for real: gradients by TensorFlow, messages by MPI, a clock on the wall."""

import sim  # noqa: F401  first of all, for Ctrl-C while modules are imported
