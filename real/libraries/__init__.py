"""Libraries that sum gradients in place of our text: Horovod, and TensorFlow's collectives."""
